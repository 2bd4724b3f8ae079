/* examples/static.c promises not one heap call: its main runs here, where they are counted. */
#include <stdio.h>

#include "test.h"

#define main static_main
int static_main(void);
#include "../../examples/static.c" /* NOLINT(bugprone-suspicious-include): the program itself */
#undef main

TEST(static_example_makes_no_heap_call)
{
    puts("  the example says:"); /* also gives stdout its buffer */
    test_heap before = test_heap_now();
    CHECK(static_main() == 0);
    test_heap after = test_heap_now();
    CHECK(after.calls == before.calls && after.frees == before.frees);
}

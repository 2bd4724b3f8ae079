/* mica ops: the operations of the library. */
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "ops/list.h"

static const struct {
    const char *name, *family;
} ops[] = {
#define OP_ROW(name, family) {#name, #family},
    MICA_OPS(OP_ROW)};

static int run(int argc, char **argv)
{
    int filters = options_read(&verb_ops, NULL, argc, argv);
    if (filters < 0)
        return EXIT_USAGE;
    size_t shown = 0;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        bool wanted = filters == 0;
        for (int f = 0; f < filters; f++)
            wanted = wanted || strstr(ops[i].name, argv[f]) != NULL || strcmp(ops[i].family, argv[f]) == 0;
        if (!wanted)
            continue;
        printf("%-32s include/mica/ops/%s.h\n", ops[i].name, ops[i].family);
        shown++;
    }
    if (shown == 0) {
        fprintf(stderr, "mica ops: no matching operation or family\n");
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

const verb verb_ops = {
    .name = "ops",
    .arguments = "[FILTER...]",
    .summary = "list the operations and the headers that declare them",
    .details = "A FILTER selects the operations whose name contains it, or a whole family.",
    .run = run,
    .examples =
        (const verb_example[]){
            {"ops", "all of them"},
            {"ops conv pool", "those with \"conv\" in their name, and the family \"pool\""},
            {NULL, NULL},
        },
};

/* A placed context's heap: the rest of its block. */
#include <string.h>

#include "base/block_heap.h"
#include "base/context.h"
#include "test.h"

TEST(block_heap_gives_pieces_that_do_not_overlap)
{
    enum { BLOCK = 8192, PIECES = 24 };
    static _Alignas(64) char block[BLOCK];
    mica_block_heap heap;
    mica_allocator a = mica_block_heap_begin(&heap, block, BLOCK);
    struct {
        unsigned char *at;
        size_t bytes;
    } piece[PIECES] = {{0}};
    test_random r = test_seed(3);
    for (int step = 0; step < test_effort(20000); step++) {
        int k = test_int(&r, 0, PIECES - 1);
        if (piece[k].at != NULL) {
            bool whole = true;
            for (size_t i = 0; i < piece[k].bytes; i++)
                whole = whole && piece[k].at[i] == (unsigned char)k;
            REQUIRE(whole);
            a.release(a.user, piece[k].at, piece[k].bytes, MICA_ALIGN);
            piece[k].at = NULL;
            continue;
        }
        piece[k].bytes = (size_t)test_int(&r, 0, 1500);
        piece[k].at = a.allocate(a.user, piece[k].bytes, MICA_ALIGN);
        if (piece[k].at == NULL)
            continue;
        REQUIRE((uintptr_t)piece[k].at % MICA_ALIGN == 0);
        REQUIRE((char *)piece[k].at >= block && (char *)piece[k].at + piece[k].bytes <= block + BLOCK);
        memset(piece[k].at, k, piece[k].bytes);
    }
    for (int k = 0; k < PIECES; k++)
        if (piece[k].at != NULL)
            a.release(a.user, piece[k].at, piece[k].bytes, MICA_ALIGN);
    void *all = a.allocate(a.user, BLOCK, MICA_ALIGN); /* free pieces have been joined */
    CHECK(all == block);
    CHECK(a.allocate(a.user, 1, MICA_ALIGN) == NULL);
}

/* A net is built, compiled, bound and run within two blocks. */
TEST(context_placed_in_a_large_block_needs_no_heap)
{
    enum { PLACE = 256 << 10, BLOCK = 64 << 10 };
    static _Alignas(64) char place[PLACE], block[BLOCK];
    mica_context *ctx;
    mica_net *net;
    size_t bytes = PLACE;
    test_heap before = test_heap_now();
    REQUIRE(mica_context_place(&ctx, place, &bytes, &(mica_context_opts){.workspace_bytes = 64}) == MICA_OK);
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){1, 8});
    mica_value y = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 4, .activation = MICA_RELU});
    CHECK_OK(ctx, mica_net_output(net, "y", y));
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, block, BLOCK));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    CHECK_OK(ctx, mica_net_forward(net));
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    CHECK(test_heap_now().calls == before.calls);
    bytes = PLACE;
    REQUIRE(mica_context_place(&ctx, place, &bytes, &(mica_context_opts){.workspace_bytes = PLACE - 2048}) ==
            MICA_OK);
    CHECK_ERROR(ctx, mica_workspace_reserve(ctx, PLACE), MICA_ERR_MEMORY,
                "memory error: cannot allocate 262144 bytes");
}

/* Models that are imported and written, out of memory at every allocation. */
#include <stdio.h>

#include <mica/mica.h>

#include "io/scratch.h"
#include "net/net.h"
#include "onnx/proto.h"
#include "oom.h"

typedef struct import_case {
    proto (*make)(void);
    bool train;
    const char *path; /* to be written to; NULL: not */
    int imported;     /* how often it was so far, and whether to a net of fixed sizes */
    bool fixed;
} import_case;

/* What a refusal does not end is as it is without one. */
static void check_sizes(import_case *c, const mica_net *net)
{
    bool fixed = net->sizes_fixed != NULL;
    CHECK(c->imported == 0 || fixed == c->fixed);
    c->fixed = fixed;
    c->imported++;
}

/* Whether the model's input has a size that can be set. */
static bool is_open(const mica_onnx *model)
{
    mica_onnx_value v;
    return mica_onnx_input(model, &v, 0) == MICA_OK && v.rank > 0 && v.symbol[0] != NULL;
}

static mica_status import_all(mica_context *ctx, import_case *c, const proto *bytes)
{
    mica_onnx *model = NULL;
    mica_net *net = NULL;
    mica_onnx_set set = {.name = "n", .size = 3};
    mica_status status = mica_onnx_over(ctx, &model, bytes->bytes, bytes->size, "a test");
    if (status == MICA_OK)
        status = mica_net_create(ctx, &net);
    if (status == MICA_OK)
        status = mica_onnx_build(model, net,
                                 &(mica_onnx_opts){.sets = &set, .count = is_open(model), .train = c->train});
    if (status == MICA_OK)
        check_sizes(c, net);
    if (status == MICA_OK)
        status = mica_net_compile(net, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    if (status == MICA_OK)
        status = mica_onnx_load(model, net);
    if (status == MICA_OK && c->path != NULL)
        status = mica_onnx_write(net, c->path, NULL);
    mica_net_destroy(net);
    mica_onnx_close(model);
    return status;
}

static mica_status oom_import(const mica_allocator *allocator, void *argument)
{
    import_case *c = argument;
    proto bytes = c->make();
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx,
                                             &(mica_context_opts){.allocator = allocator, .threads = 1});
    if (status == MICA_OK)
        status = import_all(ctx, c, &bytes);
    if (ctx != NULL)
        mica_context_destroy(ctx);
    proto_free(&bytes);
    return status;
}

TEST(onnx_import_out_of_memory)
{
    for (const proto_sample *s = proto_samples; s->name != NULL; s++)
        for (int train = 0; train < 2; train++)
            CHECK_MSG(test_oom(oom_import, &(import_case){.make = s->make, .train = train != 0}) > 8, "%s",
                      s->name);
}

TEST(onnx_write_out_of_memory)
{
    scratch folder = scratch_make();
    char path[600];
    snprintf(path, sizeof path, "%s/model.onnx", folder.folder);
    for (const proto_sample *s = proto_samples; s->name != NULL; s++)
        CHECK_MSG(test_oom(oom_import, &(import_case){.make = s->make, .path = path}) > 8, "%s", s->name);
    scratch_remove(&folder);
}

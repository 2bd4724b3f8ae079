/* Imports at other sizes, for sizes.c to compare with. */
#include "net/net.h"
#include "onnx/state.h"

static const char depends[] = "the model's graph depends on its sizes";

void mica_onnx_drop_import(mica_onnx_import *im)
{
    for (int i = 0; i * MICA_ONNX_PAGE < im->count; i++)
        mica_release(im->ctx, im->pages[i], MICA_ONNX_PAGE * sizeof **im->pages);
    mica_release(im->ctx, im->pages, (size_t)im->page_room * sizeof *im->pages);
    mica_release(im->ctx, im->calls, (size_t)im->call_room * sizeof *im->calls);
    mica_release(im->ctx, im->makers, (size_t)im->maker_room * sizeof *im->makers);
}

/* Whether two imports have the same values, number by number. */
static bool are_alike(const mica_onnx_import *a, const mica_onnx_import *b)
{
    return a->count == b->count && a->decisions == b->decisions;
}

/* The same with other sizes, into a net that nobody needs: see sizes.c. */
static mica_status import_sized(mica_onnx_import *sized, const mica_onnx_import *im, mica_onnx_sizing sizing,
                                const mica_onnx_import *twin)
{
    *sized = *im;
    sized->sizing = sizing;
    sized->twin = twin;
    sized->status = mica_net_create(im->ctx, &sized->net);
    if (sized->status == MICA_OK) {
        mica_onnx_import_model(sized);
        mica_net_destroy(sized->net);
    }
    return sized->status;
}

/* Whether some size may be smaller. */
static bool sets_symbols(const mica_onnx_opts *opts)
{
    for (int i = 0; i < opts->count; i++)
        if (opts->sets[i].value == NULL && opts->sets[i].size > 1)
            return true;
    return false;
}

/* The twin, which has been compared with one of its own at low sizes. That cannot be where an operator becomes nothing
 * there, as the first ten of two do; but other branches or turns tell enough. */
static mica_status import_less(mica_onnx_import *twin, const mica_onnx_import *im)
{
    mica_onnx_import low;
    mica_status status = import_sized(&low, im, MICA_ONNX_LEAST, NULL);
    if (status != MICA_OK && status != MICA_ERR_MEMORY) {
        mica_onnx_drop_import(&low);
        status = import_sized(&low, im, MICA_ONNX_HALF, NULL);
    }
    bool made = status == MICA_OK;
    if (status != MICA_ERR_MEMORY)
        status = import_sized(twin, im, MICA_ONNX_LESS, made ? &low : NULL);
    if (made && twin->decisions != low.decisions)
        twin->fixed = depends;
    else if (made && twin->count != low.count)
        twin->fixed = NULL;
    twin->twin = NULL;
    mica_onnx_drop_import(&low);
    return status;
}

void mica_onnx_import_twin(mica_onnx_import *twin, mica_onnx_import *im)
{
    mica_status status = sets_symbols(im->opts) ? import_less(twin, im) : MICA_ERR_STATE;
    im->twin = status == MICA_OK ? twin : NULL;
    im->status = status == MICA_ERR_MEMORY ? status : MICA_OK;
}

mica_status mica_onnx_settle_sizes(const mica_onnx_import *im)
{
    if (im->status != MICA_OK)
        return im->status;
    MICA_TRY(mica_net_status(im->net));
    if (!im->varies)
        return mica_net_fix_sizes(im->net, im->named
                                               ? "at a size of 1 there is no smaller one to compare with"
                                               : "the model has no named sizes");
    if (im->twin == NULL || !are_alike(im, im->twin))
        return mica_net_fix_sizes(im->net, depends);
    const char *fixed = im->fixed != NULL ? im->fixed : im->twin->fixed;
    return fixed != NULL ? mica_net_fix_sizes(im->net, fixed) : MICA_OK;
}

/* An import and those that it is compared with (sizes.c): one at sizes a little smaller, and, if that leaves a doubt
 * (doubt.c), others until one differs. These are compared with what has entered the net: one import for each. */
#include "net/net.h"
#include "onnx/pool.h"
#include "onnx/state.h"

#define MOST_SIZINGS 96 /* all: the last are sizes of 1 */

void mica_onnx_drop_import(mica_onnx_import *im)
{
    for (int i = 0; i * MICA_ONNX_PAGE < im->count; i++)
        mica_release(im->ctx, im->pages[i], MICA_ONNX_PAGE * sizeof **im->pages);
    mica_release(im->ctx, im->pages, (size_t)im->page_room * sizeof *im->pages);
    mica_release(im->ctx, im->calls, (size_t)im->call_room * sizeof *im->calls);
    mica_release(im->ctx, im->makers, (size_t)im->maker_room * sizeof *im->makers);
    mica_onnx_release_chunks(im->ctx, &im->chunks);
}

/* With other sizes, into a net that nobody needs. To be dropped even if it fails. */
static mica_status import_sized(mica_onnx_import *other, const mica_onnx_import *fresh, int sizing)
{
    *other = *fresh;
    other->sizing = sizing;
    other->status = mica_net_create(fresh->ctx, &other->net);
    if (other->status == MICA_OK) {
        mica_onnx_import_model(other);
        mica_net_destroy(other->net);
    }
    return other->status;
}

/* Whether some size may be smaller. */
static bool sets_symbols(const mica_onnx_opts *opts)
{
    for (int i = 0; i < opts->count; i++)
        if (opts->sets[i].value == NULL && opts->sets[i].size > 1)
            return true;
    return false;
}

/* Notes why the import is not right at some other sizes, of those that the model can be imported at. What the import
 * itself left in the model stays. */
static void compare_more(mica_onnx_import *im, const mica_onnx_import *fresh)
{
    struct mica_onnx_start *starts = im->model->starts;
    for (int sizing = 2; sizing < MOST_SIZINGS && im->fixed == NULL && im->status == MICA_OK; sizing++) {
        mica_onnx_import other;
        if (!mica_onnx_sizing_is_new(im, sizing))
            continue;
        mica_status status = import_sized(&other, fresh, sizing);
        if (status == MICA_OK)
            im->fixed = mica_onnx_difference(im, &other);
        else if (status == MICA_ERR_MEMORY)
            im->status = status;
        mica_onnx_drop_import(&other);
    }
    im->model->starts = starts;
    im->model->problem_count = 0;
}

/* Steps of other sizes than planned only where the import has shown that they are right. */
static mica_status settle_sizes(const mica_onnx_import *im)
{
    if (im->status != MICA_OK)
        return im->status;
    MICA_TRY(mica_net_status(im->net));
    if (!im->varies)
        return mica_net_fix_sizes(im->net, im->named
                                               ? "at a size of 1 there is no smaller one to compare with"
                                               : "the model has no named sizes");
    return im->fixed != NULL ? mica_net_fix_sizes(im->net, im->fixed) : MICA_OK;
}

mica_status mica_onnx_import_compared(mica_onnx_import *im)
{
    const mica_onnx_import fresh = *im;
    mica_onnx_import twin = fresh;
    mica_status status = sets_symbols(im->opts) ? import_sized(&twin, &fresh, 1) : MICA_ERR_STATE;
    im->twin = status == MICA_OK ? &twin : NULL;
    im->status = status == MICA_ERR_MEMORY ? status : MICA_OK;
    if (im->status == MICA_OK)
        mica_onnx_import_model(im);
    const char *other = im->twin != NULL ? mica_onnx_other_graph(im, &twin)
                                         : "the model cannot be imported at smaller sizes";
    im->fixed = other != NULL ? other : im->fixed;
    if (im->status == MICA_OK && im->doubtful && im->fixed == NULL)
        compare_more(im, &fresh);
    status = settle_sizes(im);
    im->twin = NULL;
    mica_onnx_drop_import(&twin);
    return status;
}

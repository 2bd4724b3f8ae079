/* How long calls take by where the channels of their images lie (net/layout.c), for operations that move about as much
 * as they compute. Only ratios to the times of convolutions count. */
#include "net/net.h"
#include "node/entry.h"

#if !defined(MICA_SMALL)

/* An element that is read and written, in order; and across, from one layout to the other. */
#define MOVED  0.1
#define TURNED 1.5

/* Whether the images of a call, or those that have the shape of its output, all lie the same way. */
static bool lie_alike(const mica_call *call, bool of_one_shape)
{
    const mica_tensor *y = call->out[0];
    for (int i = 0; i < call->ins; i++) {
        const mica_tensor *x = call->in[i];
        if (x != NULL && x->rank == y->rank && (!of_one_shape || mica_tensor_same_shape(x, y)) &&
            mica_channels_last(x) != mica_channels_last(y))
            return false;
    }
    return true;
}

static double time_elementwise(const mica_call *call)
{
    return (lie_alike(call, true) ? MOVED : TURNED) * (double)mica_tensor_count(call->out[0]);
}

static double time_gathering(const mica_call *call)
{
    return (lie_alike(call, false) ? MOVED : TURNED) * (double)mica_tensor_count(call->in[0]);
}

/* One result for each channel, which lies the same either way. */
static double time_reducing(const mica_call *call) { return MOVED * (double)mica_tensor_count(call->in[0]); }

const mica_op_passes mica_reducing_passes = {.time = time_reducing};
const mica_op_passes mica_elementwise_passes = {.time = time_elementwise};
const mica_op_passes mica_gathering_passes = {.time = time_gathering};

#endif

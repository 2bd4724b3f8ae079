/* Output sizes of convolutions, for their entries and their layers. */
#include "base/format.h"
#include "node/planes.h"

#include "base/context.h"

/* No product of two numbers up to this overflows 64 bits, nor do a few sums of such products. */
#define MOST ((int64_t)INT32_MAX)

typedef struct dim {
    const char *name;
    int64_t size, kernel, stride, pad, dilation, output_pad;
} dim;

static dim dim_of(const mica_tensor *x, const mica_index kernel[2], const mica_conv2d_opts *o, int axis)
{
    mica_tensor planes = mica_planes(x);
    return (dim){.name = mica_plane_axis(x->rank == 3, axis),
                 .size = planes.dim[2 + axis],
                 .kernel = kernel[axis],
                 .stride = o->stride[axis] != 0 ? o->stride[axis] : 1,
                 .pad = o->pad[axis],
                 .dilation = o->dilation[axis] != 0 ? o->dilation[axis] : 1,
                 .output_pad = o->output_pad[axis]};
}

static mica_status check(char *reason, const dim *d)
{
    long long kernel = d->kernel, stride = d->stride, pad = d->pad, dilation = d->dilation;
    if (kernel < 1 || stride < 1 || pad < 0 || dilation < 1) {
        mica_format(
            reason, MICA_REASON,
            "along the %s kernel is %lld, stride %lld, pad %lld, dilation %lld: expected 1, 1, 0, 1 or more",
            d->name, kernel, stride, pad, dilation);
        return MICA_ERR_ARGUMENT;
    }
    if (kernel > MOST || stride > MOST || pad > MOST || dilation > MOST || d->output_pad > MOST ||
        d->size > INT64_MAX / 4 / stride) {
        mica_format(reason, MICA_REASON,
                    "along the %s kernel is %lld, stride %lld, pad %lld, dilation %lld: too large", d->name,
                    kernel, stride, pad, dilation);
        return MICA_ERR_ARGUMENT;
    }
    if (d->output_pad < 0 || (d->output_pad > 0 && d->output_pad >= stride && d->output_pad >= dilation)) {
        mica_format(reason, MICA_REASON,
                    "along the %s output_pad is %lld: expected less than stride or dilation", d->name,
                    (long long)d->output_pad);
        return MICA_ERR_ARGUMENT;
    }
    return MICA_OK;
}

mica_status mica_conv_sizes(mica_index sizes[2], char *reason, const mica_tensor *x,
                            const mica_index kernel[2], const mica_conv2d_opts *opts, bool transposed)
{
    for (int axis = 0; axis < 2; axis++) {
        dim d = dim_of(x, kernel, opts, axis);
        MICA_TRY(check(reason, &d));
        int64_t reach = d.dilation * (d.kernel - 1) + 1, padded = d.size + 2 * d.pad, size = 0;
        if (transposed)
            size = (d.size - 1) * d.stride - 2 * d.pad + reach + d.output_pad;
        else if (padded >= reach)
            size = (padded - reach) / d.stride + 1;
        if (size < 1 || size > PTRDIFF_MAX) {
            mica_format(reason, MICA_REASON,
                        "a kernel that spans %lld does not fit into %s %lld padded by %lld", (long long)reach,
                        d.name, (long long)d.size, (long long)d.pad);
            return MICA_ERR_SHAPE;
        }
        sizes[axis] = (mica_index)size;
    }
    return MICA_OK;
}

/* Axes. */
#include "cli/picture/axis.h"

#include <math.h>

double axis_along(const axis *a, double value)
{
    if (a->is_log)
        return (log10(fmax(value, a->low)) - log10(a->low)) / (log10(a->high) - log10(a->low));
    return (value - a->low) / (a->high - a->low);
}

double round_step(double span, double count)
{
    double step = pow(10.0, floor(log10(span / count)));
    double times = span / count / step;
    return step * (times > 5.0 ? 10.0 : times > 2.0 ? 5.0 : times > 1.0 ? 2.0 : 1.0);
}

axis axis_over(double low, double high)
{
    double least = fmax(fabs(low), fabs(high)) * 1e-9; /* of a span that numbers still tell apart */
    if (!(high - low > least))
        high = low + (least > 0.0 ? 1e3 * least : 1.0);
    double step = round_step(high - low, 5.0);
    return (axis){floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, false};
}

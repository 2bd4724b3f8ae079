/* Failures of operations and views, told as a layer's. */
#ifndef MICA_SRC_LAYER_REASON_H
#define MICA_SRC_LAYER_REASON_H

#include <string.h>

#include <mica/layer.h>

/* Fails with what the operation that just failed said, without "shape error: operation: ". */
static inline mica_status mica_infer_pass_on(mica_infer *infer, mica_status status)
{
    const char *reason = mica_error(infer->ctx);
    for (int k = 0; k < 2; k++) {
        const char *colon = strstr(reason, ": ");
        reason = colon != NULL ? colon + 2 : reason;
    }
    return mica_infer_fail(infer, status, "%s", reason);
}

#endif

/* One of ONNX's backend tests: a folder with model.onnx, and in test_data_set_0, 1, ... inputs and expected outputs. */
#ifndef MICA_CLI_ONNX_CASE_H
#define MICA_CLI_ONNX_CASE_H

#include <mica/onnx.h>

#include "cli/onnx/compare.h"

#define CASE_STATUSES(X) \
    X(PASSED, "passed")  \
    X(FAILED, "failed")  \
    X(UNSUPPORTED, "unsupported")

typedef enum case_status {
#define CASE_STATUS_ENUM(status, text) CASE_##status,
    CASE_STATUSES(CASE_STATUS_ENUM)
#undef CASE_STATUS_ENUM
        CASE_STATUS_COUNT
} case_status;

#define CASE_REASON 1024

typedef struct case_result {
    case_status status;
    char reason[CASE_REASON]; /* unless it passed */
} case_result;

/* Runs all data sets of the test in this folder. */
case_result case_run(mica_context *ctx, const char *folder, tolerance within);

#endif

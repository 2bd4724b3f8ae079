/* npz files. */
#include "cli/model/npz.h"

#include "data/npz.h"

int npz_load(data *out, const verb *v, mica_context *ctx, const char *path)
{
    mica_file file;
    mica_npz npz;
    const char *inputs, *targets;
    if (mica_file_open(ctx, &file, path) != MICA_OK || mica_npz_open(ctx, &npz, file) != MICA_OK)
        return verb_failed(v, ctx);
    mica_npz_usual(&npz, true, &inputs, &targets);
    mica_npz_close(ctx, &npz);
    mica_status status = mica_dataset_load_npz(ctx, &out->samples, path, NULL);
    out->has_test = inputs != NULL && targets != NULL;
    if (status == MICA_OK && out->has_test)
        status = mica_dataset_load_npz(ctx, &out->test, path, &(mica_npz_opts){.test = true});
    return status == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

/* mica info of npz files. */
#include <stdio.h>
#include <string.h>

#include "cli/info/info.h"
#include "cli/picture/text.h"
#include "data/npz.h"

static void put_array(const mica_npz_array *a, const mica_tensor *t, bool json, bool first)
{
    if (json) {
        printf("%s\n{\"name\": ", first ? "" : ",");
        put_json(stdout, a->name);
        printf(", \"dtype\": \"%s\", \"shape\": [", mica_dtype_name(t->dtype));
        for (int i = 0; i < t->rank; i++)
            printf("%s%td", i > 0 ? ", " : "", t->dim[i]);
        printf("], \"bytes\": %zu}", mica_tensor_bytes(t));
        return;
    }
    printf("  ");
    put_plain_up_to(stdout, a->name, 60);
    printf("%*s  %s, %s\n", strlen(a->name) < 12 ? 12 - (int)strlen(a->name) : 0, "",
           shape_text(t->dtype, t->rank, t->dim).text, size_text((double)mica_tensor_bytes(t)).text);
}

int info_npz(mica_context *ctx, const info_settings *set, const char *path)
{
    mica_file file;
    mica_npz npz;
    if (mica_file_open(ctx, &file, path) != MICA_OK || mica_npz_open(ctx, &npz, file) != MICA_OK)
        return verb_failed(&verb_info, ctx);
    mica_status status = MICA_OK;
    if (set->shared.json) {
        printf("{\"kind\": \"npz\", \"arrays\": [");
    } else {
        put_plain(stdout, path);
        printf(": npz, %zu array%s\n", npz.count, npz.count == 1 ? "" : "s");
    }
    for (size_t i = 0; i < npz.count && status == MICA_OK; i++) {
        mica_loaded loaded = {0};
        status = mica_npz_read(ctx, &loaded, &npz, &npz.arrays[i]);
        if (status == MICA_OK)
            put_array(&npz.arrays[i], &loaded.tensor, set->shared.json, i == 0);
        mica_loaded_release(ctx, &loaded);
    }
    if (set->shared.json)
        printf("]}\n");
    mica_npz_close(ctx, &npz);
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_info, ctx);
}

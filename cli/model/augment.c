/* --augment: what is done to pictures on their way into a batch. */
#include "cli/model/augment.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture/text.h"

/* One of the list, [length] characters. */
static int read_one(mica_augment *a, const verb *v, const char *item, size_t length)
{
    const struct {
        const char *name;
        float *amount;
        double most;
    } known[] = {{"shift", &a->shift, 1e6},
                 {"crop", &a->crop, 0.99},
                 {"rotate", &a->rotate, 180},
                 {"noise", &a->noise, 100}};
    if (length == 4 && memcmp(item, "flip", 4) == 0) {
        a->flip = true;
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t name = strlen(known[i].name);
        if (length < name || memcmp(item, known[i].name, name) != 0 || (length > name && item[name] != '='))
            continue;
        char *end;
        errno = 0;
        double value = length > name + 1 ? strtod(item + name + 1, &end) : NAN;
        if (length <= name + 1 || end != item + length || errno != 0 ||
            !(value >= 0 && value <= known[i].most))
            return usage_error(v, "--augment: %s takes a number from 0 to %g, as in %s=%g", known[i].name,
                               known[i].most, known[i].name,
                               i == 0   ? 2
                               : i == 2 ? 10
                                        : 0.1);
        *known[i].amount = (float)value;
        return EXIT_OK;
    }
    return usage_error(v, "--augment: \"%.*s\" is none of flip, shift=N, crop=X, rotate=X and noise=X",
                       (int)(length < 40 ? length : 40), item);
}

int augment_read(mica_transform *out, mica_augment *augment, const verb *v, mica_context *ctx,
                 const char *list, const mica_tensor *sample)
{
    *out = (mica_transform){0};
    *augment = (mica_augment){.range = sample->dtype == MICA_U8 ? 255 : 1};
    if (list == NULL || strcmp(list, "none") == 0)
        return EXIT_OK;
    if (sample->rank != 2 && sample->rank != 3)
        return usage_error(v, "--augment is for pictures; a sample here is %s",
                           shape_text(sample->dtype, sample->rank, sample->dim).text);
    augment->channels = sample->rank == 3 ? sample->dim[0] : 1;
    augment->height = sample->dim[sample->rank - 2];
    augment->width = sample->dim[sample->rank - 1];
    int code = EXIT_OK;
    for (const char *item = list; code == EXIT_OK;) {
        size_t length = strcspn(item, ",");
        code = read_one(augment, v, item, length);
        if (item[length] == '\0')
            break;
        item += length + 1;
    }
    if (code == EXIT_OK && mica_augment_transform(ctx, out, augment) != MICA_OK)
        code = verb_failed(v, ctx);
    return code;
}

/* --augment: what is done to pictures on their way into a batch. */
#include "cli/model/augment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture/text.h"

/* One of the list, [length] characters; or what is wrong with it in why[size]. */
static bool read_one(mica_augment *a, const char *item, size_t length, char *why, size_t size)
{
    const struct {
        const char *name;
        float *amount;
        double most, example;
    } known[] = {{"shift", &a->shift, 1e6, 2},
                 {"crop", &a->crop, 0.99, 0.1},
                 {"rotate", &a->rotate, 180, 10},
                 {"noise", &a->noise, 100, 0.1}};
    if (length == 4 && memcmp(item, "flip", 4) == 0) {
        a->flip = true;
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t name = strlen(known[i].name);
        if (length < name || memcmp(item, known[i].name, name) != 0 || (length > name && item[name] != '='))
            continue;
        char *end = NULL;
        double value = length > name + 1 ? strtod(item + name + 1, &end) : NAN;
        bool sound = end == item + length && value >= 0 && value <= known[i].most;
        if (!sound)
            (void)snprintf(why, size, "%s takes a number from 0 to %g, as in %s=%g", known[i].name,
                           known[i].most, known[i].name, known[i].example);
        *known[i].amount = sound ? (float)value : 0;
        return sound;
    }
    (void)snprintf(why, size, "\"%.*s\" is none of flip, shift=N, crop=X, rotate=X and noise=X",
                   (int)(length < 40 ? length : 40), item);
    return false;
}

bool augment_parse(mica_augment *out, const char *list, char *why, size_t size)
{
    *out = (mica_augment){.height = 0};
    if (strcmp(list, "none") == 0)
        return true;
    for (;; list++) {
        size_t length = strcspn(list, ",");
        if (!read_one(out, list, length, why, size))
            return false;
        list += length;
        if (*list == '\0')
            return true;
    }
}

int augment_read(mica_transform *out, mica_augment *augment, const verb *v, mica_context *ctx,
                 const char *list, const mica_tensor *sample)
{
    char why[160];
    *out = (mica_transform){0};
    *augment = (mica_augment){.height = 0};
    if (list == NULL || strcmp(list, "none") == 0)
        return EXIT_OK;
    if (!augment_parse(augment, list, why, sizeof why))
        return usage_error(v, "--augment: %s", why);
    if (sample->rank != 2 && sample->rank != 3)
        return usage_error(v, "--augment is for pictures; a sample here is %s",
                           shape_text(sample->dtype, sample->rank, sample->dim).text);
    augment->channels = sample->rank == 3 ? sample->dim[0] : 1;
    augment->height = sample->dim[sample->rank - 2];
    augment->width = sample->dim[sample->rank - 1];
    augment->range = sample->dtype == MICA_U8 ? 255 : 1;
    return mica_augment_transform(ctx, out, augment) == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

/* The metadata of a checkpoint, field by field: each is missing or what it should be, or the file is refused. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/augment.h"
#include "cli/model/saved.h"
#include "cli/model/sounds.h"
#include "cli/model/take.h"
#include "io/quote.h"

/* ---- One field ---- */

/* Says what a field is, and what it should be. */
static int wrong(const saved *s, const verb *v, const char *key, const char *expected)
{
    const char *text = saved_text(s, key);
    if (text == NULL)
        return verb_error(v, EXIT_FILE, "%s: its metadata has no \"%s\": expected %s", s->path, key,
                          expected);
    return verb_error(v, EXIT_FILE, "%s: its \"%s\" is %s: expected %s", s->path, key, MICA_QUOTE(text),
                      expected);
}

/* A whole number in decimal digits, from *text on; steps behind it. */
static bool read_whole(const char **text, int64_t *out)
{
    char *end;
    bool digits = (**text >= '0' && **text <= '9') ||
                  (**text == '-' && (*text)[1] >= '0' && (*text)[1] <= '9');
    errno = 0;
    long long value = digits ? strtoll(*text, &end, 10) : 0;
    if (!digits || errno != 0)
        return false;
    *out = value;
    *text = end;
    return true;
}

/* A finite number that fits a float, likewise. */
static bool read_real(const char **text, double *out)
{
    char *end;
    bool starts = (**text >= '0' && **text <= '9') || **text == '-' || **text == '.';
    double value = starts ? strtod(*text, &end) : 0;
    if (!starts || end == *text || end > *text + strspn(*text, "0123456789.eE+-") || !isfinite(value) ||
        fabs(value) > (double)FLT_MAX)
        return false;
    *out = value;
    *text = end;
    return true;
}

/* Goes over the blank between two numbers of a list. False: something else stands there. */
static bool next_of_list(const char **text)
{
    if (**text == '\0')
        return true;
    bool blank = **text == ' ' && (*text)[1] != '\0';
    *text += blank;
    return blank;
}

/* ---- Meaning ---- */

/* How many numbers a list of them can have at most. */
static size_t most_in_list(const char *text)
{
    size_t count = 1;
    for (; *text != '\0'; text++)
        count += *text == ' ';
    return count;
}

/* A list of floats in memory of its own, in *out; -1: it is something else. */
static mica_index read_floats(float **out, const char *text, double least)
{
    mica_index count = 0;
    *out = take(most_in_list(text), sizeof **out);
    do {
        double value;
        if (!read_real(&text, &value) || !next_of_list(&text) || !((double)(float)value >= least))
            return -1;
        (*out)[count++] = (float)value;
    } while (*text != '\0');
    return count;
}

static int read_normalization(saved *s, const verb *v)
{
    normalization *n = &s->meaning.normalization;
    const char *mean = saved_text(s, "mica.mean"), *deviation = saved_text(s, "mica.deviation"),
               *scale = saved_text(s, "mica.scale");
    double factor = 1;
    if (scale != NULL && (!read_real(&scale, &factor) || *scale != '\0' || !((float)factor > 0)))
        return wrong(s, v, "mica.scale", "a number above 0");
    n->scale = (float)factor;
    if (mean == NULL && deviation == NULL)
        return EXIT_OK;
    mica_index means = mean != NULL ? read_floats(&n->mean, mean, -INFINITY) : -1;
    if (means < 1)
        return wrong(s, v, "mica.mean", "finite numbers separated by spaces");
    mica_index deviations = deviation != NULL ? read_floats(&n->deviation, deviation, (double)FLT_MIN) : -1;
    if (deviations != means)
        return wrong(s, v, "mica.deviation", "finite numbers above 0, as many as in \"mica.mean\"");
    n->channels = means;
    return EXIT_OK;
}

static int read_vocabulary(saved *s, const verb *v)
{
    static const char expected[] = "\"bytes\", or ascending code points separated by spaces";
    meaning *m = &s->meaning;
    const char *text = saved_text(s, "mica.vocabulary");
    if (text == NULL)
        return EXIT_OK;
    m->vocabulary = (mica_vocabulary){.count = 256};
    if (strcmp(text, "bytes") == 0)
        return EXIT_OK;
    uint32_t *characters = m->owned[0] = take(most_in_list(text), sizeof *characters);
    int64_t before = -1, code;
    int32_t count = 0;
    do {
        if (!read_whole(&text, &code) || !next_of_list(&text) || code <= before || code >= 0x110000 ||
            (code >= 0xd800 && code < 0xe000))
            return wrong(s, v, "mica.vocabulary", expected);
        characters[count++] = (uint32_t)code;
        before = code;
    } while (*text != '\0');
    m->vocabulary = (mica_vocabulary){.count = count, .characters = characters};
    return EXIT_OK;
}

static void read_classes(saved *s)
{
    meaning *m = &s->meaning;
    const char *text = saved_text(s, "mica.classes");
    if (text == NULL)
        return;
    char *names = m->owned[1] = take_text(text);
    m->class_count = 1;
    for (char *at = names; *at != '\0'; at++)
        m->class_count += *at == '\n';
    m->class_names = take((size_t)m->class_count, sizeof *m->class_names);
    for (int i = 0; i < m->class_count; i++) {
        m->class_names[i] = names;
        names += strcspn(names, "\n");
        *names++ = '\0';
    }
}

static int read_sample(saved *s, const verb *v)
{
    mica_tensor *sample = &s->meaning.sample;
    const char *text = saved_text(s, "mica.sample");
    double elements = 1;
    while (text != NULL) {
        int64_t size;
        if (sample->rank == MICA_MAX_RANK - 1 || !read_whole(&text, &size) || !next_of_list(&text) ||
            size < 1 || (elements *= (double)size) > (double)INT32_MAX)
            return wrong(s, v, "mica.sample", "up to 7 sizes of at least 1, at most 2^31 elements in all");
        sample->dim[sample->rank++] = (mica_index)size;
        if (*text == '\0')
            break;
    }
    return EXIT_OK;
}

static int read_sound(saved *s, const verb *v)
{
    const char *text = saved_text(s, "mica.sound");
    s->meaning.is_sound = text != NULL;
    if (text != NULL && !sounds_parse(&s->meaning.sound, text))
        return wrong(s, v, "mica.sound", "\"samples\" or \"log-mel\", and its options");
    return EXIT_OK;
}

/* ---- Settings ---- */

typedef struct setting_field {
    const char *key;
    size_t offset;
    bool whole;
    double least, most;
} setting_field;

#define WHOLE(name, least, most)                                                                   \
    {                                                                                              \
        "mica.train." #name, offsetof(saved_settings, name), true, (double)(least), (double)(most) \
    }
#define REAL(name, most)                                                              \
    {                                                                                 \
        "mica.train." #name, offsetof(saved_settings, name), false, 0, (double)(most) \
    }

static const setting_field setting_fields[] = {
    WHOLE(epochs, 1, MOST_EPOCHS),
    WHOLE(batch, 1, MOST_BATCH),
    WHOLE(shares, 0, MOST_SHARES),
    WHOLE(warmup, 0, MOST_WARMUP),
    WHOLE(patience, 0, INT32_MAX),
    WHOLE(checkpoint_steps, 0, MOST_CHECKPOINT_STEPS),
    WHOLE(optimizer, 0, MICA_ADAGRAD),
    WHOLE(schedule, 0, MICA_SCHEDULE_ONE_CYCLE),
    WHOLE(window, 0, MOST_WINDOW),
    WHOLE(horizon, 0, MOST_WINDOW),
    WHOLE(season, 0, MOST_WINDOW),
    WHOLE(budget, 0, INT64_C(9000000000000000)),
    WHOLE(seed, 0, INT64_MAX),
    REAL(lr, FLT_MAX),
    REAL(weight_decay, FLT_MAX),
    REAL(momentum, FLT_MAX),
    REAL(clip, FLT_MAX),
    REAL(validation, MOST_SHARE),
};

static int read_setting(saved *s, const verb *v, const setting_field *f)
{
    const char *text = saved_text(s, f->key);
    void *field = (char *)&s->settings + f->offset;
    int64_t whole = -1;
    double real = -1;
    if (text != NULL) {
        bool sound = f->whole ? read_whole(&text, &whole) : read_real(&text, &real);
        double value = f->whole ? (double)whole : real;
        if (!sound || *text != '\0' || value < f->least || value > f->most) {
            char expected[80];
            (void)snprintf(expected, sizeof expected, "%s from %.17g to %.17g",
                           f->whole ? "an integer" : "a number", f->least, f->most);
            return wrong(s, v, f->key, expected);
        }
    }
    if (f->whole)
        *(int64_t *)field = whole;
    else
        *(double *)field = real;
    return EXIT_OK;
}

static int read_augment(saved *s, const verb *v)
{
    char why[160];
    mica_augment read;
    const char *list = s->settings.augment = saved_text(s, "mica.train.augment");
    if (list != NULL && !augment_parse(&read, list, why, sizeof why))
        return wrong(s, v, "mica.train.augment", "a list of flip, shift=N, crop=X, rotate=X and noise=X");
    return EXIT_OK;
}

static int read_class_weights(saved *s, const verb *v)
{
    const char *text = saved_text(s, "mica.train.class_weights");
    if (text == NULL)
        return EXIT_OK;
    s->settings.class_weight_count = read_floats(&s->settings.class_weights, text, (double)FLT_MIN);
    return s->settings.class_weight_count > 0
               ? EXIT_OK
               : wrong(s, v, "mica.train.class_weights", "finite numbers above 0, separated by spaces");
}

int saved_read(saved *s, const verb *v)
{
    s->meaning.title = saved_text(s, "mica.title");
    s->meaning.data = saved_text(s, "mica.data");
    s->settings.label = saved_text(s, "mica.train.label");
    s->settings.test = saved_text(s, "mica.train.test");
    s->settings.weights = saved_text(s, "mica.train.weights");
    s->settings.freeze = saved_text(s, "mica.train.freeze");
    if (s->meaning.title == NULL || s->meaning.title[0] == '\0')
        return wrong(s, v, "mica.title", "the net's name");
    read_classes(s);
    int (*const readers[])(saved *, const verb *) = {read_normalization, read_vocabulary, read_sample,
                                                     read_class_weights, read_augment,    read_sound};
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && i < sizeof readers / sizeof readers[0]; i++)
        code = readers[i](s, v);
    for (size_t i = 0; code == EXIT_OK && i < sizeof setting_fields / sizeof setting_fields[0]; i++)
        code = read_setting(s, v, &setting_fields[i]);
    return code;
}

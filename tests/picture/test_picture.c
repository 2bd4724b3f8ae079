/* Pictures: what is drawn is what was given, and text from outside stays text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture/plan_picture.h"
#include "cli/picture/png.h"
#include "cli/picture/report.h"
#include "cli/picture/text.h"
#include "cli/picture/trace.h"
#include "data/sample.h"
#include "io/json.h"
#include "io/number.h"
#include "test.h"

/* Everything that ends an attribute, an element, a string or a script; and bytes that are not UTF-8. */
#define HOSTILE "\"'><script>alert(1)</script><!--&amp;\\\n\x01\xff\xc3"

/* What a function writes, as text that is freed with close_text. */
typedef struct text {
    char *bytes;
    size_t length;
    FILE *out;
} text;

static void open_text(text *t)
{
    *t = (text){0};
    t->out = open_memstream(&t->bytes, &t->length);
}

static const char *read_text(text *t)
{
    fflush(t->out);
    return t->bytes;
}

static void close_text(text *t)
{
    fclose(t->out);
    free(t->bytes);
}

static size_t count_of(const char *in, const char *part)
{
    size_t count = 0;
    for (const char *at = in; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

/* ---- Text ---- */

TEST(picture_text_is_escaped)
{
    static const struct {
        const char *given, *markup, *json;
    } rows[] = {
        {"conv1", "conv1", "\"conv1\""},
        {"a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;", "\"a\\u003cb\\u003e\\u0026\\\"c'\""},
        {"</script>", "&lt;/script&gt;", "\"\\u003c/script\\u003e\""},
        {"\x01\n\t\x7f", "�\n\t�", "\"\\u0001\\u000a\\u0009\\u007f\""},
        {"\xff\xc3(\xed\xa0\x80", "��(���", "\"��(���\""},
        {"Größe 大 🙂", "Größe 大 🙂", "\"Größe 大 🙂\""},
        {"\xe2\x80\xa8", "\xe2\x80\xa8", "\"\\u2028\""}, /* ends a line in a script */
        {"\\", "\\", "\"\\\\\""},
        {NULL, "", "\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text t;
        open_text(&t);
        put_text(t.out, rows[i].given);
        CHECK_MSG(strcmp(read_text(&t), rows[i].markup) == 0, "row %zu: %s", i, t.bytes);
        close_text(&t);
        open_text(&t);
        put_json(t.out, rows[i].given);
        CHECK_MSG(strcmp(read_text(&t), rows[i].json) == 0, "row %zu: %s", i, t.bytes);
        close_text(&t);
    }
}

TEST(picture_text_is_cut_between_characters)
{
    static const struct {
        const char *given;
        size_t most;
        const char *want;
    } rows[] = {{"conv1", 5, "conv1"}, {"conv10", 5, "conv…"}, {"äöüß", 3, "äö…"}, {"<<<<", 2, "&lt;…"},
                {"", 3, ""},           {NULL, 3, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text t;
        open_text(&t);
        put_text_up_to(t.out, rows[i].given, rows[i].most);
        CHECK_MSG(strcmp(read_text(&t), rows[i].want) == 0, "row %zu: %s", i, t.bytes);
        close_text(&t);
    }
}

TEST(picture_text_is_cut_at_its_start)
{
    static const char *const rows[][2] = {
        {"block1.mlp", "…1.mlp"}, {"1.mlp", "1.mlp"}, {"äöüß.mlp", "…ß.mlp"}, {"1.mlp5", "1.mlp5"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text t;
        open_text(&t);
        put_text_end(t.out, rows[i][0], 6);
        CHECK_MSG(strcmp(read_text(&t), rows[i][1]) == 0, "row %zu: %s", i, t.bytes);
        close_text(&t);
    }
}

TEST(picture_numbers_are_readable)
{
    CHECK(strcmp(size_text(0).text, "0 B") == 0);
    CHECK(strcmp(size_text(1023).text, "1023 B") == 0);
    CHECK(strcmp(size_text(4.21 * 1048576).text, "4.21 MiB") == 0);
    CHECK(strcmp(size_text(402.5 * 1024).text, "402 KiB") == 0);
    CHECK(strcmp(round_size_text(1536).text, "1.5 KiB") == 0);
    CHECK(strcmp(count_text(1234567).text, "1,234,567") == 0);
    CHECK(strcmp(count_text(999).text, "999") == 0);
    CHECK(strcmp(time_text(0.00125).text, "1.25 ms") == 0);
    CHECK(strcmp(time_text(0).text, "0 s") == 0);
    CHECK(strcmp(shape_text(MICA_F32, 2, (mica_index[]){32, 784}).text, "f32 [32, 784]") == 0);
    CHECK(strcmp(shape_text(MICA_I32, 0, NULL).text, "i32 []") == 0);
    mica_index huge[8] = {1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30};
    CHECK(strlen(shape_text(MICA_F32, 8, huge).text) < sizeof(short_text)); /* cut, not overrun */
}

/* ---- Plans ---- */

/* A plan of so many buffers over so many times, the first with this name. */
static mica_plan make_plan(mica_plan_buffer *buffers, int count, mica_plan_time *time, int times,
                           const char *name)
{
    mica_plan plan = {.times = times, .time = time, .buffers = buffers, .count = (size_t)count, .parts = 1};
    for (int t = 0; t < times; t++)
        time[t] = (mica_plan_time){t == 0 ? name : "layer",
                                   t < times / 2 ? MICA_PHASE_FORWARD : MICA_PHASE_BACKWARD};
    for (int i = 0; i < count; i++) {
        buffers[i] = (mica_plan_buffer){.name = i == 0 ? name : "buffer",
                                        .kind = (mica_buffer_kind)(i % MICA_BUFFER_KIND_COUNT),
                                        .bytes = 64,
                                        .offset = (size_t)i * 64,
                                        .first = i % times,
                                        .last = times - 1,
                                        .rank = 1,
                                        .dim = {16}};
        plan.kind_bytes[buffers[i].kind] += 64;
        plan.total += 64;
    }
    plan.lower_bound = plan.total;
    return plan;
}

TEST(picture_plan_draws_every_buffer)
{
    mica_plan_buffer buffers[40];
    mica_plan_time time[20];
    mica_plan plan = make_plan(buffers, 40, time, 20, "first");
    plan_picture picture = {&plan, "net", "training"};
    text t;
    open_text(&t);
    CHECK(plan_picture_html(t.out, &picture));
    const char *page = read_text(&t);
    CHECK(count_of(page, " data-offset=") == 40);
    CHECK(
        strstr(
            page,
            "data-name=\"first\" data-kind=\"parameter\" data-shape=\"f32 [16]\" data-bytes=\"64\" data-offset=\"0\" "
            "data-first=\"0\" data-last=\"19\"") != NULL);
    CHECK(strstr(page, "default-src &#39;none&#39;") != NULL || strstr(page, "default-src 'none'") != NULL);
    CHECK(strstr(page, "src=\"http") == NULL && strstr(page, "href=") == NULL &&
          strstr(page, "@import") == NULL);
    close_text(&t);
    open_text(&t);
    CHECK(plan_picture_svg(t.out, &picture));
    CHECK(count_of(read_text(&t), "<title>") == 40);
    CHECK(strstr(t.bytes, "<script") == NULL);
    close_text(&t);
}

TEST(picture_plan_of_nothing)
{
    mica_plan plan = {.parts = 1};
    plan_picture picture = {&plan, NULL, NULL};
    text t;
    open_text(&t);
    CHECK(plan_picture_svg(t.out, &picture) && plan_picture_html(t.out, &picture));
    CHECK(strstr(read_text(&t), "nan") == NULL && strstr(t.bytes, "inf\"") == NULL);
    close_text(&t);
}

TEST(picture_plan_of_many_buffers_stays_small)
{
    enum { BUFFERS = 5000, TIMES = 2000 };
    mica_plan_buffer *buffers = calloc(BUFFERS, sizeof *buffers);
    mica_plan_time *time = calloc(TIMES, sizeof *time);
    if (CHECK(buffers != NULL && time != NULL)) {
        mica_plan plan = make_plan(buffers, BUFFERS, time, TIMES, "first");
        text t;
        open_text(&t);
        CHECK(plan_picture_html(t.out, &(plan_picture){&plan, "large", NULL}));
        CHECK(count_of(read_text(&t), " data-offset=") == BUFFERS);
        CHECK_MSG(t.length < 2000000, "%zu bytes", t.length);
        close_text(&t);
    }
    free(buffers);
    free(time);
}

/* ---- Text from outside, everywhere ---- */

static bool is_tame(const char *page)
{
    return strstr(page, "<script>alert") == NULL && strstr(page, "<!--&") == NULL &&
           strstr(page, "\xff") == NULL;
}

TEST(picture_hostile_names_stay_text)
{
    mica_plan_buffer buffers[4];
    mica_plan_time time[4];
    mica_plan plan = make_plan(buffers, 4, time, 4, HOSTILE);
    plan_picture picture = {&plan, HOSTILE, HOSTILE};
    text t;
    open_text(&t);
    CHECK(plan_picture_svg(t.out, &picture) && plan_picture_html(t.out, &picture));
    CHECK(is_tame(read_text(&t)));
    close_text(&t);

    double x[] = {1, 2}, y[] = {0.5, 0.25};
    const char *classes[] = {HOSTILE, HOSTILE};
    uint64_t confusion[] = {1, 2, 3, 4};
    report_setting setting = {HOSTILE, HOSTILE};
    report_mistake mistake = {.label = 0, .prediction = 1};
    report_layer layer = {HOSTILE, HOSTILE, 0.1, 0.2};
    report r = {
        .title = HOSTILE, .subtitle = HOSTILE, .command = HOSTILE, .net = HOSTILE, .summary = HOSTILE};
    r.settings = &setting;
    r.setting_count = 1;
    r.train_loss = (report_curve){x, y, 2};
    r.classes = 2;
    r.class_names = classes;
    r.confusion = confusion;
    r.mistakes = &mistake;
    r.mistake_count = 1;
    r.layers = &layer;
    r.layer_count = 1;
    r.plan = &plan;
    report_pair pairs[] = {{1, 2, 3}, {2, 2, 2}};
    report_target target = {HOSTILE, pairs, 2, 1};
    report_column column = {HOSTILE, 0.5};
    const char *written[] = {HOSTILE};
    r.scores = &setting;
    r.score_count = 1;
    r.targets = &target;
    r.target_count = 1;
    r.forecast = (report_forecast){HOSTILE, HOSTILE, pairs, 2, 1};
    r.columns = &column;
    r.column_count = 1;
    r.importance_of = HOSTILE;
    r.texts = written;
    r.text_count = 1;
    open_text(&t);
    CHECK(report_write(t.out, &r));
    CHECK(is_tame(read_text(&t)));
    close_text(&t);
}

/* ---- Reports ---- */

TEST(picture_report_leaves_out_what_is_empty)
{
    text t;
    open_text(&t);
    CHECK(report_write(t.out, &(report){.title = "empty"}));
    const char *page = read_text(&t);
    CHECK(strstr(page, "<h1>empty</h1>") != NULL);
    CHECK(strstr(page, "<h2>") == NULL && strstr(page, "<svg") == NULL && strstr(page, "<table") == NULL);
    close_text(&t);
}

TEST(picture_report_survives_odd_numbers)
{
    enum { MANY = 10000, CLASSES = 60 };
    double *x = calloc(MANY, sizeof *x), *y = calloc(MANY, sizeof *y);
    uint64_t *confusion = calloc((size_t)CLASSES * CLASSES, sizeof *confusion);
    if (CHECK(x != NULL && y != NULL && confusion != NULL)) {
        for (int i = 0; i < MANY; i++) {
            x[i] = i / 1000.0;
            y[i] = i % 7 == 0 ? (double)NAN : i % 11 == 0 ? INFINITY : 3.0 / (1.0 + i);
        }
        confusion[1] = 7; /* 0 taken for 1 */
        report r = {.title = "odd",
                    .train_loss = {x, y, MANY},
                    .validation_loss = {x, y, 1},
                    .train_accuracy = {x, y + 7, 1}};
        r.classes = CLASSES;
        r.confusion = confusion;
        text t;
        open_text(&t);
        CHECK(report_write(t.out, &r));
        const char *page = read_text(&t);
        CHECK(strstr(page, "nan") == NULL && strstr(page, "inf ") == NULL && strstr(page, "inf\"") == NULL);
        CHECK(t.length < 200000); /* curves are drawn with as many points as one can see */
        CHECK(strstr(page, "<tr><td>0</td><td>1</td><td class=\"n\">7</td></tr>") != NULL);
        close_text(&t);
    }
    free(x);
    free(y);
    free(confusion);
}

static unsigned base64_value(char c)
{
    const char *alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(alphabet, c);
    return at != NULL && c != '\0' ? (unsigned)(at - alphabet) : 0;
}

/* The bytes of a "data:" address into a file. */
static bool save(const char *path, const char *address)
{
    const char *at = strchr(address, ',');
    FILE *file = fopen(path, "wb");
    for (at = at != NULL ? at + 1 : ""; file != NULL && at[0] != '\0'; at += 4) {
        unsigned bits = 0;
        for (int i = 0; i < 4; i++)
            bits = bits << 6 | base64_value(at[i]);
        for (int i = 0; i < 3; i++)
            if (at[i + 1] != '=')
                fputc((int)(bits >> (16 - 8 * i) & 255u), file);
    }
    return file != NULL && fclose(file) == 0;
}

TEST(picture_png_reads_back)
{
    mica_context *ctx = test_context(1);
    if (!sample_has_zlib(ctx)) {
        test_skip("built without zlib");
        return;
    }
    static const int shapes[][3] = {{28, 28, 1}, {1, 1, 1}, {5, 3, 3}, {300, 2, 3}, {2, 1, 1}};
    char path[] = "/tmp/mica-png-XXXXXX";
    int descriptor = mkstemp(path);
    REQUIRE(descriptor >= 0);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int width = shapes[s][0], height = shapes[s][1], channels = shapes[s][2];
        unsigned char pixels[2000];
        test_random random = test_seed(s);
        for (int i = 0; i < width * height * channels; i++)
            pixels[i] = (unsigned char)test_int(&random, 0, 255);
        text t;
        open_text(&t);
        put_png(t.out, pixels, width, height, channels);
        mica_dataset set = {0};
        if (CHECK(save(path, read_text(&t))) && CHECK_OK(ctx, mica_dataset_load_image(ctx, &set, path))) {
            const unsigned char *got = set.inputs.data; /* [1, channels, height, width] */
            bool same = set.inputs.dim[1] == channels && set.inputs.dim[2] == height &&
                        set.inputs.dim[3] == width;
            for (int i = 0; same && i < width * height; i++)
                for (int c = 0; c < channels; c++)
                    same = same && got[c * width * height + i] == pixels[i * channels + c];
            CHECK_MSG(same, "%d x %d x %d", width, height, channels);
            mica_dataset_destroy(ctx, &set);
        }
        close_text(&t);
    }
    fclose(fdopen(descriptor, "r"));
    remove(path);
}

/* ---- Traces ---- */

static bool is_key(const mica_json_token *token, const char *key)
{
    return token->kind == MICA_JSON_KEY && token->length == strlen(key) &&
           memcmp(token->text, key, token->length) == 0;
}

static double next_number(mica_json *json)
{
    mica_json_token token;
    double value = NAN;
    CHECK(mica_json_next(json, &token) && token.kind == MICA_JSON_NUMBER &&
          mica_parse_number(&value, token.text, token.length));
    return value;
}

TEST(picture_trace_is_json)
{
    mica_plan_buffer buffers[2];
    mica_plan_time time[2];
    mica_plan plan = make_plan(buffers, 2, time, 2, HOSTILE);
    trace_event events[] = {{HOSTILE, HOSTILE, MICA_PHASE_FORWARD, 10.0, 10.5, 1},
                            {"layer", "dense", MICA_PHASE_BACKWARD, 10.5, 10.75, 1},
                            {"optimizer", "adam", MICA_PHASE_UPDATE, 10.75, 10.8, 1}};
    text t;
    open_text(&t);
    CHECK(trace_write(t.out, &(trace){HOSTILE, events, 3, &plan}));
    read_text(&t);
    double began[4] = {-1, -1, -1, -1}, bytes[3] = {0, 0, 0};
    int count = 0, counters = 0;
    char kind = '\0'; /* of the event: its "ph", which comes first */
    mica_json json = mica_json_over(t.bytes, t.length);
    mica_json_token token, value;
    while (mica_json_next(&json, &token) && token.kind != MICA_JSON_DONE) {
        if (is_key(&token, "ph") && mica_json_next(&json, &value))
            kind = value.text[0];
        if (is_key(&token, "ts") && kind == 'X' && count < 4)
            began[count++] = next_number(&json);
        if (is_key(&token, "bytes") && counters < 3)
            bytes[counters++] = next_number(&json);
    }
    CHECK_MSG(json.error == NULL, "%s at %zu", json.error, json.at);
    CHECK(count == 3 && began[0] == 0.0 && began[1] == 500000.0);
    CHECK(counters == 2 && bytes[0] == 64.0 && bytes[1] == 128.0);
    close_text(&t);
}

TEST(picture_says_when_it_cannot_write)
{
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        test_skip("there is no /dev/full");
        return;
    }
    mica_plan_buffer buffers[2];
    mica_plan_time time[2];
    mica_plan plan = make_plan(buffers, 2, time, 2, "x");
    CHECK(!plan_picture_html(full, &(plan_picture){&plan, "x", NULL}));
    CHECK(!report_write(full, &(report){.title = "x"}));
    CHECK(!trace_write(full, &(trace){.title = "x"}));
    fclose(full);
}

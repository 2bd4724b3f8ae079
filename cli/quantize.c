/* mica quantize: a GGUF file with its tensors in other types; or, with --int8, a trained net in bytes
 * (cli/model/quantize_int8.c). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mica/gguf.h>

#include "host/clock.h"
#include "cli/model/quantize_int8.h"
#include "cli/model/saved.h"
#include "cli/model/tables.h"
#include "cli/picture/text.h"
#include "cli/verb.h"

typedef struct settings {
    shared_settings shared;
    int type; /* -1: not given */
    bool pure, dry_run;
    bool int8;
    int8_ranges ranges;
    table_settings table;
    option_list set;
} settings;

/* In the order of mica_gguf_mix; behind them, what others call the middle one of three. */
static const char *const types[] = {
#define TYPE(name, number) #name,
    MICA_GGUF_MIX_LIST(TYPE)
#undef TYPE
        "Q3_K",
    "Q4_K",
    "Q5_K",
    NULL,
};

static mica_gguf_mix mix_of(int type)
{
    static const mica_gguf_mix middle[] = {MICA_MIX_Q3_K_M, MICA_MIX_Q4_K_M, MICA_MIX_Q5_K_M};
    return type < MICA_MIX_COUNT ? (mica_gguf_mix)type : middle[type - MICA_MIX_COUNT];
}

static const verb_option options[] = {
    {.name = "--type",
     OPTION_CHOICE,
     offsetof(settings, type),
     "TYPE",
     "what to quantize to, Q4_K_M for instance",
     .choices = types},
    {.name = "--pure",
     OPTION_FLAG,
     offsetof(settings, pure),
     NULL,
     "give no tensor more bits than the others"},
    {.name = "--dry-run",
     OPTION_FLAG,
     offsetof(settings, dry_run),
     NULL,
     "write nothing, only list each tensor's type; OUT may be left out"},
    {.name = "--int8",
     OPTION_FLAG,
     offsetof(settings, int8),
     NULL,
     "FILE is a checkpoint or an ONNX model: write its net with weights and activations of 8 bits"},
    INT8_OPTIONS(settings),
    TABLE_READING_OPTIONS(settings),
    {.name = "--set",
     OPTION_LIST,
     offsetof(settings, set),
     "NAME=VALUE",
     "--int8, ONNX: a size that the model leaves open, or an input that is fixed: numbers, or @FILE.npy"},
};

static const char details[] =
    "FILE is a GGUF file, OUT the one to write. OUT is replaced once the new file is complete, and links\n"
    "are followed; it must not be FILE itself. Memory\n"
    "does not depend on the size of the file.\n"
    "\n"
    "The K types and IQ4_XS are for rows of a multiple of 256 values. Others fall back: q4_k to q5_0,\n"
    "q5_k to q5_1, q6_k to q8_0, q2_k and q3_k to q4_0, iq4_xs to iq4_nl. Q3_K, Q4_K and Q5_K are\n"
    "Q3_K_M, Q4_K_M and Q5_K_M.\n"
    "\n"
    "Tensors that matter more get more bits, as in llama-quantize: the output, and in the\n"
    "mixes (_S, _M, _L) some of attn_v and ffn_down. Norms and biases stay as they are.\n"
    "\n"
    "Quantize from F32, F16 or BF16 if you can: quantizing twice adds up the errors.\n"
    "\n"
    "With --int8, FILE is a checkpoint of mica train, or its folder, and OUT a checkpoint for mica eval,\n"
    "run, info, plan and export, a quarter of the size. Batch norm and relu become part of the layers\n"
    "before them; what has no int8 operation stays float. A report compares each layer's results with\n"
    "those of the float net, and the scores of both.\n"
    "\n"
    "FILE may also be an ONNX model, with --data that it could be trained on: what its first input takes,\n"
    "and what its first output should say of it. The net is built from the model again whenever OUT is\n"
    "opened, so a copy of that is written beside it: NAME.source.onnx, in a folder source.onnx.";

static const verb_example examples[] = {
    {"quantize model-f16.gguf model.gguf --type Q4_K_M", "about five bits per weight"},
    {"quantize model-f16.gguf --type Q6_K --dry-run", "what each tensor would be, and the size"},
    {"quantize lenet-digits lenet-int8.safetensors --int8 --data digits", "a trained net in 8 bits"},
    {"quantize resnet18.onnx resnet18.safetensors --int8 --data photos", "an ONNX model in 8 bits"},
    {NULL, NULL},
};

/* ---- What is told ---- */

typedef struct telling {
    const settings *set;
    struct terminal terminal;
    bool bar;        /* one is drawn */
    double drawn_at; /* the bar */
    double values, values_done, bytes, bytes_before;
    size_t tensors[MICA_DTYPE_COUNT];
    double type_bytes[MICA_DTYPE_COUNT];
    size_t again, gaining; /* tensors that were quantized already; that have more bits now */
    size_t narrow;         /* with rows that are no multiple of 256, where the type wants one */
} telling;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* As the file has it. */
static double bytes_of(const mica_tensor *t)
{
    return (double)mica_tensor_count(t) / (double)mica_dtype_block(t->dtype) *
           (double)mica_dtype_bytes(t->dtype);
}

static double bits_of(mica_dtype dtype)
{
    return 8.0 * (double)mica_dtype_bytes(dtype) / (double)mica_dtype_block(dtype);
}

static void count_tensor(telling *t, const mica_gguf_quantizing *at)
{
    bool changes = at->from.dtype != at->to.dtype, blocks = mica_dtype_block(at->from.dtype) > 1;
    const char *type = mica_gguf_mix_name(mix_of(t->set->type));
    bool wide = strstr(type, "_K") != NULL || strcmp(type, "IQ4_XS") == 0;
    t->tensors[at->to.dtype]++;
    t->type_bytes[at->to.dtype] += bytes_of(&at->to);
    t->bytes += bytes_of(&at->to);
    t->bytes_before += bytes_of(&at->from);
    t->values += (double)at->values;
    t->again += changes && blocks;
    t->gaining += changes && blocks && bits_of(at->to.dtype) > bits_of(at->from.dtype);
    t->narrow += wide && changes && at->to.dim[at->to.rank - 1] % MICA_MAX_BLOCK != 0;
}

/* Before the work: adds up, and lists if asked to. */
static mica_status count(void *user, mica_context *ctx, const mica_gguf_quantizing *at)
{
    (void)ctx;
    telling *t = user;
    count_tensor(t, at);
    if (t->set->shared.json || (!t->set->dry_run && !t->set->shared.verbose))
        return MICA_OK;
    char name[64];
    printf("%-40s %-24s", plain_text(name, sizeof name, at->name),
           shape_text(at->from.dtype, at->from.rank, at->from.dim).text);
    printf(at->from.dtype == at->to.dtype ? "\n" : " -> %s\n", mica_dtype_name(at->to.dtype));
    return MICA_OK;
}

/* While it goes on. */
static mica_status draw(void *user, mica_context *ctx, const mica_gguf_quantizing *at)
{
    (void)ctx;
    telling *t = user;
    double now = clock_seconds();
    t->values_done += at->values_done < at->values ? 0.0 : (double)at->values;
    if (t->bar && now - t->drawn_at > 0.1) {
        t->drawn_at = now;
        char name[64];
        double done = t->values_done + (at->values_done < at->values ? (double)at->values_done : 0.0);
        fprintf(stderr, "\r%3.0f %%  %zu/%zu  %.*s\033[K", 100.0 * done / t->values, at->number + 1,
                at->tensors, t->terminal.columns > 40 ? t->terminal.columns - 25 : 15,
                plain_text(name, sizeof name, at->name));
        (void)fflush(stderr);
    }
    return stopped ? MICA_ERR_STATE : MICA_OK;
}

/* After it. */
static mica_status print_json(void *user, mica_context *ctx, const mica_gguf_quantizing *at)
{
    (void)user;
    (void)ctx;
    printf("%s\n  {\"name\": ", at->number == 0 ? "" : ",");
    put_json(stdout, at->name);
    printf(", \"from\": \"%s\", \"to\": \"%s\", \"bytes\": %.0f}", mica_dtype_name(at->from.dtype),
           mica_dtype_name(at->to.dtype), bytes_of(&at->to));
    return MICA_OK;
}

static void print_sums(const telling *t, const char *out, double seconds)
{
    double bits = t->values > 0 ? 8.0 * t->bytes / t->values : 0;
    printf("%s: %s, %s to %s, %.2f bits per value", out, mica_gguf_mix_name(mix_of(t->set->type)),
           size_text(t->bytes_before).text, size_text(t->bytes).text, bits);
    printf(t->set->dry_run ? "\n" : ", %s\n", time_text(seconds).text);
    for (mica_dtype d = 0; d < MICA_DTYPE_COUNT; d++)
        if (t->tensors[d] > 0)
            printf("  %-7s %5zu tensors  %10s\n", mica_dtype_name(d), t->tensors[d],
                   size_text(t->type_bytes[d]).text);
}

static void print_notices(const telling *t)
{
    if (t->set->shared.quiet)
        return;
    if (t->narrow > 0)
        fprintf(stderr,
                "mica quantize: %zu tensors have rows that are not a multiple of 256: they fell back\n",
                t->narrow);
    if (t->again > 0)
        fprintf(stderr, "mica quantize: %zu tensors were already quantized: the errors add up\n", t->again);
    if (t->gaining > 0)
        fprintf(stderr, "mica quantize: %zu of them now take more bits, but are no more accurate\n",
                t->gaining);
}

/* ---- The work ---- */

/* An interrupt ends it after the next piece, and nothing is left behind; a second one ends the program. */
static mica_status write_file(mica_context *ctx, const mica_gguf *file, const char *out,
                              mica_gguf_quantize_opts *opts)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, &before);
    opts->report = draw;
    mica_status status = mica_gguf_quantize(ctx, file, out, opts);
    (void)sigaction(SIGINT, &before, NULL);
    return status;
}

static mica_status tell_json(mica_context *ctx, const mica_gguf *file, const telling *t,
                             mica_gguf_quantize_opts *opts)
{
    opts->report = print_json;
    printf("{\"type\": \"%s\", \"tensors\": [", mica_gguf_mix_name(mix_of(t->set->type)));
    mica_status status = mica_gguf_quantize(ctx, file, NULL, opts);
    printf("],\n \"values\": %.0f, \"bytes_before\": %.0f, \"bytes\": %.0f}\n", t->values, t->bytes_before,
           t->bytes);
    return status;
}

static int quantize(mica_context *ctx, const settings *set, const char *in, const char *out)
{
    mica_gguf *file;
    if (mica_gguf_open(ctx, &file, in) != MICA_OK)
        return verb_failed(&verb_quantize, ctx);
    telling t = {.set = set, .terminal = terminal_of(STDERR_FILENO)};
    t.bar = t.terminal.is_terminal && !set->shared.quiet;
    mica_gguf_quantize_opts opts = {.mix = mix_of(set->type), .pure = set->pure, .report = count, .user = &t};
    double began = clock_seconds();
    mica_status status = mica_gguf_quantize(ctx, file, NULL, &opts);
    if (status == MICA_OK && !set->dry_run)
        status = write_file(ctx, file, out, &opts);
    if (t.bar)
        fputs("\r\033[K", stderr);
    if (status == MICA_OK && set->shared.json)
        status = tell_json(ctx, file, &t, &opts);
    else if (status == MICA_OK)
        print_sums(&t, set->dry_run ? in : out, clock_seconds() - began);
    mica_gguf_close(file);
    if (stopped)
        return verb_error(&verb_quantize, EXIT_INTERRUPTED, "interrupted; %s is as it was", out);
    if (status == MICA_ERR_IO) /* reading is over */
        return verb_error(&verb_quantize, EXIT_FAILED, "%s", mica_error(ctx));
    if (status != MICA_OK)
        return verb_failed(&verb_quantize, ctx);
    print_notices(&t);
    return EXIT_OK;
}

/* Whether two names lead to one file. */
static bool same_file(const char *a, const char *b)
{
    struct stat about_a, about_b;
    return stat(a, &about_a) == 0 && stat(b, &about_b) == 0 && about_a.st_dev == about_b.st_dev &&
           about_a.st_ino == about_b.st_ino;
}

/* The path of a checkpoint, which may be given by its folder. */
static bool same_checkpoint(const char *in, const char *out)
{
    char from[4096], to[4096];
    return checkpoint_path(from, sizeof from, in) && checkpoint_path(to, sizeof to, out) &&
           same_file(from, to);
}

static int run_int8(const settings *set, int given, char **argv)
{
    if (given != 2)
        return usage_error(&verb_quantize,
                           "which checkpoint or ONNX model, and where to? Try: mica quantize lenet-digits "
                           "lenet-int8.safetensors --int8 --data digits");
    if (set->type >= 0 || set->pure || set->dry_run)
        return usage_error(&verb_quantize, "--type, --pure and --dry-run are for GGUF files, not for --int8");
    if (same_checkpoint(argv[0], argv[1]))
        return usage_error(&verb_quantize,
                           "%s is the file to read: give OUT another name, or it would be lost", argv[1]);
    size_t length = strlen(argv[1]);
    if (length > 5 && strcasecmp(argv[1] + length - 5, ".onnx") == 0)
        return usage_error(&verb_quantize,
                           "%s would be a Mica checkpoint: call it NAME.safetensors; mica convert "
                           "NAME.safetensors %s then writes it as ONNX",
                           argv[1], argv[1]);
    mica_context *ctx = verb_context(&verb_quantize, &set->shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    int8_settings with = {
        .shared = &set->shared, .ranges = set->ranges, .table = set->table, .set = &set->set};
    int code = quantize_int8(&verb_quantize, ctx, &with, argv[0], argv[1]);
    mica_context_destroy(ctx);
    return code;
}

static int run(int argc, char **argv)
{
    settings set = {
        .shared = SHARED_DEFAULTS, .type = -1, .table = TABLE_DEFAULTS, .ranges = INT8_RANGES_DEFAULTS};
    int given = options_read(&verb_quantize, &set, argc, argv);
    if (given < 0)
        return EXIT_USAGE;
    if (set.int8)
        return run_int8(&set, given, argv);
    if (int8_not_wanted(&set.ranges, &verb_quantize) != EXIT_OK)
        return EXIT_USAGE;
    if (set.set.count > 0)
        return usage_error(&verb_quantize, "--set needs --int8");
    if (given != 2 && !(given == 1 && set.dry_run))
        return usage_error(&verb_quantize,
                           "which file, and where to? Try: mica quantize in.gguf out.gguf --type Q4_K_M");
    if (set.type < 0)
        return usage_error(&verb_quantize, "to what? Give --type, Q4_K_M for instance");
    if (given == 2 && !set.dry_run && same_file(argv[0], argv[1]))
        return usage_error(&verb_quantize,
                           "%s is the file to read: give OUT another name, or it would be lost", argv[1]);
    mica_context *ctx = verb_context(&verb_quantize, &set.shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    int code = quantize(ctx, &set, argv[0], argv[1]);
    mica_context_destroy(ctx);
    return code;
}

const verb verb_quantize = {
    .name = "quantize",
    .arguments = "FILE OUT --type TYPE | --int8 [OPTIONS]",
    .summary = "write a text model or a trained net with fewer bits",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_QUIET | SHARED_THREADS | SHARED_SEED,
    .examples = examples,
};

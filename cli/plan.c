/* mica plan: how a net's memory is laid out, before a byte of it is taken. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>
#include <mica/ranks.h>

#include "cli/model/saved.h"
#include "cli/net/argument.h"
#include "cli/net/program.h"
#include "cli/onnx/onnx.h"
#include "cli/onnx/net.h"
#include "cli/picture/plan_picture.h"
#include "cli/picture/text.h"
#include "cli/text/model.h"

#define MOST_RANKS 1024

typedef struct settings {
    shared_settings shared;
    option_list set;
    bool train;
    int64_t batch, ranks, shares; /* 0: not given */
    bool shard;
    int optimizer;
    size_t budget;
    const char *svg, *html;
    bool program, keep_cheap, parts;
    int prepare;
    session_settings session; /* of a text model */
} settings;

/* In the order of mica_optimizer_kind. */
static const char *const optimizers[] = {"sgd", "adam", "adamw", "rmsprop", "adagrad", NULL};

static const verb_option options[] = {
    {.name = "--train",
     OPTION_FLAG,
     offsetof(settings, train),
     NULL,
     "plan for training, with gradients and optimizer state"},
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(settings, batch),
     "N",
     "batch size (1; with --train 32)",
     .least = 1,
     .most = 1 << 24},
    {.name = "--optimizer",
     OPTION_CHOICE,
     offsetof(settings, optimizer),
     "NAME",
     "optimizer, with --train (adamw)",
     .choices = optimizers},
    {.name = "--budget",
     OPTION_BYTES,
     offsetof(settings, budget),
     "BYTES",
     "fit into this many bytes, by recomputing activations, then by splitting the batch"},
    {.name = "--ranks",
     OPTION_COUNT,
     offsetof(settings, ranks),
     "N",
     "with --train: memory of each of N ranks, and what travels between them in a step",
     .least = 1,
     .most = MOST_RANKS},
    {.name = "--shares",
     OPTION_COUNT,
     offsetof(settings, shares),
     "N",
     "with --train: as in mica train: shares of a batch, summed in a fixed order",
     .least = 1,
     .most = MOST_SHARES},
    {.name = "--shard",
     OPTION_FLAG,
     offsetof(settings, shard),
     NULL,
     "with --ranks: each rank keeps its part of the optimizer's state"},
    {.name = "--keep-cheap",
     OPTION_FLAG,
     offsetof(settings, keep_cheap),
     NULL,
     "keep activations even where recomputing them costs next to nothing"},
    {.name = "--parts",
     OPTION_FLAG,
     offsetof(settings, parts),
     NULL,
     "with --train: run the batch in parts where that saves memory and costs next to no time"},
    PREPARE_OPTION(offsetof(settings, prepare),
                   "without --train: with weights prepared, as mica run has them (yes)"),
    {.name = "--program",
     OPTION_FLAG,
     offsetof(settings, program),
     NULL,
     "list the calls of a step with what they read and write, instead of the buffers"},
    NET_SET_OPTION(settings),
    {.name = "--svg", OPTION_TEXT, offsetof(settings, svg), "FILE", "draw the plan as an SVG image"},
    {.name = "--html",
     OPTION_TEXT,
     offsetof(settings, html),
     "FILE",
     "draw the plan as an interactive HTML page"},
    SESSION_OPTIONS(settings, CONTEXT_TRAINED),
    {.name = "--sequences",
     OPTION_COUNT,
     offsetof(settings, session.sequences),
     "N",
     "text model: sequences at once, each with its own context (1)",
     .least = 1,
     .most = 1 << 20},
};

static const char details[] = NET_HELP
    "or a text model, FILE.gguf or a folder with config.json\n"
    "or an ONNX model, FILE.onnx: --set NAME=SIZE for sizes that it leaves open (those that are not set are\n"
    "the batch), NAME=VALUE or NAME=@FILE.npy for inputs that are fixed, NAME=1x3x224x224 for a shape\n"
    "\n"
    "Prints the total, a breakdown by kind, the lower bound (the most bytes live at once: no layout takes less),\n"
    "and every buffer with its offset and the times of its first write and last read.\n"
    "Buffers with disjoint lifetimes share memory, so the kinds add up to more than the total.\n"
    "\n"
    "With --ranks, --batch is that of all ranks; the plan is that of one rank, built for the rows of one\n"
    "share. Beside it a rank has room for sums and for messages from others.\n"
    "\n"
    "--json prints one object: total, parameters (with running statistics), gradients, optimizer,\n"
    "activations (with inputs, saved values and their gradients), scratch, lower_bound, and buffers;\n"
    "with --program also program, a list of calls: op, phase, layer, fused, inputs and outputs (name,\n"
    "home, offset, shape, dtype), adds, options, scratch. With --ranks or --shares also ranks: count,\n"
    "shares, fixed (their order is), shard, rows (of a share), buffers (bytes beside total), bytes (both),\n"
    "sent (bytes that a rank sends in a step), messages (that they take). For a text model also model:\n"
    "weights (bytes of the mapped file, not part of the total), tables (bytes of the vocabulary and the\n"
    "net's description, beside the block), context, sequences, chunk, cache.";

/* What was asked for ranks, and what comes of it; or the text model. */
typedef struct ranks_shown {
    bool asked;
    int count;
    mica_ranks_plan plan;
    const text_model *model; /* NULL: it is none */
    const onnx_built *onnx;  /* NULL: it is none, or is to be trained */
} ranks_shown;

/* ---- Text ---- */

static void print_line(const char *what, size_t bytes, size_t of)
{
    int width = of > 0 ? (int)(30.0 * (double)bytes / (double)of + 0.5) : 0;
    printf("  %-20s %12s  %.*s\n", what, size_text((double)bytes).text, width < 60 ? width : 60,
           "############################################################");
}

static void print_plan(const mica_plan *plan, const char *title, const char *subtitle)
{
    put_plain(stdout, title);
    printf(", %s\n\n", subtitle);
    printf("  %-20s %12s  (%s bytes, one block)\n", "total", size_text((double)plan->total).text,
           count_text((double)plan->total).text);
    printf("  %-20s %12s  (packing lost %.2f %%)\n", "lower bound", size_text((double)plan->lower_bound).text,
           plan->lower_bound > 0
               ? 100.0 * (double)(plan->total - plan->lower_bound) / (double)plan->lower_bound
               : 0.0);
    printf("\n");
    for (mica_buffer_kind kind = 0; kind < MICA_BUFFER_KIND_COUNT; kind++)
        if (plan->kind_bytes[kind] > 0)
            print_line(mica_buffer_kind_text(kind), plan->kind_bytes[kind], plan->total);
    if (plan->parts > 1)
        printf("\nthe batch is split into %d parts, %d at a time\n", plan->parts, plan->lanes);
    if (plan->recomputed > 0)
        printf("\n%d calls run twice, to keep less: %.1f %% more work in the forward pass\n",
               plan->recomputed, 100.0 * plan->extra_work);
}

/* Shares that are added in a fixed order, or that of each rank. */
static int64_t shares_of(const settings *set, int ranks) { return set->shares > 0 ? set->shares : ranks; }

static void print_ranks(const settings *set, const mica_plan *plan, const ranks_shown *r)
{
    if (!r->asked)
        return;
    int64_t shares = shares_of(set, r->count);
    size_t bytes = plan->total + r->plan.buffers;
    printf("\n%d rank%s, %lld share%s of %td row%s%s\n\n", r->count, r->count == 1 ? "" : "s",
           (long long)shares, shares == 1 ? "" : "s", r->plan.rows, r->plan.rows == 1 ? "" : "s",
           set->shard ? ", the optimizer's state sharded" : "");
    printf("  %-20s %12s  (%s bytes: the block, and sums and messages)\n", "each rank",
           size_text((double)bytes).text, count_text((double)bytes).text);
    printf("  %-20s %12s\n", "sums and messages", size_text((double)r->plan.buffers).text);
    printf("  %-20s %12s  (%s message%s of a rank in a step)\n", "on the wire", size_text(r->plan.sent).text,
           count_text(r->plan.messages).text, r->plan.messages == 1 ? "" : "s");
}

static void print_model(const text_model *t)
{
    if (t == NULL)
        return;
    size_t weights = mica_model_about(t->model)->weight_bytes, tables = text_model_tables(t);
    printf("\nbeside the block\n\n");
    printf("  %-20s %12s  (%s bytes, lent from the file)\n", "weights", size_text((double)weights).text,
           count_text((double)weights).text);
    printf("  %-20s %12s  (%s bytes: vocabulary, the net's description)\n", "tables",
           size_text((double)tables).text, count_text((double)tables).text);
}

static void print_lent(const onnx_built *built)
{
    if (built == NULL || onnx_weight_bytes(built) == 0)
        return;
    size_t bytes = onnx_weight_bytes(built);
    printf("\nbeside the block\n\n");
    printf("  %-20s %12s  (%s bytes, lent from the file)\n", "weights", size_text((double)bytes).text,
           count_text((double)bytes).text);
}

static void print_buffers(const mica_plan *plan)
{
    printf("\n%12s %12s %6s %6s  %-20s %s\n", "offset", "bytes", "first", "last", "kind", "buffer");
    for (size_t i = 0; i < plan->count; i++) {
        const mica_plan_buffer *b = &plan->buffers[i];
        printf("%12zu %12zu %6d %6d  %-20s %s\n", b->offset, b->bytes, b->first, b->last,
               mica_buffer_kind_text(b->kind), b->name);
    }
}

static int print_program(const mica_net *net)
{
    size_t length = mica_net_program_print(NULL, 0, net);
    char *text = malloc(length + 1);
    if (text == NULL)
        return verb_error(&verb_plan, EXIT_FAILED, "no memory for the program's text");
    (void)mica_net_program_print(text, length + 1, net);
    putchar('\n');
    put_message(stdout, text);
    free(text);
    return EXIT_OK;
}

/* ---- JSON ---- */

static void print_json_ranks(const settings *set, const mica_plan *plan, const ranks_shown *r)
{
    if (r->asked)
        printf(
            ", \"ranks\": {\"count\": %d, \"shares\": %lld, \"fixed\": %s, \"shard\": %s, \"rows\": %td, "
            "\"buffers\": %zu, \"bytes\": %zu, \"sent\": %.0f, \"messages\": %d}",
            r->count, (long long)shares_of(set, r->count), set->shares > 0 ? "true" : "false",
            set->shard ? "true" : "false", r->plan.rows, r->plan.buffers, plan->total + r->plan.buffers,
            r->plan.sent, r->plan.messages);
}

static void print_json_model(const text_model *t)
{
    if (t == NULL)
        return;
    mica_session_opts about = mica_session_about(t->session);
    printf(
        ", \"model\": {\"weights\": %zu, \"tables\": %zu, \"context\": %td, \"sequences\": %td, \"chunk\": %td, "
        "\"cache\": \"%s\"}",
        mica_model_about(t->model)->weight_bytes, text_model_tables(t), about.context, about.sequences,
        about.chunk, session_caches[about.cache]);
}

static void print_json(const settings *set, const mica_net *net, const ranks_shown *ranks)
{
    const mica_plan *plan = mica_net_plan(net);
    const size_t *bytes = plan->kind_bytes;
    printf(
        "{\"total\": %zu, \"parameters\": %zu, \"gradients\": %zu, \"optimizer\": %zu, \"activations\": %zu, "
        "\"scratch\": %zu, \"lower_bound\": %zu, \"parts\": %d, \"lanes\": %d, \"buffers\": [",
        plan->total, bytes[MICA_BUFFER_PARAMETER] + bytes[MICA_BUFFER_STATE], bytes[MICA_BUFFER_GRADIENT],
        bytes[MICA_BUFFER_OPTIMIZER],
        bytes[MICA_BUFFER_INPUT] + bytes[MICA_BUFFER_ACTIVATION] + bytes[MICA_BUFFER_SAVED] +
            bytes[MICA_BUFFER_BACK],
        bytes[MICA_BUFFER_SCRATCH], plan->lower_bound, plan->parts, plan->lanes);
    for (size_t i = 0; i < plan->count; i++) {
        const mica_plan_buffer *b = &plan->buffers[i];
        printf("%s\n{\"name\": ", i > 0 ? "," : "");
        put_json(stdout, b->name);
        printf(", \"kind\": ");
        put_json(stdout, mica_buffer_kind_text(b->kind));
        printf(", \"bytes\": %zu, \"offset\": %zu, \"first\": %d, \"last\": %d, \"lane\": %d}", b->bytes,
               b->offset, b->first, b->last, b->lane);
    }
    printf("]");
    print_json_ranks(set, plan, ranks);
    print_json_model(ranks->model);
    if (set->program) {
        printf(", \"program\": ");
        put_program(stdout, net);
    }
    printf("}\n");
}

/* ---- Pictures ---- */

typedef bool picture_writer(FILE *out, const plan_picture *picture);

static int write_picture(const char *path, picture_writer *write, const plan_picture *picture, bool quiet)
{
    if (path == NULL)
        return EXIT_OK;
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    bool written = file != NULL && write(file, picture);
    if (file != NULL && file != stdout && fclose(file) != 0)
        written = false;
    if (!written)
        return verb_error(&verb_plan, EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (!quiet && file != stdout)
        fprintf(stderr, "wrote %s\n", path);
    return EXIT_OK;
}

static int show(const settings *set, const mica_net *net, const ranks_shown *ranks, const char *what,
                const char *subtitle)
{
    const mica_plan *plan = mica_net_plan(net);
    bool to_stdout = (set->svg != NULL && strcmp(set->svg, "-") == 0) ||
                     (set->html != NULL && strcmp(set->html, "-") == 0);
    bool brief = set->shared.quiet || set->svg != NULL || set->html != NULL;
    int code = EXIT_OK;
    if (set->shared.json) {
        print_json(set, net, ranks);
    } else if (!to_stdout) {
        print_plan(plan, what, subtitle);
        print_ranks(set, plan, ranks);
        print_model(ranks->model);
        print_lent(ranks->onnx);
        if (set->program)
            code = print_program(net);
        else if (!brief)
            print_buffers(plan);
    }
    plan_picture picture = {.plan = plan, .title = what, .subtitle = subtitle};
    if (code == EXIT_OK)
        code = write_picture(set->svg, plan_picture_svg, &picture, set->shared.quiet);
    return code == EXIT_OK ? write_picture(set->html, plan_picture_html, &picture, set->shared.quiet) : code;
}

/* Rows that the net is built for: those of a share, where there are shares. */
static mica_index rows_of(const settings *set, mica_index batch)
{
    mica_index shares = (mica_index)shares_of(set, set->ranks > 0 ? (int)set->ranks : 1);
    return set->train ? (batch + shares - 1) / shares : batch;
}

static int compile_and_show(mica_context *ctx, const settings *set, mica_net *net, const char *what,
                            mica_index batch, const onnx_built *onnx)
{
    ranks_shown ranks = {.asked = set->ranks > 0 || set->shares > 0,
                         .count = set->ranks > 0 ? (int)set->ranks : 1,
                         .onnx = onnx};
    mica_optimizer optimizer = {.kind = (mica_optimizer_kind)set->optimizer};
    mica_ranks_opts of_ranks = {.batch = batch, .shares = (int)set->shares};
    char subtitle[512], sizes[400] = "";
    if (onnx != NULL)
        onnx_sizes(sizes, sizeof sizes, onnx);
    snprintf(subtitle, sizeof subtitle, "%s, batch %td%s%s%s", set->train ? "training" : "inference", batch,
             sizes, set->train ? ", " : "", set->train ? optimizers[set->optimizer] : "");
    mica_status status = mica_net_compile(
        net, &(mica_compile_opts){.train = set->train,
                                  .optimizer = set->train ? &optimizer : NULL,
                                  .budget = set->budget,
                                  .keep_cheap = set->keep_cheap,
                                  .same_parts = set->shares > 0,
                                  .part_rows = set->train && set->parts ? MICA_CHEAP_PARTS : 0,
                                  .prepare = !set->train && set->prepare == PREPARE_YES,
                                  .ranks = set->shard ? ranks.count : 0});
    if (status == MICA_OK && ranks.asked)
        status = mica_ranks_plan_of(&ranks.plan, net, ranks.count, &of_ranks);
    return status == MICA_OK ? show(set, net, &ranks, what, subtitle)
                             : verb_error(&verb_plan, EXIT_FAILED, "%s", mica_error(ctx));
}

static int plan_with(mica_context *ctx, const settings *set, const char *what)
{
    mica_net *net;
    mica_netfile_info info;
    mica_index batch = set->batch > 0 ? set->batch : set->train ? 32 : 1;
    mica_netfile_opts opts = {.batch = rows_of(set, batch), .inference = !set->train};
    int code = net_build(&net, &info, &verb_plan, ctx, what, &set->set, &opts);
    if (code != EXIT_OK)
        return code;
    code = compile_and_show(ctx, set, net, what, batch, NULL);
    mica_net_destroy(net);
    return code;
}

static int plan_onnx(mica_context *ctx, const settings *set, const char *what)
{
    mica_net *net = NULL;
    onnx_built *built = NULL;
    mica_index batch = set->batch > 0 ? set->batch : set->train ? 32 : 1;
    bool alone = set->ranks == 0 && set->shares == 0, asked = set->batch > 0 || !alone;
    mica_netfile_info info;
    int code = set->train ? onnx_train_build(&net, &info, &verb_plan, ctx, what, MICA_TASK_CLASSES, &set->set,
                                             &(mica_netfile_opts){.batch = asked ? rows_of(set, batch) : 0})
                          : onnx_build(&built, &net, ctx, &verb_plan, &set->set, what, batch);
    mica_index most = 0;
    if (code == EXIT_OK && alone && mica_net_size_at(net, NULL, NULL, &most, 0) == MICA_OK && most > 0)
        batch = most; /* as --set has it */
    mica_index own = code == EXIT_OK && !set->train && set->batch > 0 ? onnx_batch_of(ctx, what) : 0;
    if (own > 0 && own != set->batch)
        code = verb_error(
            &verb_plan, EXIT_FILE,
            "%s takes batches of %td, which is fixed in the model: use --batch %td, or export it with a "
            "dynamic batch size",
            what, own, own);
    if (code == EXIT_OK)
        code = compile_and_show(ctx, set, net, what, batch, built);
    mica_net_destroy(net);
    onnx_release(built);
    return code;
}

static int plan_model(mica_context *ctx, const settings *set, const char *what)
{
    const char *foreign = set->train           ? "--train"
                          : set->batch > 0     ? "--batch"
                          : set->set.count > 0 ? "--set"
                                               : NULL;
    if (foreign != NULL)
        return usage_error(&verb_plan, "%s is not for text models: see --context, --sequences, --chunk",
                           foreign);
    text_model t;
    session_settings session = set->session;
    session.budget = set->budget;
    int code = text_model_open(&t, &verb_plan, ctx, what, &session, 0);
    if (code == EXIT_OK) {
        mica_session_opts about = mica_session_about(t.session);
        char subtitle[128];
        snprintf(subtitle, sizeof subtitle, "context %td, %td sequence%s, chunks of %td, cache %s",
                 about.context, about.sequences, about.sequences == 1 ? "" : "s", about.chunk,
                 session_caches[about.cache]);
        code = show(set, mica_session_net(t.session), &(ranks_shown){.model = &t}, what, subtitle);
    }
    text_model_close(&t);
    return code;
}

/* What the table of options cannot say. */
static int check_settings(const settings *set)
{
    if (!set->train && (set->ranks > 0 || set->shares > 0))
        return usage_error(&verb_plan, "%s is about training: --train",
                           set->ranks > 0 ? "--ranks" : "--shares");
    if (set->shard && set->ranks == 0)
        return usage_error(&verb_plan, "--shard is about ranks: --ranks N");
    if (set->ranks > 0 && set->shares % set->ranks != 0)
        return usage_error(&verb_plan, "--shares %lld: expected a multiple of the %lld ranks",
                           (long long)set->shares, (long long)set->ranks);
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .optimizer = MICA_ADAMW, .session = SESSION_DEFAULTS};
    int given = options_read(&verb_plan, &set, argc, argv);
    if (given < 0)
        return EXIT_USAGE;
    if (given != 1)
        return usage_error(&verb_plan, given == 0 ? "which net? Try: mica plan lenet" : "one net at a time");
    if (check_settings(&set) != EXIT_OK)
        return EXIT_USAGE;
    mica_context *ctx = verb_context(&verb_plan, &set.shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    int code = is_onnx(argv[0])         ? plan_onnx(ctx, &set, argv[0])
               : is_text_model(argv[0]) ? plan_model(ctx, &set, argv[0])
                                        : plan_with(ctx, &set, argv[0]);
    mica_context_destroy(ctx);
    return code;
}

const verb verb_plan = {
    .name = "plan",
    .arguments = "NET [OPTIONS]",
    .summary = "show the memory a net needs, before it is allocated",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_THREADS | SHARED_QUIET,
    .examples =
        (const verb_example[]){
            {"plan lenet --train", "what training needs, buffer by buffer"},
            {"plan lenet --train --batch 64 --html plan.html", "as an interactive page"},
            {"plan gpt-tiny --train --batch 16 --budget 24MiB", "fitted into 24 MiB"},
            {"plan lenet --train --program", "the calls of a step, in order, with their memory"},
            {"plan gpt-tiny --train --ranks 4 --shard", "what each of four ranks needs, and what travels"},
            {"plan my.net --set width=256 --json", "for a net file, as JSON"},
            {"plan resnet18.onnx --set batch=8", "an ONNX model, for at most 8 images at a time"},
            {"plan smollm2.gguf --context 2048 --cache q8_0", "a public text model with its cache"},
            {NULL, NULL},
        },
};

/* mica plan: how a net's memory is laid out, before a byte of it is taken. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "cli/net/argument.h"
#include "cli/net/program.h"
#include "cli/picture/plan_picture.h"
#include "cli/picture/text.h"

typedef struct settings {
    shared_settings shared;
    option_list set;
    bool train;
    int64_t batch;
    int optimizer;
    size_t budget;
    const char *svg, *html;
    bool program, keep_cheap;
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
    {.name = "--keep-cheap",
     OPTION_FLAG,
     offsetof(settings, keep_cheap),
     NULL,
     "keep activations even where recomputing them costs next to nothing"},
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
};

static const char details[] = NET_HELP
    "\n"
    "Prints the total, a breakdown by kind, the lower bound (the most bytes live at once: no layout takes less),\n"
    "and every buffer with its offset and the times of its first write and last read.\n"
    "Buffers with disjoint lifetimes share memory, so the kinds add up to more than the total.\n"
    "\n"
    "--json prints one object: total, parameters (with running statistics), gradients, optimizer,\n"
    "activations (with inputs, saved values and their gradients), scratch, lower_bound, and buffers;\n"
    "with --program also program, a list of calls: op, phase, layer, fused, inputs and outputs (name,\n"
    "home, offset, shape, dtype), adds, options, scratch.";

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
        printf("\nthe batch is split into %d parts\n", plan->parts);
    if (plan->recomputed > 0)
        printf("\n%d calls run twice, to keep less: %.1f %% more work in the forward pass\n",
               plan->recomputed, 100.0 * plan->extra_work);
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
    printf("\n%s", text);
    free(text);
    return EXIT_OK;
}

/* ---- JSON ---- */

static void print_json(const mica_net *net, bool program)
{
    const mica_plan *plan = mica_net_plan(net);
    const size_t *bytes = plan->kind_bytes;
    printf(
        "{\"total\": %zu, \"parameters\": %zu, \"gradients\": %zu, \"optimizer\": %zu, \"activations\": %zu, "
        "\"scratch\": %zu, \"lower_bound\": %zu, \"buffers\": [",
        plan->total, bytes[MICA_BUFFER_PARAMETER] + bytes[MICA_BUFFER_STATE], bytes[MICA_BUFFER_GRADIENT],
        bytes[MICA_BUFFER_OPTIMIZER],
        bytes[MICA_BUFFER_INPUT] + bytes[MICA_BUFFER_ACTIVATION] + bytes[MICA_BUFFER_SAVED] +
            bytes[MICA_BUFFER_BACK],
        bytes[MICA_BUFFER_SCRATCH], plan->lower_bound);
    for (size_t i = 0; i < plan->count; i++) {
        const mica_plan_buffer *b = &plan->buffers[i];
        printf("%s\n{\"name\": ", i > 0 ? "," : "");
        put_json(stdout, b->name);
        printf(", \"kind\": ");
        put_json(stdout, mica_buffer_kind_text(b->kind));
        printf(", \"bytes\": %zu, \"offset\": %zu, \"first\": %d, \"last\": %d}", b->bytes, b->offset,
               b->first, b->last);
    }
    printf("]");
    if (program) {
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

static int show(const settings *set, const mica_net *net, const char *what, const char *subtitle)
{
    const mica_plan *plan = mica_net_plan(net);
    bool to_stdout = (set->svg != NULL && strcmp(set->svg, "-") == 0) ||
                     (set->html != NULL && strcmp(set->html, "-") == 0);
    bool brief = set->shared.quiet || set->svg != NULL || set->html != NULL;
    int code = EXIT_OK;
    if (set->shared.json) {
        print_json(net, set->program);
    } else if (!to_stdout) {
        print_plan(plan, what, subtitle);
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

static int plan_with(mica_context *ctx, const settings *set, const char *what)
{
    mica_net *net;
    mica_netfile_info info;
    mica_netfile_opts opts = {.batch = set->batch > 0 ? set->batch
                                       : set->train   ? 32
                                                      : 1,
                              .inference = !set->train};
    int code = net_build(&net, &info, &verb_plan, ctx, what, &set->set, &opts);
    if (code != EXIT_OK)
        return code;
    mica_optimizer optimizer = {.kind = (mica_optimizer_kind)set->optimizer};
    char subtitle[96];
    snprintf(subtitle, sizeof subtitle, "%s, batch %td%s%s", set->train ? "training" : "inference",
             opts.batch, set->train ? ", " : "", set->train ? optimizers[set->optimizer] : "");
    mica_status status = mica_net_compile(net,
                                          &(mica_compile_opts){.train = set->train,
                                                               .optimizer = set->train ? &optimizer : NULL,
                                                               .budget = set->budget,
                                                               .keep_cheap = set->keep_cheap});
    code = status == MICA_OK ? show(set, net, what, subtitle)
                             : verb_error(&verb_plan, EXIT_FAILED, "%s", mica_error(ctx));
    mica_net_destroy(net);
    return code;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .optimizer = MICA_ADAMW};
    int given = options_read(&verb_plan, &set, argc, argv);
    if (given < 0)
        return EXIT_USAGE;
    if (given != 1)
        return usage_error(&verb_plan, given == 0 ? "which net? Try: mica plan lenet" : "one net at a time");
    mica_context *ctx = verb_context(&verb_plan, &set.shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    int code = plan_with(ctx, &set, argv[0]);
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
            {"plan my.net --set width=256 --json", "for a net file, as JSON"},
            {NULL, NULL},
        },
};

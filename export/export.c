/* From a net to files: read, refuse, rewrite, plan, write. */
#include "export/export.h"

#include "export/write.h"

static const char *const no_memory = "  not enough memory\n";

/* Everything before the writing. */
static bool make_graph(graph *g, mica_net *net, const export_opts *opts, text *why)
{
    if (!graph_read(g, net, opts->output, opts->train, opts->samples)) {
        text_put(why, "  the program cannot be read: no input, no output, or not enough memory\n");
        return false;
    }
    g->target = opts->target;
    g->float_ends = opts->float_ends;
    g->method = opts->optimizer;
    g->states = opts->train && opts->optimizer->kind != MICA_SGD ? 2 : 0;
    bool rewritten = graph_rewrite(g);
    if (rewritten && graph_refusals(g, why) > 0)
        return false;
    if (rewritten && graph_prepare(g) && graph_plan(g))
        return true;
    text_add(why, no_memory);
    return false;
}

bool export_measure(size_t *ram, mica_net *net, const export_opts *opts, text *why)
{
    graph g;
    bool made = make_graph(&g, net, opts, why);
    *ram = made ? ram_bytes(&g) : 0;
    graph_free(&g);
    return made;
}

bool export_net(exported *out, mica_net *net, mica_net *check, const export_opts *opts, text *why)
{
    graph g;
    *out = (exported){.ram = 0};
    bool done = make_graph(&g, net, opts, why);
    if (done) {
        emitter e = {.g = &g};
        done = write_source(&out->source, &e, opts, why) &&
               (check == NULL || write_test(&out->test, &g, check, opts, why));
        write_header(&out->header, &g, opts);
        write_page(&out->page, &g, opts);
        out->ram = ram_bytes(&g);
        out->flash = const_bytes(&g);
        if (out->header.failed || out->page.failed) {
            text_add(why, no_memory);
            done = false;
        }
    }
    graph_free(&g);
    return done;
}

void exported_free(exported *e)
{
    text_free(&e->source);
    text_free(&e->header);
    text_free(&e->test);
    text_free(&e->page);
}

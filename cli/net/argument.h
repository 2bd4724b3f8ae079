/* NET on the command line: the name of a built-in net, a net file, "-" for one on stdin, or a checkpoint, which holds
 * the text of its net. */
#ifndef MICA_CLI_NET_ARGUMENT_H
#define MICA_CLI_NET_ARGUMENT_H

#include <mica/netfile.h>

#include "cli/verb.h"

/* For help. */
#define NET_HELP                                                                             \
    "NET is one of:\n"                                                                       \
    "  mlp, lenet, resnet-small, lstm, gpt-tiny,\n"                                          \
    "  keywords                                   built-in nets\n"                           \
    "  FILE.net, -                                a net file (mica help layers), or stdin\n" \
    "  FILE.safetensors, DIR                      the net of a checkpoint, or of its folder\n"

/* The option that goes with it: a field `set`, an option_list. */
#define NET_SET_OPTION(settings)                                              \
    {                                                                         \
        .name = "--set", OPTION_LIST, offsetof(settings, set), "NAME=NUMBER", \
        "override a constant of the net"                                      \
    }

/* Builds the net, with `set` ("width=64" each; NULL: none) and opts (whose file is set here; NULL: all defaults). On
 * failure *out is NULL, it was said what is wrong, and what the program ends with is returned. */
int net_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx, const char *what,
              const option_list *set, const mica_netfile_opts *opts);
/* The same, a built-in net with the end that suits the task. */
int net_build_for(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx, const char *what,
                  mica_task task, const option_list *set, const mica_netfile_opts *opts);

/* The text alone, to be given to free(). NULL after a failure, as above, with *code. */
char *net_text(int *code, const verb *v, mica_context *ctx, const char *what);

/* Whether it is a file that may be looked into beforehand: what is read from a pipe is gone. */
bool is_regular(const char *path);

/* What to do with a model of another framework, by the file's suffix; NULL: it is none. */
const char *foreign_model(const char *path);

/* Whether a regular file begins as safetensors do. */
bool is_safetensors(const char *path);

#endif

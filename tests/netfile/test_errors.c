/* What is wrong with a net file, where, and what was expected. */
#include <stdio.h>
#include <string.h>

#include <mica/netfile.h>

#include "oom.h"
#include "test.h"

#define X "input x [2, 8, 8]\n"

static const struct {
    const char *text, *error; /* up to the line that is shown */
} cases[] = {
    /* Words */
    {X "covn 8 3x3", "net:2:1: unknown layer \"covn\"; did you mean \"conv\"?"},
    {X "zzzzzzz", "net:2:1: unknown layer \"zzzzzzz\""},
    {X "\n# why\n  8 conv", "net:4:3: expected a layer, found \"8\""},
    {"dense 10", "net:1:1: there is nothing before dense: a net starts with an input"},
    {"", "net:1:1: expected layers, found the end of the file"},
    {X, "net:2:1: expected layers, found the end of the file"},
    {X "dense 10 \x01", "net:2:10: unexpected character \"\\x01\" in a net file"},
    {X "dense 10 ; relu", "net:2:10: unexpected character \";\" in a net file"},
    /* Options */
    {X "conv 8\nrelu",
     "net:2:7: expected kernel of conv (\"conv channels kernel\"), found the end of the line"},
    {X "conv 8 3x3 rellu", "net:2:12: conv takes no \"rellu\"; did you mean \"relu\"?"},
    {X "max_pool 2 relu", "net:2:12: max_pool takes no \"relu\""},
    {X "conv 8 3x3 stide=2", "net:2:12: conv takes no \"stide\"; did you mean \"stride\"?"},
    {X "conv 8 3x3 stride=1 stride=2", "net:2:21: stride is given twice"},
    {X "conv 8 3x3 same same", "net:2:17: same is given twice"},
    {X "conv 8 3x3 name=a name=b", "net:2:19: name is given twice"},
    {X "conv 8 3x3 relu tanh", "net:2:17: a second activation, \"tanh\": put it on its own line"},
    {X "conv 8 3x3 4", "net:2:12: conv: expected an option or the end of the line, found \"4\""},
    {X "conv 8 3x3 * 4",
     "net:2:12: conv: expected an option or the end of the line, found \"*\"; an expression with spaces needs parentheses"},
    {X "conv 8 3x3 same=1", "net:2:17: same takes no value"},
    {X "conv 8 3x3x3", "net:2:8: kernel: expected one or two sizes, found 3"},
    {X "conv 8 []", "net:2:8: kernel: expected one or two sizes, found 0"},
    {X "conv 8 3x3 init=nomal(1)", "net:2:17: init: unknown value \"nomal\"; did you mean \"normal\"?"},
    {X "conv 8 3x3 init=3", "net:2:17: init: expected an initializer, such as normal(0.02), found \"3\""},
    {X "conv 8 3x3 init=normal",
     "net:2:23: init: expected a number in parentheses, such as normal(0.02), found the end of the file"},
    {X "mlp activation=rulu", "net:2:16: activation: unknown value \"rulu\"; did you mean \"relu\"?"},
    {"input x 32 q8_0", "net:1:12: dtype: unknown value \"q8_0\""},
    {"input x 8 f31", "net:1:11: dtype: unknown value \"f31\"; did you mean \"f32\"?"},
    {X "loss", "net:2:5: expected kind of loss (\"loss kind\"), found the end of the file"},
    {X "loss crossentropy", "net:2:6: kind: unknown value \"crossentropy\"; did you mean \"cross_entropy\"?"},
    {X "dense 10 {", "net:2:10: expected the end of the line, found \"{\""},
    {X "residual", "net:2:9: expected \"{\" at the end of a residual line, found the end of the file"},
    /* What other frameworks say */
    {X "dense 16 activation=relu",
     "net:2:10: dense takes no \"activation\"; an activation is a word of its own: \"relu\""},
    {X "conv 8 3x3 act=tanh",
     "net:2:12: conv takes no \"act\"; an activation is a word of its own: \"tanh\""},
    {X "dense 16 activation=swosh",
     "net:2:10: dense takes no \"activation\"; an activation is a word of its own: \"relu\""},
    {X "conv filters=8 kernel=3", "net:2:6: conv takes no \"filters\"; did you mean \"channels\"?"},
    {X "conv units=8 kernel=3", "net:2:6: conv takes no \"units\"; did you mean \"channels\"?"},
    {X "conv 8 kernel_size=3", "net:2:8: conv takes no \"kernel_size\"; did you mean \"kernel\"?"},
    {X "conv 8 3 in_channels=2",
     "net:2:10: conv takes no \"in_channels\"; sizes of the input follow from the line above"},
    {X "dense out_features=4", "net:2:7: dense takes no \"out_features\"; did you mean \"units\"?"},
    {X "dropout p=0.5", "net:2:9: dropout takes no \"p\"; did you mean \"rate\"?"},
    {X "dense 4 bias=0", "net:2:9: dense takes no \"bias\"; did you mean \"no_bias\"?"},
    {X "Linear 4", "net:2:1: unknown layer \"Linear\"; did you mean \"dense\"?"},
    {X "Dense 4", "net:2:1: unknown layer \"Dense\"; did you mean \"dense\"?"},
    {X "MaxPooling2D 2", "net:2:1: unknown layer \"MaxPooling2D\"; did you mean \"max_pool\"?"},
    /* Numbers */
    {X "conv eight 3x3", "net:2:6: expected a number, found \"eight\", which is not a constant"},
    {"let width = 3\n" X "conv widht 3x3",
     "net:3:6: expected a number, found \"widht\", which is not a constant; did you mean \"width\"?"},
    {X "conv 2.5 3x3", "net:2:6: channels: expected an integer, found 2.5"},
    {X "conv 0 3x3", "net:2:6: channels: expected a number from 1 to 2147483647, found 0"},
    {X "conv 1e12 3x3", "net:2:6: channels: expected a number from 1 to 2147483647, found 1000000000000"},
    {X "conv 1e999 3x3", "net:2:6: expected a number, found \"1e999\""},
    {X "conv 2 * 8 3x3",
     "net:2:8: expected a number, found \"*\"; an expression with spaces needs parentheses"},
    {X "conv (8 3x3", "net:2:9: expected \")\", found \"3x3\""},
    {X "conv 8/0 3x3", "net:2:6: expected a number, found an expression that evaluates to inf"},
    {X "reshape [2 8]", "net:2:12: shape: expected \",\" or \"]\", found \"8\""},
    {X "reshape [1,1,1,1,1,1,1,1,1]", "net:2:26: shape: more than 8 sizes"},
    {X "reshape 1x1x1x1x1x1x1x1x1", "net:2:9: shape: more than 8 sizes"},
    {X "reshape [1,1,1,1,1,1,1,1]", "net:2:1: a shape of more than 7 axes"},
    {X "lstm 8 layers=257", "net:2:15: layers: expected a number from 1 to 256, found 257"},
    {"let a = ---------------------------------1", "net:1:41: more than 32 nested parentheses and signs"},
    /* Constants */
    {"let a = 1\nlet a = 2", "net:2:5: \"a\" was already defined as 1 on line 1"},
    {"let 3 = 1", "net:1:5: expected the name of a constant, found \"3\""},
    {"let a.b = 1", "net:1:5: expected the name of a constant, found \"a.b\""},
    {"let a 1", "net:1:7: expected \"=\", found \"1\""},
    {"let a = 1 2", "net:1:11: expected the end of the line, found \"2\""},
    {X "repeat 2 {\nlet a = 1\n}", "net:3:1: let is only allowed outside of braces"},
    /* Names */
    {X "flatten from=y", "net:2:14: there is no line \"y\" above; did you mean \"x\"?"},
    {X "flatten from=3", "net:2:14: from: expected the name of a layer above, found \"3\""},
    {X "flatten name=3", "net:2:14: name: expected a name, found \"3\""},
    {X "flatten name=a.b", "net:2:14: name: expected a name without dots, found \"a.b\""},
    {X "flatten name=x", "net:2:1: the name \"x\" is already in use"},
    {X "dense 8 share=dense1.weight",
     "net:2:15: no layer above has a parameter \"dense1.weight\" (names look like conv1.weight)"},
    {X "add", "net:2:4: expected others of add (\"add others\"), found the end of the file"},
    {X "add x x x x x x x x", "net:2:19: others: more than 7 names"},
    /* Operations */
    {X "sub", "net:2:4: expected b of sub (\"sub [a] b\"), found the end of the file"},
    {X "matmull x", "net:2:1: unknown layer \"matmull\"; did you mean \"matmul\"?"},
    {X "relu_backward x", "net:2:1: unknown layer \"relu_backward\""},
    {X "sum kep", "net:2:5: sum: no option and no line above is called \"kep\"; did you mean \"keep\"?"},
    {X "sum axs=1", "net:2:5: sum takes no \"axs\"; did you mean \"axes\"?"},
    {X "sum keep keep", "net:2:10: keep is given twice"},
    {X "sum keep=1", "net:2:10: keep takes no value"},
    {X "sum 1", "net:2:5: sum: expected an option or the end of the line, found \"1\""},
    {X "sum axes=[1 2]", "net:2:13: axes: expected \",\" or \"]\", found \"2\""},
    {X "sum axes=[1.5]", "net:2:11: axes: expected an integer, found 1.5"},
    {X "sum axes=x", "net:2:10: expected a number, found \"x\", which is not a constant"},
    {X "neg x x", "net:2:7: neg takes no more values (\"neg [a]\"), found \"x\""},
    {X "neg x from=x", "net:2:1: neg takes 1 values at most (\"neg [a]\")"},
    {X "neg a=x from=x", "net:2:1: neg: from and a are the same input"},
    {X "norm l3", "net:2:6: norm: no option and no line above is called \"l3\""},
    {X "norm kind=l3", "net:2:11: kind: unknown value \"l3\"; did you mean \"l2\"?"},
    {X "copy cast dtype=f31", "net:2:17: dtype: unknown value \"f31\"; did you mean \"f32\"?"},
    {X "unpad before=[1,1,1,1,1,1,1,1,1]", "net:2:31: before: more than 8 sizes"},
    {X "im2col kernel=[1,1,1]", "net:2:15: kernel: expected up to 2 numbers, found 3"},
    {X "split count=2 axis=1\nneg split1.2",
     "net:3:5: neg: no option and no line above is called \"split1.2\"; did you mean \"split1.1\"?"},
    {X "split count=9 axis=1", "net:2:1: layer 0 \"split1\" (split)"},
    {X "zeros from=x", "net:2:7: zeros takes no \"from\""},
    {"zeros dims=[1]\nneg nothing", "net:2:5: neg: no option and no line above is called \"nothing\""},
    /* Braces */
    {X "}", "net:2:1: unmatched \"}\""},
    {X "block {\nflatten", "net:2:1: block has no \"}\""},
    {X "repeat 0 {\nflatten", "net:3:8: expected layers, found the end of the file"},
    {X "repeat -1 {\n}", "net:2:1: count: expected a number from 0 to 10000, found -1"},
    {X "repeat 10000 {\n\n}", "net:3:1: more than 10000 lines, counting every repetition"},
    {X
     "block {\nblock {\nblock {\nblock {\nblock {\nblock {\nblock {\nblock {\nblock {\nblock {\nblock {\nblock {\n"
     "block {\nblock {\nblock {\nblock {\n",
     "net:17:7: braces are nested more than 15 deep"},
    /* What layers find wrong */
    {X "residual {\nconv 2 3x3\n}",
     "net:2:1: residual block: x is [1, 2, 8, 8], but its body outputs [1, 2, 6, 6]; .project adds a projection of x to that shape"},
    {X "conv 8 2x2 same", "net:2:1: \"same\" needs a kernel of odd size, not 2"},
    {X "conv 8 9x9", "net:2:1: layer 0 \"conv1\" (conv2d)"},
    {X "permute [0, 1]", "net:2:1: expected 4 axes including the batch, got 2"},
    {X "pad 1x1x1x1x1", "net:2:1: pads more axes than the input has"},
    {X "gpt 8 8 257 1", "net:2:9: layers: expected a number from 1 to 256, found 257"},
};

static mica_status build(mica_context *ctx, const char *text, const mica_netfile_opts *opts)
{
    mica_net *net;
    mica_netfile_info info;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return mica_context_status(ctx);
    mica_status status = mica_netfile_build(net, &info, text, opts);
    CHECK(mica_net_status(net) == status);
    mica_net_destroy(net);
    return status;
}

TEST(netfile_errors_say_where_and_what)
{
    mica_context *ctx = test_context(1);
    uint64_t live = mica_context_heap(ctx).live_bytes;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_status status = build(ctx, cases[i].text, NULL);
        CHECK_MSG(status != MICA_OK, "%s is built", cases[i].text);
        const char *error = mica_error(ctx), *words = mica_status_text(status);
        size_t opening = strlen(words) + 2;
        CHECK(strncmp(error, words, strlen(words)) == 0);
        size_t length = strcspn(error + opening, "\n");
        CHECK_MSG(length == strlen(cases[i].error) && strncmp(error + opening, cases[i].error, length) == 0,
                  "%s: got %s", cases[i].text, error);
    }
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

TEST(netfile_errors_show_the_line)
{
    mica_context *ctx = test_context(1);
    CHECK_ERROR(ctx, build(ctx, X "conv 8 3x3 rellu # soft\ndense 3", &(mica_netfile_opts){.file = "my.net"}),
                MICA_ERR_FORMAT,
                "format error: my.net:2:12: conv takes no \"rellu\"; did you mean \"relu\"?\n"
                "     2 | conv 8 3x3 rellu # soft\n"
                "       |            ^");
    CHECK_ERROR(ctx, build(ctx, X "conv 8 9x9\r\n", NULL), MICA_ERR_SHAPE,
                "shape error: net:2:1: layer 0 \"conv1\" (conv2d)\n"
                "  input is [1, 2, 8, 8], the net's input \"x\"\n"
                "  a kernel that spans 9 does not fit into height 8 padded by 0\n"
                "     2 | conv 8 9x9\n"
                "       | ^");
    char text[300] = X;
    memset(text + strlen(X), ' ', 200);
    strcpy(text + strlen(X) + 200, "here\n");
    CHECK(build(ctx, text, NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "net:2:201: unknown layer \"here\"") != NULL);
    CHECK(strstr(mica_error(ctx),
                 "     2 |                                                             here") != NULL);
}

TEST(netfile_limits_hold)
{
    mica_context *ctx = test_context(1);
    static char text[MICA_NETFILE_MOST_BYTES + 2];
    memset(text, '\n', sizeof text - 1);
    CHECK(build(ctx, text, NULL) == MICA_ERR_ARGUMENT);
    text[MICA_NETFILE_MOST_BYTES] = '\0';
    CHECK(build(ctx, text, NULL) == MICA_ERR_FORMAT);
    memset(text, '#', 5000);
    strcpy(text + 5000, "\n");
    CHECK(build(ctx, text, NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "line longer than 4096 bytes") != NULL);
    size_t used = 0;
    for (int i = 0; i < 129; i++)
        used += (size_t)sprintf(text + used, "let a%d = %d\n", i, i);
    CHECK(build(ctx, text, NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "net:129:5: more than 128 constants") != NULL);
    CHECK(build(ctx, NULL, NULL) == MICA_ERR_ARGUMENT);
    CHECK(build(ctx, X "repeat 3000 {\nrelu\ntanh\n}\n", NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "more than 4096 layers") != NULL);
}

/* ---- Constants and samples that are given ---- */

static mica_status with(mica_context *ctx, const char *text, const char *name, bool optional)
{
    mica_netfile_constant set = {name, 3, optional};
    return build(ctx, text, &(mica_netfile_opts){.constants = &set, .constant_count = 1});
}

TEST(netfile_constants_that_are_not_there_are_errors)
{
    mica_context *ctx = test_context(1);
    CHECK_OK(ctx, with(ctx, "let width = 4\n" X "dense width", "width", false));
    CHECK_ERROR(ctx, with(ctx, "let width = 4\n" X "dense width", "with", false), MICA_ERR_ARGUMENT,
                "argument error: net has no constant \"with\"; did you mean \"width\"?");
    CHECK_ERROR(ctx, with(ctx, X "dense 4", "width", false), MICA_ERR_ARGUMENT,
                "argument error: net has no constant \"width\"");
    CHECK_OK(ctx, with(ctx, X "dense 4", "width", true));
}

TEST(netfile_samples_that_do_not_fit_are_errors)
{
    mica_context *ctx = test_context(1);
    mica_netfile_opts opts = {.sample_rank = 4, .sample = {3, 2, 2, 2}};
    CHECK(build(ctx, X "relu", &opts) == MICA_ERR_SHAPE);
    CHECK(strstr(mica_error(ctx),
                 "net:1:9: the data has samples [3, 2, 2, 2], which is not a valid shape for [2, 8, 8]") !=
          NULL);
    opts = (mica_netfile_opts){.sample_rank = 9};
    CHECK(build(ctx, X "relu", &opts) == MICA_ERR_ARGUMENT);
}

/* Nothing was opened, so nothing is closed: the numbers on the stack before are not a stream. */
TEST(netfile_says_that_a_file_is_not_there)
{
    mica_context *ctx = test_context(1);
    for (int i = 0; i < 2; i++) {
        mica_net *net;
        mica_netfile_info info;
        CHECK(mica_net_create(ctx, &net) == MICA_OK);
        CHECK(mica_netfile_load(net, &info, i == 0 ? "no-such-file.net" : "", NULL) == MICA_ERR_IO);
        CHECK(i > 0 || strstr(mica_error(ctx), "no-such-file.net") != NULL);
        mica_net_destroy(net);
    }
}

/* ---- Memory that is refused ---- */

static mica_status build_all(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_netfile_constant set = {"classes", 7, true};
    status = build(ctx, argument, &(mica_netfile_opts){.constants = &set, .constant_count = 1});
    mica_context_destroy(ctx);
    return status;
}

TEST(netfile_survives_every_refused_allocation)
{
    for (size_t i = 0; mica_netfile_builtin_name(i) != NULL; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s", mica_netfile_builtin(mica_netfile_builtin_name(i)));
        CHECK(test_oom(build_all, text) > 0);
    }
}

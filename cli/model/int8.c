/* Checkpoints of int8 nets. */
#include "cli/model/int8.h"

#include <stdio.h>
#include <string.h>

#include "cli/model/take.h"
#include "io/quote.h"
#include "net/net.h"

static const char *const words[] = {"channel\n", "tensor\n"};

static bool keep_constants(mica_net *net, mica_netfile_info *info)
{
    mica_netfile_constant *all = mica_net_memory(net, (info->constant_count + 1) * sizeof *all);
    bool kept = all != NULL;
    for (size_t i = 0; kept && i < info->constant_count; i++) {
        all[i] = info->constants[i];
        kept = take_into_net(net, &all[i].name);
    }
    info->constants = all;
    return kept;
}

mica_status int8_info(mica_netfile_info *info, const mica_int8 *q, mica_net *bytes)
{
    mica_netfile_info made = *info;
    made.output_value = mica_int8_value(q, info->output_value, NULL);
    const char **texts[] = {&made.input, &made.target, &made.output, &made.text, &made.other_input};
    bool kept = keep_constants(bytes, &made);
    for (size_t i = 0; kept && i < sizeof texts / sizeof texts[0]; i++)
        kept = take_into_net(bytes, texts[i]);
    if (!kept)
        return mica_net_status(bytes);
    *info = made;
    return MICA_OK;
}

char *int8_text(const mica_int8 *q, bool per_tensor)
{
    const char *word = words[per_tensor];
    size_t length = mica_int8_scales_print(NULL, 0, q), first = strlen(word);
    char *text = take(first + length + 1, 1);
    (void)snprintf(text, first + 1, "%s", word);
    (void)mica_int8_scales_print(text + first, length + 1, q);
    return text;
}

mica_status int8_convert(mica_net **net, mica_netfile_info *info, const char *text, bool pack)
{
    mica_context *ctx = mica_net_context(*net);
    mica_int8 *q = NULL;
    mica_net *bytes = NULL;
    bool per_tensor = strncmp(text, words[1], strlen(words[1])) == 0;
    if (!per_tensor && strncmp(text, words[0], strlen(words[0])) != 0)
        return mica_fail(ctx, MICA_ERR_FORMAT,
                         "its \"" INT8_KEY "\" begins with neither \"channel\" nor \"tensor\"");
    mica_status status = mica_int8_create(*net, &q);
    if (status == MICA_OK)
        status = mica_int8_scales_read(q, text + strlen(words[per_tensor]));
    if (status == MICA_OK)
        status = mica_net_create(ctx, &bytes);
    if (status == MICA_OK) {
        mica_int8_per_tensor(q, per_tensor);
        mica_int8_pack_weights(q, pack);
        status = mica_int8_build(q, bytes);
    }
    if (status == MICA_OK)
        status = int8_info(info, q, bytes);
    mica_int8_destroy(q);
    if (status != MICA_OK) {
        mica_net_destroy(bytes);
        return status;
    }
    mica_net_at_end(bytes, (*net)->at_end, (*net)->at_end_user); /* lent weights go on with the new net */
    mica_net_at_end(*net, NULL, NULL);
    mica_net_destroy(*net);
    *net = bytes;
    return MICA_OK;
}

mica_status int8_check_file(const mica_net *net, const mica_safetensors *file)
{
    for (size_t i = 0; i < mica_safetensors_count(file); i++) {
        const mica_safetensors_entry *entry = mica_safetensors_at(file, i);
        int value = mica_net_find(net, entry->name);
        if (value == NONE || (entry->readable && entry->dtype == net->values[value].tensor.dtype))
            continue;
        return mica_fail(mica_net_context(net), MICA_ERR_FORMAT,
                         "its \"" INT8_KEY "\" does not go with its tensors: %s is %s, expected %s",
                         MICA_QUOTE(entry->name), entry->dtype_name,
                         mica_dtype_name(net->values[value].tensor.dtype));
    }
    return MICA_OK;
}

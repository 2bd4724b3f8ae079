/* Names of classes. */
#include "cli/model/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/picture/text.h"

name_list class_names_of(const meaning *m, const mica_netfile_info *info)
{
    static const char *const no_yes[] = {"no", "yes"};
    bool named = m->class_count == 2 &&
                 (strcmp(m->class_names[0], "0") != 0 || strcmp(m->class_names[1], "1") != 0);
    if (info->task == MICA_TASK_BINARY && !named)
        return (name_list){no_yes, 2};
    return (name_list){(const char *const *)m->class_names, m->class_count};
}

const char *class_text(char *text, size_t size, const char *const *names, int count, int class)
{
    if (names != NULL && class >= 0 && class < count)
        return plain_text(text, size, names[class]);
    (void)snprintf(text, size, "%d", class);
    return text;
}

void probabilities(float *out, const float *row, mica_index count, const mica_netfile_info *info)
{
    bool binary = info->task == MICA_TASK_BINARY;
    float top = -INFINITY, sum = 0;
    for (mica_index i = 0; i < count; i++)
        top = row[i] > top ? row[i] : top;
    for (mica_index i = 0; i < count; i++) {
        if (!info->logits)
            out[i] = row[i];
        else
            out[i] = binary ? 1 / (1 + expf(-row[i])) : expf(row[i] - top);
        sum += out[i];
    }
    if (info->logits && !binary)
        for (mica_index i = 0; i < count; i++)
            out[i] /= sum;
}

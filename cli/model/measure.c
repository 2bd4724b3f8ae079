/* Measuring batches. */
#include "cli/model/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"

enum { MOST_GROUPS = 64 };

measure_kind measure_kind_of(const mica_netfile_info *info)
{
    return info->task == MICA_TASK_NONE         ? MEASURE_NOTHING
           : info->task == MICA_TASK_REGRESSION ? MEASURE_RMSE
                                                : MEASURE_ACCURACY;
}

void measure_open(measure *m, const mica_netfile_info *info, const net_ends *ends, const target_units *units)
{
    *m = (measure){.info = info, .units = units};
    const mica_tensor *t = &ends->target;
    size_t targets = mica_tensor_count(t), outputs = mica_tensor_count(&ends->output);
    bool classes = info->task == MICA_TASK_CLASSES || info->task == MICA_TASK_TEXT;
    bool measured = classes ? t->dtype == MICA_I32 : t->dtype == MICA_F32 && targets == outputs;
    if (!ends->has_target || !measured)
        return;
    m->kind = measure_kind_of(info);
    m->each = (mica_index)targets / t->dim[0];
    if (classes)
        m->classes = take(targets, sizeof *m->classes);
    else
        m->numbers = take(targets, sizeof *m->numbers);
    m->groups = m->each <= MOST_GROUPS ? (int)m->each : 1;
    m->errors = take((size_t)m->groups, sizeof *m->errors);
}

void measure_close(measure *m)
{
    free(m->classes);
    free(m->numbers);
    free(m->errors);
    *m = (measure){0};
}

void measure_targets(measure *m, const mica_tensor *targets, mica_index count)
{
    m->samples = m->kind != MEASURE_NOTHING ? count : 0;
    void *to = m->classes != NULL ? (void *)m->classes : (void *)m->numbers;
    if (m->samples > 0) /* both are four bytes wide */
        memcpy(to, targets->data, (size_t)(count * m->each) * sizeof(float));
}

static void measure_classes(measure *m, const float *row, mica_index classes)
{
    for (mica_index i = 0; i < m->samples * m->each; i++, row += classes) {
        mica_index best = 0;
        for (mica_index c = 1; c < classes; c++)
            best = row[c] > row[best] ? c : best;
        m->right += best == m->classes[i];
        m->rows++;
    }
}

static void measure_numbers(measure *m, const float *row)
{
    float half = m->info->logits ? 0 : 0.5f;
    for (mica_index i = 0; i < m->samples * m->each; i++) {
        mica_index target = i % m->each;
        m->right += (row[i] >= half) == (m->numbers[i] >= 0.5f);
        m->rows++;
        error_sums_add(&m->errors[m->groups > 1 ? target : 0],
                       in_unit(m->units, target, (double)m->numbers[i]),
                       in_unit(m->units, target, (double)row[i]), 0);
    }
}

void measure_outputs(measure *m, mica_net *net)
{
    mica_tensor y;
    if (m->samples == 0 || mica_net_tensor(net, &y, m->info->output) != MICA_OK || y.rank < 1)
        return;
    mica_index classes = m->classes != NULL ? y.dim[y.rank - 1] : 1;
    size_t row = y.dim[0] > 0 ? mica_tensor_count(&y) / (size_t)y.dim[0] : 0;
    /* The net may have been resized since; a batch that it took in parts has left only one of them. */
    bool whole = y.dim[0] >= m->samples && mica_net_plan(net)->parts <= 1;
    if (whole && row == (size_t)(m->each * classes) && mica_tensor_contiguous(&y)) {
        if (m->classes != NULL)
            measure_classes(m, y.data, classes);
        else
            measure_numbers(m, y.data);
    }
    m->samples = 0;
}

double measure_take(measure *m)
{
    double value = m->rows > 0 ? (double)m->right / (double)m->rows : (double)NAN;
    if (m->kind == MEASURE_RMSE) {
        value = m->rows > 0 ? 0 : (double)NAN;
        for (int g = 0; g < m->groups; g++)
            value += error_rmse(&m->errors[g]) / m->groups;
    }
    m->right = m->rows = 0;
    for (int g = 0; g < m->groups; g++)
        m->errors[g] = (error_sums){0};
    return value;
}

/* What mica quantize --int8 tells: each layer's results beside those of the net of floats, and the scores of both. */
#include "cli/model/quantizing.h"

#include <math.h>
#include <stdio.h>

#include <mica/checkpoint.h>

#include "cli/model/score_print.h"
#include "cli/picture/text.h"

static double decibels(const mica_int8_row *row)
{
    return row->noise > 0.0 ? 10.0 * log10(row->signal / row->noise) : INFINITY;
}

static double relative_error(const mica_int8_row *row)
{
    return row->signal > 0.0 ? sqrt(row->noise / row->signal) : 0.0;
}

static void print_json(const quantizing *z, const char *out)
{
    printf("{\"calibration\": \"%s\", \"weights\": \"%s\", \"qat_epochs\": %lld, \"layers\": [",
           int8_methods[quantizing_method(z->set)], z->set->ranges.per_tensor ? "tensor" : "channel",
           (long long)z->set->ranges.epochs);
    for (int i = 0; i < mica_int8_rows(z->q); i++) {
        mica_int8_row row;
        if (mica_int8_row_at(z->q, &row, i) != MICA_OK)
            continue;
        printf("%s\n  {\"name\": ", i > 0 ? "," : "");
        put_json(stdout, row.name);
        printf(", \"operation\": \"%s\", \"scale\": ", row.op);
        put_json_number(stdout, (double)row.scale);
        printf(", \"relative_error\": ");
        put_json_number(stdout, relative_error(&row));
        printf(", \"snr_db\": ");
        put_json_number(stdout, decibels(&row));
        printf("}");
    }
    printf("],\n \"samples\": %td, \"float\": ", z->before.samples);
    put_json_metrics(stdout, &z->before);
    printf(", \"int8\": ");
    put_json_metrics(stdout, &z->after);
    printf(",\n \"bytes_before\": %zu, \"bytes\": %zu, \"file\": ", mica_weights_bytes(z->net),
           mica_weights_bytes(z->bytes));
    put_json(stdout, out);
    printf("}\n");
}

static void print_text(const quantizing *z, const char *out)
{
    printf("%-24s %-20s %12s %10s %8s\n", "layer", "operation", "scale", "error", "SNR");
    for (int i = 0; i < mica_int8_rows(z->q); i++) {
        mica_int8_row row;
        char name[64], scale[32] = "float";
        if (mica_int8_row_at(z->q, &row, i) != MICA_OK)
            continue;
        if (row.scale > 0.0f)
            (void)snprintf(scale, sizeof scale, "%.4g", (double)row.scale);
        printf("%-24s %-20s %12s %8.2f %% %5.1f dB\n", plain_text(name, sizeof name, row.name), row.op, scale,
               100.0 * relative_error(&row), decibels(&row));
    }
    printf("\nfloat: ");
    put_score_line(stdout, &z->before, (scored_net){z->meaning, &z->info});
    printf("\nint8:  ");
    put_score_line(stdout, &z->after, (scored_net){z->meaning, &z->bytes_info});
    printf("\n%s: weights of %s, of %s as floats\n", out,
           size_text((double)mica_weights_bytes(z->bytes)).text,
           size_text((double)mica_weights_bytes(z->net)).text);
}

void quantizing_report(const quantizing *z, const char *out)
{
    (z->set->shared->json ? print_json : print_text)(z, out);
}

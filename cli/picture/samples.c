/* Pictures that a net was trained on, and what augmentation made of them. */
#include "cli/picture/png.h"
#include "cli/picture/report_parts.h"

static void put_picture(FILE *out, const report_sample *s, const unsigned char *pixels)
{
    fputs("<img alt=\"\" src=\"", out);
    put_png(out, pixels, s->width, s->height, s->channels);
    fprintf(out, "\" width=\"%d\" height=\"%d\">", s->width, s->height);
}

void put_samples(FILE *out, const report *r)
{
    if (r->sample_count == 0)
        return;
    bool changed = r->samples[0].changed_count > 0;
    fputs("<section><h2>Training samples</h2>\n", out);
    if (changed)
        fputs("<p class=\"note\">As they are, and below that as the first epochs saw them.</p>\n", out);
    fputs("<div class=\"samples\">\n", out);
    for (size_t i = 0; i < r->sample_count; i++) {
        const report_sample *s = &r->samples[i];
        fputs("<figure class=\"sample\">", out);
        put_picture(out, s, s->pixels);
        for (size_t k = 0; k < s->changed_count; k++)
            put_picture(out, s, s->changed[k]);
        fputs("<figcaption>", out);
        if (s->label >= 0)
            put_class(out, r, s->label);
        fputs("</figcaption></figure>\n", out);
    }
    fputs("</div></section>\n", out);
}

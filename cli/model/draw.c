/* Pictures made of characters. */
#include <string.h>
#include <unistd.h>

#include "cli/model/names.h"
#include "cli/model/progress.h"
#include "cli/model/score.h"

/* A character stands for 2 by 4 pixels, which it also looks like: cells are twice as high as wide. */
enum { CELL_WIDTH = 2, CELL_HEIGHT = 4, GAP = 2 };

static int grey_at(const score *s, const scored_sample *sample, int y, int x)
{
    if (y >= s->height || x >= s->width)
        return 0;
    const unsigned char *pixel = sample->pixels +
                                 ((size_t)y * (size_t)s->width + (size_t)x) * (size_t)s->channels;
    int sum = 0;
    for (int c = 0; c < s->channels; c++)
        sum += pixel[c];
    return sum / s->channels;
}

/* What is drawn: brighter than half of the brightest. */
static int threshold(const score *s, const scored_sample *sample)
{
    int most = 0;
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++)
            most = grey_at(s, sample, y, x) > most ? grey_at(s, sample, y, x) : most;
    return most / 2;
}

/* Braille: a bit for each dot, from U+2800 on. */
static void put_cell(FILE *to, const score *s, const scored_sample *sample, int y, int x, int limit,
                     bool utf8)
{
    static const unsigned char bits[CELL_HEIGHT][CELL_WIDTH] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned dots = 0;
    int count = 0;
    for (int dy = 0; dy < CELL_HEIGHT; dy++) {
        for (int dx = 0; dx < CELL_WIDTH; dx++) {
            if (grey_at(s, sample, y * CELL_HEIGHT + dy, x * CELL_WIDTH + dx) > limit) {
                dots |= bits[dy][dx];
                count++;
            }
        }
    }
    if (utf8)
        fprintf(to, "%c%c%c", 0xe2, (int)(0xa0 | dots >> 6), (int)(0x80 | (dots & 0x3f)));
    else
        fputc(" .:-=+*#@"[count], to);
}

/* "7  99.8 %", or "7, not 1" where it is wrong; padded to the width of the picture. */
static void put_caption(FILE *to, const scored_sample *sample, int cells, const char *const *names,
                        int name_count, bool colour)
{
    char text[160], said[64], known[64];
    (void)class_text(said, sizeof said, names, name_count, sample->prediction);
    (void)class_text(known, sizeof known, names, name_count, sample->label);
    bool wrong = sample->prediction != sample->label;
    if (wrong)
        (void)snprintf(text, sizeof text, "%s, not %s", said, known);
    else
        (void)snprintf(text, sizeof text, "%s  %.1f %%", said, 100 * sample->probability);
    int length = (int)strlen(text) < cells + GAP - 1 ? (int)strlen(text) : cells + GAP - 1,
        left = (cells - length) / 2;
    left = left > 0 ? left : 0;
    fprintf(to, "%*s%s%.*s%s%*s", left, "", colour && wrong ? "\033[31m" : "", length, text,
            colour && wrong ? "\033[0m" : "", cells + GAP - left - length, "");
}

void print_samples(FILE *to, const score *s, const scored_sample *samples, size_t count,
                   const char *const *class_names, int class_count)
{
    if (s->width == 0 || count == 0)
        return;
    struct terminal terminal = terminal_of(fileno(to));
    bool utf8 = terminal_utf8();
    int cells = (s->width + CELL_WIDTH - 1) / CELL_WIDTH, lines = (s->height + CELL_HEIGHT - 1) / CELL_HEIGHT;
    int across = terminal.columns / (cells + GAP);
    size_t each = across > 0 ? (size_t)across : 1;
    for (size_t from = 0; from < count; from += each) {
        size_t end = from + each < count ? from + each : count;
        for (int y = 0; y < lines; y++) {
            for (size_t i = from; i < end; i++) {
                int limit = threshold(s, &samples[i]);
                for (int x = 0; x < cells; x++)
                    put_cell(to, s, &samples[i], y, x, limit, utf8);
                fprintf(to, "%*s", GAP, "");
            }
            fprintf(to, "\n");
        }
        for (size_t i = from; i < end; i++)
            put_caption(to, &samples[i], cells, class_names, class_count, terminal.colour);
        fprintf(to, "\n");
    }
}

/* Writes a large CSV file: numbers, a category, missing values, and a number to learn.
 *
 *     make_large BYTES [FILE]     stdout unless a file is given; the same bytes in every run
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS 20
#define MISSING 50 /* one field out of so many is empty */

static const char *const towns[] = {"Oslo", "Bergen",   "Trondheim", "Stavanger", "Drammen",    "Tromso",
                                    "Bodo", "Kirkenes", "Alta",      "Narvik",    "Lillehammer"};
enum { TOWNS = sizeof towns / sizeof towns[0] };

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static char *put_digits(char *to, uint64_t value, int least)
{
    char text[24];
    int count = 0;
    for (; value > 0 || count < least; value /= 10)
        text[count++] = (char)('0' + value % 10);
    while (count > 0)
        *to++ = text[--count];
    return to;
}

/* Thousandths, as a decimal number. */
static char *put_number(char *to, int64_t thousandths)
{
    uint64_t value = thousandths < 0 ? (uint64_t)-thousandths : (uint64_t)thousandths;
    if (thousandths < 0)
        *to++ = '-';
    to = put_digits(to, value / 1000, 1);
    *to++ = '.';
    return put_digits(to, value % 1000, 3);
}

/* Column i has numbers of up to 10^(i % 4 + 1); the target is a sum of some of them, a product of two, and the town. */
static char *put_row(char *to, uint64_t *state)
{
    static const int64_t span[] = {10000, 100000, 1000000, 10000000};
    double unit[NUMBERS], target = 0;
    for (int i = 0; i < NUMBERS; i++) {
        uint64_t r = next(state);
        int64_t value = (int64_t)(r % (uint64_t)(2 * span[i % 4])) - span[i % 4];
        unit[i] = (double)value / (double)span[i % 4];
        if ((r >> 40) % MISSING != 0)
            to = put_number(to, value);
        *to++ = ',';
        target += i % 3 == 0 ? unit[i] : 0;
    }
    size_t town = next(state) % TOWNS, length = strlen(towns[town]);
    memcpy(to, towns[town], length);
    to += length;
    *to++ = ',';
    target += 2 * unit[1] * unit[2] + 0.2 * (double)town;
    to = put_number(to, (int64_t)(target * 10000));
    *to++ = '\n';
    return to;
}

int main(int argc, char **argv)
{
    static char rows[1 << 20];
    const size_t longest = 512;
    uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, written = 0, state = 1;
    FILE *file = argc > 2 ? fopen(argv[2], "wb") : stdout;
    if (argc < 2 || argc > 3 || file == NULL) {
        fprintf(stderr, file == NULL ? "make_large: cannot write %s\n" : "make_large BYTES [FILE]%.0s\n",
                argc > 2 ? argv[2] : "");
        return 2;
    }
    for (int i = 0; i < NUMBERS; i++)
        fprintf(file, "n%d,", i);
    fputs("town,y\n", file);
    while (written < wanted) {
        char *to = rows;
        while (to + longest < rows + sizeof rows && written + (uint64_t)(to - rows) < wanted)
            to = put_row(to, &state);
        written += (uint64_t)(to - rows);
        if (fwrite(rows, 1, (size_t)(to - rows), file) != (size_t)(to - rows))
            break;
    }
    if (fclose(file) != 0 || written < wanted) {
        fprintf(stderr, "make_large: cannot write all of it\n");
        return 1;
    }
    return 0;
}

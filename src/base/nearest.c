/* Closest word by edit distance. */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

#define LONGEST_WORD 63 /* longer ones are not guessed at */

/* Letters to change, insert, drop or swap to get from a to b (Damerau and Levenshtein). */
static size_t edits(const char *a, size_t m, const char *b, size_t n)
{
    size_t row[3][LONGEST_WORD + 1];
    for (size_t j = 0; j <= n; j++)
        row[0][j] = j;
    for (size_t i = 0; i < m; i++) {
        const size_t *before = row[(i + 2) % 3], *above = row[i % 3];
        size_t *now = row[(i + 1) % 3];
        now[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = above[j] + (a[i] != b[j]);
            best = above[j + 1] + 1 < best ? above[j + 1] + 1 : best;
            best = now[j] + 1 < best ? now[j] + 1 : best;
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] && before[j - 1] + 1 < best)
                best = before[j - 1] + 1;
            now[j + 1] = best;
        }
    }
    return row[m % 3][n];
}

const char *mica_nearest(const char *word, size_t length, const void *names, size_t count, size_t stride)
{
    const char *best = NULL;
    size_t least = length / 3 + 1; /* a third of the letters may be wrong */
    if (length > LONGEST_WORD)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name;
        memcpy(&name, (const char *)names + i * stride, sizeof name);
        size_t n = strlen(name);
        size_t distance = n <= LONGEST_WORD ? edits(word, length, name, n) : SIZE_MAX;
        if (distance <= least && (best == NULL || distance < least)) {
            best = name;
            least = distance;
        }
    }
    return best;
}

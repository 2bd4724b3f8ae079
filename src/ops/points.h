/* Values between pixels: which pixels a point of an image meets, and with which weights.
 *
 * Along each axis there are up to four (taps); a point is their product, at most 64 pixels. The slopes are the weights'
 * derivatives by the point's coordinates, for gradients. */
#ifndef MICA_SRC_OPS_POINTS_H
#define MICA_SRC_OPS_POINTS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mica_taps {
    int count;
    ptrdiff_t at[4]; /* -1: outside */
    float weight[4], slope[4];
} mica_taps;

typedef struct mica_point {
    int count;
    ptrdiff_t offset[64]; /* in the plane */
    float weight[64];
    float slope[3][64];
} mica_point;

/* Where there is nothing between two pixels. */
#define MICA_FAR 1e8f

/* Linear between the two pixels around `at`; what is outside has no tap. */
static inline mica_taps mica_taps_linear(float at, ptrdiff_t size)
{
    mica_taps t = {.count = 0};
    if (!(at > -MICA_FAR && at < MICA_FAR))
        return t;
    float low = floorf(at);
    ptrdiff_t first = (ptrdiff_t)low;
    t = (mica_taps){2, {first, first + 1}, {1.0f - (at - low), at - low}, {-1.0f, 1.0f}};
    for (int k = 0; k < 2; k++)
        if (t.at[k] < 0 || t.at[k] >= size)
            t.at[k] = -1;
    return t;
}

/* All pixels of a point in a plane [.., size 1, size 2]. `slopes`: those of the first `axes` axes are wanted. */
static inline void mica_point_set(mica_point *p, const mica_taps t[3], const ptrdiff_t size[3], bool slopes)
{
    p->count = 0;
    for (int a = 0; a < t[0].count; a++)
        for (int b = 0; t[0].at[a] >= 0 && b < t[1].count; b++)
            for (int c = 0; t[1].at[b] >= 0 && c < t[2].count; c++) {
                if (t[2].at[c] < 0)
                    continue;
                int n = p->count++;
                p->offset[n] = (t[0].at[a] * size[1] + t[1].at[b]) * size[2] + t[2].at[c];
                p->weight[n] = t[0].weight[a] * t[1].weight[b] * t[2].weight[c];
                if (!slopes)
                    continue;
                p->slope[0][n] = t[0].slope[a] * t[1].weight[b] * t[2].weight[c];
                p->slope[1][n] = t[0].weight[a] * t[1].slope[b] * t[2].weight[c];
                p->slope[2][n] = t[0].weight[a] * t[1].weight[b] * t[2].slope[c];
            }
}

static inline float mica_point_value(const mica_point *p, const float *plane)
{
    float sum = 0.0f;
    for (int i = 0; i < p->count; i++)
        sum += p->weight[i] * plane[p->offset[i]];
    return sum;
}

static inline float mica_point_slope(const mica_point *p, int axis, const float *plane)
{
    float sum = 0.0f;
    for (int i = 0; i < p->count; i++)
        sum += p->slope[axis][i] * plane[p->offset[i]];
    return sum;
}

static inline void mica_point_add(const mica_point *p, float *plane, float value)
{
    for (int i = 0; i < p->count; i++)
        plane[p->offset[i]] += p->weight[i] * value;
}

#endif

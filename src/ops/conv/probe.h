/* Which paths a convolution could take, and taking a given one: for benchmarks and tests, that point
 * mica_context.conv_probe at one of these. A step of a net never has one. */
#ifndef MICA_SRC_OPS_CONV_PROBE_H
#define MICA_SRC_OPS_CONV_PROBE_H

enum { MICA_CONV_MOST_PATHS = 8 };

typedef struct mica_conv_probe {
    const char *forced; /* the path that is taken wherever it fits; NULL: the one that is chosen */
    /* Of the largest product since `work` was 0: the path taken, those that fit, and what they are held to cost. */
    double work;
    const char *taken;
    int fitting;
    const char *name[MICA_CONV_MOST_PATHS];
    double cost[MICA_CONV_MOST_PATHS];
} mica_conv_probe;

#endif

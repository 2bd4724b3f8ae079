/* Random streams used by data sets, far from those a caller numbers from 0. */
#ifndef MICA_SRC_DATA_STREAMS_H
#define MICA_SRC_DATA_STREAMS_H

#define MICA_STREAM_TRANSFORM \
    ((uint64_t)1 << 61) /* + epoch: what a transform draws; samples 2^32 positions apart */
#define MICA_STREAM_BLOCKS \
    ((uint64_t)1 << 60) /* + epoch: the order of blocks of a file, and that within each */
#define MICA_STREAM_ORDER  ((uint64_t)1 << 62) /* + epoch: the order of the samples */
#define MICA_STREAM_DIGITS ((uint64_t)1 << 63) /* + number: a drawn digit */
#define MICA_STREAM_SPLIT  ((uint64_t)3 << 62) /* which samples are for validation */

#endif

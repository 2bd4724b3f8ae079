/* Operations on tensors: every one writes to a destination that the caller gives, and none allocates.
 *
 * The scratch that is measured for a call is enough for the same call at any smaller sizes of its data (batch, length,
 * height, width), with the same options, weights and kernels and contiguous tensors, and with fewer threads. */
#ifndef MICA_OPS_H
#define MICA_OPS_H

#include <mica/ops/activation.h>
#include <mica/ops/attention.h>
#include <mica/ops/bits.h>
#include <mica/ops/compare.h>
#include <mica/ops/conv.h>
#include <mica/ops/copy.h>
#include <mica/ops/dropout.h>
#include <mica/ops/elementwise.h>
#include <mica/ops/index.h>
#include <mica/ops/int8.h>
#include <mica/ops/linalg.h>
#include <mica/ops/loss.h>
#include <mica/ops/make.h>
#include <mica/ops/norm.h>
#include <mica/ops/pool.h>
#include <mica/ops/recurrent.h>
#include <mica/ops/reduce.h>
#include <mica/ops/rotary.h>
#include <mica/ops/shape.h>
#include <mica/ops/text.h>
#include <mica/ops/vision.h>

#endif

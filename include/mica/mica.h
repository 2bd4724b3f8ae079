/* Mica: neural networks in memory that is planned before the first step. All public headers at once. */
#ifndef MICA_MICA_H
#define MICA_MICA_H

#include <mica/augment.h>
#include <mica/base.h>
#include <mica/checkpoint.h>
#include <mica/data.h>
#include <mica/fit.h>
#include <mica/gguf.h>
#include <mica/int8.h>
#include <mica/io.h>
#include <mica/op.h>
#include <mica/layers.h>
#include <mica/memory.h>
#include <mica/model.h>
#include <mica/net.h>
#include <mica/netfile.h>
#include <mica/onnx.h>
#include <mica/ops.h>
#include <mica/optimizer.h>
#include <mica/random.h>
#include <mica/ranks.h>
#include <mica/sound.h>
#include <mica/table.h>
#include <mica/tensor.h>
#include <mica/text.h>
#include <mica/tokenizer.h>
#include <mica/train.h>

#endif

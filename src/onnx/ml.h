/* What the files of the domain ai.onnx.ml share: attributes as constants, rows of features, scores and labels. */
#ifndef MICA_SRC_ONNX_ML_H
#define MICA_SRC_ONNX_ML_H

#include "onnx/moves.h"

/* How many elements a list attribute has; 0 where there is none. */
size_t mica_onnx_count_of(const mica_onnx_importing *n, const char *name);
/* An attribute's floats as a constant of this shape. */
mica_onnx_ref mica_onnx_floats(mica_onnx_importing *n, const char *name, int rank, const mica_index *dims);
/* Input 0 in f32, as rows: [B, N]. */
mica_onnx_ref mica_onnx_rows(mica_onnx_importing *n);
/* Scores [B, classes] after `post_transform`. */
mica_onnx_ref mica_onnx_transformed(mica_onnx_importing *n, mica_onnx_ref y);
/* How many labels a classifier has. */
size_t mica_onnx_classes(const mica_onnx_importing *n);
/* Output 0 of a classifier: the labels of these classes (i64 [B]). Labels must be numbers, if anything wants them. */
void mica_onnx_give_labels(mica_onnx_importing *n, mica_onnx_ref classes);

/* Operators that have a file of their own (trees.c). */
void mica_onnx_tree_regressor(mica_onnx_importing *n);
void mica_onnx_tree_classifier(mica_onnx_importing *n);

#endif

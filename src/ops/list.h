/* Every public operation, one line each: OP(name, family). `mica_op_<name>` is its entry, in src/node; `mica_<name>` is
 * declared in include/mica/ops/<family>.h.
 *
 * Nets, net files, mica ops, mica bench and the tests walk this list. An operation without a case in tests/ops fails
 * them; only those that are made of others, the family "composed", have neither a C function nor a case. */
#ifndef MICA_SRC_OPS_LIST_H
#define MICA_SRC_OPS_LIST_H

/* clang-format off */

#define MICA_OPS_MAKE(OP) \
    OP(fill, make) \
    OP(zeros, make) \
    OP(ones, make) \
    OP(range, make) \
    OP(generate, make) \
    OP(uniform, make) \
    OP(normal, make) \
    OP(xavier_uniform, make) \
    OP(xavier_normal, make) \
    OP(he_uniform, make) \
    OP(he_normal, make)

#define MICA_OPS_COPY(OP) \
    OP(copy, copy)

#define MICA_OPS_SHAPE(OP) \
    OP(reshape, shape) \
    OP(slice, shape) \
    OP(transpose, shape) \
    OP(permute, shape) \
    OP(broadcast_to, shape) \
    OP(squeeze, shape) \
    OP(unsqueeze, shape) \
    OP(flatten, shape) \
    OP(flip, shape) \
    OP(concat, shape) \
    OP(split, shape) \
    OP(stack, shape) \
    OP(tile, shape) \
    OP(tile_backward, shape) \
    OP(pad, shape) \
    OP(pad_backward, shape) \
    OP(unpad, shape) \
    OP(gather, shape) \
    OP(scatter_add, shape) \
    OP(gather_backward, shape) \
    OP(take, shape) \
    OP(index_add, shape) \
    OP(take_backward, shape)

#define MICA_OPS_INDEX(OP) \
    OP(wrap_indices, index) \
    OP(gather_nd, index) \
    OP(gather_nd_backward, index) \
    OP(scatter, index) \
    OP(scatter_nd, index) \
    OP(tensor_scatter, index) \
    OP(top_k, index) \
    OP(one_hot, index) \
    OP(cumsum, index) \
    OP(trilu, index) \
    OP(reverse_sequence, index) \
    OP(det, index) \
    OP(det_backward, index)

#define MICA_OPS_ELEMENTWISE(OP) \
    OP(add, elementwise) \
    OP(sub, elementwise) \
    OP(mul, elementwise) \
    OP(div, elementwise) \
    OP(min, elementwise) \
    OP(max, elementwise) \
    OP(pow, elementwise) \
    OP(mod, elementwise) \
    OP(fmod, elementwise) \
    OP(add_scaled, elementwise) \
    OP(lerp, elementwise) \
    OP(add_scalar, elementwise) \
    OP(sub_scalar, elementwise) \
    OP(rsub_scalar, elementwise) \
    OP(scale, elementwise) \
    OP(div_scalar, elementwise) \
    OP(rdiv_scalar, elementwise) \
    OP(min_scalar, elementwise) \
    OP(max_scalar, elementwise) \
    OP(pow_scalar, elementwise) \
    OP(clamp, elementwise) \
    OP(neg, elementwise) \
    OP(abs, elementwise) \
    OP(sign, elementwise) \
    OP(square, elementwise) \
    OP(sqrt, elementwise) \
    OP(rsqrt, elementwise) \
    OP(reciprocal, elementwise) \
    OP(floor, elementwise) \
    OP(ceil, elementwise) \
    OP(round, elementwise) \
    OP(exp, elementwise) \
    OP(expm1, elementwise) \
    OP(log, elementwise) \
    OP(log1p, elementwise) \
    OP(sin, elementwise) \
    OP(cos, elementwise) \
    OP(erf, elementwise) \
    OP(tan, elementwise) \
    OP(asin, elementwise) \
    OP(acos, elementwise) \
    OP(atan, elementwise) \
    OP(sinh, elementwise) \
    OP(cosh, elementwise) \
    OP(asinh, elementwise) \
    OP(acosh, elementwise) \
    OP(atanh, elementwise) \
    OP(apply1, elementwise) \
    OP(apply2, elementwise) \
    OP(apply3, elementwise) \
    OP(apply_scalar, elementwise)

#define MICA_OPS_BITS(OP) \
    OP(bit_and, bits) \
    OP(bit_or, bits) \
    OP(bit_xor, bits) \
    OP(bit_not, bits) \
    OP(shift_left, bits) \
    OP(shift_right, bits)

#define MICA_OPS_COMPARE(OP) \
    OP(eq, compare) \
    OP(ne, compare) \
    OP(lt, compare) \
    OP(le, compare) \
    OP(gt, compare) \
    OP(ge, compare) \
    OP(isnan, compare) \
    OP(isfinite, compare) \
    OP(where, compare) \
    OP(where_backward, compare)

#define MICA_OPS_REDUCE(OP) \
    OP(sum, reduce) \
    OP(mean, reduce) \
    OP(prod, reduce) \
    OP(amax, reduce) \
    OP(amin, reduce) \
    OP(variance, reduce) \
    OP(norm, reduce) \
    OP(dot, reduce) \
    OP(argmax, reduce) \
    OP(argmin, reduce) \
    OP(amax_backward, reduce) \
    OP(l2_normalize, reduce) \
    OP(l2_normalize_backward, reduce)

#define MICA_OPS_LINALG(OP) \
    OP(matmul, linalg) \
    OP(matvec, linalg) \
    OP(outer, linalg)

#define MICA_OPS_ACTIVATION(OP) \
    OP(relu, activation) \
    OP(relu_backward, activation) \
    OP(relu6, activation) \
    OP(relu6_backward, activation) \
    OP(leaky_relu, activation) \
    OP(leaky_relu_backward, activation) \
    OP(elu, activation) \
    OP(elu_backward, activation) \
    OP(sigmoid, activation) \
    OP(sigmoid_backward, activation) \
    OP(tanh, activation) \
    OP(tanh_backward, activation) \
    OP(softplus, activation) \
    OP(softplus_backward, activation) \
    OP(silu, activation) \
    OP(silu_backward, activation) \
    OP(gelu, activation) \
    OP(gelu_backward, activation) \
    OP(gelu_tanh, activation) \
    OP(gelu_tanh_backward, activation) \
    OP(hard_swish, activation) \
    OP(hard_swish_backward, activation) \
    OP(mish, activation) \
    OP(softsign, activation) \
    OP(celu, activation) \
    OP(selu, activation) \
    OP(hard_sigmoid, activation) \
    OP(thresholded_relu, activation) \
    OP(shrink, activation) \
    OP(swish, activation) \
    OP(prelu, activation) \
    OP(softmax, activation) \
    OP(softmax_backward, activation) \
    OP(log_softmax, activation) \
    OP(log_softmax_backward, activation)

#define MICA_OPS_CONV(OP) \
    OP(conv1d, conv) \
    OP(conv1d_mean, conv) \
    OP(conv1d_backward_input, conv) \
    OP(conv1d_backward_weight, conv) \
    OP(conv1d_backward_bias, conv) \
    OP(conv2d, conv) \
    OP(conv2d_mean, conv) \
    OP(conv2d_backward_input, conv) \
    OP(conv2d_backward_weight, conv) \
    OP(conv2d_backward_bias, conv) \
    OP(conv_transpose1d, conv) \
    OP(conv_transpose1d_backward_input, conv) \
    OP(conv_transpose1d_backward_weight, conv) \
    OP(conv_transpose2d, conv) \
    OP(conv_transpose2d_backward_input, conv) \
    OP(conv_transpose2d_backward_weight, conv) \
    OP(im2col, conv) \
    OP(col2im, conv)

#define MICA_OPS_POOL(OP) \
    OP(max_pool1d, pool) \
    OP(max_pool1d_backward, pool) \
    OP(max_pool2d, pool) \
    OP(max_pool2d_backward, pool) \
    OP(avg_pool1d, pool) \
    OP(avg_pool1d_backward, pool) \
    OP(avg_pool2d, pool) \
    OP(avg_pool2d_backward, pool) \
    OP(adaptive_avg_pool1d, pool) \
    OP(adaptive_avg_pool1d_backward, pool) \
    OP(adaptive_avg_pool2d, pool) \
    OP(adaptive_avg_pool2d_backward, pool) \
    OP(global_avg_pool, pool) \
    OP(global_avg_pool_backward, pool) \
    OP(max_pool, pool) \
    OP(max_pool_backward, pool) \
    OP(max_unpool, pool)

#define MICA_OPS_NORM(OP) \
    OP(layer_norm, norm) \
    OP(layer_norm_backward, norm) \
    OP(rms_norm, norm) \
    OP(rms_norm_backward, norm) \
    OP(group_norm, norm) \
    OP(group_norm_backward, norm) \
    OP(instance_norm, norm) \
    OP(instance_norm_backward, norm) \
    OP(batch_norm, norm) \
    OP(batch_norm_backward, norm)

#define MICA_OPS_DROPOUT(OP) \
    OP(dropout, dropout) \
    OP(dropout_backward, dropout)

#define MICA_OPS_ATTENTION(OP) \
    OP(attention, attention) \
    OP(attention_backward, attention)

#define MICA_OPS_RECURRENT(OP) \
    OP(lstm, recurrent) \
    OP(lstm_backward, recurrent) \
    OP(gru, recurrent) \
    OP(gru_backward, recurrent) \
    OP(rnn, recurrent) \
    OP(rnn_backward, recurrent)

#define MICA_OPS_ROTARY(OP) \
    OP(rotary_table, rotary) \
    OP(rotary, rotary) \
    OP(rotary_backward, rotary)

#define MICA_OPS_TEXT(OP) \
    OP(linear_rows, text) \
    OP(gate, text) \
    OP(rotary_angles, text) \
    OP(rotary_rows, text) \
    OP(cached_attention, text)

#define MICA_OPS_LOSS(OP) \
    OP(mse_loss, loss) \
    OP(l1_loss, loss) \
    OP(huber_loss, loss) \
    OP(bce_loss, loss) \
    OP(bce_logits_loss, loss) \
    OP(cross_entropy, loss) \
    OP(cross_entropy_probs, loss)

#define MICA_OPS_INT8(OP) \
    OP(quantize, int8) \
    OP(dequantize, int8) \
    OP(int8_rescale, int8) \
    OP(int8_add, int8) \
    OP(int8_pack, composed) \
    OP(integer_conv, composed) \
    OP(quantize_error, composed) \
    OP(int8_linear, int8) \
    OP(int8_conv2d, int8) \
    OP(int8_max_pool2d, int8) \
    OP(int8_avg_pool2d, int8) \
    OP(int8_global_avg_pool, int8) \
    OP(affine_quantize, int8) \
    OP(affine_dequantize, int8) \
    OP(affine_flip, int8) \
    OP(affine_add, int8) \
    OP(affine_matmul, int8) \
    OP(affine_linear, int8) \
    OP(affine_conv2d, int8) \
    OP(affine_global_avg_pool, int8)

#define MICA_OPS_VISION(OP) \
    OP(sum_taps, vision) \
    OP(sum_taps_backward, vision) \
    OP(grid_sample, vision) \
    OP(grid_sample_backward, vision) \
    OP(roi_align, vision) \
    OP(roi_align_backward, vision) \
    OP(deform_columns, vision) \
    OP(deform_columns_backward, vision)

#define MICA_OPS_COMPOSED(OP) \
    OP(squared_relu, composed) \
    OP(conv3d, composed) \
    OP(conv_transpose3d, composed)

#define MICA_OPS(OP) \
    MICA_OPS_MAKE(OP) \
    MICA_OPS_COPY(OP) \
    MICA_OPS_SHAPE(OP) \
    MICA_OPS_INDEX(OP) \
    MICA_OPS_ELEMENTWISE(OP) \
    MICA_OPS_BITS(OP) \
    MICA_OPS_COMPARE(OP) \
    MICA_OPS_REDUCE(OP) \
    MICA_OPS_LINALG(OP) \
    MICA_OPS_ACTIVATION(OP) \
    MICA_OPS_CONV(OP) \
    MICA_OPS_POOL(OP) \
    MICA_OPS_NORM(OP) \
    MICA_OPS_DROPOUT(OP) \
    MICA_OPS_ATTENTION(OP) \
    MICA_OPS_RECURRENT(OP) \
    MICA_OPS_ROTARY(OP) \
    MICA_OPS_LOSS(OP) \
    MICA_OPS_TEXT(OP) \
    MICA_OPS_INT8(OP) \
    MICA_OPS_VISION(OP) \
    MICA_OPS_COMPOSED(OP)

/* clang-format on */

#endif

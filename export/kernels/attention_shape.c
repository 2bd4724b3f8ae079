/* The sizes of attention, and the strides of batch, head and time: of queries (which their gradients share), of keys
 * and values, of what comes out, and of batch, head, query and key in the mask. */
#ifndef KERNEL_ATTENTION_SHAPE
#define KERNEL_ATTENTION_SHAPE

struct attention_shape {
    int batch, heads, kv_heads, queries, keys, features;
    int q[3], k[3], y[3], mask[4];
    int causal; /* the last query sees all keys, the one before it one less */
    float scale;
};

#endif /* KERNEL_ATTENTION_SHAPE */

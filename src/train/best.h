/* A copy of the weights of the best epoch, which mica_fit keeps while it trains. */
#ifndef MICA_SRC_TRAIN_BEST_H
#define MICA_SRC_TRAIN_BEST_H

#include "net/net.h"

/* Whether mica_weights_save saves this value: what is learned, and the statistics that belong to it. */
bool mica_is_weight(const mica_value_info *v);

/* Allocates the copy: mica_weights_bytes, in net->best. */
mica_status mica_best_create(mica_net *net);
void mica_best_destroy(mica_net *net);

/* Copies the net's weights to net->best; and back, making what is derived from them again. */
void mica_best_keep(mica_net *net);
mica_status mica_best_restore(mica_net *net);

/* The tensor of a weight in net->best, whose place is *at; moves *at behind it. */
mica_tensor mica_best_tensor(const mica_net *net, const mica_value_info *v, size_t *at);

/* Gradients belong to the run that was. A state may say which of them are zero (an embedding's), so they all are. */
void mica_forget_gradients(mica_net *net);

#endif

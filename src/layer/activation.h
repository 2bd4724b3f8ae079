/* What the rest of the library asks of activation layers. */
#ifndef MICA_SRC_LAYER_ACTIVATION_H
#define MICA_SRC_LAYER_ACTIVATION_H

#include <mica/layers/activation.h>

/* The slope (or alpha) that the options come to. */
float mica_activation_slope(const mica_net_activation_opts *opts);

#endif

/* The shapes of `mica bench --paths`: each shape of a net once. */
#include "bench/paths.h"

#define PLAIN(net, in, out, side, kernel)                \
    {                                                    \
        net, in, out, side, side, {kernel, kernel}, 1, 1 \
    }
#define STRIDED(net, in, out, side, kernel)              \
    {                                                    \
        net, in, out, side, side, {kernel, kernel}, 2, 1 \
    }
#define DEPTHWISE(net, channels, side, kernel, stride)                          \
    {                                                                           \
        net, channels, channels, side, side, {kernel, kernel}, stride, channels \
    }

const paths_shape paths_shapes[] = {
    /* 224 x 224 */
    STRIDED("resnet", 3, 64, 224, 7),
    PLAIN("resnet", 64, 64, 56, 3),
    STRIDED("resnet", 64, 128, 56, 3),
    PLAIN("resnet", 128, 128, 28, 3),
    STRIDED("resnet", 128, 256, 28, 3),
    PLAIN("resnet", 256, 256, 14, 3),
    STRIDED("resnet", 256, 512, 14, 3),
    PLAIN("resnet", 512, 512, 7, 3),
    PLAIN("resnet", 64, 64, 56, 1),
    PLAIN("resnet", 64, 256, 56, 1),
    PLAIN("resnet", 256, 64, 56, 1),
    STRIDED("resnet", 256, 512, 56, 1),
    PLAIN("resnet", 512, 128, 28, 1),
    PLAIN("resnet", 128, 512, 28, 1),
    PLAIN("resnet", 1024, 256, 14, 1),
    PLAIN("resnet", 256, 1024, 14, 1),
    PLAIN("resnet", 2048, 512, 7, 1),
    PLAIN("resnet", 512, 2048, 7, 1),
    /* 32 x 32, as VGG at that size has them, too */
    PLAIN("cifar", 3, 64, 32, 3),
    PLAIN("cifar", 64, 64, 32, 3),
    STRIDED("cifar", 64, 128, 32, 3),
    PLAIN("cifar", 64, 128, 16, 3),
    PLAIN("cifar", 128, 128, 16, 3),
    STRIDED("cifar", 128, 256, 16, 3),
    PLAIN("cifar", 128, 256, 8, 3),
    PLAIN("cifar", 256, 256, 8, 3),
    STRIDED("cifar", 256, 512, 8, 3),
    PLAIN("cifar", 256, 512, 4, 3),
    PLAIN("cifar", 512, 512, 4, 3),
    PLAIN("cifar", 512, 512, 2, 3),
    /* 224 x 224 */
    PLAIN("vgg", 3, 64, 224, 3),
    PLAIN("vgg", 64, 128, 112, 3),
    PLAIN("vgg", 128, 256, 56, 3),
    PLAIN("vgg", 256, 512, 28, 3),
    PLAIN("vgg", 512, 512, 14, 3),
    /* 224 x 224, and the last ones of 96 x 96 */
    STRIDED("mobilenet", 3, 32, 224, 3),
    PLAIN("mobilenet", 32, 16, 112, 1),
    PLAIN("mobilenet", 16, 96, 112, 1),
    DEPTHWISE("mobilenet", 96, 112, 3, 2),
    PLAIN("mobilenet", 96, 24, 56, 1),
    PLAIN("mobilenet", 24, 144, 56, 1),
    PLAIN("mobilenet", 144, 32, 28, 1),
    PLAIN("mobilenet", 32, 192, 28, 1),
    PLAIN("mobilenet", 192, 64, 14, 1),
    PLAIN("mobilenet", 64, 384, 14, 1),
    DEPTHWISE("mobilenet", 384, 14, 3, 1),
    PLAIN("mobilenet", 384, 96, 14, 1),
    PLAIN("mobilenet", 576, 160, 7, 1),
    PLAIN("mobilenet", 160, 960, 7, 1),
    PLAIN("mobilenet", 960, 320, 7, 1),
    PLAIN("mobilenet", 320, 1280, 7, 1),
    PLAIN("mobilenet", 64, 384, 6, 1),
    PLAIN("mobilenet", 384, 64, 6, 1),
    PLAIN("mobilenet", 160, 960, 3, 1),
    PLAIN("mobilenet", 960, 320, 3, 1),
    PLAIN("efficientnet", 40, 240, 28, 1),
    PLAIN("efficientnet", 112, 672, 14, 1),
    PLAIN("efficientnet", 1152, 192, 7, 1),
    DEPTHWISE("efficientnet", 240, 28, 5, 1),
    PLAIN("unet", 1, 32, 128, 3),
    PLAIN("unet", 32, 32, 128, 3),
    PLAIN("unet", 128, 64, 64, 3),
    PLAIN("unet", 256, 128, 32, 3),
    PLAIN("unet", 512, 256, 16, 3),
    PLAIN("small", 16, 32, 14, 3),
    PLAIN("small", 32, 32, 7, 3),
    PLAIN("small", 64, 64, 7, 3),
    PLAIN("small", 64, 64, 4, 3),
    {"dscnn", 1, 64, 49, 10, {10, 4}, 2, 1},
    {"dscnn", 64, 64, 25, 5, {1, 1}, 1, 1},
};
const size_t paths_shape_count = sizeof paths_shapes / sizeof paths_shapes[0];

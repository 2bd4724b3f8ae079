/* mlp.net in emlearn: 32 inputs, dense layers of 32, 16 and 8. The weights are any numbers: loops take no notice. */
#include <eml_net.h>

#define ROW8  0.01f, -0.02f, 0.03f, -0.04f, 0.05f, -0.06f, 0.07f, -0.08f
#define ROW64 ROW8, ROW8, ROW8, ROW8, ROW8, ROW8, ROW8, ROW8

static const float weights1[32 * 32] = {ROW64, ROW64, ROW64, ROW64, ROW64, ROW64, ROW64, ROW64,
                                        ROW64, ROW64, ROW64, ROW64, ROW64, ROW64, ROW64, ROW64};
static const float weights2[32 * 16] = {ROW64, ROW64, ROW64, ROW64, ROW64, ROW64, ROW64, ROW64};
static const float weights3[16 * 8] = {ROW64, ROW64};
static const float biases1[32] = {ROW8, ROW8, ROW8, ROW8};
static const float biases2[16] = {ROW8, ROW8};
static const float biases3[8] = {ROW8};

static const EmlNetLayer layers[3] = {
    {32, 32, weights1, biases1, EmlNetActivationRelu},
    {16, 32, weights2, biases2, EmlNetActivationRelu},
    {8, 16, weights3, biases3, EmlNetActivationIdentity},
};
static float activations[2][32];
static EmlNet net = {3, layers, activations[0], activations[1], 32};

int emlearn_run(float *outputs, const float *inputs);
int emlearn_run(float *outputs, const float *inputs)
{
    return (int)eml_net_regress(&net, inputs, 32, outputs, 8);
}

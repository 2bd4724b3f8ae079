/* What a plan must know of optimizers. */
#include <mica/optimizer.h>

int mica_optimizer_states(const mica_optimizer *o)
{
    switch (o->kind) {
    case MICA_SGD:
        return o->momentum != 0.0f ? 1 : 0;
    case MICA_RMSPROP:
        return o->momentum != 0.0f ? 2 : 1;
    case MICA_ADAGRAD:
        return 1;
    default:
        return 2;
    }
}

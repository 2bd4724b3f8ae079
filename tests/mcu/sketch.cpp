// As a sketch would use an exported net: setup() once, loop() again and again.
#include <xor.h>

#include "board.h"

static float loss;

static void setup() { xor_init(); }

static void loop()
{
    const float target = 1.0f;
    xor_input()[0] = 1.0f;
    xor_input()[1] = 0.0f;
    loss = xor_train_step(&target, 0.05f);
}

int main()
{
    setup();
    loop();
    const float first = loss;
    for (int i = 0; i < 50; i++)
        loop();
    return loss < first ? 0 : 1;
}

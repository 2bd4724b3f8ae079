/* make_digits FOLDER: the library's digits at 12 x 12 pixels, for the net of the benchmark: FOLDER/x.npy and y.npy. */
#include <mica/mica.h>

#include "../../examples/mcu/common/npy.h"

enum { side = 12, count = 6000 };

/* The middle 24 x 24 of 28 x 28, the mean of each 2 x 2. */
static void shrink(uint8_t *small /* [12, 12] */, const uint8_t *image /* [28, 28] */)
{
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            const uint8_t *p = image + (2 * i + 2) * MICA_DIGITS_SIDE + 2 * j + 2;
            *small++ = (uint8_t)((p[0] + p[1] + p[MICA_DIGITS_SIDE] + p[MICA_DIGITS_SIDE + 1] + 2) / 4);
        }
}

int main(int argc, char **argv)
{
    char path[2][1024];
    mica_context *ctx = NULL;
    mica_dataset digits;
    if (argc != 2) {
        fprintf(stderr, "usage: make_digits FOLDER\n");
        return 2;
    }
    if (mica_context_create(&ctx, NULL) != MICA_OK ||
        mica_dataset_digits(ctx, &digits, &(mica_digits_opts){.count = count, .seed = 1}) != MICA_OK) {
        fprintf(stderr, "make_digits: %s\n", ctx != NULL ? mica_error(ctx) : "no memory");
        return 1;
    }
    snprintf(path[0], sizeof path[0], "%s/x.npy", argv[1]);
    snprintf(path[1], sizeof path[1], "%s/y.npy", argv[1]);
    FILE *x = npy_create(path[0], "|u1", "(6000, 1, 12, 12)"), *y = npy_create(path[1], "|u1", "(6000,)");
    for (int i = 0; i < count; i++) {
        uint8_t small[side * side];
        shrink(small, (const uint8_t *)digits.inputs.data + (size_t)i * MICA_DIGITS_SIDE * MICA_DIGITS_SIDE);
        fwrite(small, sizeof small, 1, x);
    }
    fwrite(digits.targets.data, count, 1, y);
    npy_close(x, path[0]);
    npy_close(y, path[1]);
    mica_dataset_destroy(ctx, &digits);
    mica_context_destroy(ctx);
    return 0;
}

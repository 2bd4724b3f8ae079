/* make_data FOLDER: readings of the six states that are known in the factory, FOLDER/x.npy and FOLDER/y.npy. */
#include "../common/npy.h"
#include "sensor.h"

enum { known = state_bearing, each = 400 };

int main(int argc, char **argv)
{
    char x_path[1024], y_path[1024], shape[64];
    chance c = {20260};
    if (argc != 2) {
        fprintf(stderr, "usage: make_data FOLDER\n");
        return 2;
    }
    snprintf(x_path, sizeof x_path, "%s/x.npy", argv[1]);
    snprintf(y_path, sizeof y_path, "%s/y.npy", argv[1]);
    snprintf(shape, sizeof shape, "(%d, 1, %d)", known * each, window_length);
    FILE *x = npy_create(x_path, "<f4", shape);
    snprintf(shape, sizeof shape, "(%d,)", known * each);
    FILE *y = npy_create(y_path, "<i4", shape);
    for (int32_t i = 0; i < known * each; i++) {
        float window[window_length];
        int32_t state = i % known;
        sensor_read(window, (enum state)state, &c);
        fwrite(window, sizeof window, 1, x);
        fwrite(&state, sizeof state, 1, y);
    }
    npy_close(x, x_path);
    npy_close(y, y_path);
    return 0;
}

/* make_data FOLDER: the words that are known, as the net sees them: FOLDER/x.npy and FOLDER/y.npy. */
#include "../common/npy.h"
#include "features.h"
#include "microphone.h"

enum { known = word_arch, each = 300 };

int main(int argc, char **argv)
{
    char x_path[1024], y_path[1024], shape[64];
    static float sound[sound_length], features[frame_count * band_count];
    chance c = {4711};
    if (argc != 2) {
        fprintf(stderr, "usage: make_data FOLDER\n");
        return 2;
    }
    snprintf(x_path, sizeof x_path, "%s/x.npy", argv[1]);
    snprintf(y_path, sizeof y_path, "%s/y.npy", argv[1]);
    snprintf(shape, sizeof shape, "(%d, 1, %d, %d)", known * each, frame_count, band_count);
    FILE *x = npy_create(x_path, "<f4", shape);
    snprintf(shape, sizeof shape, "(%d,)", known * each);
    FILE *y = npy_create(y_path, "<i4", shape);
    for (int32_t i = 0; i < known * each; i++) {
        int32_t word = i % known;
        microphone_hear(sound, (enum word)word, &c);
        features_of(features, sound);
        fwrite(features, sizeof features, 1, x);
        fwrite(&word, sizeof word, 1, y);
    }
    npy_close(x, x_path);
    npy_close(y, y_path);
    return 0;
}

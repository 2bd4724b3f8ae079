/* For the programs that make training data, on the workstation: arrays as .npy files. */
#ifndef NPY_H
#define NPY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens PATH for an array of this type ("<f4", "<i4") and shape ("(300, 1, 128)"); what follows are its bytes. */
static inline FILE *npy_create(const char *path, const char *type, const char *shape)
{
    char header[118];
    const uint8_t magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, sizeof header, 0};
    FILE *file = fopen(path, "wb");
    memset(header, ' ', sizeof header);
    int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                          type, shape);
    if (file == NULL || length < 0 || length >= (int)sizeof header) {
        perror(path);
        exit(1);
    }
    header[length] = ' ';
    header[sizeof header - 1] = '\n';
    fwrite(magic, 1, sizeof magic, file);
    fwrite(header, 1, sizeof header, file);
    return file;
}

static inline void npy_close(FILE *file, const char *path)
{
    if (ferror(file) || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

#endif

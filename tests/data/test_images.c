/* Files and folders of images: kinds, sizes, classes, and what is wrong with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/scratch.h"
#include "oom.h"
#include "sample.h"
#include "test.h"

/* ---- JPEG files of other programs, beside the pixels that Pillow reads from them ---- */

static const char *golden(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/jpeg/%s", MICA_TEST_DATA, name);
    return path;
}

static bool no_jpeg(mica_context *ctx)
{
    mica_dataset set;
    if (mica_dataset_load_image(ctx, &set, golden("grey.jpg")) != MICA_ERR_IO) {
        mica_dataset_destroy(ctx, &set);
        return false;
    }
    test_skip("built without libjpeg");
    return true;
}

TEST(images_jpeg_pixels_are_those_of_pillow)
{
    mica_context *ctx = test_context(1);
    static const struct {
        const char *file, *pixels;
        int tolerance; /* versions of libjpeg round differently; of inks Pillow takes other steps to colours */
    } files[] = {{"grey.jpg", "grey.pgm", 1},
                 {"colour.jpg", "colour.ppm", 1},
                 {"halved.jpg", "halved.ppm", 1},
                 {"progressive.jpg", "progressive.ppm", 1},
                 {"grey_progressive.jpg", "grey_progressive.pgm", 1},
                 {"inks.jpg", "inks.ppm", 2}};
    if (no_jpeg(ctx))
        return;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        mica_dataset got, wanted;
        REQUIRE(CHECK_OK(ctx, mica_dataset_load_image(ctx, &got, golden(files[i].file))));
        REQUIRE(CHECK_OK(ctx, mica_dataset_load_image(ctx, &wanted, golden(files[i].pixels))));
        CHECK(got.inputs.dim[2] == 14 && got.inputs.dim[3] == 21 && got.count == 1 && !got.has_targets);
        REQUIRE(CHECK(mica_tensor_count(&got.inputs) == mica_tensor_count(&wanted.inputs)));
        const unsigned char *a = got.inputs.data, *b = wanted.inputs.data;
        int worst = 0;
        for (size_t k = 0; k < mica_tensor_count(&got.inputs); k++)
            worst = abs(a[k] - b[k]) > worst ? abs(a[k] - b[k]) : worst;
        CHECK_MSG(worst <= files[i].tolerance, "%s: a pixel is off by %d", files[i].file, worst);
        mica_dataset_destroy(ctx, &got);
        mica_dataset_destroy(ctx, &wanted);
    }
}

TEST(images_jpeg_truncated_anywhere_is_an_error)
{
    mica_context *ctx = test_context(1);
    size_t live = mica_context_heap(ctx).live_bytes, count;
    static const char *const names[] = {"halved.jpg", "progressive.jpg"};
    if (no_jpeg(ctx))
        return;
    for (size_t i = 0; i < 2; i++) {
        unsigned char *bytes = scratch_read(golden(names[i]), &count);
        for (size_t n = 0; n < count; n++) {
            mica_loaded got = {0};
            CHECK_MSG(sample_read(ctx, &got, mica_jpeg_read, bytes, n) == MICA_ERR_FORMAT &&
                          got.tensor.data == NULL,
                      "%s: %zu of %zu bytes were enough", names[i], n, count);
        }
        free(bytes);
    }
    CHECK(mica_context_heap(ctx).live_bytes == live);
}

/* ---- Folders ---- */

static scratch place;

static void write_in(const char *name, const char *bytes, size_t count)
{
    scratch_write(scratch_path(&place, name), bytes, count);
}

static void make_folder(void)
{
    static const char *const folders[] = {"cat", "dog"};
    place = scratch_make();
    for (size_t i = 0; i < 2; i++)
        CHECK(mkdir(scratch_path(&place, folders[i]), 0777) == 0);
    write_in("dog/1.pgm", "P5 2 2 255 \x0a\x14\x1e\x28", 15); /* 10 20, 30 40 */
    write_in("cat/2.ppm", "P6 2 2 255 \xff\0\0\0\xff\0\0\0\xff\xff\xff\xff",
             23);                                                    /* red, green, blue, white */
    write_in("cat/1.pgm", "P2 4 2 255 1 100 100 1 1 200 200 1", 34); /* its middle is 100 100, 200 200 */
}

static void clear_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", place.folder);
    CHECK(system(command) == 0);
}

static void check_bytes(const mica_dataset *set, int i, const unsigned char *wanted, size_t count)
{
    const unsigned char *got = (const unsigned char *)set->inputs.data + (size_t)i * count;
    for (size_t k = 0; k < count; k++)
        CHECK_MSG(got[k] == wanted[k], "sample %d, byte %zu is %d, not %d", i, k, got[k], wanted[k]);
}

TEST(images_folder_becomes_a_set)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    make_folder();
    size_t live = mica_context_heap(ctx).live_bytes;
    mica_images_opts opts = {.channels = 1, .height = 2, .width = 2};
    REQUIRE(CHECK_OK(ctx, mica_dataset_load_images(ctx, &set, place.folder, &opts)));
    CHECK(set.count == 3 && set.has_targets && set.inputs.dtype == MICA_U8 && set.inputs.rank == 4 &&
          set.inputs.dim[1] == 1 && set.inputs.dim[2] == 2 && set.inputs.dim[3] == 2);
    CHECK(set.class_count == 2 && strcmp(set.classes[0], "cat") == 0 && strcmp(set.classes[1], "dog") == 0);
    const int32_t *targets = set.targets.data;
    CHECK(set.targets.dtype == MICA_I32 && targets[0] == 0 && targets[1] == 0 && targets[2] == 1);
    check_bytes(&set, 0, (const unsigned char[]){100, 100, 200, 200}, 4); /* its middle */
    check_bytes(&set, 1, (const unsigned char[]){76, 150, 29, 255}, 4);   /* the brightness of colours */
    check_bytes(&set, 2, (const unsigned char[]){10, 20, 30, 40}, 4);
    mica_dataset_destroy(ctx, &set);

    opts = (mica_images_opts){.channels = 3, .height = 2, .width = 2, .stretch = true};
    REQUIRE(CHECK_OK(ctx, mica_dataset_load_images(ctx, &set, place.folder, &opts)));
    CHECK(set.inputs.dim[1] == 3);
    const unsigned char *first = set.inputs.data;
    CHECK(first[0] > 20 && first[0] < 80); /* of 1 and 100 */
    check_bytes(&set, 1, (const unsigned char[]){255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255}, 12);
    mica_dataset_destroy(ctx, &set);

    /* as the first image is */
    REQUIRE(CHECK_OK(ctx, mica_dataset_load_images(ctx, &set, place.folder, NULL)));
    CHECK(set.inputs.dim[1] == 1 && set.inputs.dim[2] == 2 && set.inputs.dim[3] == 4);
    mica_dataset_destroy(ctx, &set);

    /* classes given, one of which has no image here */
    opts = (mica_images_opts){
        .height = 2, .width = 2, .classes = (const char *const[]){"dog", "fox", "cat"}, .class_count = 3};
    REQUIRE(CHECK_OK(ctx, mica_dataset_load_images(ctx, &set, place.folder, &opts)));
    targets = set.targets.data;
    CHECK(set.class_count == 3 && targets[0] == 0 && targets[1] == 2 && targets[2] == 2);
    mica_dataset_destroy(ctx, &set);
    CHECK(mica_context_heap(ctx).live_bytes == live);
    clear_folder();
}

TEST(images_folder_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    make_folder();
    CHECK_ERROR(ctx, mica_dataset_load_images(ctx, &set, place.folder, &(mica_images_opts){.channels = 2}),
                MICA_ERR_ARGUMENT,
                "argument error: dataset_load_images: channels is 2: expected 1 (greyscale) or 3 (RGB)");
    CHECK_ERROR(ctx, mica_dataset_load_images(ctx, &set, place.folder, &(mica_images_opts){.height = 2}),
                MICA_ERR_ARGUMENT,
                "argument error: dataset_load_images: a size of 2 x 0: expected both at least 1, or both 0");
    mica_images_opts huge = {.height = PTRDIFF_MAX / 2, .width = 4};
    CHECK(mica_dataset_load_images(ctx, &set, place.folder, &huge) == MICA_ERR_SHAPE);
    write_in("dog/bad.png", "hello", 5);
    CHECK(mica_dataset_load_images(ctx, &set, place.folder, NULL) == MICA_ERR_FORMAT &&
          set.inputs.data == NULL);
    CHECK_MSG(strstr(mica_error(ctx),
                     "dog/bad.png\": byte 0: not an image: expected PNG, JPEG, PPM or PGM") != NULL,
              "%s", mica_error(ctx));
    clear_folder();
}

static mica_status load_once(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_dataset set;
    mica_status status = mica_context_create(&ctx,
                                             &(mica_context_opts){.threads = 1, .allocator = allocator});
    if (status != MICA_OK)
        return status;
    status = mica_dataset_load_images(ctx, &set, place.folder, &(mica_images_opts){.height = 2, .width = 2});
    mica_dataset_destroy(ctx, &set);
    mica_context_destroy(ctx);
    return status;
}

TEST(images_folder_out_of_memory)
{
    make_folder();
    CHECK(test_oom(load_once, NULL) >= 8);
    clear_folder();
}

TEST(image_centre_has_the_aspect_ratio)
{
    mica_context *ctx = test_context(1);
    unsigned char bytes[3 * 10 * 20] = {0};
    mica_tensor image, middle;
    CHECK_OK(ctx, mica_tensor_init(ctx, &image, bytes, MICA_U8, 3, (mica_index[]){3, 10, 20}));
    CHECK_OK(ctx, mica_image_centre(ctx, &middle, &image, 28, 28));
    CHECK(middle.dim[0] == 3 && middle.dim[1] == 10 && middle.dim[2] == 10);
    CHECK((unsigned char *)middle.data == bytes + 5);
    CHECK_OK(ctx, mica_image_centre(ctx, &middle, &image, 1, 4));
    CHECK(middle.dim[1] == 5 && middle.dim[2] == 20);
    CHECK_OK(ctx, mica_image_centre(ctx, &middle, &image, 1, 100000)); /* at least a pixel */
    CHECK(middle.dim[1] == 1 && middle.dim[2] == 20);
    CHECK(mica_image_centre(ctx, &middle, &image, 0, 1) == MICA_ERR_ARGUMENT);
    CHECK(mica_image_centre(ctx, NULL, &image, 1, 1) == MICA_ERR_ARGUMENT);
}

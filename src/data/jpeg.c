/* JPEG, through libjpeg. It reports errors by a function that may not return: all of it runs below read_all, which is
 * where they lead. Its own working memory comes from the C library, within MOST_MEMORY. */
#include "data/image_file.h"
#include "io/quote.h"

#ifdef MICA_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define MOST_MEMORY ((long)1 << 30) /* bytes: progressive images are held as a whole */
#define MOST_SCANS  200             /* of a progressive image: each may take time but no bytes */
/* A block of 8 x 8 pixels takes a bit at least, of a component that has a quarter of the pixels at least: what claims
 * more pixels for a byte of the file is no image. */
#define MOST_PIXELS_PER_BYTE 4096u

typedef struct jpeg {
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;

    mica_context *ctx;
    mica_stream *stream;
    mica_status status;
    mica_loaded image;
    unsigned char *row;
    size_t row_bytes;
    unsigned char buffer[4096];
} jpeg;

/* ---- What libjpeg calls ---- */

static jpeg *jpeg_of(j_common_ptr codec) { return codec->client_data; }

static void leave(jpeg *j, mica_status status)
{
    j->status = status;
    longjmp(j->failed, 1);
}

/* Of the next byte: what is in the buffer has not been looked at. */
static uint64_t position(const jpeg *j) { return j->stream->position - j->source.bytes_in_buffer; }

static mica_status bad(const jpeg *j, const char *what)
{
    return mica_fail(j->ctx, MICA_ERR_FORMAT, "%s: byte %llu: jpeg: %s", MICA_QUOTE(j->stream->file.path),
                     (unsigned long long)position(j), what);
}

static void on_error(j_common_ptr codec)
{
    jpeg *j = jpeg_of(codec);
    char text[JMSG_LENGTH_MAX];
    codec->err->format_message(codec, text);
    if (codec->err->msg_code == JERR_OUT_OF_MEMORY || codec->err->msg_code == JERR_NO_BACKING_STORE)
        leave(j, mica_fail(j->ctx, MICA_ERR_MEMORY, "%s: jpeg: no memory for an image of %u by %u pixels",
                           MICA_QUOTE(j->stream->file.path), (unsigned)j->codec.image_width,
                           (unsigned)j->codec.image_height));
    leave(j, bad(j, text));
}

/* Warnings (level -1) that pixels are missing are errors; others are of no matter. */
static void on_message(j_common_ptr codec, int level)
{
    int code = codec->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR &&
        code != JWRN_BOGUS_PROGRESSION)
        on_error(codec);
}

static void no_output(j_common_ptr codec) { (void)codec; }

static void on_progress(j_common_ptr codec)
{
    jpeg *j = jpeg_of(codec);
    if (j->codec.input_scan_number > MOST_SCANS)
        leave(j, bad(j, "more than 200 scans"));
}

static void start_source(j_decompress_ptr codec) { (void)codec; }
static void end_source(j_decompress_ptr codec) { (void)codec; }

static boolean fill_buffer(j_decompress_ptr codec)
{
    jpeg *j = codec->client_data;
    size_t got;
    mica_status status = mica_stream_read(j->ctx, j->buffer, &got, j->stream, sizeof j->buffer);
    if (status != MICA_OK)
        leave(j, status);
    if (got == 0)
        leave(j, bad(j, "the file ends before the image does"));
    j->source.next_input_byte = j->buffer;
    j->source.bytes_in_buffer = got;
    return TRUE;
}

static void skip_bytes(j_decompress_ptr codec, long count)
{
    jpeg *j = codec->client_data;
    while (count > (long)j->source.bytes_in_buffer) {
        count -= (long)j->source.bytes_in_buffer;
        j->source.bytes_in_buffer = 0;
        (void)fill_buffer(codec);
    }
    if (count > 0) {
        j->source.next_input_byte += count;
        j->source.bytes_in_buffer -= (size_t)count;
    }
}

/* ---- Reading ---- */

static void check_size(jpeg *j)
{
    const struct jpeg_decompress_struct *codec = &j->codec;
    mica_status status = mica_image_check_size(j->ctx, j->stream, position(j), "jpeg", codec->image_width,
                                               codec->image_height);
    if (status != MICA_OK)
        leave(j, status);
    if (codec->arith_code)
        leave(j, bad(j, "arithmetic coding is not supported: save it with Huffman coding"));
    if (codec->num_components != 1 && codec->num_components != 3 && codec->num_components != 4)
        leave(j, bad(j, "expected 1, 3 or 4 components"));
    if ((uint64_t)codec->image_width * codec->image_height / MOST_PIXELS_PER_BYTE > j->stream->most)
        leave(j, bad(j, "the image is larger than the file can hold"));
}

/* Row y. Of four inks: Adobe's programs, and most others after them, write what is left of the light, not the ink. */
static void store_row(const jpeg *j, size_t y, int channels)
{
    size_t width = j->codec.output_width, plane = width * j->codec.output_height;
    unsigned char *to = (unsigned char *)j->image.tensor.data + y * width;
    const unsigned char *from = j->row;
    bool inks = j->codec.output_components == 4;
    unsigned flip = inks && !j->codec.saw_Adobe_marker ? 255 : 0;
    for (size_t x = 0; x < width; x++, from += j->codec.output_components) {
        for (int c = 0; c < channels; c++) {
            unsigned value = from[c];
            if (inks)
                value = ((value ^ flip) * (from[3] ^ flip) + 127) / 255;
            to[(size_t)c * plane + x] = (unsigned char)value;
        }
    }
}

static void read_image(jpeg *j)
{
    struct jpeg_decompress_struct *codec = &j->codec;
    (void)jpeg_read_header(codec, TRUE);
    check_size(j);
    codec->out_color_space = codec->num_components == 1   ? JCS_GRAYSCALE
                             : codec->num_components == 3 ? JCS_RGB
                                                          : JCS_CMYK;
    (void)jpeg_start_decompress(codec);
    int channels = codec->output_components == 1 ? 1 : 3;
    mica_status status = mica_image_take(j->ctx, &j->image, channels, codec->output_height,
                                         codec->output_width);
    if (status != MICA_OK)
        leave(j, status);
    j->row_bytes = (size_t)codec->output_components * codec->output_width;
    j->row = mica_allocate(j->ctx, j->row_bytes);
    if (j->row == NULL)
        leave(j, j->ctx->status);
    while (codec->output_scanline < codec->output_height) {
        size_t y = codec->output_scanline;
        if (jpeg_read_scanlines(codec, &j->row, 1) != 1)
            leave(j, bad(j, "the image ends before its last row"));
        store_row(j, y, channels);
    }
    (void)jpeg_finish_decompress(codec);
}

/* Where errors lead: nothing of this function's is changed after setjmp. */
static void read_all(jpeg *j)
{
    if (setjmp(j->failed) != 0)
        return;
    jpeg_create_decompress(&j->codec);
    j->codec.mem->max_memory_to_use = MOST_MEMORY;
    j->codec.src = &j->source;
    j->codec.progress = &j->progress;
    read_image(j);
}

mica_status mica_jpeg_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    jpeg j = {.ctx = ctx, .stream = stream, .status = MICA_OK};
    j.codec.err = jpeg_std_error(&j.errors);
    j.errors.error_exit = on_error;
    j.errors.emit_message = on_message;
    j.errors.output_message = no_output;
    j.progress.progress_monitor = on_progress;
    j.source.init_source = start_source;
    j.source.fill_input_buffer = fill_buffer;
    j.source.skip_input_data = skip_bytes;
    j.source.resync_to_restart = jpeg_resync_to_restart;
    j.source.term_source = end_source;
    j.codec.client_data = &j; /* which jpeg_create_decompress keeps */
    read_all(&j);
    jpeg_destroy_decompress(&j.codec);
    mica_release(ctx, j.row, j.row_bytes);
    if (j.status != MICA_OK)
        mica_loaded_release(ctx, &j.image);
    else
        *out = j.image;
    return j.status;
}

#else

mica_status mica_jpeg_read(mica_context *ctx, mica_loaded *out, mica_stream *stream)
{
    (void)out;
    return mica_fail(ctx, MICA_ERR_IO, "%s: built without JPEG: this build has no libjpeg",
                     MICA_QUOTE(stream->file.path));
}

#endif

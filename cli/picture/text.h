/* What pages are put together from. Escaping is here, and all text from outside goes through it. */
#ifndef MICA_CLI_PICTURE_TEXT_H
#define MICA_CLI_PICTURE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include <mica/tensor.h>

/* Text for HTML and SVG, also within an attribute in double quotes: & < > " ' are written as references; what is not
 * UTF-8, and characters that such a document may not hold, become U+FFFD. NULL is as "". */
void put_text(FILE *out, const char *text);

/* The same, but no more than so many characters: what is cut ends with "…". */
void put_text_up_to(FILE *out, const char *text, size_t characters);
/* The same, but the end is what is kept: "…mlp.down". */
void put_text_end(FILE *out, const char *text, size_t characters);

/* For a terminal: what is not printable becomes \x1b, byte by byte, line ends and tabs too. Names and whatever else
 * comes from a file goes through this: no terminal obeys it. */
void put_plain(FILE *out, const char *text);
/* The same, but no more than so many characters; what is cut ends with "...", and how long it is. */
void put_plain_up_to(FILE *out, const char *text, size_t characters);
/* The same into text[size], cut where it does not fit. Returns `to`. */
char *plain_text(char *to, size_t size, const char *text);
/* A message of ours with such names in it: line ends and tabs stay. */
void put_message(FILE *out, const char *text);

/* As a JSON string with its quotes. Also safe within a script of an HTML page: < is written as an escape. */
void put_json(FILE *out, const char *text);
/* The same of so many bytes, which may be 0. */
void put_json_bytes(FILE *out, const char *text, size_t length);
/* As a JSON number; null where it is not finite. */
void put_json_number(FILE *out, double value);

typedef struct short_text {
    char text[64];
} short_text;

/* "4.21 MiB", "640 B" */
short_text size_text(double bytes);
/* "4 MiB", "1.5 KiB": of a round number, without digits that say nothing */
short_text round_size_text(double bytes);
/* "1,234,567" */
short_text count_text(double count);
/* "316800", "0.600071": six digits, more of large whole parts */
short_text number_text(double value);
/* "214777", "0.4992": a score, four digits, more of large whole parts */
short_text figure_text(double value);
/* "1.25 ms", "38 µs" */
short_text time_text(double seconds);
/* "f32 [32, 1, 28, 28]" */
short_text shape_text(mica_dtype dtype, int rank, const mica_index *dim);

#endif

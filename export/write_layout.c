/* What makes a folder a library of the Arduino IDE and of PlatformIO: two files beside src/. */
#include "export/write.h"

static const char *sentence(const export_opts *opts)
{
    return opts->train ? "A neural network that goes on learning on the device" : "A neural network";
}

void write_arduino_properties(text *out, const export_opts *opts)
{
    text_put(out, "name=%s\nversion=1.0.0\nauthor=mica export\nmaintainer=mica export\n", opts->name);
    text_put(out, "sentence=%s.\nparagraph=Written by mica export %s. No heap, no other library.\n",
             sentence(opts), mica_version());
    text_put(out, "category=Data Processing\nurl=\narchitectures=*\nincludes=%s.h\n", opts->name);
}

void write_platformio_json(text *out, const export_opts *opts)
{
    text_put(out, "{\n  \"name\": \"%s\",\n  \"version\": \"1.0.0\",\n", opts->name);
    text_put(out, "  \"description\": \"%s. Written by mica export %s.\",\n", sentence(opts), mica_version());
    text_put(out, "  \"frameworks\": \"*\",\n  \"platforms\": \"*\",\n  \"headers\": \"%s.h\",\n",
             opts->name);
    text_put(out, "  \"build\": {\"srcDir\": \"src\", \"flags\": [\"-O2\"]}\n}\n");
}

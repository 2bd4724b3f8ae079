#include "export/compiled.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *compiler(void)
{
    const char *named = getenv("CC");
    return named != NULL && *named != '\0' ? named : "cc";
}

static FILE *create(const compiled *all, const char *name, const char *suffix)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s%s", all->folder, name, suffix);
    return fopen(path, "w");
}

bool compiled_start(compiled *all, const char *what)
{
    char line[256];
    const char *place = getenv("TMPDIR"), *wanted = getenv("MICA_TEST_COMPILED");
    if (wanted != NULL && strcmp(wanted, "no") == 0) { /* one run is enough: kernels do not matter here */
        test_skip("MICA_TEST_COMPILED=no");
        return false;
    }
    *all = (compiled){.count = 0};
    snprintf(line, sizeof line, "%s --version > /dev/null 2>&1", compiler());
    if (system(line) != 0) {
        test_skip("there is no C compiler");
        return false;
    }
    snprintf(all->folder, sizeof all->folder, "%s/mica-export-%s-XXXXXX", place != NULL ? place : "/tmp",
             what);
    if (!CHECK(mkdtemp(all->folder) != NULL))
        return false;
    all->main = create(all, "all", ".c");
    return CHECK(all->main != NULL);
}

static void write_text(const compiled *all, const char *name, const char *suffix, const text *t)
{
    FILE *f = create(all, name, suffix);
    CHECK(f != NULL && fwrite(t->bytes, 1, t->length, f) == t->length);
    if (f != NULL)
        fclose(f);
}

FILE *compiled_add(compiled *all, const char *name, const exported *e)
{
    write_text(all, name, ".c", &e->source);
    write_text(all, name, ".h", &e->header);
    FILE *f = create(all, name, "_test.c");
    snprintf(all->name, sizeof all->name, "%s", name);
    if (f != NULL)
        fprintf(f,
                "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n#include \"%s.h\"\n"
                "int compare(const char *name, const float *got, const float *expected, int count);\n"
                "int test_%s(void);\nint test_%s(void)\n{\n",
                name, name, name);
    return f;
}

void compiled_end(compiled *all, FILE *test)
{
    if (!CHECK(test != NULL))
        return;
    fprintf(test, "}\n");
    fclose(test);
    fprintf(all->main, "int test_%s(void);\n", all->name);
    all->count++;
}

void compiled_add_test(compiled *all, const char *name, const exported *e)
{
    const char *main = e->test.bytes != NULL ? strstr(e->test.bytes, "int main(void)") : NULL;
    if (!CHECK(main != NULL))
        return;
    write_text(all, name, ".c", &e->source);
    write_text(all, name, ".h", &e->header);
    FILE *f = create(all, name, "_test.c");
    if (!CHECK(f != NULL))
        return;
    fprintf(f, "%.*sint test_%s(void);\nint test_%s(void)%s", (int)(main - e->test.bytes), e->test.bytes,
            name, name, main + strlen("int main(void)"));
    fclose(f);
    fprintf(all->main, "int test_%s(void);\n", name);
    all->count++;
}

static const char compare[] =
    "#include <math.h>\n#include <stdio.h>\n"
    "int compare(const char *name, const float *got, const float *expected, int count);\n"
    "int compare(const char *name, const float *got, const float *expected, int count)\n"
    "{\n"
    "    float worst = 0.0f, largest = 1e-30f;\n"
    "    for (int i = 0; i < count; i++) {\n"
    "        float d = fabsf(got[i] - expected[i]);\n"
    "        largest = fabsf(expected[i]) > largest ? fabsf(expected[i]) : largest;\n"
    "        if (got[i] != expected[i] && !(isnan(got[i]) && isnan(expected[i])) && !(d <= worst))\n"
    "            worst = d;\n"
    "    }\n"
    "    if (worst <= 1e-5f * largest)\n"
    "        return 0;\n"
    "    printf(\"%s: off by %g of %g\\n\", name, (double)worst, (double)largest);\n"
    "    return 1;\n"
    "}\n";

void compiled_run(compiled *all)
{
    char line[2048];
    FILE *f = create(all, "compare", ".c");
    if (CHECK(f != NULL)) {
        fputs(compare, f);
        fclose(f);
    }
    fclose(all->main);
    /* The calls follow the declarations. */
    snprintf(
        line, sizeof line,
        "cd %s && { echo 'int main(void) { int failed = 0;'; sed 's/^int \\(.*\\)(void);/failed += \\1();/' all.c; "
        "echo 'return failed != 0; }'; } > calls && cat calls >> all.c",
        all->folder);
    CHECK(system(line) == 0);
    snprintf(line, sizeof line,
             "cd %s && ls *.c | xargs -P 2 -n 16 %s -std=c99 -O1 -Wall -Wextra -Werror -pedantic "
             "-fsanitize=address,undefined -fno-sanitize-recover=undefined -c 2> errors && %s "
             "-fsanitize=address,undefined *.o -lm -o all",
             all->folder, compiler(), compiler());
    bool built = CHECK_MSG(system(line) == 0, "%s does not compile: see errors there", all->folder);
    snprintf(line, sizeof line, "cd %s && ./all > said 2>&1 || { head -40 said; false; }", all->folder);
    if (!built || !CHECK_MSG(system(line) == 0, "%d exported nets in %s: some are not the library's",
                             all->count, all->folder))
        return;
    snprintf(line, sizeof line, "rm -r %s", all->folder);
    CHECK(system(line) == 0);
}

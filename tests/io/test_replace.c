/* Replacing a file: what it keeps of the one before, links, and what others left. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/scratch.h"
#include "test.h"

static mica_status write_number(mica_context *ctx, const char *path, float number)
{
    const mica_named_tensor t = {"w", mica_1d(&number, 1)};
    return mica_safetensors_write(ctx, path, &t, 1, NULL);
}

static float read_number(mica_context *ctx, const char *path)
{
    float number = -1;
    mica_safetensors *file = NULL;
    if (CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path))) {
        const mica_named_tensor t = {"w", mica_1d(&number, 1)};
        CHECK_OK(ctx, mica_safetensors_read(ctx, &t, 1, file));
    }
    mica_safetensors_close(ctx, file);
    return number;
}

static unsigned mode_of(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 ? (unsigned)about.st_mode & 0777u : 0;
}

/* A second path, since scratch_path has room for one. */
typedef struct path_text {
    char text[400];
} path_text;

static path_text in_folder(const scratch *s, const char *name)
{
    path_text out;
    snprintf(out.text, sizeof out.text, "%s/%s", s->folder, name);
    return out;
}

TEST(safetensors_keep_the_mode_of_the_file_they_replace)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "kept");
    mode_t before = umask(027);
    CHECK_OK(ctx, write_number(ctx, path, 1));
    CHECK_MSG(mode_of(path) == 0640, "a new file has mode %o", mode_of(path));
    static const mode_t modes[] = {0600, 0664, 0444, 0666};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        CHECK(chmod(path, modes[i]) == 0);
        CHECK_OK(ctx, write_number(ctx, path, (float)i));
        CHECK_MSG(mode_of(path) == modes[i], "mode %o became %o", (unsigned)modes[i], mode_of(path));
        CHECK(read_number(ctx, path) == (float)i);
    }
    CHECK(scratch_count(&s) == 1);
    (void)umask(before);
    scratch_remove(&s);
}

/* What a killed process left, with a mode of its own. */
TEST(safetensors_do_not_take_over_the_mode_of_what_was_left)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    path_text path = in_folder(&s, "new"), left = in_folder(&s, "new.tmp"), other = in_folder(&s, "other");
    mode_t before = umask(022);
    scratch_write(left.text, "left", 4);
    CHECK(chmod(left.text, 0600) == 0);
    CHECK_OK(ctx, write_number(ctx, path.text, 1));
    CHECK(mode_of(path.text) == 0644);
    /* A link to a file that is somebody's: the file stays as it is. */
    scratch_write(other.text, "mine", 4);
    CHECK(link(other.text, left.text) == 0);
    CHECK_OK(ctx, write_number(ctx, path.text, 2));
    CHECK(read_number(ctx, path.text) == 2);
    struct stat about;
    CHECK(stat(other.text, &about) == 0 && about.st_size == 4 && about.st_nlink == 1);
    (void)umask(before);
    scratch_remove(&s);
}

TEST(safetensors_replace_what_a_link_leads_to)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    path_text file = in_folder(&s, "file"), link_to = in_folder(&s, "link"), second = in_folder(&s, "second");
    CHECK_OK(ctx, write_number(ctx, file.text, 1));
    CHECK(chmod(file.text, 0600) == 0);
    CHECK(symlink("file", link_to.text) == 0);      /* from where the link is */
    CHECK(symlink(link_to.text, second.text) == 0); /* a link to a link, by its whole path */
    CHECK_OK(ctx, write_number(ctx, second.text, 2));
    struct stat about;
    CHECK(lstat(link_to.text, &about) == 0 && S_ISLNK(about.st_mode));
    CHECK(lstat(second.text, &about) == 0 && S_ISLNK(about.st_mode));
    CHECK(lstat(file.text, &about) == 0 && S_ISREG(about.st_mode));
    CHECK(read_number(ctx, file.text) == 2 && mode_of(file.text) == 0600);
    /* One that leads to nothing yet. */
    CHECK(unlink(file.text) == 0);
    CHECK_OK(ctx, write_number(ctx, link_to.text, 3));
    CHECK(lstat(link_to.text, &about) == 0 && S_ISLNK(about.st_mode));
    CHECK(read_number(ctx, file.text) == 3);
    /* And one that leads to itself. */
    CHECK(unlink(file.text) == 0 && symlink("second", file.text) == 0);
    CHECK(write_number(ctx, file.text, 4) == MICA_ERR_IO);
    CHECK(scratch_count(&s) == 3);
    scratch_remove(&s);
}

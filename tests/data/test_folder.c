/* Folders of samples: classes, order, links, limits, parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/folder.h"
#include "io/scratch.h"
#include "oom.h"
#include "test.h"

static scratch place;

static const char *in_place(const char *name) { return scratch_path(&place, name); }

/* Files of no bytes, with the folders above them. */
static void make(const char *const *names, size_t count)
{
    place = scratch_make();
    for (size_t i = 0; i < count; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s", in_place(names[i]));
        for (char *slash = path + strlen(place.folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
            *slash = '\0';
            (void)mkdir(path, 0777);
            *slash = '/';
        }
        if (path[strlen(path) - 1] != '/')
            scratch_write(path, "", 0);
    }
}

static void clear(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", place.folder);
    CHECK(system(command) == 0);
}

#define MAKE(...) \
    make((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* "0:cat/1.png 1:dog/2.png" */
static const char *listed(const mica_folder *folder)
{
    static char text[1024];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < folder->count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d:%s", i > 0 ? " " : "",
                                 (int)folder->files[i].number,
                                 folder->files[i].path + strlen(place.folder) + 1);
    return text;
}

static const char *const ends[] = {".png", ".jpg"};
static const mica_folder_opts pictures = {.ends = ends, .end_count = 2};

static void check_error(mica_context *ctx, const mica_folder_opts *opts, mica_status status, const char *name,
                        const char *words)
{
    mica_folder folder;
    CHECK(mica_folder_list(ctx, &folder, place.folder, opts) == status);
    CHECK_MSG(strstr(mica_error(ctx), words) != NULL, "%s", mica_error(ctx));
    CHECK_MSG(strstr(mica_error(ctx), place.folder) != NULL && strstr(mica_error(ctx), name) != NULL, "%s",
              mica_error(ctx));
    CHECK(folder.files == NULL && folder.block == NULL);
}

TEST(folder_lists_classes_in_order_of_bytes)
{
    mica_context *ctx = test_context(1);
    mica_folder folder;
    MAKE("dog/b.PNG", "dog/a.jpg", "cat/10.png", "cat/9.png", "cat/deep/er/1.png", "cat-fish/1.png",
         "notes/read.txt", "cat/.hidden.png", ".git/1.png", "README.md", "empty/");
    REQUIRE(CHECK_OK(ctx, mica_folder_list(ctx, &folder, place.folder, &pictures)));
    CHECK_MSG(strcmp(listed(&folder),
                     "0:cat/10.png 0:cat/9.png 0:cat/deep/er/1.png 1:cat-fish/1.png 2:dog/a.jpg "
                     "2:dog/b.PNG") == 0,
              "%s", listed(&folder));
    CHECK(folder.class_count == 3 && strcmp(folder.classes[0], "cat") == 0 &&
          strcmp(folder.classes[1], "cat-fish") == 0 && strcmp(folder.classes[2], "dog") == 0);
    mica_folder_release(ctx, &folder);
    mica_folder_release(ctx, &folder);

    mica_folder_opts flat = {.ends = ends, .end_count = 1, .flat = true};
    REQUIRE(CHECK_OK(ctx, mica_folder_list(ctx, &folder, place.folder, &flat)));
    CHECK_MSG(strcmp(listed(&folder),
                     "-1:cat-fish/1.png -1:cat/10.png -1:cat/9.png -1:cat/deep/er/1.png "
                     "-1:dog/b.PNG") == 0,
              "%s", listed(&folder));
    CHECK(folder.class_count == 0);
    mica_folder_release(ctx, &folder);
    clear();
}

TEST(folder_takes_classes_given)
{
    mica_context *ctx = test_context(1);
    mica_folder folder;
    MAKE("b/1.png", "a/1.png");
    mica_folder_opts opts = pictures;
    opts.classes = (const char *const[]){"c", "b", "a"};
    opts.class_count = 3;
    REQUIRE(CHECK_OK(ctx, mica_folder_list(ctx, &folder, place.folder, &opts)));
    CHECK_MSG(strcmp(listed(&folder), "1:b/1.png 2:a/1.png") == 0, "%s", listed(&folder));
    CHECK(folder.class_count == 3 && folder.classes == opts.classes);
    mica_folder_release(ctx, &folder);
    opts.class_count = 2;
    check_error(ctx, &opts, MICA_ERR_FORMAT, "a", "\"a\" is none of the 2 classes");
    clear();
}

TEST(folder_follows_links_to_files_but_no_cycles)
{
    mica_context *ctx = test_context(1);
    mica_folder folder;
    MAKE("store/1.png", "set/a/2.png");
    char target[300];
    snprintf(target, sizeof target, "%s", in_place("store/1.png"));
    CHECK(symlink(target, in_place("set/a/link.png")) == 0);
    CHECK(symlink("nowhere.png", in_place("set/a/dead.png")) == 0);
    CHECK(symlink("..", in_place("set/a/cycle")) == 0);
    CHECK(symlink("../store", in_place("set/linked")) == 0);
    REQUIRE(CHECK_OK(ctx, mica_folder_list(ctx, &folder, in_place("set"), &pictures)));
    CHECK_MSG(strcmp(listed(&folder), "0:set/a/2.png 0:set/a/link.png 1:set/linked/1.png") == 0, "%s",
              listed(&folder));
    mica_folder_release(ctx, &folder);
    clear();
}

TEST(folder_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    mica_folder folder;
    MAKE("a/1.png", "stray.jpg");
    check_error(ctx, &pictures, MICA_ERR_IO, "stray.jpg",
                "expected every file in the sub-folder of its class");
    clear();
    MAKE("a/1.txt");
    check_error(ctx, &pictures, MICA_ERR_IO, "",
                "the folder has no files named *.png, *.jpg in sub-folders, one for each class");
    CHECK(mica_folder_list(ctx, &folder, in_place("none"), &pictures) == MICA_ERR_IO);
    CHECK(strstr(mica_error(ctx), "none\": cannot open: No such file or directory") != NULL);
    CHECK(mica_folder_list(ctx, &folder, in_place("a/1.txt"), &pictures) == MICA_ERR_IO);
    clear();
    MAKE("a/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18.png");
    check_error(ctx, &pictures, MICA_ERR_IO, "a/1/2", "expected at most 16 folders within one another");
    clear();
    place = scratch_make();
    for (int i = 0; i < 1025; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        CHECK(mkdir(in_place(name), 0777) == 0);
    }
    check_error(ctx, &pictures, MICA_ERR_IO, "", "expected at most 1024 sub-folders");
    clear();
}

TEST(folder_knows_parts)
{
    mica_context *ctx = test_context(1);
    char path[MICA_FOLDER_PATH];
    MAKE("a/train/cat/1.png", "a/val/cat/1.png", "b/train/1.png", "b/test/1.png", "c/train/.x/1.png");
    CHECK(mica_folder_part_of(ctx, path, in_place("a"), MICA_FOLDER_TRAIN));
    CHECK(strcmp(path, in_place("a/train")) == 0);
    CHECK(mica_folder_part_of(ctx, path, in_place("a"), MICA_FOLDER_VALIDATION));
    CHECK(strcmp(path, in_place("a/val")) == 0);
    CHECK(!mica_folder_part_of(ctx, path, in_place("a"), MICA_FOLDER_TEST));
    CHECK(!mica_folder_part_of(ctx, path, in_place("b"), MICA_FOLDER_TRAIN)); /* classes of that name */
    CHECK(!mica_folder_part_of(ctx, path, in_place("c"), MICA_FOLDER_TRAIN));
    CHECK(!mica_folder_part_of(ctx, path, in_place("nothing"), MICA_FOLDER_TRAIN));
    clear();
}

static mica_status list_once(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx;
    mica_folder folder;
    MICA_TRY(mica_context_create(&ctx, &(mica_context_opts){.threads = 1, .allocator = allocator}));
    mica_status status = mica_folder_list(ctx, &folder, place.folder, &pictures);
    mica_folder_release(ctx, &folder);
    mica_context_destroy(ctx);
    return status;
}

TEST(folder_out_of_memory)
{
    MAKE("a/1.png", "a/2.png", "b/3.png", "b/4.png", "b/5.png");
    CHECK(test_oom(list_once, NULL) > 3);
    clear();
}

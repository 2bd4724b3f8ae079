/* A process that writes checkpoints is killed at random moments: the file is always there and whole. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/scratch.h"
#include "test.h"

enum { ELEMENTS = 50000 };

static void pause_for(int microseconds)
{
    struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    nanosleep(&t, NULL);
}

/* Every element of checkpoint n is n. */
static mica_status write_one(mica_context *ctx, const char *path, float *data, int number)
{
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = (float)number;
    char step[16];
    snprintf(step, sizeof step, "%d", number);
    const mica_metadata metadata = {"step", step};
    const mica_named_tensor t = {"w", mica_1d(data, ELEMENTS)};
    return mica_safetensors_write(ctx, path, &t, 1, &(mica_safetensors_write_opts){&metadata, 1});
}

static int read_one(mica_context *ctx, const char *path, float *data)
{
    mica_safetensors *file = NULL;
    if (!CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path)))
        return -1;
    const mica_named_tensor t = {"w", mica_1d(data, ELEMENTS)};
    CHECK_OK(ctx, mica_safetensors_read(ctx, &t, 1, file));
    const char *text = mica_safetensors_metadata_find(file, "step");
    int step = text != NULL ? atoi(text) : -1;
    mica_safetensors_close(ctx, file);
    for (int i = 0; i < ELEMENTS; i++)
        if (!CHECK(data[i] == (float)step))
            break;
    return step;
}

TEST(safetensors_survive_being_killed)
{
    mica_context *ctx = test_context(1);
    const char *wanted = getenv("MICA_TEST_KILLS");
    int kills = wanted != NULL ? atoi(wanted) : 20, last = 0, moved = 0;
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "checkpoint");
    float *data = malloc(ELEMENTS * sizeof *data);
    test_random r = test_seed((uint64_t)time(NULL));
    CHECK_OK(ctx, write_one(ctx, path, data, 0));
    for (int kill_number = 0; kill_number < kills; kill_number++) {
        pid_t child = fork();
        if (child == 0) {
            for (int number = last + 1;; number++)
                if (write_one(ctx, path, data, number) != MICA_OK)
                    _exit(1);
        }
        REQUIRE(child > 0);
        pause_for(test_int(&r, 0, 30000));
        CHECK(kill(child, SIGKILL) == 0);
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        int step = read_one(ctx, path, data);
        CHECK_MSG(step >= last, "step %d after %d", step, last);
        moved += step > last;
        last = step;
        CHECK(scratch_count(&s) <= 2); /* the file, and what was left of the next one */
    }
    CHECK_MSG(moved > 0, "no checkpoint was ever written");
    CHECK_OK(ctx, write_one(ctx, path, data, last + 1)); /* takes over what was left */
    CHECK(read_one(ctx, path, data) == last + 1 && scratch_count(&s) == 1);
    free(data);
    scratch_remove(&s);
}

/* Several processes write one path at once: each write succeeds or is refused, and the file is always whole. */
TEST(safetensors_writers_do_not_mix)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "shared");
    float *data = malloc(ELEMENTS * sizeof *data);
    pid_t children[3];
    CHECK_OK(ctx, write_one(ctx, path, data, 1));
    for (int c = 0; c < 3; c++) {
        children[c] = fork();
        if (children[c] != 0)
            continue;
        for (int number = 1; number <= 20; number++) {
            mica_status status = write_one(ctx, path, data, 100 * c + number);
            if (status != MICA_OK && strstr(mica_error(ctx), "another process") == NULL)
                _exit(1);
        }
        _exit(0);
    }
    for (int c = 0; c < 3; c++) {
        int status = 1;
        (void)read_one(ctx, path, data);
        CHECK(waitpid(children[c], &status, 0) == children[c] && status == 0);
    }
    (void)read_one(ctx, path, data);
    CHECK(scratch_count(&s) == 1);
    free(data);
    scratch_remove(&s);
}

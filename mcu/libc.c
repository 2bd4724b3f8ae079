/* What newlib and picolibc ask of a system, for programs that use malloc or printf. Linked in only if called. */
#include "machine.h"

extern char board_heap_start[];
extern uint32_t board_stack_limit[];

static size_t heap_taken;

uint32_t heap_used(void) { return (uint32_t)heap_taken; }

void *sbrk(ptrdiff_t bytes);
void *sbrk(ptrdiff_t bytes)
{
    size_t room = (size_t)((uintptr_t)board_stack_limit - (uintptr_t)board_heap_start);
    size_t wanted = heap_taken + (size_t)bytes;
    if (wanted > room)
        return (void *)-1; /* NOLINT: that is how sbrk says so */
    void *block = board_heap_start + heap_taken;
    heap_taken = wanted;
    return block;
}

static void put_bytes(const char *bytes, int count)
{
    char text[2] = {0, 0};
    while (count-- > 0) {
        text[0] = *bytes++;
        put_text(text);
    }
}

_Noreturn void _exit(int code);
void _exit(int code) { board_exit(code); }

#ifdef __arm__ /* newlib */
void *_sbrk(ptrdiff_t bytes);
void *_sbrk(ptrdiff_t bytes) { return sbrk(bytes); }
int _write(int file, const char *bytes, int count);
int _write(int file, const char *bytes, int count)
{
    (void)file;
    put_bytes(bytes, count);
    return count;
}
int _read(int file, char *bytes, int count);
int _read(int file, char *bytes, int count) { return (void)file, (void)bytes, (void)count, 0; }
int _close(int file);
int _close(int file) { return (void)file, -1; }
int _lseek(int file, int offset, int from);
int _lseek(int file, int offset, int from) { return (void)file, (void)offset, (void)from, 0; }
int _fstat(int file, void *status);
int _fstat(int file, void *status) { return (void)file, (void)status, -1; }
int _isatty(int file);
int _isatty(int file) { return (void)file, 1; }
int _kill(int process, int signal);
int _kill(int process, int signal) { return (void)process, (void)signal, -1; }
int _getpid(void);
int _getpid(void) { return 1; }
#else /* picolibc: its stdio calls a function for each character */
#include <stdio.h>
static int put_one(char character, FILE *file)
{
    (void)file;
    put_bytes(&character, 1);
    return (unsigned char)character;
}
static FILE output = FDEV_SETUP_STREAM(put_one, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdout = &output;
FILE *const stderr = &output;
FILE *const stdin = &output;
#endif

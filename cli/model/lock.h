/* A folder that one process at a time works in. */
#ifndef MICA_CLI_MODEL_LOCK_H
#define MICA_CLI_MODEL_LOCK_H

#include "cli/verb.h"

#define LOCK_NAME "checkpoint.lock" /* in the folder; holds the number of the process */

typedef struct folder_lock {
    bool held;
    int handle;
    char path[4096];
} folder_lock;

/* Takes the lock of a folder, which must be there; *lock is zero before. A lock goes away with the process that holds
 * it: the file of one that was killed is in nobody's way. Else says who has it, and returns what the program ends
 * with. */
int folder_lock_take(folder_lock *lock, const verb *v, const char *folder);

/* Safe if it is not held. */
void folder_lock_release(folder_lock *lock);

#endif

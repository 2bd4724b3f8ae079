/* Names of classes. */
#include "cli/model/names.h"

class_names class_names_of(const meaning *m, const mica_netfile_info *info)
{
    static const char *const no_yes[] = {"no", "yes"};
    if (info->task == MICA_TASK_BINARY && m->class_count != 2)
        return (class_names){no_yes, 2};
    return (class_names){(const char *const *)m->class_names, m->class_count};
}

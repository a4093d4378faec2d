/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files in the home directory (home_file.h). */
#include "tools/cli/home_file.h"

#include <stdlib.h>
#include <string.h>

bool homeFilePath(str *out, const char *variable, const char *old_variable, const char *name) {
    const char *path = getenv(variable);
    if (!path) path = getenv(old_variable);
    if (path) {
        strAppendText(out, path);
        return *path && strcmp(path, "/dev/null") != 0;
    }
    const char *home = getenv("HOME");
    if (!home || !*home) return false;
    strAppendFormat(out, "%s/%s", home, name);
    return true;
}

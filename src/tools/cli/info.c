/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of INFO (info.h). */
#include "tools/cli/info.h"

#include <stdlib.h>
#include <string.h>

int64_t infoNumber(const char *info, const char *field) {
    size_t len = strlen(field);
    for (const char *at = info; (at = strstr(at, field)); at += len) {
        if ((at == info || at[-1] == '\n') && at[len] == ':') return atoll(at + len + 1);
    }
    return 0;
}

int64_t infoKeys(const char *info) {
    int64_t keys = 0;
    for (const char *at = info; (at = strstr(at, "\ndb")); at++) {
        const char *value = strstr(at, ":keys=");
        const char *end = strchr(at + 1, '\n');
        if (value && (!end || value < end)) keys += atoll(value + 6);
    }
    return keys;
}

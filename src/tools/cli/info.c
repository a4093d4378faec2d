/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of INFO (info.h). */
#include "tools/cli/info.h"

#include <stdlib.h>
#include <string.h>

/* The value of a field up to the end of the text; NULL if the field is missing. */
static const char *valueOf(const char *info, const char *field) {
    size_t len = strlen(field);
    for (const char *at = info; (at = strstr(at, field)); at += len) {
        if ((at == info || at[-1] == '\n') && at[len] == ':') return at + len + 1;
    }
    return NULL;
}

int64_t infoNumber(const char *info, const char *field) {
    const char *value = valueOf(info, field);
    return value ? atoll(value) : 0;
}

const char *infoText(const char *info, const char *field, char *out, size_t size) {
    const char *value = valueOf(info, field);
    size_t len = value ? strcspn(value, "\r\n") : 0;
    if (len >= size) len = size - 1;
    if (len) memcpy(out, value, len);
    out[len] = '\0';
    return out;
}

/* The number after `name` in the line, 0 if it is missing. */
static int64_t partOf(const char *line, const char *name) {
    const char *part = strstr(line, name), *end = strchr(line, '\n');
    return part && (!end || part < end) ? atoll(part + strlen(name)) : 0;
}

bool infoNextDatabase(const char **at, infoDatabase *out) {
    const char *line = *at;
    size_t digits = 0;
    do { /* lines of other sections begin with db0_ */
        line = strstr(line, "\ndb");
        if (!line) return false;
        line++;
        digits = strspn(line + 2, "0123456789");
    } while (!digits || strncmp(line + 2 + digits, ":keys=", 6) != 0);
    *at = line;
    *out = (infoDatabase){.id = atoi(line + 2), .keys = partOf(line, ":keys=")};
    out->volatile_items = partOf(line, ",keys_with_volatile_items=") + partOf(line, ",subexpiry=");
    return true;
}

int64_t infoKeys(const char *info) {
    int64_t keys = 0;
    infoDatabase d;
    while (infoNextDatabase(&info, &d)) keys += d.keys;
    return keys;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Formatting of error reasons. Invariant: a reason is always NUL-terminated. ANY_THREAD. */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void reasonWrite(reason *why, const char *format, va_list args) {
    if (vsnprintf(why->text, sizeof(why->text), format, args) < 0) why->text[0] = '\0';
}

status reasonSet(reason *why, status st, const char *format, ...) {
    if (!why) return st;
    va_list args;
    va_start(args, format);
    reasonWrite(why, format, args);
    va_end(args);
    return st;
}

status reasonSetErrno(reason *why, const char *format, ...) {
    int saved = errno;
    if (!why) return ERR_IO;
    va_list args;
    va_start(args, format);
    reasonWrite(why, format, args);
    va_end(args);
    size_t len = strlen(why->text);
    snprintf(why->text + len, sizeof(why->text) - len, ": %s", strerror(saved));
    errno = saved;
    return ERR_IO;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Error reporting: a status code, plus an optional human-readable reason in a buffer supplied by
 * the caller. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>

typedef enum status {
    OK = 0,
    ERR_RANGE,     /* a value is out of bounds */
    ERR_SYNTAX,    /* text or bytes that cannot be parsed */
    ERR_LIMIT,     /* a configured or built-in limit was reached */
    ERR_NO_MEMORY, /* a Try allocation failed */
    ERR_IO,        /* the kernel or a device reported an error */
    ERR_NOT_FOUND,
    ERR_EXISTS,
    ERR_DENIED,
    ERR_AGAIN, /* not an error: try again later */
} status;

#define REASON_MAX 512
typedef struct reason {
    char text[REASON_MAX]; /* NUL-terminated; empty if no reason was given */
} reason;

/* Formats the reason (truncated to REASON_MAX - 1 bytes) and returns `st`. `why` may be NULL.
 * ANY_THREAD. */
status reasonSet(reason *why, status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Like reasonSet(), followed by ": <strerror(errno)>". Returns ERR_IO. ANY_THREAD. */
status reasonSetErrno(reason *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

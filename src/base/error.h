/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How functions tell that the world said no: a status code, and words for people in a buffer of the
 * caller's. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>

typedef enum status {
    OK = 0,
    ERR_RANGE,     /* a value outside its bounds */
    ERR_SYNTAX,    /* text or bytes that do not parse */
    ERR_LIMIT,     /* a configured or built-in limit is reached */
    ERR_NO_MEMORY, /* a Try allocation failed */
    ERR_IO,        /* the kernel or the disk refused */
    ERR_NOT_FOUND,
    ERR_EXISTS,
    ERR_DENIED,
    ERR_AGAIN, /* nothing wrong: try later */
} status;

#define REASON_MAX 512
typedef struct reason {
    char text[REASON_MAX]; /* NUL-terminated; empty when nothing was said */
} reason;

/* Writes the words (cut at REASON_MAX - 1) and returns `st`; `why` may be NULL. ANY_THREAD. */
status reasonSet(reason *why, status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, with ": <strerror(errno)>" behind. Returns ERR_IO. ANY_THREAD. */
status reasonSetErrno(reason *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

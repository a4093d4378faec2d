/* SPDX-License-Identifier: BSD-3-Clause
 *
 * str: a growable byte string with a length. It is always followed by a NUL that the length does
 * not include, so ptr can be passed to C functions. A zeroed str is an empty string that owns
 * nothing. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

typedef struct str {
    char *ptr; /* NULL or a NUL-terminated block of memAlloc() */
    size_t len;
    size_t cap; /* bytes usable before the NUL */
} str;

#define STR_EMPTY ((str){NULL, 0, 0})

str strNew(slice from);
/* Frees the block; the str is empty afterwards. */
void strFree(str *s);
/* Makes the str empty and keeps the block. */
void strClear(str *s);
/* strReserve() makes room for `more` bytes after the contents and returns their address; strGrow()
 * then adds `written` of them to the length. */
char *strReserve(str *s, size_t more);
void strGrow(str *s, size_t written);
void strAppend(str *s, const void *bytes, size_t len);
void strAppendSlice(str *s, slice from);
void strAppendText(str *s, const char *text);
void strAppendByte(str *s, char byte);
void strAppendInt(str *s, int64_t number);
void strAppendFormat(str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strAppendFormatV(str *s, const char *format, va_list args);
void strAppendNamed(str *s, const char *name, size_t name_len, uint64_t number);
/* Appends "name:number\r\n", a field of INFO, in a fraction of the time of strAppendFormat(). Inline
 * for the length of a constant name. */
static inline void strAppendField(str *s, const char *name, uint64_t number) {
    strAppendNamed(s, name, strlen(name), number);
}
/* Appends the bytes in double quotes with \n \r \t \a \b \" \\ \xHH escapes, as in logs and
 * MONITOR. */
void strAppendQuoted(str *s, slice from);
/* Truncates the string to `len` bytes, at most its length. */
void strCut(str *s, size_t len);
/* Never NULL: "" for an empty str. */
const char *strText(const str *s);
static inline slice strSlice(const str *s) { return (slice){s->ptr ? s->ptr : "", s->len}; }

/* Splits a line of a configuration file or an inline command into words separated by blanks; "..."
 * with \n \r \t \a \b \\ \" \xHH and '...' with \' quote. A NUL ends the line. On success `*words`
 * has `*count` entries, to be freed with strFreeWords(). Returns false on unbalanced quotes and
 * then allocates nothing. */
bool strSplitWords(slice line, str **words, int *count);
void strFreeWords(str *words, int count);

#endif

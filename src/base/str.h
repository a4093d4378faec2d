/* SPDX-License-Identifier: BSD-3-Clause
 *
 * str: a growable byte string that knows its length. Always followed by a NUL that the length does
 * not count, so ptr can be handed to C. A zeroed str is the empty string and owns nothing. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct str {
    char *ptr; /* NULL or NUL-terminated block of memAlloc */
    size_t len;
    size_t cap; /* bytes usable before the NUL */
} str;

#define STR_EMPTY ((str){NULL, 0, 0})

str strNew(slice from);
/* Frees the block; the str is empty again. */
void strFree(str *s);
/* Empties it and keeps the block. */
void strClear(str *s);
/* Room for `more` bytes behind the content. Returns where they go; strGrow() then takes them in. */
char *strReserve(str *s, size_t more);
void strGrow(str *s, size_t written);
void strAppend(str *s, const void *bytes, size_t len);
void strAppendSlice(str *s, slice from);
void strAppendText(str *s, const char *text);
void strAppendByte(str *s, char byte);
void strAppendInt(str *s, int64_t number);
void strAppendFormat(str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strAppendFormatV(str *s, const char *format, va_list args);
/* The bytes in double quotes with \n \r \t \a \b \" \\ \xHH, as logs and MONITOR print them. */
void strAppendQuoted(str *s, slice from);
/* Cuts the content to `len` bytes; no more than it has. */
void strCut(str *s, size_t len);
/* Never NULL: "" for an empty str. */
const char *strText(const str *s);
static inline slice strSlice(const str *s) { return (slice){s->ptr ? s->ptr : "", s->len}; }

/* Splits a line of a configuration file or an inline command into words: blanks separate; "..."
 * with \n \r \t \a \b \\ \" \xHH and '...' with \' quote. A NUL ends the line.
 * `*words` gets `*count` entries: strFreeWords() later. Returns false on unbalanced quotes, and
 * then owns nothing. */
bool strSplitWords(slice line, str **words, int *count);
void strFreeWords(str *words, int count);

#endif

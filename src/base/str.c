/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Growable byte strings. Invariant: ptr is NULL with len = cap = 0, or a block of at least cap + 1
 * bytes with a NUL at ptr[len]. Appending takes amortised constant time per byte. A str is used by
 * one thread at a time. */
#include "base/str.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/number.h"

#define DOUBLING_LIMIT ((size_t)1024 * 1024) /* larger strings grow by a quarter */

str strNew(slice from) {
    str s = STR_EMPTY;
    strAppendSlice(&s, from);
    return s;
}

void strFree(str *s) {
    memFree(s->ptr);
    *s = STR_EMPTY;
    hotCheck(s->len == 0);
}

void strClear(str *s) { strCut(s, 0); }

char *strReserve(str *s, size_t more) {
    hotCheck(s->len <= s->cap);
    if (s->ptr && s->cap - s->len >= more) return s->ptr + s->len;
    size_t need;
    if (__builtin_add_overflow(s->len, more, &need) || need >= PTRDIFF_MAX)
        panic("A string of %zu and %zu bytes is too long", s->len, more);
    size_t spare = s->cap < DOUBLING_LIMIT ? s->cap * 2 : s->cap + s->cap / 4;
    size_t block = memGoodSize(sizeMax(need, spare) + 1);
    bool fresh = s->ptr == NULL;
    s->ptr = memRealloc(s->ptr, block);
    s->cap = block - 1;
    if (fresh) s->ptr[0] = '\0';
    hotCheck(s->cap >= need);
    return s->ptr + s->len;
}

void strGrow(str *s, size_t written) {
    check(written <= s->cap - s->len);
    if (!s->ptr) return; /* nothing was reserved and nothing written */
    s->len += written;
    s->ptr[s->len] = '\0';
    hotCheck(memSizeOf(s->ptr) > s->cap);
}

void strAppend(str *s, const void *bytes, size_t len) {
    if (len == 0) return;
    memcpy(strReserve(s, len), bytes, len);
    strGrow(s, len);
}

void strAppendSlice(str *s, slice from) { strAppend(s, from.ptr, from.len); }

void strAppendText(str *s, const char *text) { strAppend(s, text, strlen(text)); }

void strAppendByte(str *s, char byte) {
    *strReserve(s, 1) = byte;
    strGrow(s, 1);
}

void strAppendInt(str *s, int64_t number) {
    strGrow(s, numberPrintInt(strReserve(s, NUMBER_TEXT_MAX), number));
}

/* Returns the argument for a signed conversion such as "%lld". `size` is the text between '%' and
 * the letter. */
static int64_t signedArg(va_list *args, const char *size) {
    if (size[0] == 'l') return size[1] == 'l' ? va_arg(*args, long long) : va_arg(*args, long);
    return size[0] == 'z' ? va_arg(*args, ptrdiff_t) : va_arg(*args, int);
}

static uint64_t unsignedArg(va_list *args, const char *size) {
    if (size[0] == 'l')
        return size[1] == 'l' ? va_arg(*args, unsigned long long) : va_arg(*args, unsigned long);
    return size[0] == 'z' ? va_arg(*args, size_t) : va_arg(*args, unsigned);
}

/* "%.2f" in integers: the exact value is rounded to even, as printf() does. False: not negative
 * numbers below 2^53 only. */
static bool appendHundredths(str *s, double value) {
    if (signbit(value) || !(value < 9007199254740992.0)) return false;
    int exponent;
    uint64_t whole = (uint64_t)ldexp(frexp(value, &exponent), DBL_MANT_DIG) * 100, hundredths = 0;
    int shift = DBL_MANT_DIG - exponent;
    hotCheck(shift >= 0);
    if (shift == 0) {
        hundredths = whole;
    } else if (shift < 64) { /* else it is below half of a hundredth */
        uint64_t half = (uint64_t)1 << (shift - 1), rest = whole & (2 * half - 1);
        hundredths = whole >> shift;
        if (rest > half || (rest == half && hundredths & 1)) hundredths++;
    }
    strGrow(s, numberPrintUint(strReserve(s, NUMBER_TEXT_MAX), hundredths / 100));
    char part[] = {'.', (char)('0' + hundredths / 10 % 10), (char)('0' + hundredths % 10)};
    strAppend(s, part, sizeof(part));
    return true;
}

/* The conversions that begin with a '.': "%.2f" and "%.*s". Returns the format after them; NULL:
 * another one. */
static const char *appendPrecise(str *s, const char *format, va_list *args) {
    if (format[1] == '2' && format[2] == 'f')
        return appendHundredths(s, va_arg(*args, double)) ? format + 3 : NULL;
    if (format[1] != '*' || format[2] != 's') return NULL;
    int most = va_arg(*args, int);
    const char *text = va_arg(*args, const char *);
    if (most < 0 || (most && !text)) return NULL;
    if (most) strAppend(s, text, strnlen(text, (size_t)most));
    return format + 3;
}

/* Appends formatted text if all conversions are texts and integers without flags and width, or
 * those of appendPrecise(), as nearly all in INFO are. It exists because printf() takes several
 * times as long. False: a part of the text may have been appended. */
static bool appendPlain(str *s, const char *format, va_list *args) {
    hotCheck(s->len <= s->cap);
    for (;;) {
        const char *mark = strchr(format, '%'), *text;
        size_t plain = mark ? (size_t)(mark - format) : strlen(format);
        if (!mark) {
            strAppend(s, format, plain);
            return true;
        }
        /* With space for a number after it: one reservation for both. */
        char *at = (char *)memcpy(strReserve(s, plain + NUMBER_TEXT_MAX), format, plain) + plain;
        const char *size = format = mark + 1;
        if (*format == 'z') format++;
        while (*format == 'l' && format < size + 2) format++;
        switch (*format++) {
        case 'd': strGrow(s, plain + numberPrintInt(at, signedArg(args, size))); break;
        case 'u': strGrow(s, plain + numberPrintUint(at, unsignedArg(args, size))); break;
        case 's':
            text = *size == 's' ? va_arg(*args, const char *) : NULL;
            if (!text) return false;
            strGrow(s, plain);
            strAppendText(s, text);
            break;
        case '%':
            if (*size != '%') return false;
            *at = '%';
            strGrow(s, plain + 1);
            break;
        case '.':
            strGrow(s, plain);
            format = *size == '.' ? appendPrecise(s, size, args) : NULL;
            if (!format) return false;
            break;
        default: return false;
        }
    }
}

void strAppendFormatV(str *s, const char *format, va_list args) {
    enum { LIKELY_BYTES = 64 };
    va_list again;
    (void)strReserve(s, LIKELY_BYTES);
    size_t begin = s->len;
    va_copy(again, args);
    bool done = appendPlain(s, format, &again);
    va_end(again);
    if (done) return;
    strCut(s, begin);
    va_copy(again, args);
    int len = vsnprintf(s->ptr + begin, s->cap - begin + 1, format, args);
    check(len >= 0);
    if ((size_t)len > s->cap - begin) {
        char *dst = strReserve(s, (size_t)len);
        len = vsnprintf(dst, (size_t)len + 1, format, again);
        check(len >= 0);
    }
    va_end(again);
    strGrow(s, (size_t)len);
}

void strAppendFormat(str *s, const char *format, ...) {
    hotCheck(s->len <= s->cap);
    va_list args;
    va_start(args, format);
    strAppendFormatV(s, format, args);
    va_end(args);
}

void strAppendNamed(str *s, const char *name, size_t name_len, uint64_t number) {
    char *start = strReserve(s, name_len + NUMBER_TEXT_MAX + 3), *at = start + name_len + 1;
    memcpy(start, name, name_len);
    start[name_len] = ':';
    at += numberPrintUint(at, number);
    memcpy(at, "\r\n", 2);
    strGrow(s, (size_t)(at + 2 - start));
}

/* The letter of the escape sequence for `c`, e.g. 'n' for a newline; 0 if it has none. */
static char escapeLetter(char c) {
    switch (c) {
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    case '\a': return 'a';
    case '\b': return 'b';
    case '"': return '"';
    case '\\': return '\\';
    default: return 0;
    }
}

/* True if `c` needs no escaping inside quotes. */
static bool isPlain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

void strAppendQuoted(str *s, slice from) {
    static const char hex[] = "0123456789abcdef";
    strReserve(s, from.len + 2);
    strAppendByte(s, '"');
    for (size_t i = 0; i < from.len;) {
        size_t plain = i;
        while (plain < from.len && isPlain(from.ptr[plain])) plain++;
        strAppend(s, from.ptr + i, plain - i);
        if (plain == from.len) break;
        uint8_t byte = (uint8_t)from.ptr[plain];
        char letter = escapeLetter(from.ptr[plain]);
        if (letter) {
            strAppend(s, (char[]){'\\', letter}, 2);
        } else {
            strAppend(s, (char[]){'\\', 'x', hex[byte >> 4], hex[byte & 15]}, 4);
        }
        i = plain + 1;
    }
    strAppendByte(s, '"');
}

void strCut(str *s, size_t len) {
    check(len <= s->len);
    if (!s->ptr) return;
    hotCheck(s->len <= s->cap);
    s->len = len;
    s->ptr[len] = '\0';
}

const char *strText(const str *s) { return s->ptr ? s->ptr : ""; }

/* The byte that the escape sequence `\c` denotes inside double quotes. */
static char unescape(char c) {
    switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'b': return '\b';
    case 'a': return '\a';
    default: return c;
    }
}

/* Appends the contents of a double-quoted word that starts at `pos`. Returns the position after the
 * closing quote, 0 if there is none. A backslash before the last character of the line is
 * literal. */
static size_t takeDoubleQuoted(str *word, slice line, size_t pos) {
    hotCheck(pos <= line.len);
    while (pos < line.len) {
        const char *p = line.ptr + pos;
        size_t left = line.len - pos;
        if (*p == '\\' && left > 4 && p[1] == 'x' && hexDigit(p[2]) >= 0 && hexDigit(p[3]) >= 0) {
            strAppendByte(word, (char)(hexDigit(p[2]) << 4 | hexDigit(p[3])));
            pos += 4;
        } else if (*p == '\\' && left > 2) {
            strAppendByte(word, unescape(p[1]));
            pos += 2;
        } else if (*p == '"') {
            return pos + 1;
        } else {
            strAppendByte(word, *p);
            pos++;
        }
    }
    return 0;
}

/* The same for single quotes, where only \' is an escape sequence. */
static size_t takeSingleQuoted(str *word, slice line, size_t pos) {
    hotCheck(pos <= line.len);
    while (pos < line.len) {
        const char *p = line.ptr + pos;
        if (*p == '\\' && line.len - pos > 2 && p[1] == '\'') {
            strAppendByte(word, '\'');
            pos += 2;
        } else if (*p == '\'') {
            return pos + 1;
        } else {
            strAppendByte(word, *p);
            pos++;
        }
    }
    return 0;
}

/* Appends one word that starts at `pos`; returns the position after it, 0 on unbalanced quotes. */
static size_t takeWord(str *word, slice line, size_t pos) {
    hotCheck(pos <= line.len);
    while (pos < line.len) {
        char c = line.ptr[pos];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') break;
        if (c == '"') {
            pos = takeDoubleQuoted(word, line, pos + 1);
        } else if (c == '\'') {
            pos = takeSingleQuoted(word, line, pos + 1);
        } else {
            strAppendByte(word, c);
            pos++;
        }
        if (pos == 0) return 0;
    }
    return pos;
}

bool strSplitWords(slice line, str **words, int *count) {
    const char *nul = line.len ? memchr(line.ptr, '\0', line.len) : NULL;
    if (nul) line.len = (size_t)(nul - line.ptr);
    str *found = NULL;
    size_t cap = 0;
    int n = 0;
    size_t pos = 0;
    for (;;) {
        while (pos < line.len && byteIsBlank(line.ptr[pos])) pos++;
        if (pos == line.len) break;
        if ((size_t)n == cap) {
            cap = cap ? cap * 2 : 8;
            found = memRealloc(found, cap * sizeof(*found));
        }
        str *word = &found[n++];
        *word = STR_EMPTY;
        strReserve(word, 0); /* so that an empty word has a NUL-terminated block, too */
        pos = takeWord(word, line, pos);
        if (pos == 0) {
            strFreeWords(found, n);
            return false;
        }
    }
    *words = found;
    *count = n;
    return true;
}

void strFreeWords(str *words, int count) {
    for (int i = 0; i < count; i++) strFree(&words[i]);
    memFree(words);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Encodes commands: printf-like formats and vectors of arguments, each in two steps. The first
 * collects the pieces that the arguments consist of, without copying strings; the second writes
 * them to memory of exactly their size. */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "clientlib/client_priv.h"

enum {
    PIECES_INSIDE = 24,
    NUMBERS_INSIDE = 128,
};

/* ------------------------------------------------------------------ numbers and headers */

static int digitsOf(unsigned long long n) {
    int digits = 1;
    for (; n >= 10; n /= 10) digits++;
    return digits;
}

static size_t headerSize(size_t n) { return (size_t)digitsOf(n) + 3; }

static char *writeHeader(char *to, char type, size_t n) {
    *to = type;
    int digits = digitsOf(n);
    for (int i = digits; i > 0; i--, n /= 10) to[i] = (char)('0' + n % 10);
    to += digits + 1;
    to[0] = '\r';
    to[1] = '\n';
    return to + 2;
}

static char *writeBytes(char *to, const char *bytes, size_t len) {
    memcpy(to, bytes, len);
    return to + len;
}

/* ------------------------------------------------------------------ vectors */

/* 0 if the arguments are not valid: none has no bytes but a length, and the sum is a size of
 * memory. */
static size_t argvSize(int argc, const char **argv, const size_t *argvlen) {
    if (argc < 0) return 0;
    size_t size = headerSize((size_t)argc);
    for (int i = 0; i < argc; i++) {
        if (!argv[i] && (!argvlen || argvlen[i] > 0)) return 0;
        size_t len = argvlen ? argvlen[i] : strlen(argv[i]);
        if (len > SIZE_MAX / 2 - size) return 0;
        size += headerSize(len) + len + 2;
    }
    return size;
}

static void writeArgv(char *to, int argc, const char **argv, const size_t *argvlen) {
    to = writeHeader(to, '*', (size_t)argc);
    for (int i = 0; i < argc; i++) {
        size_t len = argvlen ? argvlen[i] : strlen(argv[i]);
        to = writeHeader(to, '$', len);
        if (len > 0) to = writeBytes(to, argv[i], len);
        to = writeBytes(to, "\r\n", 2);
    }
}

long long vkAppendArgv(char **text, int argc, const char **argv, const size_t *argvlen) {
    size_t size = argvSize(argc, argv, argvlen), old = vkTextLen(*text);
    if (size == 0) return -2;
    if (!vkTextReserve(text, size)) return -1;
    writeArgv(*text + old, argc, argv, argvlen);
    vkTextSetLen(*text, old + size);
    return (long long)size;
}

long long valkeyFormatCommandArgv(char **target, int argc, const char **argv,
                                  const size_t *argvlen) {
    if (!target) return -1;
    size_t size = argvSize(argc, argv, argvlen);
    char *cmd = size > 0 ? vk_malloc(size + 1) : NULL;
    if (!cmd) return -1;
    writeArgv(cmd, argc, argv, argvlen);
    cmd[size] = '\0';
    *target = cmd;
    return (long long)size;
}

void valkeyFreeCommand(char *cmd) { vk_free(cmd); }

/* ------------------------------------------------------------------ formats */

/* A part of an argument. `ptr` NULL: `len` bytes at `offset` of the numbers. */
typedef struct piece {
    const char *ptr;
    size_t offset, len;
    bool first; /* begins an argument */
} piece;

/* A format being read. */
typedef struct formatState {
    const char *at;
    int argc;
    bool inside; /* within an argument */
    piece *pieces;
    size_t count, capacity;
    char *numbers;
    size_t numbers_len, numbers_cap;
    piece pieces_inside[PIECES_INSIDE];
    char numbers_inside[NUMBERS_INSIDE];
} formatState;

static void formatClear(formatState *s) {
    if (s->pieces != s->pieces_inside) vk_free(s->pieces);
    if (s->numbers != s->numbers_inside) vk_free(s->numbers);
}

static bool addPiece(formatState *s, const char *ptr, size_t offset, size_t len) {
    if (s->count == s->capacity) {
        piece *inside = s->pieces == s->pieces_inside ? s->pieces : NULL;
        piece *more = vk_realloc(inside ? NULL : s->pieces, s->capacity * 2 * sizeof(*more));
        if (!more) return false;
        if (inside) memcpy(more, inside, s->count * sizeof(*more));
        s->pieces = more;
        s->capacity *= 2;
    }
    s->pieces[s->count++] = (piece){.ptr = ptr, .offset = offset, .len = len, .first = !s->inside};
    if (!s->inside) s->argc++;
    s->inside = true;
    return true;
}

/* Space for `size` bytes of a printed number. */
static bool reserveNumber(formatState *s, size_t size) {
    if (s->numbers_cap - s->numbers_len >= size) return true;
    size_t capacity = s->numbers_cap * 2 + size;
    char *inside = s->numbers == s->numbers_inside ? s->numbers : NULL;
    char *more = vk_realloc(inside ? NULL : s->numbers, capacity);
    if (!more) return false;
    if (inside) memcpy(more, inside, s->numbers_len);
    s->numbers = more;
    s->numbers_cap = capacity;
    return true;
}

/* Prints the argument of one conversion, e.g. "%08llx", which ends with `kind`; *ap is advanced. */
static int printNumber(char *to, size_t cap, const char *conversion, char kind, int size,
                       va_list *ap) {
    if (strchr("eEfFgGaA", kind)) return snprintf(to, cap, conversion, va_arg(*ap, double));
    switch (size) {
    case 'l': return snprintf(to, cap, conversion, va_arg(*ap, long));
    case 'L': return snprintf(to, cap, conversion, va_arg(*ap, long long));
    default: return snprintf(to, cap, conversion, va_arg(*ap, int));
    }
}

/* Reads a numeric conversion at s->at, which is after the percent sign. 1, -1 without memory, -2 if
 * not valid. */
static int readNumeric(formatState *s, va_list *ap) {
    const char *p = s->at;
    p += strspn(p, "#0-+ ");
    p += strspn(p, "0123456789");
    if (*p == '.') {
        p++;
        p += strspn(p, "0123456789");
    }
    int size = 0;
    if (p[0] == 'h') {
        p += p[1] == 'h' ? 2 : 1;
        size = 'h';
    } else if (p[0] == 'l') {
        size = p[1] == 'l' ? 'L' : 'l';
        p += size == 'L' ? 2 : 1;
    }
    bool integer = *p && strchr("diouxX", *p);
    if (!integer && (size || !*p || !strchr("eEfFgGaA", *p))) return -2;
    char conversion[32];
    size_t len = (size_t)(p + 1 - s->at);
    if (len + 2 > sizeof(conversion)) return -2;
    conversion[0] = '%';
    memcpy(conversion + 1, s->at, len);
    conversion[len + 1] = '\0';

    va_list again;
    va_copy(again, *ap);
    size_t room = s->numbers_cap - s->numbers_len;
    int printed = printNumber(s->numbers + s->numbers_len, room, conversion, *p, size, ap);
    int result = 1;
    if (printed < 0) {
        result = -2;
    } else if ((size_t)printed >= room) {
        if (reserveNumber(s, (size_t)printed + 1)) {
            printNumber(s->numbers + s->numbers_len, (size_t)printed + 1, conversion, *p, size,
                        &again);
        } else {
            result = -1;
        }
    }
    va_end(again);
    if (result != 1) return result;
    if (!addPiece(s, NULL, s->numbers_len, (size_t)printed)) return -1;
    s->numbers_len += (size_t)printed;
    s->at = p + 1;
    return 1;
}

/* Reads a conversion at s->at, which is after the percent sign. */
static int readConversion(formatState *s, va_list *ap) {
    const char *str;
    size_t len;
    switch (*s->at) {
    case 's':
        str = va_arg(*ap, const char *);
        if (!str) return -2;
        len = strlen(str);
        break;
    case 'b':
        str = va_arg(*ap, const char *);
        len = va_arg(*ap, size_t);
        if (!str && len > 0) return -2;
        break;
    case '%':
        str = "%";
        len = 1;
        break;
    default: return readNumeric(s, ap);
    }
    s->at++;
    /* A piece of no bytes must not look like a number. */
    return addPiece(s, str ? str : "", 0, len) ? 1 : -1;
}

/* Collects the pieces of all arguments. */
static int readFormat(formatState *s, va_list *ap) {
    while (*s->at) {
        int result = 1;
        if (*s->at == ' ') {
            s->inside = false;
            s->at++;
        } else if (*s->at == '%' && s->at[1]) {
            s->at++;
            result = readConversion(s, ap);
        } else {
            /* A percent sign at the end is one. */
            size_t len = *s->at == '%' ? 1 : strcspn(s->at, " %");
            result = addPiece(s, s->at, 0, len) ? 1 : -1;
            s->at += len;
        }
        if (result != 1) return result;
    }
    return 1;
}

/* Bytes of the argument that begins at piece `i`; `*end` is the first piece after it. */
static size_t argumentSize(const formatState *s, size_t i, size_t *end) {
    size_t len = s->pieces[i].len;
    for (i++; i < s->count && !s->pieces[i].first; i++) len += s->pieces[i].len;
    *end = i;
    return len;
}

static size_t formatSize(const formatState *s) {
    size_t size = headerSize((size_t)s->argc), end;
    for (size_t i = 0; i < s->count; i = end) {
        size_t len = argumentSize(s, i, &end);
        size += headerSize(len) + len + 2;
    }
    return size;
}

static void writeFormat(const formatState *s, char *to) {
    size_t end;
    to = writeHeader(to, '*', (size_t)s->argc);
    for (size_t i = 0; i < s->count; i = end) {
        to = writeHeader(to, '$', argumentSize(s, i, &end));
        for (size_t j = i; j < end; j++) {
            const piece *p = &s->pieces[j];
            to = writeBytes(to, p->ptr ? p->ptr : s->numbers + p->offset, p->len);
        }
        to = writeBytes(to, "\r\n", 2);
    }
}

/* Encodes into the text `*text`, or into a new block in `*block`. */
static long long encodeFormat(char **text, char **block, const char *format, va_list ap) {
    formatState s;
    s.at = format;
    s.argc = 0;
    s.inside = false;
    s.pieces = s.pieces_inside;
    s.count = 0;
    s.capacity = PIECES_INSIDE;
    s.numbers = s.numbers_inside;
    s.numbers_len = 0;
    s.numbers_cap = NUMBERS_INSIDE;

    va_list copy;
    va_copy(copy, ap);
    long long result = readFormat(&s, &copy);
    va_end(copy);
    if (result != 1) goto done;
    size_t size = formatSize(&s);
    result = -1;
    if (block) {
        if (size >= INT_MAX || !(*block = vk_malloc(size + 1))) goto done;
        writeFormat(&s, *block);
        (*block)[size] = '\0';
    } else {
        size_t old = vkTextLen(*text);
        if (!vkTextReserve(text, size)) goto done;
        writeFormat(&s, *text + old);
        vkTextSetLen(*text, old + size);
    }
    result = (long long)size;
done:
    formatClear(&s);
    return result;
}

long long vkAppendFormat(char **text, const char *format, va_list ap) {
    return encodeFormat(text, NULL, format, ap);
}

int valkeyvFormatCommand(char **target, const char *format, va_list ap) {
    if (!target || !format) return -1;
    return (int)encodeFormat(NULL, target, format, ap);
}

int valkeyFormatCommand(char **target, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int len = valkeyvFormatCommand(target, format, ap);
    va_end(ap);
    return len < 0 ? -1 : len;
}

/* ------------------------------------------------------------------ reading encoded commands */

/* Reads `type`, digits, CRLF at the cursor. */
static bool readHeader(vkCommandCursor *cursor, char type, long long *value) {
    const char *p = cursor->at;
    if (p == cursor->end || *p++ != type) return false;
    const char *digits = p;
    *value = 0;
    for (; p < cursor->end && isdigit((unsigned char)*p); p++) {
        if (*value > INT_MAX) return false;
        *value = *value * 10 + (*p - '0');
    }
    if (p == digits || cursor->end - p < 2 || p[0] != '\r' || p[1] != '\n') return false;
    cursor->at = p + 2;
    return true;
}

bool vkCommandOpen(vkCommandCursor *cursor, const char *cmd, size_t len) {
    if (!cmd) return false;
    *cursor = (vkCommandCursor){.at = cmd, .end = cmd + len};
    return readHeader(cursor, '*', &cursor->left);
}

bool vkCommandNext(vkCommandCursor *cursor, vkArg *arg) {
    long long len;
    if (cursor->left <= 0 || !readHeader(cursor, '$', &len)) return false;
    if (cursor->end - cursor->at < len + 2) return false;
    if (cursor->at[len] != '\r' || cursor->at[len + 1] != '\n') return false;
    *arg = (vkArg){cursor->at, (size_t)len};
    cursor->at += len + 2;
    cursor->left--;
    return true;
}

bool vkIsOneCommand(const char *cmd, size_t len) {
    vkCommandCursor cursor;
    vkArg arg;
    if (!vkCommandOpen(&cursor, cmd, len) || cursor.left == 0) return false;
    while (vkCommandNext(&cursor, &arg)) {}
    return cursor.left == 0 && cursor.at == cursor.end;
}

bool vkArgIs(vkArg arg, const char *word) {
    return strlen(word) == arg.len && strncasecmp(arg.ptr, word, arg.len) == 0;
}

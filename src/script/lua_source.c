/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Source text before it is compiled. LuaJIT differs from Lua 5.1 in two ways that would be visible:
 * - "return f(x)" drops the caller's frame also if f is a function in C, so an error in f has no line. For calls of the
 *   server's functions, which return one value, it becomes "return (f(x))", which keeps the frame.
 * - It has integer literals such as 5LL, which are of a type of their own; they are refused.
 * Lines are not changed. Cost: one pass over the tokens. */
#include "base/base.h"
#include "base/bytes.h"
#include "script/lua_priv.h"

typedef struct scanner {
    const char *at, *end;
    int line;
    slice token;
    enum { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_OTHER } kind;
} scanner;

static bool isWordStart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static char peek(const scanner *s, size_t ahead) {
    return (size_t)(s->end - s->at) > ahead ? s->at[ahead] : 0;
}

static void skip(scanner *s) {
    if (*s->at == '\n') s->line++;
    s->at++;
}

/* At "[[" or "[==[": skips to the end of the long string. False: there is none here. */
static bool skipLong(scanner *s) {
    size_t level = 0;
    while (peek(s, 1 + level) == '=') level++;
    if (peek(s, 1 + level) != '[') return false;
    for (size_t i = 0; i < level + 2; i++) skip(s);
    while (s->at < s->end) {
        size_t match = 0;
        if (*s->at == ']') {
            while (peek(s, 1 + match) == '=') match++;
            if (match == level && peek(s, 1 + match) == ']') {
                s->at += level + 2;
                return true;
            }
        }
        skip(s);
    }
    return true;
}

static void skipQuoted(scanner *s) {
    char quote = *s->at;
    skip(s);
    while (s->at < s->end && *s->at != quote && *s->at != '\n') {
        if (*s->at == '\\' && s->at + 1 < s->end) skip(s);
        skip(s);
    }
    if (s->at < s->end && *s->at == quote) s->at++;
}

/* Skips blanks and comments. */
static void skipSpace(scanner *s) {
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '-' && peek(s, 1) == '-') {
            s->at += 2;
            if (s->at < s->end && *s->at == '[' && skipLong(s)) continue;
            while (s->at < s->end && *s->at != '\n') s->at++;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            skip(s);
        } else {
            return;
        }
    }
}

static void next(scanner *s) {
    skipSpace(s);
    const char *from = s->at;
    if (s->at == s->end) {
        s->kind = TOKEN_END;
    } else if (isWordStart(*s->at)) {
        s->kind = TOKEN_WORD;
        while (s->at < s->end && (isWordStart(*s->at) || isDigit(*s->at))) s->at++;
    } else if (isDigit(*s->at) || (*s->at == '.' && isDigit(peek(s, 1)))) {
        s->kind = TOKEN_NUMBER;
        while (s->at < s->end) {
            char last = (char)byteFold(*s->at);
            if (!isWordStart(*s->at) && !isDigit(*s->at) && *s->at != '.') break;
            s->at++;
            bool exponent = last == 'e' && (char)byteFold(from[1]) != 'x';
            if (exponent && s->at < s->end && (*s->at == '-' || *s->at == '+')) s->at++;
        }
    } else if (*s->at == '"' || *s->at == '\'') {
        s->kind = TOKEN_STRING;
        skipQuoted(s);
    } else if (*s->at == '[' && skipLong(s)) {
        s->kind = TOKEN_STRING;
    } else {
        s->kind = TOKEN_OTHER;
        s->at++;
    }
    s->token = sliceMake(from, (size_t)(s->at - from));
}

static bool is(const scanner *s, const char *text) {
    return sliceEqual(s->token, sliceOf(text)) && s->kind != TOKEN_STRING;
}

static bool isAny(const scanner *s, const char *const *words) {
    for (; *words; words++) {
        if (is(s, *words)) return true;
    }
    return false;
}

/* After "return": true for the name of a function that returns at most one value; the scanner is at its "(". */
static bool scanName(scanner *s) {
    static const char *const tables[] = {"redis", "server", "cjson", "struct",    "bit", "math",
                                         "os",    "string", "table", "coroutine", NULL};
    static const char *const functions[] = {"error",        "tonumber",     "tostring",
                                            "type",         "rawget",       "rawequal",
                                            "getmetatable", "setmetatable", NULL};
    bool plain = isAny(s, functions);
    if (s->kind != TOKEN_WORD || (!plain && !isAny(s, tables))) return false;
    next(s);
    if (!plain) {
        if (!is(s, ".")) return false;
        next(s);
        if (s->kind != TOKEN_WORD) return false;
        static const char *const several[] = {"unpack",  "frexp",    "modf",   "byte",    "find",
                                              "match",   "gsub",     "resume", "running", "yield",
                                              "foreach", "foreachi", NULL};
        if (isAny(s, several)) return false;
        next(s);
    }
    return is(s, "(");
}

/* At "(": moves after the matching one; false if there is none. */
static bool skipParentheses(scanner *s) {
    int depth = 0;
    for (; s->kind != TOKEN_END; next(s)) {
        if (is(s, "(")) depth++;
        if (is(s, ")") && --depth == 0) {
            next(s);
            return true;
        }
    }
    return false;
}

/* True if the scanner is where a block ends. */
static bool atBlockEnd(const scanner *s) {
    static const char *const ends[] = {"end", "else", "elseif", "until", ";", NULL};
    return s->kind == TOKEN_END || isAny(s, ends);
}

typedef struct insertion {
    const char *at;
    char byte;
} insertion;

typedef struct insertions {
    insertion *list;
    size_t count, cap;
} insertions;

static void insert(insertions *all, const char *at, char byte) {
    if (all->count == all->cap) {
        all->cap = all->cap ? all->cap * 2 : 16;
        all->list = memRealloc(all->list, all->cap * sizeof(*all->list));
    }
    all->list[all->count++] = (insertion){at, byte};
}

static int compareInsertions(const void *a, const void *b) {
    const insertion *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return 0;
}

/* The scanner is after "return": adds parentheses if what follows is such a call. */
static void wrapCall(const scanner *after_return, insertions *all) {
    scanner s = *after_return;
    next(&s);
    const char *from = s.token.ptr;
    if (!scanName(&s)) return;
    /* The end of the last token before `to` is where its parenthesis is. */
    scanner closing = s;
    if (!skipParentheses(&s) || !atBlockEnd(&s)) return;
    const char *to = NULL;
    for (int depth = 0; !to; next(&closing)) {
        if (is(&closing, "(")) depth++;
        if (is(&closing, ")") && --depth == 0) to = closing.at;
    }
    insert(all, from, '(');
    insert(all, to, ')');
}

/* LuaJIT's suffixes of integers and imaginary numbers. */
static bool isForeignNumber(slice token) {
    char last = (char)byteFold(token.ptr[token.len - 1]);
    if (last == 'i') return true;
    return last == 'l' || last == 'u';
}

static void appendWith(str *out, slice code, insertions *all) {
    if (all->count) qsort(all->list, all->count, sizeof(*all->list), compareInsertions);
    const char *from = code.ptr;
    for (size_t i = 0; i < all->count; i++) {
        strAppend(out, from, (size_t)(all->list[i].at - from));
        strAppendByte(out, all->list[i].byte);
        from = all->list[i].at;
    }
    strAppend(out, from, (size_t)(code.ptr + code.len - from));
}

bool luaSourcePrepare(slice code, const char *name, str *out, str *error) {
    if (!name) name = "[string]";
    if (code.len && code.ptr[0] == '\033') {
        strAppendFormat(error, "%s:1: unexpected symbol near 'char(27)'", name);
        return false;
    }
    scanner s = {.at = code.ptr, .end = code.ptr + code.len, .line = 1};
    insertions all = {NULL, 0, 0};
    bool valid = true;
    for (next(&s); s.kind != TOKEN_END && valid; next(&s)) {
        if (is(&s, "return")) wrapCall(&s, &all);
        if (s.kind == TOKEN_NUMBER && isForeignNumber(s.token)) {
            strAppendFormat(error, "%s:%d: malformed number near '%.*s'", name, s.line,
                            (int)sizeMin(s.token.len, 40), s.token.ptr);
            valid = false;
        }
    }
    strReserve(out, 1);
    if (valid) appendWith(out, code, &all);
    memFree(all.list);
    return valid;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * JSON to Lua values: recursive descent over tokens. Each token counts as a step. Invariant: a
 * parse function leaves exactly one value on the stack. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bytes.h"
#include "script/lua_json.h"

typedef enum tokenKind {
    TOKEN_OBJ_BEGIN,
    TOKEN_OBJ_END,
    TOKEN_ARR_BEGIN,
    TOKEN_ARR_END,
    TOKEN_STRING,
    TOKEN_NUMBER,
    TOKEN_BOOLEAN,
    TOKEN_NULL,
    TOKEN_COLON,
    TOKEN_COMMA,
    TOKEN_END,
    TOKEN_ERROR,
} tokenKind;

static const char *const token_names[] = {"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END",
                                          "T_STRING",    "T_NUMBER",  "T_BOOLEAN",   "T_NULL",
                                          "T_COLON",     "T_COMMA",   "T_END",       "T_ERROR"};

typedef struct decoder {
    lua_State *L;
    luaVm *vm;
    const jsonSettings *set;
    const char *from, *at, *end;
    int depth;
    /* The current token. */
    tokenKind kind;
    const char *token_at;
    const char *error; /* TOKEN_ERROR */
    slice text;        /* TOKEN_STRING: in the source, or in `unescaped` */
    double number;
    bool yes;
} decoder;

static str unescaped; /* the current string, if it has escapes; reused */

static int fail(decoder *d, const char *expected) {
    return luaL_error(d->L, "Expected %s but found %s at character %d", expected,
                      d->kind == TOKEN_ERROR ? d->error : token_names[d->kind],
                      (int)(d->token_at - d->from + 1));
}

static void setError(decoder *d, const char *text, const char *at) {
    d->kind = TOKEN_ERROR;
    d->error = text;
    d->token_at = at;
}

/* ------------------------------------------------------------------ strings */

static int hexValue(const char *at, const char *end) {
    if (end - at < 4) return -1;
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hexDigit(at[i]);
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

static void appendUtf8(int code) {
    char out[4];
    size_t len;
    if (code < 0x80) {
        out[0] = (char)code;
        len = 1;
    } else if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        len = 2;
    } else if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        len = 3;
    } else {
        out[0] = (char)(0xf0 | code >> 18);
        out[1] = (char)(0x80 | (code >> 12 & 0x3f));
        out[2] = (char)(0x80 | (code >> 6 & 0x3f));
        out[3] = (char)(0x80 | (code & 0x3f));
        len = 4;
    }
    strAppend(&unescaped, out, len);
}

/* At the "u" of an escape: appends the character, moves to its last byte. */
static bool takeUnicode(decoder *d) {
    int code = hexValue(d->at + 1, d->end);
    if (code < 0) return false;
    d->at += 4;
    if ((code & 0xf800) == 0xd800) {
        if (code & 0x400) return false; /* the second half of a pair comes first */
        if (d->end - d->at < 7 || d->at[1] != '\\' || d->at[2] != 'u') return false;
        int low = hexValue(d->at + 3, d->end);
        if ((low & 0xfc00) != 0xdc00) return false;
        code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
        d->at += 6;
    }
    appendUtf8(code);
    return true;
}

/* At a backslash: appends what it stands for, moves after it. */
static bool takeEscape(decoder *d) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *start = d->at++;
    char c = d->at < d->end ? *d->at : 0;
    if (c == 'u') {
        if (!takeUnicode(d)) {
            setError(d, "invalid unicode escape code", start);
            return false;
        }
    } else {
        const char *known = c ? strchr(from, c) : NULL;
        if (!known) {
            setError(d, "invalid escape code", start);
            return false;
        }
        strAppendByte(&unescaped, to[known - from]);
    }
    d->at++;
    return true;
}

static void nextString(decoder *d) {
    const char *start = ++d->at;
    while (d->at < d->end && *d->at != '"' && *d->at != '\\') d->at++;
    d->kind = TOKEN_STRING;
    d->text = sliceMake(start, (size_t)(d->at - start));
    luaVmStep(d->L, d->vm, (uint32_t)(d->text.len / 256));
    if (d->at < d->end && *d->at == '\\') {
        strClear(&unescaped);
        strAppendSlice(&unescaped, d->text);
        while (d->at < d->end && *d->at != '"') {
            if (*d->at == '\\') {
                if (!takeEscape(d)) return;
            } else {
                start = d->at;
                while (d->at < d->end && *d->at != '"' && *d->at != '\\') d->at++;
                strAppend(&unescaped, start, (size_t)(d->at - start));
            }
        }
        d->text = strSlice(&unescaped);
    }
    if (d->at == d->end) {
        setError(d, "unexpected end of string", d->end);
        return;
    }
    d->at++;
}

/* ------------------------------------------------------------------ numbers */

/* Texts that strtod() accepts and JSON does not. */
static bool isInvalidNumber(const char *p) {
    if (*p == '+') return true;
    if (*p == '-') p++;
    if (*p == '0') {
        char c = (char)byteFold(p[1]);
        return c == 'x' || (c >= '0' && c <= '9');
    }
    if (*p >= '0' && *p <= '9') return false;
    return true;
}

static void nextNumber(decoder *d) {
    if (!d->set->decode_invalid && isInvalidNumber(d->at)) {
        setError(d, "invalid number", d->at);
        return;
    }
    const char *p = d->at;
    bool negative = *p == '-';
    int64_t value = 0;
    int digits = 0;
    for (p += negative; *p >= '0' && *p <= '9' && digits < 16; p++, digits++)
        value = value * 10 + (*p - '0');
    bool leading = digits > 0;
    int decimals = 0;
    if (*p == '.' && leading) {
        for (p++; *p >= '0' && *p <= '9' && digits < 16; p++, digits++, decimals++)
            value = value * 10 + (*p - '0');
    }
    char c = (char)byteFold(*p);
    bool whole = leading && digits < 16 && c != '.' && c != 'e' && c != 'x';
    if (whole && !(negative && value == 0)) {
        /* Both are exact, so the quotient is rounded once, as by strtod(). */
        static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
        d->number = (double)(negative ? -value : value) / powers[decimals];
        d->at = p;
    } else {
        char *end;
        d->number = strtod(d->at, &end);
        if (end == d->at) {
            setError(d, "invalid number", d->at);
            return;
        }
        d->at = end;
    }
    d->kind = TOKEN_NUMBER;
}

/* ------------------------------------------------------------------ tokens */

static bool takeWord(decoder *d, const char *word) {
    if (*d->at != *word) return false;
    size_t len = strlen(word);
    if ((size_t)(d->end - d->at) < len || memcmp(d->at, word, len) != 0) return false;
    d->at += len;
    return true;
}

static void nextWord(decoder *d) {
    char c = (char)byteFold(*d->at);
    if (takeWord(d, "true") || takeWord(d, "false")) {
        d->kind = TOKEN_BOOLEAN;
        d->yes = *d->token_at == 't';
    } else if (takeWord(d, "null")) {
        d->kind = TOKEN_NULL;
    } else if (d->set->decode_invalid && (c == 'i' || c == 'n')) {
        nextNumber(d); /* inf, nan */
        if (d->kind == TOKEN_ERROR) d->error = "invalid token";
    } else {
        setError(d, "invalid token", d->at);
    }
}

static void next(decoder *d) {
    luaVmStep(d->L, d->vm, 1);
    while (d->at < d->end && (*d->at == ' ' || *d->at == '\t' || *d->at == '\n' || *d->at == '\r'))
        d->at++;
    d->token_at = d->at;
    if (d->at == d->end) {
        d->kind = TOKEN_END;
        return;
    }
    tokenKind single = TOKEN_ERROR;
    switch (*d->at) {
    case '{': single = TOKEN_OBJ_BEGIN; break;
    case '}': single = TOKEN_OBJ_END; break;
    case '[': single = TOKEN_ARR_BEGIN; break;
    case ']': single = TOKEN_ARR_END; break;
    case ':': single = TOKEN_COLON; break;
    case ',': single = TOKEN_COMMA; break;
    case '"': nextString(d); return;
    default:
        if ((*d->at >= '0' && *d->at <= '9') || *d->at == '-' || *d->at == '+') {
            nextNumber(d);
        } else {
            nextWord(d);
        }
        return;
    }
    d->kind = single;
    d->at++;
}

/* ------------------------------------------------------------------ values */

static void parseValue(decoder *d);

static void descend(decoder *d) {
    if (luaStackIsLow(d->vm, LUA_STACK_RECURSION)) (void)luaRaiseStackOverflow(d->L);
    if (++d->depth <= d->set->decode_depth && lua_checkstack(d->L, 4)) return;
    (void)luaL_error(d->L, "Found too many nested data structures (%d) at character %d", d->depth,
                     (int)(d->token_at - d->from + 1));
}

static void parseObject(decoder *d) {
    lua_State *L = d->L;
    descend(d);
    lua_newtable(L);
    next(d);
    if (d->kind == TOKEN_OBJ_END) {
        d->depth--;
        return;
    }
    for (;;) {
        if (d->kind != TOKEN_STRING) (void)fail(d, "object key string");
        lua_pushlstring(L, d->text.ptr, d->text.len);
        next(d);
        if (d->kind != TOKEN_COLON) (void)fail(d, "colon");
        next(d);
        parseValue(d);
        lua_rawset(L, -3);
        next(d);
        if (d->kind == TOKEN_OBJ_END) break;
        if (d->kind != TOKEN_COMMA) (void)fail(d, "comma or object end");
        next(d);
    }
    d->depth--;
}

static void parseArray(decoder *d) {
    lua_State *L = d->L;
    descend(d);
    lua_newtable(L);
    next(d);
    if (d->kind == TOKEN_ARR_END) {
        d->depth--;
        return;
    }
    for (int i = 1;; i++) {
        parseValue(d);
        lua_rawseti(L, -2, i);
        next(d);
        if (d->kind == TOKEN_ARR_END) break;
        if (d->kind != TOKEN_COMMA) (void)fail(d, "comma or array end");
        next(d);
    }
    d->depth--;
}

/* The value that begins with the current token. */
static void parseValue(decoder *d) {
    switch (d->kind) {
    case TOKEN_STRING: lua_pushlstring(d->L, d->text.ptr, d->text.len); break;
    case TOKEN_NUMBER: lua_pushnumber(d->L, d->number); break;
    case TOKEN_BOOLEAN: lua_pushboolean(d->L, d->yes); break;
    case TOKEN_NULL: lua_pushlightuserdata(d->L, NULL); break;
    case TOKEN_OBJ_BEGIN: parseObject(d); break;
    case TOKEN_ARR_BEGIN: parseArray(d); break;
    default: (void)fail(d, "value");
    }
}

int jsonDecode(lua_State *L) {
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    if (len >= 2 && (!text[0] || !text[1]))
        return luaL_error(L, "JSON parser does not support UTF-16 or UTF-32");
    decoder d = {.L = L,
                 .vm = luaVmOf(L),
                 .set = jsonSettingsOf(L),
                 .from = text,
                 .at = text,
                 .end = text + strnlen(text, len)}; /* as in Valkey, a NUL ends the text */
    next(&d);
    parseValue(&d);
    next(&d);
    if (d.kind != TOKEN_END) (void)fail(&d, "the end");
    return 1;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table `cjson`: its settings, and JSON from Lua values. The text is built in one buffer that
 * is reused, so an error in between leaks nothing. Each value counts as a step. */
#include "script/lua_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"

enum { BUFFER_KEPT_MAX = 1 << 16, BUFFER_LEAST = 1024 };

/* ------------------------------------------------------------------ encode */

typedef struct encoder {
    lua_State *L;
    luaVm *vm;
    const jsonSettings *set;
    int depth;
    char *at, *end; /* the rest of the buffer */
} encoder;

static str buffer; /* of the text being built; its length is not kept up to date */

static NO_INLINE void growBuffer(encoder *e, size_t need) {
    buffer.len = (size_t)(e->at - buffer.ptr);
    luaCheckGrowth(e->L, &buffer, need);
    e->at = strReserve(&buffer, need);
    e->end = buffer.ptr + buffer.cap;
}

/* Room for `need` bytes at e->at. */
static inline void room(encoder *e, size_t need) {
    if (unlikely((size_t)(e->end - e->at) < need)) growBuffer(e, need);
}

static inline void addByte(encoder *e, char byte) {
    room(e, 1);
    *e->at++ = byte;
}

static void addText(encoder *e, const char *text) {
    size_t len = strlen(text);
    room(e, len);
    memcpy(e->at, text, len);
    e->at += len;
}

static int refuse(encoder *e, int index, const char *why) {
    return luaL_error(e->L, "Cannot serialise %s: %s", luaL_typename(e->L, index), why);
}

static bool isPlain(unsigned char c) {
    return likely(c >= 32 && c != '"' && c != '\\' && c != '/' && c != 127);
}

static void addString(encoder *e, slice text) {
    static const char hex[] = "0123456789abcdef";
    room(e, text.len * 6 + 2);
    char *at = e->at;
    *at++ = '"';
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (isPlain(c)) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '\\';
        switch (c) {
        case '"':
        case '\\':
        case '/': *at++ = (char)c; break;
        case '\b': *at++ = 'b'; break;
        case '\f': *at++ = 'f'; break;
        case '\n': *at++ = 'n'; break;
        case '\r': *at++ = 'r'; break;
        case '\t': *at++ = 't'; break;
        default:
            memcpy(at, "u00", 3);
            at[3] = hex[c >> 4];
            at[4] = hex[c & 15];
            at += 5;
        }
    }
    *at++ = '"';
    e->at = at;
}

/* Prints a number with at most four decimals and 13 digits, as printf() prints it with 14 digits:
 * it is the nearest one to that decimal number, which has fewer digits than a double can tell
 * apart. Returns 0 for others. */
static size_t printShort(char *to, double n) {
    enum { SCALE = 10000 };
    double scaled = n * SCALE;
    if (!(fabs(scaled) < 1e13)) return 0;
    int64_t whole = (int64_t)scaled;
    if ((double)whole != scaled || (double)whole / SCALE != n || whole == 0) return 0;
    char *at = to;
    if (whole < 0) {
        *at++ = '-';
        whole = -whole;
    }
    at += numberPrintInt(at, whole / SCALE);
    int rest = (int)(whole % SCALE);
    if (!rest) return (size_t)(at - to);
    *at++ = '.';
    for (int unit = SCALE / 10; rest; rest %= unit, unit /= 10) *at++ = (char)('0' + rest / unit);
    return (size_t)(at - to);
}

/* Prints a number from 0.0001 to 1e13 as printf("%.14g") does. Returns 0 for others, and where a
 * rounding error could matter: the power of ten is exact in a long double, so the product has a
 * single one, far below the limit used here. */
static size_t printFourteenDigits(char *to, double n) {
    enum { DIGITS = 14 };
    static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,
                                         1e6L,  1e7L,  1e8L,  1e9L,  1e10L, 1e11L,
                                         1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L};
    long double size = fabsl((long double)n);
    if (!(size >= 1e-4L && size < 1e13L)) return 0;
    int exponent = 0; /* of the first digit */
    while (size >= powers[exponent + 1]) exponent++;
    while (size * powers[-(exponent < 0 ? exponent : 0)] < 1) exponent--;
    long double scaled = size * powers[DIGITS - 1 - exponent];
    int64_t digits = (int64_t)scaled;
    long double rest = scaled - (long double)digits;
    if (fabsl(rest - 0.5L) < 0.001L) return 0;
    digits += rest > 0.5L;
    char text[NUMBER_TEXT_MAX];
    if (numberPrintInt(text, digits) != DIGITS) return 0; /* rounded up to a power of ten */
    int len = DIGITS;
    while (text[len - 1] == '0') len--;
    char *at = to;
    if (n < 0) *at++ = '-';
    if (exponent < 0) {
        memcpy(at, "0.0000", 6);
        at += 1 - exponent; /* "0." and the zeros */
        memcpy(at, text, (size_t)len);
        return (size_t)(at + len - to);
    }
    int whole = exponent + 1;
    memcpy(at, text, (size_t)whole);
    at += whole;
    if (len <= whole) return (size_t)(at - to);
    *at++ = '.';
    memcpy(at, text + whole, (size_t)(len - whole));
    return (size_t)(at + len - whole - to);
}

static void addNumber(encoder *e, int index) {
    double n = lua_tonumber(e->L, index);
    if (!isfinite(n)) {
        if (e->set->encode_invalid == JSON_INVALID_REFUSED)
            (void)refuse(e, index, "must not be NaN or Inf");
        if (e->set->encode_invalid == JSON_INVALID_NULL) {
            addText(e, "null");
            return;
        }
        addText(e, isnan(n) ? "nan" : n > 0 ? "inf" : "-inf");
        return;
    }
    room(e, NUMBER_TEXT_MAX);
    size_t len = 0;
    if (likely(e->set->precision == JSON_PRECISION_MAX)) {
        len = printShort(e->at, n);
        if (!len) len = printFourteenDigits(e->at, n);
    }
    if (!len) len = (size_t)snprintf(e->at, NUMBER_TEXT_MAX, "%.*g", e->set->precision, n);
    e->at += len;
}

/* The length of the table on top as an array, holes included; -1: it is an object. */
static int arrayLength(encoder *e) {
    lua_State *L = e->L;
    int max = 0, count = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        double k = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        if (!(k >= 1) || k != floor(k)) {
            lua_pop(L, 2);
            return -1;
        }
        if (k > max) max = luaToInt(k); /* below 0, so an object, if it does not fit */
        count++;
        lua_pop(L, 1);
    }
    luaVmStep(L, e->vm, (uint32_t)count);
    const jsonSettings *set = e->set;
    if (set->sparse_ratio > 0 && (double)max > (double)count * set->sparse_ratio &&
        max > set->sparse_safe) {
        if (!set->sparse_convert) (void)refuse(e, -1, "excessively sparse array");
        return -1;
    }
    return max;
}

static void encodeValue(encoder *e);

static void encodeArray(encoder *e, int count) {
    addByte(e, '[');
    for (int i = 1; i <= count; i++) {
        if (i > 1) addByte(e, ',');
        lua_rawgeti(e->L, -1, i);
        encodeValue(e);
        lua_pop(e->L, 1);
    }
    addByte(e, ']');
}

static void encodeObject(encoder *e) {
    lua_State *L = e->L;
    bool first = true;
    addByte(e, '{');
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        if (!first) addByte(e, ',');
        first = false;
        if (lua_type(L, -2) == LUA_TNUMBER) {
            addByte(e, '"');
            addNumber(e, -2);
            addText(e, "\":");
        } else if (lua_type(L, -2) == LUA_TSTRING) {
            slice key;
            key.ptr = lua_tolstring(L, -2, &key.len);
            addString(e, key);
            addByte(e, ':');
        } else {
            (void)refuse(e, -2, "table key must be a number or string");
        }
        encodeValue(e);
        lua_pop(L, 1);
    }
    addByte(e, '}');
}

static void encodeTable(encoder *e) {
    if (luaStackIsLow(e->vm, LUA_STACK_RECURSION)) (void)luaRaiseStackOverflow(e->L);
    if (++e->depth > e->set->encode_depth || !lua_checkstack(e->L, 4))
        (void)luaL_error(e->L, "Cannot serialise, excessive nesting (%d)", e->depth);
    bool behind = luaPushBehindProxy(e->L, lua_gettop(e->L));
    int count = arrayLength(e);
    if (count > 0) {
        encodeArray(e, count);
    } else {
        encodeObject(e);
    }
    if (behind) lua_pop(e->L, 1);
    e->depth--;
}

/* The value on top of the stack, which stays there. */
static void encodeValue(encoder *e) {
    lua_State *L = e->L;
    luaVmStep(L, e->vm, 1);
    switch (lua_type(L, -1)) {
    case LUA_TSTRING: {
        slice text;
        text.ptr = lua_tolstring(L, -1, &text.len);
        addString(e, text);
        break;
    }
    case LUA_TNUMBER: addNumber(e, -1); break;
    case LUA_TBOOLEAN: addText(e, lua_toboolean(L, -1) ? "true" : "false"); break;
    case LUA_TTABLE: encodeTable(e); break;
    case LUA_TNIL: addText(e, "null"); break;
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(L, -1)) {
            addText(e, "null");
            break;
        }
        /* fallthrough */
    default: (void)refuse(e, -1, "type not supported");
    }
}

int jsonEncode(lua_State *L) {
    luaL_argcheck(L, lua_gettop(L) == 1, 1, "expected 1 argument");
    encoder e = {.L = L, .vm = luaVmOf(L), .set = jsonSettingsOf(L)};
    buffer.len = 0;
    e.at = strReserve(&buffer, BUFFER_LEAST);
    e.end = buffer.ptr + buffer.cap;
    encodeValue(&e);
    lua_pushlstring(L, buffer.ptr, (size_t)(e.at - buffer.ptr));
    if (buffer.cap > BUFFER_KEPT_MAX) strFree(&buffer);
    return 1;
}

/* ------------------------------------------------------------------ settings */

/* Sets *value to argument `arg` if it is given, and pushes it. */
static int settingNumber(lua_State *L, int arg, int *value, int min, int max) {
    if (!lua_isnoneornil(L, arg)) {
        ptrdiff_t wanted = luaL_checkinteger(L, arg);
        if (wanted < min || wanted > max) {
            const char *text = lua_pushfstring(L, "expected integer between %d and %d", min, max);
            return luaL_argerror(L, arg, text);
        }
        *value = (int)wanted;
    }
    lua_pushinteger(L, *value);
    return 1;
}

static int settingFlag(lua_State *L, int arg, bool *value) {
    static const char *const names[] = {"off", "on", NULL};
    if (lua_isboolean(L, arg)) {
        *value = lua_toboolean(L, arg);
    } else if (!lua_isnoneornil(L, arg)) {
        *value = luaL_checkoption(L, arg, NULL, names);
    }
    lua_pushboolean(L, *value);
    return 1;
}

static void argumentsMax(lua_State *L, int max) {
    luaL_argcheck(L, lua_gettop(L) <= max, max + 1, "found too many arguments");
    lua_settop(L, max);
}

static int setSparse(lua_State *L) {
    argumentsMax(L, 3);
    jsonSettings *set = jsonSettingsOf(L);
    (void)settingFlag(L, 1, &set->sparse_convert);
    (void)settingNumber(L, 2, &set->sparse_ratio, 0, INT32_MAX);
    (void)settingNumber(L, 3, &set->sparse_safe, 0, INT32_MAX);
    return 3;
}

static int setEncodeDepth(lua_State *L) {
    argumentsMax(L, 1);
    return settingNumber(L, 1, &jsonSettingsOf(L)->encode_depth, 1, INT32_MAX);
}

static int setDecodeDepth(lua_State *L) {
    argumentsMax(L, 1);
    return settingNumber(L, 1, &jsonSettingsOf(L)->decode_depth, 1, INT32_MAX);
}

static int setPrecision(lua_State *L) {
    argumentsMax(L, 1);
    return settingNumber(L, 1, &jsonSettingsOf(L)->precision, 1, JSON_PRECISION_MAX);
}

static int setKeepBuffer(lua_State *L) {
    argumentsMax(L, 1);
    return settingFlag(L, 1, &jsonSettingsOf(L)->keep_buffer);
}

static int setEncodeInvalid(lua_State *L) {
    static const char *const names[] = {"off", "on", "null", NULL};
    argumentsMax(L, 1);
    jsonSettings *set = jsonSettingsOf(L);
    if (lua_isboolean(L, 1)) {
        set->encode_invalid = lua_toboolean(L, 1);
    } else if (!lua_isnil(L, 1)) {
        set->encode_invalid = luaL_checkoption(L, 1, NULL, names);
    }
    if (set->encode_invalid == JSON_INVALID_NULL) {
        lua_pushliteral(L, "null");
    } else {
        lua_pushboolean(L, set->encode_invalid);
    }
    return 1;
}

static int setDecodeInvalid(lua_State *L) {
    argumentsMax(L, 1);
    return settingFlag(L, 1, &jsonSettingsOf(L)->decode_invalid);
}

/* ------------------------------------------------------------------ the table */

static int newInstance(lua_State *L) {
    luaOpenJson(L);
    return 1;
}

void luaOpenJson(lua_State *L) {
    static const luaL_Reg functions[] = {{"encode", jsonEncode},
                                         {"decode", jsonDecode},
                                         {"encode_sparse_array", setSparse},
                                         {"encode_max_depth", setEncodeDepth},
                                         {"decode_max_depth", setDecodeDepth},
                                         {"encode_number_precision", setPrecision},
                                         {"encode_keep_buffer", setKeepBuffer},
                                         {"encode_invalid_numbers", setEncodeInvalid},
                                         {"decode_invalid_numbers", setDecodeInvalid},
                                         {"new", newInstance},
                                         {NULL, NULL}};
    lua_newtable(L);
    jsonSettings *set = lua_newuserdata(L, sizeof(*set));
    *set = (jsonSettings){.encode_depth = JSON_DEPTH_DEFAULT,
                          .decode_depth = JSON_DEPTH_DEFAULT,
                          .precision = JSON_PRECISION_MAX,
                          .sparse_ratio = 2,
                          .sparse_safe = 10,
                          .decode_invalid = true,
                          .keep_buffer = true};
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushvalue(L, -1);
        lua_pushcclosure(L, f->func, 1);
        lua_setfield(L, -3, f->name);
    }
    lua_pop(L, 1);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_pushliteral(L, "cjson");
    lua_setfield(L, -2, "_NAME");
    lua_pushliteral(L, "2.1.0");
    lua_setfield(L, -2, "_VERSION");
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of `string` and `math` that replace the interpreter's: those that may take long, whose
 * steps are counted, and the generator of math.random. */
#define _GNU_SOURCE /* for memmem() */
#include <ctype.h>
#include <stdio.h>
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "script/lua_pattern.h"

static const size_t RESULT_MAX = 0x7fffff00; /* longest string of the interpreter */

/* ------------------------------------------------------------------ find, match, gmatch */

/* An index relative to the end if it is negative. */
static ptrdiff_t position(ptrdiff_t at, size_t len) {
    if (at < 0) at += (ptrdiff_t)len + 1;
    return at >= 0 ? at : 0;
}

static patternMatch newMatch(lua_State *L, slice text, slice pattern) {
    patternMatch m;
    m.L = L;
    m.vm = luaVmOf(L);
    m.text = text.ptr;
    m.text_end = text.ptr + text.len;
    m.pattern_end = pattern.ptr + strnlen(pattern.ptr, pattern.len); /* as in Lua 5.1 */
    m.depth = m.captures = 0;
    return m;
}

static slice checkSlice(lua_State *L, int index) {
    slice s;
    s.ptr = luaL_checklstring(L, index, &s.len);
    return s;
}

static bool hasSpecials(slice pattern) {
    for (size_t i = 0; i < pattern.len; i++) {
        if (!pattern.ptr[i]) return false;
        if (strchr("^$*+?.([%-", pattern.ptr[i])) return true;
    }
    return false;
}

static int findPlain(lua_State *L, slice text, slice pattern, size_t from) {
    const char *found = text.ptr + from;
    if (pattern.len) found = memmem(text.ptr + from, text.len - from, pattern.ptr, pattern.len);
    luaVmStep(L, luaVmOf(L), (uint32_t)sizeMin(text.len / 256, UINT32_MAX));
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - text.ptr + 1);
    lua_pushinteger(L, found - text.ptr + (ptrdiff_t)pattern.len);
    return 2;
}

static int search(lua_State *L, bool find) {
    slice text = checkSlice(L, 1), pattern = checkSlice(L, 2);
    ptrdiff_t init = position(luaL_optinteger(L, 3, 1), text.len) - 1;
    if (init < 0) init = 0;
    if ((size_t)init > text.len) init = (ptrdiff_t)text.len;
    if (find && (lua_toboolean(L, 4) || !hasSpecials(pattern)))
        return findPlain(L, text, pattern, (size_t)init);
    patternMatch m = newMatch(L, text, pattern);
    bool anchored = pattern.len && pattern.ptr[0] == '^';
    const char *p = pattern.ptr + anchored;
    const char *at = text.ptr + init;
    do {
        luaVmStep(L, m.vm, 1);
        const char *end = patternMatchAt(&m, at, p);
        if (end && find) {
            lua_pushinteger(L, at - text.ptr + 1);
            lua_pushinteger(L, end - text.ptr);
            return patternPushCaptures(&m, NULL, NULL) + 2;
        }
        if (end) return patternPushCaptures(&m, at, end);
    } while (at++ < m.text_end && !anchored);
    lua_pushnil(L);
    return 1;
}

static int stringFind(lua_State *L) { return search(L, true); }
static int stringMatch(lua_State *L) { return search(L, false); }

/* Upvalues: text, pattern, position of the next match. */
static int nextMatch(lua_State *L) {
    slice text, pattern;
    text.ptr = lua_tolstring(L, lua_upvalueindex(1), &text.len);
    pattern.ptr = lua_tolstring(L, lua_upvalueindex(2), &pattern.len);
    patternMatch m = newMatch(L, text, pattern);
    const char *at = text.ptr + lua_tointeger(L, lua_upvalueindex(3));
    for (; at <= m.text_end; at++) {
        luaVmStep(L, m.vm, 1);
        const char *end = patternMatchAt(&m, at, pattern.ptr);
        if (!end) continue;
        lua_pushinteger(L, end - text.ptr + (end == at));
        lua_replace(L, lua_upvalueindex(3));
        return patternPushCaptures(&m, at, end);
    }
    return 0;
}

static int stringGmatch(lua_State *L) {
    (void)checkSlice(L, 1);
    (void)checkSlice(L, 2);
    lua_settop(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, nextMatch, 3);
    return 1;
}

/* ------------------------------------------------------------------ gsub */

/* Appends the replacement text with its %1 ... */
static void addWithCaptures(patternMatch *m, luaL_Buffer *out, slice with, const char *from,
                            const char *to) {
    for (size_t i = 0; i < with.len; i++) {
        if (with.ptr[i] != '%') {
            luaL_addchar(out, with.ptr[i]);
            continue;
        }
        i++;
        char c = i < with.len ? with.ptr[i] : 0;
        if (c < '0' || c > '9') {
            luaL_addchar(out, c);
        } else if (c == '0') {
            luaL_addlstring(out, from, (size_t)(to - from));
        } else {
            patternPushCapture(m, c - '1', from, to);
            luaL_addvalue(out);
        }
    }
    luaVmStep(m->L, m->vm, (uint32_t)sizeMin(with.len, UINT32_MAX));
}

/* Appends what replaces the match [from, to); the replacement is argument 3. */
static void addReplacement(patternMatch *m, luaL_Buffer *out, const char *from, const char *to) {
    lua_State *L = m->L;
    switch (lua_type(L, 3)) {
    case LUA_TFUNCTION: {
        lua_pushvalue(L, 3);
        int count = patternPushCaptures(m, from, to);
        luaCallBack(L, m->vm, count, 1);
        break;
    }
    case LUA_TTABLE:
        patternPushCapture(m, 0, from, to);
        luaCheckCStack(L, m->vm);
        lua_gettable(L, 3);
        break;
    default: addWithCaptures(m, out, checkSlice(L, 3), from, to); return;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        lua_pushlstring(L, from, (size_t)(to - from));
    } else if (!lua_isstring(L, -1)) {
        (void)luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    }
    luaL_addvalue(out);
}

static int stringGsub(lua_State *L) {
    slice text = checkSlice(L, 1), pattern = checkSlice(L, 2);
    int type = lua_type(L, 3);
    ptrdiff_t max = (int)luaL_optinteger(L, 4, (ptrdiff_t)text.len + 1); /* as in Lua */
    luaL_argcheck(L,
                  type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION ||
                      type == LUA_TTABLE,
                  3, "string/function/table expected");
    bool anchored = pattern.len && pattern.ptr[0] == '^';
    const char *p = pattern.ptr + anchored, *at = text.ptr;
    if (type == LUA_TNUMBER) (void)lua_tolstring(L, 3, NULL); /* converted once, in place */
    patternMatch m = newMatch(L, text, pattern);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    ptrdiff_t count = 0;
    while (count < max) {
        luaVmStep(L, m.vm, 1);
        const char *end = patternMatchAt(&m, at, p);
        if (end) {
            count++;
            addReplacement(&m, &out, at, end);
        }
        if (end && end > at) {
            at = end;
        } else if (at < m.text_end) {
            luaL_addchar(&out, *at);
            at++;
        } else {
            break;
        }
        if (anchored) break;
    }
    if (at < m.text_end) luaL_addlstring(&out, at, (size_t)(m.text_end - at));
    luaL_pushresult(&out);
    lua_pushinteger(L, count);
    return 2;
}

/* ------------------------------------------------------------------ rep, lower, upper, reverse */

enum { PIECE = 1 << 20, BYTES_PER_STEP = 256 };

/* Memory for a result of `size` bytes, which is needed twice: to build it, and as a string. */
static char *newResult(lua_State *L, luaVm *vm, size_t size) {
    if (vm->used > vm->limit || size > (vm->limit - vm->used) / 2)
        (void)luaL_error(L, "not enough memory");
    return lua_newuserdata(L, size);
}

static int stringRep(lua_State *L) {
    slice text = checkSlice(L, 1);
    ptrdiff_t count = luaL_checkinteger(L, 2);
    if (count <= 0 || !text.len) {
        lua_pushliteral(L, "");
        return 1;
    }
    luaVm *vm = luaVmOf(L);
    size_t size;
    if (__builtin_mul_overflow((size_t)count, text.len, &size) || size > RESULT_MAX)
        return luaL_error(L, "resulting string too large");
    char *bytes = newResult(L, vm, size);
    memcpy(bytes, text.ptr, text.len);
    for (size_t done = text.len, len; done < size; done += len) {
        /* What is copied is whole texts, so what follows continues them. */
        size_t most = done < PIECE || text.len > PIECE ? done : PIECE - PIECE % text.len;
        len = sizeMin(sizeMin(done, most), size - done);
        memcpy(bytes + done, bytes, len);
        luaVmStep(L, vm, (uint32_t)(len / BYTES_PER_STEP));
    }
    lua_pushlstring(L, bytes, size);
    return 1;
}

/* Pushes argument 1, each byte changed. */
static int mapBytes(lua_State *L, int (*change)(int)) {
    slice text = checkSlice(L, 1);
    luaVm *vm = luaVmOf(L);
    char *bytes = newResult(L, vm, text.len);
    for (size_t i = 0; i < text.len; i++) {
        bytes[i] = (char)change((unsigned char)text.ptr[i]);
        if (unlikely(i % PIECE == PIECE - 1)) luaVmStep(L, vm, PIECE / BYTES_PER_STEP);
    }
    lua_pushlstring(L, bytes, text.len);
    return 1;
}

static int stringLower(lua_State *L) { return mapBytes(L, tolower); }
static int stringUpper(lua_State *L) { return mapBytes(L, toupper); }

static int stringReverse(lua_State *L) {
    slice text = checkSlice(L, 1);
    luaVm *vm = luaVmOf(L);
    char *bytes = newResult(L, vm, text.len);
    for (size_t i = 0; i < text.len; i++) {
        bytes[i] = text.ptr[text.len - 1 - i];
        if (unlikely(i % PIECE == PIECE - 1)) luaVmStep(L, vm, PIECE / BYTES_PER_STEP);
    }
    lua_pushlstring(L, bytes, text.len);
    return 1;
}

/* ------------------------------------------------------------------ format */

enum { SPEC_MAX = 24, ITEM_MAX = 512 };

/* Copies "%-5.2f" from after the "%" to `spec` without its conversion; returns its end. */
static const char *takeSpec(lua_State *L, const char *at, const char *end, char *spec) {
    const char *from = at;
    while (at < end && *at && strchr("-+ #0", *at)) at++;
    if (at - from > 5) (void)luaL_error(L, "invalid format (repeated flags)");
    for (int part = 0; part < 2; part++) {
        if (part && (at == end || *at != '.')) break;
        at += part;
        for (int digits = 0; digits < 2 && at < end && isdigit((unsigned char)*at); digits++) at++;
    }
    if (at < end && isdigit((unsigned char)*at))
        (void)luaL_error(L, "invalid format (width or precision too long)");
    size_t len = (size_t)(at - from);
    spec[0] = '%';
    memcpy(spec + 1, from, len);
    spec[1 + len] = 0;
    return at;
}

static void addQuoted(luaL_Buffer *out, slice text) {
    luaL_addchar(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '"' || c == '\\' || c == '\n') {
            luaL_addchar(out, '\\');
            luaL_addchar(out, c);
        } else if (c == '\r') {
            luaL_addlstring(out, "\\r", 2);
        } else if (c == '\0') {
            luaL_addlstring(out, "\\000", 4);
        } else {
            luaL_addchar(out, c);
        }
    }
    luaL_addchar(out, '"');
}

/* A string, whole if it is long and not padded or cut. */
static void addText(luaL_Buffer *out, const char *spec, slice text) {
    char item[ITEM_MAX];
    if (!strchr(spec, '.') && text.len >= 100) {
        luaL_addlstring(out, text.ptr, text.len);
        return;
    }
    char whole[SPEC_MAX + 4];
    (void)snprintf(whole, sizeof(whole), "%ss", spec); /* the specification is short */
    int len = snprintf(item, sizeof(item), whole, text.ptr);
    luaL_addlstring(out, item, (size_t)len);
}

/* Truncates; what does not fit becomes INT64_MIN. */
static long long toInteger(double n) {
    const double limit = 9223372036854775808.0; /* 2^63 */
    return n >= -limit && n < limit ? (long long)n : INT64_MIN;
}

/* One conversion of argument `arg`. */
static void addItem(lua_State *L, luaL_Buffer *out, const char *spec, char conversion, int arg) {
    char item[ITEM_MAX], whole[SPEC_MAX + 4]; /* a size and a conversion follow the specification */
    int len = 0;
    switch (conversion) {
    case 'c':
        (void)snprintf(whole, sizeof(whole), "%sc", spec);
        len = snprintf(item, sizeof(item), whole, luaToInt(luaL_checknumber(L, arg)));
        len = (int)strnlen(item, (size_t)len); /* as in Lua, a NUL is not added */
        break;
    case 'd':
    case 'i':
    case 'o':
    case 'u':
    case 'x':
    case 'X': {
        double n = luaL_checknumber(L, arg);
        (void)snprintf(whole, sizeof(whole), "%sll%c", spec, conversion);
        long long value = strchr("di", conversion) ? toInteger(n) : (long long)luaToBits64(n);
        len = snprintf(item, sizeof(item), whole, value);
        break;
    }
    case 'e':
    case 'E':
    case 'f':
    case 'g':
    case 'G':
        (void)snprintf(whole, sizeof(whole), "%s%c", spec, conversion);
        len = snprintf(item, sizeof(item), whole, luaL_checknumber(L, arg));
        break;
    case 'q': addQuoted(out, checkSlice(L, arg)); return;
    case 's': addText(out, spec, checkSlice(L, arg)); return;
    default: {
        const char text[] = {conversion, '\0'}; /* as in Lua, a NUL is not shown */
        (void)luaL_error(L, "invalid option '%%%s' to 'format'", text);
    }
    }
    luaL_addlstring(out, item, (size_t)len);
}

static int stringFormat(lua_State *L) {
    slice format = checkSlice(L, 1);
    const char *at = format.ptr, *end = format.ptr + format.len;
    int arg = 1, argc = lua_gettop(L);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    while (at < end) {
        char c = *at++;
        if (c != '%') {
            luaL_addchar(&out, c);
        } else if (at < end && *at == '%') {
            luaL_addchar(&out, *at++);
        } else {
            char spec[SPEC_MAX];
            if (++arg > argc) (void)luaL_argerror(L, arg, "no value");
            at = takeSpec(L, at, end, spec);
            addItem(L, &out, spec, at < end ? *at : 0, arg);
            at++;
        }
    }
    luaL_pushresult(&out);
    return 1;
}

void luaAddString(luaVm *vm) {
    static const luaL_Reg functions[] = {{"find", stringFind},
                                         {"match", stringMatch},
                                         {"gmatch", stringGmatch},
                                         {"gfind", stringGmatch},
                                         {"gsub", stringGsub},
                                         {"rep", stringRep},
                                         {"format", stringFormat},
                                         {"lower", stringLower},
                                         {"upper", stringUpper},
                                         {"reverse", stringReverse},
                                         {NULL, NULL}};
    luaSetFunctions(vm->L, functions);
}

/* ------------------------------------------------------------------ math */

/* State of the linear congruential generator of drand48(), so that scripts get the same numbers on
 * every platform. One sequence for the whole life of the server: scripts and functions share it,
 * and it goes on after SCRIPT FLUSH and FUNCTION FLUSH, which free their interpreters. Main
 * thread. */
static uint64_t random_state = UINT64_C(0x1234ABCD330E);

static uint32_t nextRandom(void) {
    hotCheck(threadIsMain());
    random_state = (random_state * UINT64_C(0x5DEECE66D) + 0xB) & ((UINT64_C(1) << 48) - 1);
    return (uint32_t)(random_state >> 17);
}

static void seedRandom(uint32_t seed) { random_state = (uint64_t)seed * 65536 + 0x330E; }

static int mathRandom(lua_State *L) {
    const uint32_t max = 0x7fffffff;
    double r = (double)(nextRandom() % max) / (double)max;
    int low = 1, high; /* as in Lua, longer ones lose their upper bits */
    switch (lua_gettop(L)) {
    case 0: lua_pushnumber(L, r); return 1;
    case 1:
        high = (int)luaL_checkinteger(L, 1);
        luaL_argcheck(L, high >= 1, 1, "interval is empty");
        break;
    case 2:
        low = (int)luaL_checkinteger(L, 1);
        high = (int)luaL_checkinteger(L, 2);
        luaL_argcheck(L, low <= high, 2, "interval is empty");
        break;
    default: return luaL_error(L, "wrong number of arguments");
    }
    int width = (int)((unsigned)high - (unsigned)low + 1);
    lua_pushnumber(L, floor(r * width) + low);
    return 1;
}

static int mathRandomseed(lua_State *L) {
    seedRandom((uint32_t)(int64_t)luaL_checknumber(L, 1));
    return 0;
}

void luaAddMath(luaVm *vm) {
    lua_State *L = vm->L;
    lua_pushcfunction(L, mathRandom);
    lua_setfield(L, -2, "random");
    lua_pushcfunction(L, mathRandomseed);
    lua_setfield(L, -2, "randomseed");
    lua_getfield(L, -1, "fmod");
    lua_setfield(L, -2, "mod");
}

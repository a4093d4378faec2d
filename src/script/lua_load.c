/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Source text to functions: scripts, libraries, load() and loadstring(). Lua gets the text in small
 * pieces, between which the script can be ended; what is compiled before a script runs may take
 * `busy-reply-threshold`. Compiled code is never loaded. Main thread only. */
#include <string.h>

#include "base/base.h"
#include "script/lua_priv.h"
#include "script/script_priv.h"

/* Lua counts the signs of a long bracket in an int, twice. */
static const size_t TEXT_MAX = (size_t)1 << 29;
enum { PIECE = 4096, STEPS_PER_PIECE = PIECE / 16 };

typedef struct source {
    luaVm *vm;
    slice rest;
    size_t seen;      /* bytes */
    int64_t until_us; /* 0: no end */
} source;

/* Passes on some of the rest. Compiled code begins with an escape: after a blank it is text, in
 * which it is an error. */
static const char *nextPiece(lua_State *L, void *state, size_t *len) {
    source *s = state;
    luaVmStep(L, s->vm, STEPS_PER_PIECE);
    if (s->until_us && clockMonoUs() > s->until_us)
        (void)luaL_error(L, "compilation takes too long");
    const char *piece = s->rest.ptr;
    *len = sizeMin(s->rest.len, PIECE);
    if (*len && s->seen == 0 && piece[0] == LUA_SIGNATURE[0]) {
        s->seen = *len = 1;
        return " ";
    }
    s->seen += *len;
    s->rest.ptr += *len;
    s->rest.len -= *len;
    return *len ? piece : NULL;
}

int luaLoadText(lua_State *L, slice code, const char *name, int64_t limit_ms) {
    hotCheck(threadIsMain());
    luaVm *vm = luaVmOf(L);
    source s = {.vm = vm, .rest = code};
    if (limit_ms) s.until_us = clockMonoUs() + limit_ms * 1000;
    if (luaStackIsLow(vm, LUA_STACK_COMMAND) || code.len > TEXT_MAX) {
        lua_pushstring(L, code.len > TEXT_MAX ? "chunk is too large" : "C stack overflow");
        return LUA_ERRSYNTAX;
    }
    return lua_load(L, nextPiece, &s, name);
}

/* What Lua's own functions return. */
static int loaded(lua_State *L, int st) {
    if (st == 0) return 1;
    luaNameOverflow(L, luaVmOf(L), st);
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
}

/* Pushes the name, because Lua does not keep its own copy from being collected while it compiles
 * (CVE-2025-49844). */
static const char *keepName(lua_State *L, const char *name) {
    lua_pushstring(L, name);
    return lua_tostring(L, -1);
}

int luaBaseLoadstring(lua_State *L) {
    hotCheck(threadIsMain());
    slice code;
    code.ptr = luaL_checklstring(L, 1, &code.len);
    const char *name = keepName(L, luaL_optstring(L, 2, code.ptr));
    return loaded(L, luaLoadText(L, code, name, 0));
}

/* ------------------------------------------------------------------ load() */

enum { AT_READER = 1, AT_PIECE = 3 };

/* Calls the function at AT_READER for text, which stays at AT_PIECE. */
static const char *readPiece(lua_State *L, void *state, size_t *len) {
    source *s = state;
    if (s->rest.len) return nextPiece(L, s, len);
    luaL_checkstack(L, 2, "too many nested functions");
    lua_pushvalue(L, AT_READER);
    luaCallBack(L, s->vm, 0, 1);
    *len = 0;
    if (lua_isnil(L, -1)) return NULL;
    if (!lua_isstring(L, -1)) (void)luaL_error(L, "reader function must return a string");
    lua_replace(L, AT_PIECE);
    s->rest.ptr = lua_tolstring(L, AT_PIECE, &s->rest.len);
    if (s->rest.len > TEXT_MAX - s->seen) (void)luaL_error(L, "chunk is too large");
    return nextPiece(L, s, len);
}

int luaBaseLoad(lua_State *L) {
    hotCheck(threadIsMain());
    const char *name = luaL_optstring(L, 2, "=(load)");
    luaL_checktype(L, AT_READER, LUA_TFUNCTION);
    luaVm *vm = luaVmOf(L);
    lua_settop(L, AT_PIECE);
    (void)keepName(L, name);
    source s = {.vm = vm};
    if (luaStackIsLow(vm, LUA_STACK_COMMAND)) return luaRaiseStackOverflow(L);
    return loaded(L, lua_load(L, readPiece, &s, name));
}

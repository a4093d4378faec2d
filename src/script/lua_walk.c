/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Proof of the sandbox, for builds with checks: walks everything that scripts can reach and finds
 * tables of the host that they could change. Scripts see through a proxy without reaching what is
 * behind it: its contents are walked, it is not reached itself. Upvalues and environments count as
 * reachable, of functions in C, too. */
#ifdef HOT_CHECKS
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "script/lua_priv.h"

typedef struct walk {
    lua_State *L;
    luaVm *vm;
    int seen;  /* index of a table: what was found, as keys */
    int queue; /* index of a table: what is still to be walked */
    int queued, done;
    int hosts; /* index of a table: the host's tables, as keys */
    const char *found;
} walk;

/* Queues the value on top, which is removed. */
static void visit(walk *w) {
    lua_State *L = w->L;
    int type = lua_type(L, -1);
    bool is_object =
        type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TTHREAD || type == LUA_TUSERDATA;
    if (is_object) {
        lua_pushvalue(L, -1);
        lua_rawget(L, w->hosts);
        if (!lua_isnil(L, -1)) w->found = "a table of the host";
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, w->seen);
        is_object = lua_isnil(L, -1);
        lua_pop(L, 1);
    }
    if (is_object) {
        lua_pushvalue(L, -1);
        lua_pushboolean(L, 1);
        lua_rawset(L, w->seen);
        lua_pushvalue(L, -1);
        lua_rawseti(L, w->queue, ++w->queued);
    }
    lua_pop(L, 1);
}

/* Visits the entries of the table at `index`. */
static void visitEntries(walk *w, int index) {
    lua_State *L = w->L;
    for (lua_pushnil(L); lua_next(L, index);) {
        visit(w);
        lua_pushvalue(L, -1);
        visit(w);
    }
}

static void walkTable(walk *w, int index) {
    lua_State *L = w->L;
    if (luaPushBehindProxy(L, index)) {
        lua_pushnil(L);
        if (lua_next(L, index)) {
            w->found = "a proxy with contents";
            lua_pop(L, 2);
        }
        visitEntries(w, lua_gettop(L));
        lua_pop(L, 1);
        return;
    }
    visitEntries(w, index);
    if (!lua_getmetatable(L, index)) return;
    if (luaPushProxyOfMeta(L, -1)) {
        if (!luaIsProxy(L, -1)) w->found = "a metatable of no proxy";
        visit(w);
        visitEntries(w, lua_gettop(L));
        lua_pop(L, 1);
    } else {
        visit(w);
    }
}

static void walkFunction(walk *w, int index) {
    lua_State *L = w->L;
    for (int i = 1; lua_getupvalue(L, index, i); i++) visit(w);
    lua_getfenv(L, index);
    visit(w);
}

/* The values on the stack of a coroutine that is not running. */
static void walkThread(walk *w, int index) {
    lua_State *L = w->L, *co = lua_tothread(L, index);
    lua_Debug at;
    lua_getfenv(L, index);
    visit(w);
    if (co == L || !lua_checkstack(co, 2)) return;
    for (int level = 0; lua_getstack(co, level, &at); level++) {
        for (int i = 1; lua_getlocal(co, &at, i); i++) {
            lua_xmove(co, L, 1);
            visit(w);
        }
    }
    for (int i = 1, count = lua_gettop(co); i <= count; i++) {
        lua_pushvalue(co, i);
        lua_xmove(co, L, 1);
        visit(w);
    }
}

static void walkValue(walk *w) {
    lua_State *L = w->L;
    int index = lua_gettop(L);
    switch (lua_type(L, index)) {
    case LUA_TTABLE: walkTable(w, index); break;
    case LUA_TFUNCTION: walkFunction(w, index); break;
    case LUA_TTHREAD: walkThread(w, index); break;
    default: /* userdata */
        if (lua_getmetatable(L, index)) visit(w);
        lua_getfenv(L, index);
        visit(w);
    }
    lua_settop(L, index - 1);
}

/* What scripts can start from: the globals, each kept function, and the value that was on top. */
static void visitRoots(walk *w, int top) {
    lua_State *L = w->L;
    lua_pushvalue(L, LUA_GLOBALSINDEX);
    visit(w);
    if (top) {
        lua_pushvalue(L, top);
        visit(w);
    }
    for (lua_pushnil(L); lua_next(L, LUA_REGISTRYINDEX);) {
        if (lua_isfunction(L, -1)) {
            visit(w);
        } else {
            lua_pop(L, 1);
        }
    }
}

static int walkAll(lua_State *L) {
    luaVm *vm = luaVmOf(L);
    walk w = {.L = L, .vm = vm, .seen = 3, .queue = 4, .hosts = 5};
    lua_settop(L, 2); /* where the result is stored, and a root */
    for (int i = 0; i < 3; i++) lua_newtable(L);
    for (int i = 0; i < vm->host_count; i++) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->hosts[i]);
        lua_pushboolean(L, 1);
        lua_rawset(L, w.hosts);
    }
    visitRoots(&w, 2);
    while (w.done < w.queued && !w.found) {
        lua_rawgeti(L, w.queue, ++w.done);
        walkValue(&w);
    }
    *(const char **)lua_touserdata(L, 1) = w.found;
    return 0;
}

const char *luaWalk(luaVm *vm) {
    lua_State *L = vm->L;
    const char *found = NULL;
    int top = lua_gettop(L);
    luaVmHold(vm);
    lua_gc(L, LUA_GCSTOP, 0);
    lua_pushcfunction(L, walkAll);
    lua_pushlightuserdata(L, (void *)&found);
    if (top) {
        lua_pushvalue(L, top);
    } else {
        lua_pushnil(L);
    }
    int st = lua_pcall(L, 2, 0, 0);
    check(st == 0);
    lua_gc(L, LUA_GCRESTART, 0);
    luaVmRelease(vm);
    return found;
}

/* ------------------------------------------------------------------ digest */

static uint64_t digestValue(lua_State *L, int index) {
    int type = lua_type(L, index);
    uint64_t bits = 0;
    if (type == LUA_TNUMBER) {
        double n = lua_tonumber(L, index);
        memcpy(&bits, &n, sizeof(bits));
    } else if (type == LUA_TBOOLEAN) {
        bits = (uint64_t)lua_toboolean(L, index);
    } else if (type == LUA_TSTRING) {
        size_t len;
        const char *text = lua_tolstring(L, index, &len);
        bits = hashBytes(text, len);
    } else {
        bits = (uint64_t)(uintptr_t)lua_topointer(L, index);
    }
    return bits * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)type;
}

/* True for the globals that are new for each script. */
static bool isArgument(lua_State *L, int index) {
    if (lua_type(L, index) != LUA_TSTRING) return false;
    const char *name = lua_tostring(L, index);
    return !strcmp(name, "KEYS") || !strcmp(name, "ARGV");
}

uint64_t luaHostDigest(luaVm *vm) {
    lua_State *L = vm->L;
    uint64_t sum = 0;
    luaVmHold(vm);
    for (int i = 0; i < vm->host_count; i++) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->hosts[i]);
        int table = lua_gettop(L);
        for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
            if (isArgument(L, -2)) continue;
            uint64_t key = digestValue(L, -2), value = digestValue(L, -1);
            sum += (key ^ (value << 1)) * UINT64_C(0xD6E8FEB86659FD93) * (uint64_t)(i + 1);
        }
        if (lua_getmetatable(L, table)) {
            sum += digestValue(L, -1);
            lua_pop(L, 1);
        }
        lua_settop(L, table - 1);
    }
    luaVmRelease(vm);
    return sum;
}
#endif

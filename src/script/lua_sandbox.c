/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The globals of scripts. Lua has no read-only tables, so scripts see proxies: empty tables whose
 * metatable refers to the real table and refuses assignments. Invariant: no script gets a real
 * table or the metatable of a proxy, and no function that writes without metamethods accepts a
 * proxy; so a proxy stays empty. Functions that read without metamethods (rawget, next, pairs) look
 * behind it. A proxy as a metatable stands for a copy of its metamethods. Builds with checks prove
 * this after scripts (lua_walk.c). Main thread only. */
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "script/lua_priv.h"

static const char READ_ONLY_TEXT[] = "Attempt to modify a readonly table";

/* ------------------------------------------------------------------ proxies */

/* Its address identifies the metatable of a proxy, at index 1; the real table is at index 2. */
static char proxy_mark;

bool luaPushBehindProxy(lua_State *L, int index) {
    hotCheck(threadIsMain());
    if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index)) return false;
    lua_rawgeti(L, -1, 1);
    bool is_proxy = lua_touserdata(L, -1) == (void *)&proxy_mark;
    lua_pop(L, 1);
    if (!is_proxy) {
        lua_pop(L, 1);
        return false;
    }
    lua_rawgeti(L, -1, 2);
    lua_remove(L, -2);
    return true;
}

bool luaIsProxy(lua_State *L, int index) {
    hotCheck(threadIsMain());
    bool yes = luaPushBehindProxy(L, index);
    if (yes) lua_pop(L, 1);
    return yes;
}

static int refuseAssignment(lua_State *L) { return luaL_error(L, READ_ONLY_TEXT); }

/* For functions in C, whose errors have no position. */
void luaRefuseProxy(lua_State *L, int index) {
    hotCheck(threadIsMain());
    if (!luaIsProxy(L, index)) return;
    lua_pushstring(L, READ_ONLY_TEXT);
    (void)lua_error(L);
}

/* Sets what is behind the proxy with the metatable on top to the table at `index`. */
static void setBehind(lua_State *L, int index) {
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, 2);
    lua_pushvalue(L, index);
    lua_setfield(L, -2, "__index");
}

void luaMakeProxy(luaVm *vm) {
    hotCheck(threadIsMain());
    lua_State *L = vm->L;
    check(vm->host_count < LUA_HOSTS_MAX);
    lua_pushvalue(L, -1);
    vm->hosts[vm->host_count++] = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_newtable(L);
    lua_createtable(L, 2, 2);
    lua_pushlightuserdata(L, &proxy_mark);
    lua_rawseti(L, -2, 1);
    setBehind(L, lua_gettop(L) - 2);
    lua_pushcfunction(L, refuseAssignment);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
}

static char meta_mark; /* its address is the key of the proxy in a metatable that was made of it */

bool luaPushProxyOfMeta(lua_State *L, int index) {
    hotCheck(threadIsMain());
    lua_pushvalue(L, index);
    lua_pushlightuserdata(L, &meta_mark);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    if (!lua_isnil(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

bool luaPushMetaOfProxy(lua_State *L, int index) {
    hotCheck(threadIsMain());
    if (!luaPushBehindProxy(L, index)) return false;
    int real = lua_gettop(L);
    lua_newtable(L);
    lua_pushlightuserdata(L, &meta_mark);
    lua_pushvalue(L, index);
    lua_rawset(L, -3);
    for (lua_pushnil(L); lua_next(L, real); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || strncmp(lua_tostring(L, -2), "__", 2) != 0) continue;
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
    lua_remove(L, real);
    return true;
}

/* ------------------------------------------------------------------ building the tables */

/* Copies the named fields of the table at `from` to the table on top. */
static void copyFields(lua_State *L, int from, const char *const *names) {
    for (; *names; names++) {
        lua_getfield(L, from, *names);
        check(!lua_isnil(L, -1));
        lua_setfield(L, -2, *names);
    }
}

void luaSetFunctions(lua_State *L, const luaL_Reg *functions) {
    hotCheck(threadIsMain());
    for (; functions->name; functions++) {
        lua_pushcfunction(L, functions->func);
        lua_setfield(L, -2, functions->name);
    }
}

static int osClock(lua_State *L) {
    lua_pushnumber(L, (double)clock() / CLOCKS_PER_SEC);
    return 1;
}

/* Pushes a new table with fields of the standard library `name` (a global). */
static void pushLibrary(lua_State *L, const char *name, const char *const *fields) {
    lua_getfield(L, LUA_GLOBALSINDEX, name);
    lua_newtable(L);
    copyFields(L, lua_gettop(L) - 1, fields);
    lua_remove(L, -2);
}

/* Makes the library on top a field of the globals below it. */
static void addLibrary(luaVm *vm, const char *name) {
    luaMakeProxy(vm);
    lua_setfield(vm->L, -2, name);
}

static void openString(luaVm *vm) {
    static const char *const fields[] = {"byte", "char", "dump", "len", "sub", NULL};
    lua_State *L = vm->L;
    pushLibrary(L, "string", fields);
    luaAddString(vm);
    /* The metatable of strings refers to the real table, which scripts cannot reach. */
    lua_pushliteral(L, "");
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    addLibrary(vm, "string");
}

static void openLibraries(luaVm *vm) {
    static const char *const math_fields[] = {
        "abs",   "acos", "asin",  "atan", "atan2", "ceil", "cos",   "cosh", "deg", "exp",
        "floor", "fmod", "frexp", "huge", "ldexp", "log",  "log10", "max",  "min", "modf",
        "pi",    "pow",  "rad",   "sin",  "sinh",  "sqrt", "tan",   "tanh", NULL};
    static const char *const table_fields[] = {"maxn", NULL};
    lua_State *L = vm->L;
    luaOpenCoroutine(L);
    addLibrary(vm, "coroutine");
    luaOpenBit(L);
    addLibrary(vm, "bit");
    pushLibrary(L, "table", table_fields);
    luaAddTable(vm);
    addLibrary(vm, "table");
    openString(vm);
    pushLibrary(L, "math", math_fields);
    luaAddMath(vm);
    addLibrary(vm, "math");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, osClock);
    lua_setfield(L, -2, "clock");
    addLibrary(vm, "os");
    luaOpenJson(L);
    addLibrary(vm, "cjson");
    luaOpenMsgpack(L);
    addLibrary(vm, "cmsgpack");
    luaOpenStruct(L);
    addLibrary(vm, "struct");
}

static void openBase(luaVm *vm) {
    static const char *const fields[] = {"_VERSION", "assert", "error",    "gcinfo", "ipairs",
                                         "rawequal", "select", "tonumber", "type",   NULL};
    static const char *const insecure[] = {"getfenv", "setfenv", "newproxy", NULL};
    lua_State *L = vm->L;
    copyFields(L, LUA_GLOBALSINDEX, fields);
    if (vm->insecure) copyFields(L, LUA_GLOBALSINDEX, insecure);
    lua_getfield(L, LUA_GLOBALSINDEX, "next");
    luaAddBase(vm);
}

/* Pushes a metatable that refuses unknown names. */
static void pushUnknownMeta(lua_State *L) {
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, luaRefuseUnknown);
    lua_setfield(L, -2, "__index");
}

/* Sets `server` and `redis` of the table on top. */
static void setServer(luaVm *vm, bool loading) {
    lua_State *L = vm->L;
    luaOpenServer(vm, loading);
    if (loading) {
        pushUnknownMeta(L);
        lua_setmetatable(L, -2);
    }
    luaMakeProxy(vm);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "server");
    lua_setfield(L, -2, "redis");
}

/* Creates getmetatable(), for the real globals at index 1 and their proxy at index 2. */
static void openGetmetatable(luaVm *vm) {
    lua_State *L = vm->L;
    lua_pushvalue(L, 2);
    pushUnknownMeta(L);
    luaMakeProxy(vm);
    lua_createtable(L, 0, 1);
    lua_getfield(L, 1, "string");
    lua_setfield(L, -2, "__index");
    luaMakeProxy(vm);
    luaPushGetmetatable(L);
    lua_setfield(L, 1, "getmetatable");
}

/* Functions in C have the globals of when they were created as environment, which nothing needs. */
static void replaceEnvironments(lua_State *L, int table, int environment) {
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (!lua_isfunction(L, -1)) continue;
        lua_pushvalue(L, environment);
        (void)lua_setfenv(L, -2); /* it is a function */
    }
}

/* A library sees other globals while it is loaded. */
static void openLoadGlobals(luaVm *vm) {
    lua_State *L = vm->L;
    lua_newtable(L);
    setServer(vm, true);
    pushUnknownMeta(L);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    vm->load_globals = luaL_ref(L, LUA_REGISTRYINDEX);
    vm->hosts[vm->host_count++] = luaL_ref(L, LUA_REGISTRYINDEX);
}

void luaSandboxOpen(luaVm *vm) {
    hotCheck(threadIsMain());
    static const lua_CFunction standard[] = {luaopen_base, luaopen_table, luaopen_string,
                                             luaopen_math};
    lua_State *L = vm->L;
    lua_settop(L, 0);
    for (size_t i = 0; i < COUNT_OF(standard); i++) {
        lua_pushcfunction(L, standard[i]);
        lua_call(L, 0, 0);
    }
    lua_newtable(L);
    openBase(vm);
    openLibraries(vm);
    setServer(vm, false);
    pushUnknownMeta(L);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, 1);
    vm->globals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 1);
    luaMakeProxy(vm); /* index 2 */
    lua_pushvalue(L, 2);
    lua_setfield(L, 1, "_G");
    openGetmetatable(vm);
    if (vm->use == SCRIPT_USE_FUNCTIONS) openLoadGlobals(vm);
    for (int i = 0; i < vm->host_count; i++) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->hosts[i]);
        replaceEnvironments(L, lua_gettop(L), 2);
        lua_pop(L, 1);
    }
    bool has_meta = lua_getmetatable(L, 2);
    check(has_meta);
    vm->global_meta = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, luaErrorHandler);
    vm->handler = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 2);
    vm->global_proxy = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 2);
    lua_replace(L, LUA_GLOBALSINDEX);
    /* What the standard libraries have registered for require() is not needed. */
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_settop(L, 0);
}

void luaSandboxSetLoading(luaVm *vm, bool loading) {
    hotCheck(threadIsMain());
    lua_State *L = vm->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->global_meta);
    lua_rawgeti(L, LUA_REGISTRYINDEX, loading ? vm->load_globals : vm->globals);
    int real = lua_gettop(L);
    lua_pushvalue(L, real - 1);
    setBehind(L, real);
    lua_settop(L, real - 2);
}

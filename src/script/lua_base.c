/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Global functions, and the library `coroutine`. Those that bypass metamethods know proxies
 * (lua_sandbox.c): what reads looks behind them, what writes refuses them. Those that call back
 * check the C stack. Main thread only. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "script/lua_priv.h"

/* ------------------------------------------------------------------ tables and metatables */

static void lookBehind(lua_State *L, int index) {
    if (luaPushBehindProxy(L, index)) lua_replace(L, index);
}

static int baseNext(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lookBehind(L, 1);
    if (lua_next(L, 1)) return 2;
    lua_pushnil(L);
    return 1;
}

/* For other tables the standard `next` is returned (upvalue 1), which is faster. */
static int basePairs(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    if (luaIsProxy(L, 1)) {
        lua_pushcfunction(L, baseNext);
    } else {
        lua_pushvalue(L, lua_upvalueindex(1));
    }
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static int baseRawget(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    lookBehind(L, 1);
    lua_rawget(L, 1);
    return 1;
}

static int baseRawset(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    luaRefuseProxy(L, 1);
    lua_rawset(L, 1);
    return 1;
}

/* Upvalues: the proxy of the globals, the visible metatable of the globals, that of strings. */
static int baseGetmetatable(lua_State *L) {
    luaL_checkany(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING) {
        lua_pushvalue(L, lua_upvalueindex(3));
    } else if (lua_rawequal(L, 1, lua_upvalueindex(1))) {
        lua_pushvalue(L, lua_upvalueindex(2));
    } else if (luaIsProxy(L, 1) || !lua_getmetatable(L, 1)) {
        lua_pushnil(L);
    } else if (!luaPushProxyOfMeta(L, -1)) {
        (void)luaL_getmetafield(L, 1, "__metatable"); /* pushes nothing if there is none */
    }
    return 1;
}

static int baseSetmetatable(lua_State *L) {
    int type = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
    luaRefuseProxy(L, 1);
    if (luaL_getmetafield(L, 1, "__metatable"))
        return luaL_error(L, "cannot change a protected metatable");
    lua_settop(L, 2);
    if (luaPushMetaOfProxy(L, 2)) lua_replace(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* ------------------------------------------------------------------ calls */

/* Errors of commands are tables; pcall() gives their text, or what else is in the field as a
 * further result. */
static int basePcall(lua_State *L) {
    if (lua_gettop(L) == 0) {
        lua_pushboolean(L, 0);
        lua_pushliteral(L,
                        "attempt to call a boolean value"); /* as Valkey, which needs no argument */
        return 2;
    }
    luaCheckCStack(L, luaVmOf(L));
    int st = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    if (st) luaNameOverflow(L, luaVmOf(L), st);
    lua_pushboolean(L, st == 0);
    lua_insert(L, 1);
    if (st && lua_istable(L, 2)) {
        lua_getfield(L, 2, "err");
        if (lua_isstring(L, -1)) lua_replace(L, 2);
    }
    return lua_gettop(L);
}

static int baseXpcall(lua_State *L) {
    luaL_checkany(L, 2);
    luaCheckCStack(L, luaVmOf(L));
    lua_settop(L, 2);
    lua_insert(L, 1); /* the handler below the function */
    int st = lua_pcall(L, 0, LUA_MULTRET, 1);
    if (st) luaNameOverflow(L, luaVmOf(L), st);
    lua_pushboolean(L, st == 0);
    lua_replace(L, 1);
    return lua_gettop(L);
}

static int baseTostring(lua_State *L) {
    luaL_checkany(L, 1);
    luaCheckCStack(L, luaVmOf(L));
    if (luaL_callmeta(L, 1, "__tostring")) return 1;
    switch (lua_type(L, 1)) {
    case LUA_TNUMBER: lua_pushstring(L, lua_tostring(L, 1)); break;
    case LUA_TSTRING: lua_pushvalue(L, 1); break;
    case LUA_TBOOLEAN: lua_pushstring(L, lua_toboolean(L, 1) ? "true" : "false"); break;
    case LUA_TNIL: lua_pushliteral(L, "nil"); break;
    default: lua_pushfstring(L, "%s: %p", luaL_typename(L, 1), lua_topointer(L, 1));
    }
    return 1;
}

static int baseUnpack(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    int64_t from = (int)luaL_optinteger(L, 2, 1);
    int64_t to = lua_isnoneornil(L, 3) ? (int64_t)(int)lua_objlen(L, 1)
                                       : (int64_t)(int)luaL_checkinteger(L, 3);
    if (from > to) return 0;
    int64_t count = to - from + 1;
    if (count >= INT32_MAX || !lua_checkstack(L, (int)count))
        return luaL_error(L, "too many results to unpack");
    for (int64_t i = from; i <= to; i++) lua_rawgeti(L, 1, (int)i);
    return (int)count;
}

/* ------------------------------------------------------------------ garbage */

/* Frees garbage in small steps, up to the end of a cycle; true if it was reached. */
static bool collectSteps(lua_State *L, luaVm *vm, int64_t kilobytes) {
    hotCheck(kilobytes >= 0);
    enum { STEP = 64 };
    for (;;) {
        if (lua_gc(L, LUA_GCSTEP, kilobytes < STEP ? (int)kilobytes : STEP)) return true;
        kilobytes -= STEP;
        if (kilobytes <= 0) return false;
        luaVmStep(L, vm, LUA_STEPS_PER_POLL / 64);
    }
}

static int baseCollectgarbage(lua_State *L) {
    static const char *const options[] = {"collect", "stop",     "restart",    "count",
                                          "step",    "setpause", "setstepmul", NULL};
    static const int calls[] = {LUA_GCCOLLECT, LUA_GCSTOP,     LUA_GCRESTART,   LUA_GCCOUNT,
                                LUA_GCSTEP,    LUA_GCSETPAUSE, LUA_GCSETSTEPMUL};
    int option = calls[luaL_checkoption(L, 1, "collect", options)];
    int arg = (int)luaL_optinteger(L, 2, 0);
    luaVm *vm = luaVmOf(L);
    switch (option) {
    case LUA_GCCOLLECT:
        (void)collectSteps(L, vm, INT64_MAX); /* the cycle that has begun, then a whole one */
        (void)collectSteps(L, vm, INT64_MAX);
        lua_pushnumber(L, 0);
        return 1;
    case LUA_GCSTEP: lua_pushboolean(L, collectSteps(L, vm, arg)); return 1;
    case LUA_GCCOUNT:
        lua_pushnumber(L, lua_gc(L, option, 0) + (double)lua_gc(L, LUA_GCCOUNTB, 0) / 1024);
        return 1;
    case LUA_GCSTOP:
        vm->gc_stopped = true;
        lua_pushnumber(L, lua_gc(L, option, 0));
        return 1;
    case LUA_GCRESTART: lua_pushnumber(L, lua_gc(L, option, 0)); return 1;
    default:
        lua_pushnumber(L, 200); /* the interpreter is shared: its pace is fixed */
        return 1;
    }
}

/* ------------------------------------------------------------------ errors */

/* __index of the globals: called for names that do not exist. */
int luaRefuseUnknown(lua_State *L) {
    int argc = lua_gettop(L);
    if (argc != 2) return luaL_error(L, "Wrong number of arguments to luaProtectedTableError");
    if (!lua_isstring(L, -1) && !lua_isnumber(L, -1))
        return luaL_error(L,
                          "Second argument to luaProtectedTableError must be a string or number");
    return luaL_error(L, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(L, -1));
}

/* The place of an error: where the function that raised it is, or if that is one in C, its
 * caller. */
static bool findPlace(lua_State *L, lua_Debug *at) {
    if (!lua_getstack(L, 1, at) || !lua_getinfo(L, "Sl", at)) return false;
    if (strcmp(at->what, "C") != 0) return true;
    return lua_getstack(L, 2, at) && lua_getinfo(L, "Sl", at);
}

int luaErrorHandler(lua_State *L) {
    lua_settop(L, 1);
    if (!lua_istable(L, 1)) {
        const char *text = lua_tostring(L, 1);
        lua_createtable(L, 0, 3);
        if (lua_isnil(L, 1)) text = "nil";
        if (lua_isboolean(L, 1)) text = lua_toboolean(L, 1) ? "true" : "false";
        if (text) {
            lua_pushfstring(L, "ERR %s", text);
        } else {
            lua_pushfstring(L, "ERR %s: %p", luaL_typename(L, 1), lua_topointer(L, 1));
        }
        lua_setfield(L, -2, "err");
        lua_replace(L, 1);
    } else if (luaIsProxy(L, 1)) {
        return 1;
    }
    lua_Debug at;
    bool found = findPlace(L, &at);
    bool is_library = luaVmOf(L)->use == SCRIPT_USE_FUNCTIONS;
    lua_pushliteral(L, "source");
    lua_pushstring(L, found ? at.source : is_library ? "@user_function" : "@user_script");
    lua_rawset(L, 1);
    lua_pushliteral(L, "line");
    lua_pushinteger(L, found ? at.currentline : 1);
    lua_rawset(L, 1);
    return 1;
}

void luaAddBase(luaVm *vm) {
    hotCheck(threadIsMain());
    static const luaL_Reg functions[] = {{"next", baseNext},
                                         {"rawget", baseRawget},
                                         {"rawset", baseRawset},
                                         {"setmetatable", baseSetmetatable},
                                         {"pcall", basePcall},
                                         {"xpcall", baseXpcall},
                                         {"tostring", baseTostring},
                                         {"unpack", baseUnpack},
                                         {"load", luaBaseLoad},
                                         {"loadstring", luaBaseLoadstring},
                                         {"collectgarbage", baseCollectgarbage},
                                         {NULL, NULL}};
    lua_State *L = vm->L;
    lua_pushcclosure(L, basePairs, 1);
    lua_setfield(L, -2, "pairs");
    luaSetFunctions(L, functions);
    if (vm->use != SCRIPT_USE_EVAL) return;
    lua_pushcfunction(L, luaErrorHandler);
    lua_setfield(L, -2, "__server__err__handler");
    lua_pushcfunction(L, luaErrorHandler);
    lua_setfield(L, -2, "__redis__err__handler");
}

void luaPushGetmetatable(lua_State *L) { lua_pushcclosure(L, baseGetmetatable, 3); }

/* ------------------------------------------------------------------ coroutines */

/* Why a coroutine cannot be resumed, NULL if it can. */
static const char *unresumable(lua_State *L, lua_State *co) {
    lua_Debug at;
    if (co == L) return "running";
    if (lua_status(co) == LUA_YIELD) return NULL;
    if (lua_status(co) != 0) return "dead";
    if (lua_getstack(co, 0, &at)) return "normal";
    return lua_gettop(co) == 0 ? "dead" : NULL;
}

/* Resumes a coroutine with the values on top. Returns the number of its values, -1: an error is on
 * top. The count of nested calls goes on in it, which bounds them all. */
static int resume(lua_State *L, lua_State *co, int argc) {
    hotCheck(argc >= 0);
    luaVm *vm = luaVmOf(L);
    const char *why = unresumable(L, co);
    if (!lua_checkstack(co, argc)) return luaL_error(L, "too many arguments to resume");
    if (why) {
        lua_pushfstring(L, "cannot resume %s coroutine", why);
        return -1;
    }
    luaCheckCStack(L, vm);
    lua_xmove(L, co, argc);
    lua_setlevel(L, co);
    if (unlikely(vm->killed || vm->debugged)) luaGuardSetHook(vm, co);
    vm->running = co;
    int st = lua_resume(co, argc);
    vm->running = L;
    if (unlikely(vm->killed)) luaGuardSetHook(vm, L);
    if (st != 0 && st != LUA_YIELD) {
        lua_xmove(co, L, 1);
        luaNameOverflow(L, vm, st);
        return -1;
    }
    int count = lua_gettop(co);
    if (!lua_checkstack(L, count + 1)) return luaL_error(L, "too many results to resume");
    lua_xmove(co, L, count);
    return count;
}

static int coroutineResume(lua_State *L) {
    lua_State *co = lua_tothread(L, 1);
    luaL_argcheck(L, co != NULL, 1, "coroutine expected");
    int count = resume(L, co, lua_gettop(L) - 1);
    lua_pushboolean(L, count >= 0);
    if (count < 0) count = 1;
    lua_insert(L, -(count + 1));
    return count + 1;
}

/* The function that coroutine.wrap() returns; upvalue: the coroutine. Texts of errors are prefixed
 * by where it was called. */
static int resumeWrapped(lua_State *L) {
    int count = resume(L, lua_tothread(L, lua_upvalueindex(1)), lua_gettop(L));
    if (count >= 0) return count;
    if (lua_isstring(L, -1)) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int coroutineCreate(lua_State *L) {
    luaL_argcheck(L, lua_isfunction(L, 1) && !lua_iscfunction(L, 1), 1, "Lua function expected");
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    return 1;
}

static int coroutineWrap(lua_State *L) {
    (void)coroutineCreate(L);
    lua_pushcclosure(L, resumeWrapped, 1);
    return 1;
}

static int coroutineYield(lua_State *L) { return lua_yield(L, lua_gettop(L)); }

static int coroutineStatus(lua_State *L) {
    lua_State *co = lua_tothread(L, 1);
    luaL_argcheck(L, co != NULL, 1, "coroutine expected");
    const char *why = unresumable(L, co);
    lua_pushstring(L, why ? why : "suspended");
    return 1;
}

static int coroutineRunning(lua_State *L) {
    if (lua_pushthread(L)) lua_pushnil(L); /* it is no coroutine */
    return 1;
}

void luaOpenCoroutine(lua_State *L) {
    hotCheck(threadIsMain());
    static const luaL_Reg functions[] = {{"create", coroutineCreate},
                                         {"resume", coroutineResume},
                                         {"running", coroutineRunning},
                                         {"status", coroutineStatus},
                                         {"wrap", coroutineWrap},
                                         {"yield", coroutineYield},
                                         {NULL, NULL}};
    lua_newtable(L);
    luaSetFunctions(L, functions);
}

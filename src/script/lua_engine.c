/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Lua engine: LuaJIT with its compiler off, so that the count hook sees every loop. Compiled functions are
 * references in the registry. Memory: an allocation that would exceed script-memory-limit fails, which ends the script
 * with an error. Main thread only. */
#include <luajit.h>

#include "base/base.h"
#include "engine/memory.h"
#include "engine/reply.h"
#include "script/debug.h"
#include "script/lua_priv.h"
#include "script/script_priv.h"

enum { HOOK_INSTRUCTIONS = 100000 };
static const size_t LIMIT_DEFAULT = (size_t)1 << 30, LIMIT_LEAST = (size_t)64 << 20;

/* ------------------------------------------------------------------ memory */

static void *allocate(void *state, void *ptr, size_t old_size, size_t new_size) {
    luaVm *vm = state;
    if (new_size == 0) {
        vm->used -= old_size;
        memFreeKnown(ptr, old_size);
        return NULL;
    }
    if (!vm->held && new_size > old_size && vm->used + (new_size - old_size) > vm->limit)
        return NULL;
    void *moved = NULL;
    if (likely(!ptr)) moved = memTryAllocKnown(new_size);
    if (unlikely(!moved))
        moved = vm->held ? memRealloc(ptr, new_size) : memTryRealloc(ptr, new_size);
    if (moved) vm->used += new_size - old_size;
    return moved;
}

luaVm *luaVmOf(lua_State *L) {
    void *vm;
    lua_Alloc allocator = lua_getallocf(L, &vm);
    hotCheck(allocator == allocate);
    (void)allocator;
    return vm;
}

void luaVmHold(luaVm *vm) { vm->held++; }
void luaVmRelease(luaVm *vm) { vm->held--; }

/* script-memory-limit; by default a quarter of maxmemory, 64 MB at least, or 1 GB without one. */
static size_t memoryLimitNow(void) {
    if (scriptConf.script_memory_limit) return (size_t)scriptConf.script_memory_limit;
    uint64_t max = memoryLimit();
    if (!max) return LIMIT_DEFAULT;
    size_t share = (size_t)(max / 4);
    return share > LIMIT_LEAST ? share : LIMIT_LEAST;
}

static size_t memory(const void *state) { return ((const luaVm *)state)->used; }

/* ------------------------------------------------------------------ interruption */

int luaRaise(lua_State *L, const char *text) {
    lua_settop(L, 0); /* room for two values, wherever the caller was */
    lua_createtable(L, 0, 1);
    lua_pushstring(L, text);
    lua_setfield(L, -2, "err");
    return lua_error(L);
}

static void hook(lua_State *L, lua_Debug *at) {
    if (at->event == LUA_HOOKLINE) {
        luaDebugLine(L, at);
    } else {
        luaVmPoll(L, luaVmOf(L));
    }
}

static void setHook(luaVm *vm) {
    int events = LUA_MASKCOUNT;
    if (vm->debugged) events |= LUA_MASKLINE;
    /* Lua returns 1 always. */
    (void)lua_sethook(vm->L, hook, events, vm->killed ? 1 : HOOK_INSTRUCTIONS);
}

void luaVmPoll(lua_State *L, luaVm *vm) {
    vm->steps_left = LUA_STEPS_PER_POLL;
    if (vm->load && clockMonoUs() > vm->load->deadline_us)
        (void)luaRaise(L, "ERR FUNCTION LOAD timeout");
    if (!vm->run || scriptRunPoll(vm->run) != SCRIPT_KILLED) return;
    bool first = !vm->killed;
    vm->killed = true;
    if (first) setHook(vm);
    if (first)
        logNotice("Lua script killed by user with %s.",
                  vm->run->is_function ? "FUNCTION KILL" : "SCRIPT KILL");
    (void)luaRaise(L, vm->run->is_function ? "ERR Script killed by user with FUNCTION KILL."
                                           : "ERR Script killed by user with SCRIPT KILL.");
}

/* ------------------------------------------------------------------ open and close */

static int openProtected(lua_State *L) {
    luaSandboxOpen(lua_touserdata(L, 1));
    return 0;
}

static void *openVm(scriptUse use) {
    luaVm *vm = memNew(luaVm);
    vm->use = use;
    vm->held = 1;
    vm->insecure = scriptConf.lua_enable_insecure_api;
    vm->steps_left = LUA_STEPS_PER_POLL;
    vm->L = lua_newstate(allocate, vm);
    check(vm->L != NULL);
    int st = luaJIT_setmode(vm->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    check(st != 0);
    st = lua_cpcall(vm->L, openProtected, vm);
    check(st == 0);
    st = luaJIT_setmode(vm->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    check(st != 0);
    lua_gc(vm->L, LUA_GCCOLLECT, 0);
    setHook(vm);
    vm->held = 0;
    vm->limit = memoryLimitNow();
    return vm;
}

static void closeVm(void *state) {
    luaVm *vm = state;
    lua_close(vm->L);
    check(vm->used == 0);
    memFree(vm);
}

/* Functions of the insecure interface let scripts define finalizers. */
static bool closesAnywhere(const void *state) { return !((const luaVm *)state)->insecure; }

static bool collect(void *state, int64_t budget_us) {
    luaVm *vm = state;
    int64_t until_us = clockMonoUs() + budget_us;
    bool done = false;
    luaVmHold(vm);
    while (!done && clockMonoUs() < until_us) done = lua_gc(vm->L, LUA_GCSTEP, 16);
    luaVmRelease(vm);
    return !done;
}

/* ------------------------------------------------------------------ compile */

/* Appends the error value at the top of the stack as text, and removes it. */
static void takeError(lua_State *L, str *error) {
    if (lua_istable(L, -1)) {
        lua_pushliteral(L, "err");
        lua_rawget(L, -2);
        lua_remove(L, -2);
    }
    size_t len;
    const char *text = lua_tolstring(L, -1, &len);
    strAppend(error, text ? text : "unknown error", text ? len : 13);
    lua_pop(L, 1);
}

/* Compiles with the chunk name "@name". */
static bool compileChunk(luaVm *vm, slice code, const char *name, str *error) {
    str source = STR_EMPTY;
    bool ok = luaSourcePrepare(code, name + 1, &source, error);
    if (ok && luaL_loadbufferx(vm->L, source.ptr, source.len, name, "t") != 0) {
        takeError(vm->L, error);
        ok = false;
    }
    strFree(&source);
    return ok;
}

static int compile(void *state, slice code, str *error) {
    luaVm *vm = state;
    luaVmHold(vm);
    int handle = -1;
    if (compileChunk(vm, code, "@user_script", error)) handle = luaL_ref(vm->L, LUA_REGISTRYINDEX);
    luaVmRelease(vm);
    return handle;
}

static void drop(void *state, int handle) {
    luaVm *vm = state;
    luaVmHold(vm);
    luaL_unref(vm->L, LUA_REGISTRYINDEX, handle);
    luaVmRelease(vm);
}

/* ------------------------------------------------------------------ call */

static void pushArgs(lua_State *L, const slice *args, int count) {
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushlstring(L, args[i].ptr, args[i].len);
        lua_rawseti(L, -2, i + 1);
    }
}

/* Appends " script: on @user_script:1.", from the fields of the error table at the top. */
static void appendPlace(lua_State *L, str *text) {
    lua_pushliteral(L, "source");
    lua_rawget(L, -2);
    lua_pushliteral(L, "line");
    lua_rawget(L, -3);
    if (lua_isstring(L, -2) && lua_isstring(L, -1)) {
        size_t len;
        const char *source = lua_tolstring(L, -2, &len);
        strAppendText(text, " script: on ");
        strAppend(text, source, len);
        strAppendFormat(text, ":%lld.", (long long)lua_tointeger(L, -1));
    }
    lua_pop(L, 2);
}

static bool fieldIsTrue(lua_State *L, const char *name) {
    lua_pushstring(L, name);
    lua_rawget(L, -2);
    bool yes = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return yes;
}

/* Replies the error at the top of the stack. */
static void replyFailure(luaVm *vm, scriptRun *run, int st) {
    lua_State *L = vm->L;
    str text = STR_EMPTY;
    bool counted = false;
    if (st == LUA_ERRMEM || !lua_istable(L, -1)) {
        /* The handler did not run: there was no memory, or no stack, which cannot be told from an error in it. */
        strAppendFormat(&text, "ERR %s script: on %s:1.",
                        st == LUA_ERRMEM ? "script exceeds script-memory-limit" : "stack overflow",
                        run->is_function ? "@user_function" : "@user_script");
    } else {
        lua_pushliteral(L, "err");
        lua_rawget(L, -2);
        size_t len = 0;
        const char *message = lua_tolstring(L, -1, &len);
        len = message ? strlen(message) : 0; /* as in Valkey, to the first NUL */
        strAppend(&text, message ? message : "ERR unknown error", message ? len : 17);
        lua_pop(L, 1);
        appendPlace(L, &text);
        counted = fieldIsTrue(L, "ignore_error_stats_update");
    }
    scriptReplyError(run->caller, strSlice(&text), counted);
    strFree(&text);
}

static void endRun(luaVm *vm) {
    vm->run = NULL;
    if (vm->killed || vm->debugged) {
        vm->killed = vm->debugged = false;
        setHook(vm);
    }
    if (vm->gc_stopped) {
        vm->gc_stopped = false;
        lua_gc(vm->L, LUA_GCRESTART, 0);
    }
    lua_settop(vm->L, 0);
}

static void call(void *state, int handle, scriptRun *run) {
    luaVm *vm = state;
    lua_State *L = vm->L;
    vm->limit = memoryLimitNow();
    vm->run = run;
    vm->steps_left = LUA_STEPS_PER_POLL;
    vm->debugged = debugNow() != NULL;
    if (unlikely(vm->debugged)) setHook(vm);
    luaVmHold(vm);
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->handler);
    lua_rawgeti(L, LUA_REGISTRYINDEX, handle);
    int arg_count = 0;
    if (vm->use == SCRIPT_USE_EVAL) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
        pushArgs(L, run->keys, run->key_count);
        lua_setfield(L, -2, "KEYS");
        pushArgs(L, run->args, run->arg_count);
        lua_setfield(L, -2, "ARGV");
        lua_pop(L, 1);
    } else {
        pushArgs(L, run->keys, run->key_count);
        pushArgs(L, run->args, run->arg_count);
        arg_count = 2;
    }
    luaVmRelease(vm);
    int st = lua_pcall(L, arg_count, 1, 1);
    luaVmHold(vm);
    if (st) {
        replyFailure(vm, run, st);
    } else {
        luaReplyValue(L, run->caller, run->proto);
    }
    endRun(vm);
    if (st == LUA_ERRMEM) lua_gc(L, LUA_GCCOLLECT, 0);
    luaVmRelease(vm);
}

/* ------------------------------------------------------------------ libraries */

static bool load(void *state, slice code, scriptRegisterProc *add, void *arg, int64_t limit_ms,
                 str *error) {
    luaVm *vm = state;
    lua_State *L = vm->L;
    luaLoad load = {.add = add, .arg = arg, .deadline_us = clockMonoUs() + limit_ms * 1000};
    vm->limit = memoryLimitNow();
    luaVmHold(vm);
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->handler);
    str reason_text = STR_EMPTY;
    code.len = strnlen(code.ptr, code.len);
    bool ok = compileChunk(vm, code, "@user_function", &reason_text);
    if (!ok) {
        strAppendText(error, "ERR Error compiling function: ");
    } else {
        vm->load = &load;
        luaSandboxSetLoading(vm, true);
        luaVmRelease(vm);
        int st = lua_pcall(L, 0, 0, 1);
        luaVmHold(vm);
        luaSandboxSetLoading(vm, false);
        vm->load = NULL;
        ok = st == 0;
        if (st) {
            strAppendText(error, "ERR Error registering functions: ");
            takeError(L, &reason_text);
        }
    }
    strAppendSlice(error, strSlice(&reason_text));
    strFree(&reason_text);
    lua_settop(L, 0);
    luaVmRelease(vm);
    return ok;
}

const scriptEngine luaEngine = {
    .name = "LUA",
    .open = openVm,
    .close = closeVm,
    .closes_anywhere = closesAnywhere,
    .memory = memory,
    .compile = compile,
    .load = load,
    .drop = drop,
    .call = call,
    .collect = collect,
};

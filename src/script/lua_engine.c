/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Lua engine: the distribution's Lua 5.1. Compiled functions are references in the registry.
 * Memory: an allocation that would exceed script-memory-limit fails, which ends the script with an
 * error. Main thread only. */
#include "base/base.h"
#include "engine/memory.h"
#include "engine/reply.h"
#include "script/debug.h"
#include "script/lua_priv.h"
#include "script/script_priv.h"

/* Arguments of scripts are copied without protection up to this size: the server could not go on
 * without so little. */
enum { ARGUMENTS_UNPROTECTED = 64 << 10, LUA_ARGUMENT_BYTES = 48 };
static const size_t LIMIT_DEFAULT = (size_t)1 << 30, LIMIT_LEAST = (size_t)64 << 20;

const char LOAD_TIMEOUT_TEXT[] = "ERR FUNCTION LOAD timeout";

/* ------------------------------------------------------------------ memory */

/* `used` is going to be more than what was granted. */
static NO_INLINE bool mayGrow(luaVm *vm, size_t used) {
    enum { GRANTED = 16 << 20 };
    if (vm->fails_once) {
        vm->fails_once = false;
        return false;
    }
    if (used > vm->limit || !memHasRoom(used - vm->used + GRANTED, false)) return false;
    vm->granted = sizeMin(used + GRANTED, vm->limit);
    return true;
}

static void *allocate(void *state, void *ptr, size_t old_size, size_t new_size) {
    luaVm *vm = state;
    if (new_size == 0) {
        vm->used -= old_size;
        memFreeKnown(ptr, old_size);
        return NULL;
    }
    size_t used = vm->used + new_size - old_size;
    if (!vm->held && new_size > old_size && unlikely(used > vm->granted) && !mayGrow(vm, used))
        return NULL;
    void *moved = NULL;
    if (likely(!ptr)) moved = memTryAllocKnown(new_size);
    if (unlikely(!moved))
        moved = vm->held ? memRealloc(ptr, new_size) : memTryRealloc(ptr, new_size);
    if (moved) vm->used = used;
    return moved;
}

luaVm *luaVmOf(lua_State *L) {
    hotCheck(threadIsMain());
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

static size_t memory(const scriptEngine *e, scriptUse use, const void *state) {
    (void)e, (void)use;
    return state ? ((const luaVm *)state)->used : 0;
}

bool luaVmHasRoom(const luaVm *vm, size_t bytes) {
    hotCheck(threadIsMain());
    hotCheck(bytes > 0);
    if (vm->used > vm->limit || bytes > vm->limit - vm->used) return false;
    return memHasRoom(bytes, false);
}

void luaCheckGrowth(lua_State *L, const str *text, size_t need) {
    hotCheck(threadIsMain());
    hotCheck(text->len <= text->cap);
    enum { SMALL = 1 << 20 };
    size_t size = text->len + need;
    if (size < SMALL || size <= text->cap) return;
    if (text->cap > size / 2) size = text->cap * 2;
    if (size > luaVmOf(L)->limit || !memHasRoom(size + size / 4, false))
        (void)luaL_error(L, "not enough memory");
}

/* Before code of scripts runs. */
static void setLimit(luaVm *vm) {
    vm->limit = memoryLimitNow();
    if (vm->granted > vm->limit) vm->granted = vm->limit;
}

int luaRaise(lua_State *L, const char *text) {
    hotCheck(threadIsMain());
    if (!lua_checkstack(L, 3)) lua_settop(L, 0);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, text);
    lua_setfield(L, -2, "err");
    return lua_error(L);
}

/* ------------------------------------------------------------------ open and close */

static int openProtected(lua_State *L) {
    luaSandboxOpen(lua_touserdata(L, 1));
    return 0;
}

static void *openVm(const scriptEngine *e, scriptUse use) {
    (void)e; /* there is one of this kind */
    luaVm *vm = memNew(luaVm);
    vm->use = use;
    vm->held = 1;
    vm->insecure = scriptConf.lua_enable_insecure_api;
    vm->steps_left = LUA_STEPS_PER_POLL;
    vm->stack_low = luaGuardStackLow();
    vm->L = lua_newstate(allocate, vm);
    check(vm->L != NULL);
    int st = lua_cpcall(vm->L, openProtected, vm);
    check(st == 0);
    lua_gc(vm->L, LUA_GCCOLLECT, 0);
    vm->held = 0;
    setLimit(vm);
#ifdef HOT_CHECKS
    vm->digest = luaHostDigest(vm);
#endif
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

/* How long the compiler of a script may keep others waiting; 0: without a limit. A short threshold
 * must not refuse small scripts on a machine that is busy. */
static int64_t compileLimitMs(void) {
    enum { LEAST_MS = 500 };
    int64_t limit_ms = scriptConf.busy_reply_threshold;
    return limit_ms && limit_ms < LEAST_MS ? LEAST_MS : limit_ms;
}

/* Compiles with the chunk name "@name". */
static bool compileChunk(luaVm *vm, slice code, const char *name, int64_t limit_ms, str *error) {
    lua_State *L = vm->L;
    setLimit(vm);
    lua_pushstring(L, name);
    luaVmRelease(vm);
    int st = luaLoadText(L, code, lua_tostring(L, -1), limit_ms);
    luaVmHold(vm);
    lua_remove(L, -2);
    if (st) takeError(L, error);
    return st == 0;
}

static int compile(void *state, slice code, str *error) {
    luaVm *vm = state;
    luaVmHold(vm);
    int handle = -1;
    str why = STR_EMPTY;
    if (compileChunk(vm, code, "@user_script", compileLimitMs(), &why)) {
        handle = luaL_ref(vm->L, LUA_REGISTRYINDEX);
    } else {
        strAppendText(error, "Error compiling script (new function): ");
        strAppendSlice(error, strSlice(&why));
    }
    strFree(&why);
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

/* The arguments of a run become globals or, of a function, two values on the stack. */
static int pushRunArgs(lua_State *L) {
    luaVm *vm = luaVmOf(L);
    pushArgs(L, vm->run->keys, vm->run->key_count);
    pushArgs(L, vm->run->args, vm->run->arg_count);
    if (vm->use == SCRIPT_USE_FUNCTIONS) return 2;
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->globals);
    lua_insert(L, -3);
    lua_pushliteral(L, "ARGV");
    lua_insert(L, -2);
    lua_rawset(L, -4);
    lua_pushliteral(L, "KEYS");
    lua_insert(L, -2);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    return 0;
}

static size_t sizeOfArgs(const scriptRun *run) {
    size_t bytes = 0;
    for (int i = 0; i < run->key_count; i++) bytes += run->keys[i].len + LUA_ARGUMENT_BYTES;
    for (int i = 0; i < run->arg_count; i++) bytes += run->args[i].len + LUA_ARGUMENT_BYTES;
    return bytes;
}

/* Returns the status of Lua. */
static int prepareArgs(luaVm *vm, const scriptRun *run) {
    lua_State *L = vm->L;
    if (likely(sizeOfArgs(run) <= ARGUMENTS_UNPROTECTED)) {
        (void)pushRunArgs(L);
        return 0;
    }
    lua_pushcfunction(L, pushRunArgs);
    luaVmRelease(vm);
    int st = lua_pcall(L, 0, LUA_MULTRET, 0);
    luaVmHold(vm);
    return st;
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
        /* The handler did not run: there was no memory, or no stack, which cannot be told from an
         * error in it. */
        strAppendFormat(&text, "ERR %s script: on %s:1.",
                        vm->overflowed     ? "C stack overflow"
                        : st == LUA_ERRMEM ? "script exceeds script-memory-limit"
                                           : "stack overflow",
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

#ifdef HOT_CHECKS
/* No script may change what others see. A walk over little takes microseconds; over much, every now
 * and then. */
static void checkHosts(luaVm *vm) {
    enum { SMALL = 1 << 20, EVERY = 64 };
    static unsigned runs;
    check(luaHostDigest(vm) == vm->digest);
    if (vm->used > SMALL && ++runs % EVERY) return;
    const char *found = luaWalk(vm);
    if (found) panic("a script can reach %s", found);
}
#else
#define checkHosts(vm) ((void)(vm))
#endif

static void endRun(luaVm *vm) {
    vm->run = NULL;
    luaGuardEnd(vm);
    if (vm->gc_stopped) {
        vm->gc_stopped = false;
        lua_gc(vm->L, LUA_GCRESTART, 0);
    }
    lua_settop(vm->L, 0);
}

/* What setfenv() of an earlier script has changed. */
static void resetEnvironment(luaVm *vm, int function_at) {
    lua_State *L = vm->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->global_proxy);
    lua_pushvalue(L, -1);
    lua_replace(L, LUA_GLOBALSINDEX);
    (void)lua_setfenv(L, function_at); /* it is a function */
}

static void call(void *state, int handle, scriptRun *run) {
    luaVm *vm = state;
    lua_State *L = vm->L;
    setLimit(vm);
    vm->overflowed = false;
    vm->run = run;
    vm->debugged = debugNow() != NULL;
    luaVmHold(vm);
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->handler);
    lua_rawgeti(L, LUA_REGISTRYINDEX, handle);
    if (unlikely(vm->insecure)) resetEnvironment(vm, 2);
    int st = prepareArgs(vm, run);
    if (likely(st == 0)) {
        luaGuardBegin(vm);
        luaVmRelease(vm);
        st = lua_pcall(L, lua_gettop(L) - 2, 1, 1);
        luaVmHold(vm);
    }
    if (st == 0) checkHosts(vm);
    if (st) {
        replyFailure(vm, run, st);
    } else {
        luaReplyValue(vm, run);
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
    setLimit(vm);
    luaVmHold(vm);
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->handler);
    str reason_text = STR_EMPTY;
    code.len = strnlen(code.ptr, code.len);
    bool ok = compileChunk(vm, code, "@user_function", limit_ms ? limit_ms : 1, &reason_text);
    if (!ok) {
        strAppendText(error, "ERR Error compiling function: ");
    } else {
        if (vm->insecure) resetEnvironment(vm, 2);
        vm->load = &load;
        luaSandboxSetLoading(vm, true);
        luaGuardBegin(vm);
        luaVmRelease(vm);
        int st = lua_pcall(L, 0, 0, 1);
        luaVmHold(vm);
        luaGuardEnd(vm);
        luaSandboxSetLoading(vm, false);
        checkHosts(vm);
        vm->load = NULL;
        bool late = st == 0 && clockMonoUs() > load.deadline_us;
        ok = st == 0 && !late;
        if (!ok) strAppendText(error, "ERR Error registering functions: ");
        if (st) takeError(L, &reason_text);
        if (late) strAppendText(&reason_text, LOAD_TIMEOUT_TEXT);
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

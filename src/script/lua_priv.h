/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Lua interpreter: state shared by its files. C code called by Lua runs with the allocator's
 * limit on, and may be left by an error at any call into Lua; code that holds resources of the
 * server runs between luaVmHold() and luaVmRelease(), where no call into Lua raises an error. Main
 * thread only. */
#ifndef SCRIPT_LUA_PRIV_H
#define SCRIPT_LUA_PRIV_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "resp/reply_sink.h"
#include "script/engine.h"
#include "script/run.h"

enum { LUA_DEPTH_MAX = 7995 }; /* of nested reply tables */

/* A library that is being loaded. */
typedef struct luaLoad {
    scriptRegisterProc *add;
    void *arg;
    int64_t deadline_us;
} luaLoad;

enum { LUA_HOSTS_MAX = 24 };

typedef struct luaVm {
    lua_State *L;
    lua_State *running; /* the coroutine that is being run; NULL: none */
    scriptUse use;
    scriptRun *run; /* NULL: none */
    luaLoad *load;  /* NULL: none */
    size_t used, limit;
    size_t granted;      /* `used` may grow to this before room is asked for; at most the limit */
    int held;            /* > 0: allocations do not fail */
    uintptr_t stack_low; /* end of the C stack, which grows towards it */
    bool fails_once;     /* the next allocation must fail */
    bool overflowed;     /* an error for lack of memory is in truth one of the C stack */
    bool killed;         /* the current run was ended: every instruction raises the error again */
    bool debugged;       /* the current run has a debugger: the hook is called for each line */
    bool insecure;       /* lua-enable-insecure-api when it was opened */
    bool gc_stopped;     /* by the script, until its end */
    /* Until luaVmStep() polls; the alarm sets it to 0 at any moment, so it can be below. */
    int64_t steps_left;
    int globals, load_globals; /* references: real tables behind the proxy of the globals */
    int global_proxy;          /* what scripts have as environment */
    int global_meta;           /* metatable of the proxy */
    int handler;               /* the function that adds source and line to an error */
    int hosts[LUA_HOSTS_MAX];  /* references: the real tables behind all proxies */
    int host_count;
#ifdef HOT_CHECKS
    uint64_t digest; /* of these tables */
#endif
} luaVm;

/* ------------------------------------------------------------------ lua_engine.c */

extern const char LOAD_TIMEOUT_TEXT[];
luaVm *luaVmOf(lua_State *L);
void luaVmHold(luaVm *vm);
void luaVmRelease(luaVm *vm);
/* Raises {err = text} as commands do; the stack may be in any state. */
int luaRaise(lua_State *L, const char *text);
/* True if another `bytes` can be had, below the limit and from the allocator. */
bool luaVmHasRoom(const luaVm *vm, size_t bytes);
/* Raises an error if there is no memory for the text to grow by `need` bytes, which it does not
 * have room for. */
void luaCheckGrowth(lua_State *L, const str *text, size_t need);

/* ------------------------------------------------------------------ lua_guard.c: time and stack */

/* To be called by loops in C with the number of steps done: raises an error if the script has to
 * end. */
enum { LUA_STEPS_PER_POLL = 20000 };
void luaVmPoll(lua_State *L, luaVm *vm);
static inline void luaVmStep(lua_State *L, luaVm *vm, uint32_t steps) {
    if ((int64_t)steps < vm->steps_left) {
        vm->steps_left -= steps;
    } else {
        luaVmPoll(L, vm);
    }
}
/* To be called when `steps_left` is 0 by what must not raise errors. True: the script was
 * killed. */
bool luaGuardServe(luaVm *vm);
const char *luaKillText(const luaVm *vm);
/* Code of scripts begins and ends. Until then an alarm makes the interpreter poll every few ms,
 * whatever it does. */
void luaGuardBegin(luaVm *vm);
void luaGuardEnd(luaVm *vm);
/* The end of the stack of the main thread. */
uintptr_t luaGuardStackLow(void);
/* The hook that the state of the run requires is set for a coroutine that is going to run. */
void luaGuardSetHook(luaVm *vm, lua_State *L);

/* Bytes of C stack that must be left: to call Lua, which can nest 200 metamethods before it checks
 * anything; to run a command or serve clients (liblzf alone takes 256 KB); for one more level of a
 * recursion in C. */
enum {
    LUA_STACK_CALL = 224 << 10,
    LUA_STACK_COMMAND = 384 << 10,
    LUA_STACK_RECURSION = 96 << 10,
};
static inline bool luaStackIsLow(const luaVm *vm, size_t need) {
    return unlikely((uintptr_t)__builtin_frame_address(0) < vm->stack_low + need);
}
/* Raises "C stack overflow" without calling the handler of errors, which would need stack and could
 * fail likewise. Until luaNameOverflow() it is an error for lack of memory, the only kind without a
 * handler. */
int luaRaiseStackOverflow(lua_State *L);
void luaNameOverflow(lua_State *L, luaVm *vm, int st);
/* Before each call of Lua by a function in C. Lua counts nested calls, 200 over all coroutines, but
 * not their bytes. */
static inline void luaCheckCStack(lua_State *L, const luaVm *vm) {
    if (luaStackIsLow(vm, LUA_STACK_CALL)) (void)luaRaiseStackOverflow(L);
}
static inline void luaCallBack(lua_State *L, const luaVm *vm, int arg_count, int result_count) {
    luaCheckCStack(L, vm);
    lua_call(L, arg_count, result_count);
}

/* ------------------------------------------------------------------ lua_load.c */

/* Compiles source text, never compiled code, without running it; leaves the function or an error on
 * the stack. Returns Lua's status. `name` must be a string that Lua keeps. `limit_ms` is the time
 * it may take, 0: any. */
int luaLoadText(lua_State *L, slice code, const char *name, int64_t limit_ms);
int luaBaseLoad(lua_State *L);
int luaBaseLoadstring(lua_State *L);

/* ------------------------------------------------------------------ the tables that scripts see */

/* Creates the globals of `vm`. */
void luaSandboxOpen(luaVm *vm);
/* While a library is loaded, it sees other globals. */
void luaSandboxSetLoading(luaVm *vm, bool loading);
/* The table behind the proxy at `index` is pushed. False: it is no proxy, nothing is pushed. */
bool luaPushBehindProxy(lua_State *L, int index);
bool luaIsProxy(lua_State *L, int index);
/* Raises an error if there is a proxy at `index`. */
void luaRefuseProxy(lua_State *L, int index);
/* Replaces the table on top by a read-only proxy of it. */
void luaMakeProxy(luaVm *vm);
/* Pushes the proxy whose fields a metatable, at `index`, was made of; false: of none. */
bool luaPushProxyOfMeta(lua_State *L, int index);
/* Pushes such a metatable for the proxy at `index`; false: it is no proxy, nothing is pushed. */
bool luaPushMetaOfProxy(lua_State *L, int index);

/* Sets fields of the table on top. */
void luaSetFunctions(lua_State *L, const luaL_Reg *functions);
/* Each of these pushes a table with functions, or adds functions to the table on top. */
void luaOpenServer(luaVm *vm, bool loading);
void luaAddBase(
    luaVm *vm); /* takes the standard `next` from the top of the stack, which is above the table */
void luaPushGetmetatable(lua_State *L); /* takes what it returns for the globals: see lua_base.c */
int luaRefuseUnknown(lua_State *L);
void luaAddString(luaVm *vm);
void luaAddTable(luaVm *vm);
void luaAddMath(luaVm *vm);
void luaOpenCoroutine(lua_State *L);
void luaOpenBit(lua_State *L);
void luaOpenJson(lua_State *L);
void luaOpenMsgpack(lua_State *L);
void luaOpenStruct(lua_State *L);
/* The function that turns an error into a table with `source` and `line`. */
int luaErrorHandler(lua_State *L);

/* server.pcall() */
int luaServerPcall(lua_State *L);
/* server.breakpoint() and server.debug(), without effect unless the script is debugged */
int luaBreakpoint(lua_State *L);
int luaDebugShow(lua_State *L);
/* A line of a script that is debugged is going to be executed; called by the hook. Stops there if
 * it has to. */
void luaDebugLine(lua_State *L, lua_Debug *at);

/* ------------------------------------------------------------------ values */

/* Receives the items of a reply and leaves it as one value on the stack of L. */
typedef struct luaReply {
    lua_State *L;
    int depth;
    uint8_t proto;
    bool is_error, broken;
    size_t granted;   /* bytes that it may take before room is asked for */
    uint64_t to_drop; /* items of attributes to come */
    struct {
        replyKind kind;
        int64_t left; /* items to come */
        int next;     /* index of the next one */
    } open[REPLY_DEPTH_MAX];
} luaReply;
void luaReplyTake(void *state, const replyEvent *event);
enum { LUA_REPLY_GRANTED = 16 << 10 };
/* Replies the value at the top of the stack; an error if it does not fit into memory or the script
 * is killed meanwhile. */
void luaReplyValue(luaVm *vm, scriptRun *run);
/* Truncates; what does not fit becomes INT32_MIN. */
static inline int luaToInt(double n) {
    return n > -2147483649.0 && n < 2147483648.0 ? (int)n : INT32_MIN;
}
/* Truncates to an integer of 64 bits, signed or not; what does not fit becomes what it becomes in
 * Valkey on x86. */
static inline uint64_t luaToBits64(double n) {
    const double least = -9223372036854775808.0, beyond = 18446744073709551616.0;
    if (n >= beyond) return 0;
    if (!(n >= least)) return (uint64_t)INT64_MIN; /* NaN, too */
    return n < 0 ? (uint64_t)(int64_t)n : (uint64_t)n;
}
/* Prints a number as an argument of a command. */
size_t luaPrintNumber(char *dst, double n);

#ifdef HOT_CHECKS
/* ------------------------------------------------------------------ lua_walk.c */

/* Walks all that scripts can reach: what is global, functions that are kept, and the value at the
 * top of the stack. NULL if they can change no table of the host, else what was found. */
const char *luaWalk(luaVm *vm);
/* A digest of the contents of the host's tables, but for KEYS and ARGV. */
uint64_t luaHostDigest(luaVm *vm);
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Lua interpreter: state shared by its files. C code called by Lua runs with the allocator's limit on, and may be
 * left by an error at any call into Lua; code that holds resources of the server runs between luaVmHold() and
 * luaVmRelease(), where no call into Lua raises an error. Main thread only. */
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

typedef struct luaVm {
    lua_State *L;
    scriptUse use;
    scriptRun *run; /* NULL: none */
    luaLoad *load;  /* NULL: none */
    size_t used, limit;
    int held;            /* > 0: allocations do not fail */
    bool killed;         /* the current run was ended: every instruction raises the error again */
    bool debugged;       /* the current run has a debugger: the hook is called for each line */
    bool insecure;       /* lua-enable-insecure-api when it was opened */
    bool gc_stopped;     /* by the script, until its end */
    uint64_t random;     /* state of math.random */
    uint32_t steps_left; /* until luaVmStep() polls */
    int globals, load_globals; /* references: real tables behind the proxy of the globals */
    int global_meta;           /* metatable of the proxy */
    int handler;               /* the function that adds source and line to an error */
} luaVm;

/* ------------------------------------------------------------------ lua_engine.c */

luaVm *luaVmOf(lua_State *L);
void luaVmHold(luaVm *vm);
void luaVmRelease(luaVm *vm);
/* To be called by loops in C with the number of steps done: raises an error if the script has to end. */
enum { LUA_STEPS_PER_POLL = 20000 };
void luaVmPoll(lua_State *L, luaVm *vm);
static inline void luaVmStep(lua_State *L, luaVm *vm, uint32_t steps) {
    if (steps < vm->steps_left) {
        vm->steps_left -= steps;
    } else {
        luaVmPoll(L, vm);
    }
}
/* Raises {err = text} as commands do; the stack may be in any state. */
int luaRaise(lua_State *L, const char *text);

/* ------------------------------------------------------------------ the tables that scripts see */

/* Creates the globals of `vm`. */
void luaSandboxOpen(luaVm *vm);
/* While a library is loaded, it sees other globals. */
void luaSandboxSetLoading(luaVm *vm, bool loading);
/* The table behind the proxy at `index` is pushed. False: it is no proxy, nothing is pushed. */
bool luaPushBehindProxy(lua_State *L, int index);
/* Replaces the table on top by a read-only proxy of it. */
void luaMakeProxy(lua_State *L);

/* Each of these pushes a table with functions. */
void luaOpenServer(luaVm *vm, bool loading);
void luaOpenString(
    luaVm *vm); /* takes the table with the standard functions at the top, and changes it */
void luaOpenMath(luaVm *vm); /* likewise */
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
/* A line of a script that is debugged is going to be executed; called by the hook. Stops there if it has to. */
void luaDebugLine(lua_State *L, lua_Debug *at);

/* ------------------------------------------------------------------ values */

/* Receives the items of a reply and leaves it as one value on the stack of L. */
typedef struct luaReply {
    lua_State *L;
    int depth;
    uint8_t proto;
    bool is_error, broken;
    uint64_t to_drop; /* items of attributes to come */
    struct {
        replyKind kind;
        int64_t left; /* items to come */
        int next;     /* index of the next one */
    } open[REPLY_DEPTH_MAX];
} luaReply;
void luaReplyTake(void *state, const replyEvent *event);
/* Replies the value at the top of the stack. */
void luaReplyValue(lua_State *L, ctx *c, uint8_t script_proto);
/* Truncates; what does not fit becomes INT32_MIN. */
static inline int luaToInt(double n) {
    return n > -2147483649.0 && n < 2147483648.0 ? (int)n : INT32_MIN;
}
/* Prints a number as an argument of a command. */
size_t luaPrintNumber(char *dst, double n);

/* ------------------------------------------------------------------ source */

/* Rewrites source for the interpreter: see lua_source.c. False: the error is in `error`. */
bool luaSourcePrepare(slice code, const char *name, str *out, str *error);

#endif

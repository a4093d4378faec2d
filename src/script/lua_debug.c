/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the debugger asks Lua for: lines, variables, the stack, evaluation. Runs inside of a hook;
 * allocations do not fail here, except in code that the client evaluates. Main thread only. */
#include <string.h>

#include "base/base.h"
#include "script/debug.h"
#include "script/debug_frame.h"
#include "script/lua_priv.h"

enum { TABLE_DEPTH_MAX = 10, STACK_RESERVE = 64 };
static const char SOURCE[] = "@user_script";

/* ------------------------------------------------------------------ values as text */

typedef struct printer {
    lua_State *L;
    str *out;
    size_t max; /* more text is not wanted */
} printer;

static void printValue(printer *p, int index, int depth);

/* True if the keys of the table come in the order 1, 2, 3. */
static bool isList(lua_State *L, int index) {
    lua_Number expected = 1;
    bool yes = true;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        yes = yes && lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == expected++;
        lua_pop(L, 1);
        if (yes) continue;
        lua_pop(L, 1);
        break;
    }
    return yes;
}

static void printTable(printer *p, int index, int depth) {
    hotCheck(depth >= 0);
    hotCheck(depth < TABLE_DEPTH_MAX);
    lua_State *L = p->L;
    if (!luaPushBehindProxy(L, index)) lua_pushvalue(L, index);
    int table = lua_gettop(L);
    bool is_list = isList(L, table);
    strAppendByte(p->out, '{');
    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (p->out->len > p->max) {
            lua_pop(L, 2);
            break;
        }
        if (!is_list) {
            strAppendByte(p->out, '[');
            printValue(p, table + 1, depth + 1);
            strAppendText(p->out, "]=");
        }
        printValue(p, table + 2, depth + 1);
        strAppendText(p->out, "; ");
        lua_pop(L, 1);
    }
    strAppendByte(p->out, '}');
    lua_settop(L, table - 1);
}

static void printValue(printer *p, int index, int depth) {
    hotCheck(depth >= 0);
    hotCheck(depth <= TABLE_DEPTH_MAX);
    lua_State *L = p->L;
    int type = lua_type(L, index);
    if (depth == TABLE_DEPTH_MAX) {
        strAppendText(p->out, "<max recursion level reached! Nested table?>");
    } else if (type == LUA_TSTRING) {
        size_t len;
        const char *text = lua_tolstring(L, index, &len);
        strAppend(p->out, text, len);
    } else if (type == LUA_TBOOLEAN) {
        strAppendText(p->out, lua_toboolean(L, index) ? "true" : "false");
    } else if (type == LUA_TNUMBER) {
        strAppendFormat(p->out, "%g", lua_tonumber(L, index));
    } else if (type == LUA_TNIL) {
        strAppendText(p->out, "nil");
    } else if (type == LUA_TTABLE) {
        printTable(p, index, depth);
    } else {
        bool is_light = type == LUA_TLIGHTUSERDATA;
        const void *at = is_light ? lua_touserdata(L, index) : lua_topointer(L, index);
        strAppendFormat(p->out, " \"%s@%p\"", is_light ? "light-userdata" : lua_typename(L, type),
                        at);
    }
}

/* Adds "<tag> " and the value on top of the stack, which is removed. */
static void addValue(lua_State *L, const char *tag, debugLines *to) {
    str line = STR_EMPTY;
    strAppendText(&line, tag);
    strAppendByte(&line, ' ');
    printer p = {.L = L, .out = &line, .max = debugTextMax(to)};
    printValue(&p, lua_gettop(L), 0);
    debugAddCut(to, strSlice(&line));
    strFree(&line);
    lua_pop(L, 1);
}

/* ------------------------------------------------------------------ variables */

static void print(void *state, slice name, debugLines *to) {
    lua_State *L = state;
    lua_Debug frame;
    for (int level = 0; lua_getstack(L, level, &frame); level++) {
        const char *found;
        for (int i = 1; (found = lua_getlocal(L, &frame, i)); i++) {
            if (sliceEqual(sliceOf(found), name)) {
                addValue(L, "<value>", to);
                return;
            }
            lua_pop(L, 1);
        }
    }
    if (sliceEqual(name, SLICE("KEYS")) || sliceEqual(name, SLICE("ARGV"))) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, luaVmOf(L)->globals);
        lua_pushlstring(L, name.ptr, name.len);
        lua_rawget(L, -2);
        lua_remove(L, -2);
        addValue(L, "<value>", to);
        return;
    }
    debugAdd(to, SLICE("No such variable."));
}

static void printAll(void *state, debugLines *to) {
    lua_State *L = state;
    lua_Debug frame;
    bool any = false;
    const char *name;
    if (!lua_getstack(L, 0, &frame)) return;
    for (int i = 1; (name = lua_getlocal(L, &frame, i)); i++) {
        if (strcmp(name, "(*temporary)") == 0) {
            lua_pop(L, 1);
            continue;
        }
        any = true;
        str tag = STR_EMPTY;
        strAppendFormat(&tag, "<value> %s =", name);
        addValue(L, strText(&tag), to);
        strFree(&tag);
    }
    if (!any) debugAdd(to, SLICE("No local variables in the current context."));
}

static void trace(void *state, debugLines *to) {
    lua_State *L = state;
    lua_Debug frame;
    for (int level = 0; lua_getstack(L, level, &frame); level++) {
        if (!lua_getinfo(L, "nSl", &frame) || strcmp(frame.source, SOURCE) != 0) continue;
        bool is_named = frame.name && strcmp(frame.namewhat, "metamethod") != 0;
        str line = STR_EMPTY;
        strAppendFormat(&line, "%s %s:", level == 0 ? "In" : "From",
                        is_named ? frame.name : "top level");
        debugAdd(to, strSlice(&line));
        strFree(&line);
        debugAddLine(to, frame.currentline);
    }
}

/* ------------------------------------------------------------------ evaluation */

/* Pushes the function of the text, which may be an expression; else its error message. */
static bool compile(lua_State *L, slice code, const char *before) {
    str text = STR_EMPTY;
    luaVm *vm = luaVmOf(L);
    strAppendText(&text, before);
    strAppendSlice(&text, code);
    lua_pushliteral(L, "@ldb_eval");
    luaVmRelease(vm);
    int st = luaLoadText(L, strSlice(&text), lua_tostring(L, -1), 0);
    luaVmHold(vm);
    lua_remove(L, -2);
    strFree(&text);
    return st == 0;
}

static void evaluate(void *state, slice code, debugLines *to) {
    lua_State *L = state;
    luaVm *vm = luaVmOf(L);
    if (!compile(L, code, "return ")) {
        lua_pop(L, 1);
        if (!compile(L, code, "")) {
            addValue(L, "Error compiling code:", to);
            return;
        }
    }
    luaVmRelease(vm);
    int st = lua_pcall(L, 0, 1, 0);
    luaVmHold(vm);
    if (st && lua_istable(L, -1)) {
        lua_pushliteral(L, "err");
        lua_rawget(L, -2);
        lua_remove(L, -2);
    }
    addValue(L, st ? "<error>" : "<retval>", to);
}

static void runCommand(void *state, const slice *argv, int argc) {
    hotCheck(argc > 0);
    lua_State *L = state;
    luaVm *vm = luaVmOf(L);
    lua_pushcfunction(L, luaServerPcall);
    for (int i = 0; i < argc; i++) lua_pushlstring(L, argv[i].ptr, argv[i].len);
    luaVmRelease(vm);
    int st = lua_pcall(L, argc, 1, 0); /* what it shows is in the lines */
    luaVmHold(vm);
    (void)st; /* an error is a value as well */
    lua_pop(L, 1);
}

/* ------------------------------------------------------------------ the hook */

void luaDebugLine(lua_State *L, lua_Debug *at) {
    hotCheck(threadIsMain());
    debugSession *d = debugNow();
    if (!d || !lua_getinfo(L, "Sl", at) || strcmp(at->source, SOURCE) != 0) return;
    if (!debugStopsAt(d, at->currentline)) return;
    luaVm *vm = luaVmOf(L);
    if (!lua_checkstack(L, STACK_RESERVE + DEBUG_WORDS_MAX)) return;
    static const char *const errors[] = {
        [DEBUG_ABORT] = "ERR script aborted for user request",
        [DEBUG_PROTOCOL_ERROR] = "ERR protocol error",
    };
    debugView view = {.state = L,
                      .print = print,
                      .print_all = printAll,
                      .trace = trace,
                      .evaluate = evaluate,
                      .command = runCommand};
    int top = lua_gettop(L);
    luaVmHold(vm);
    debugOrder order = debugStop(d, at->currentline, &view);
    luaVmRelease(vm);
    lua_settop(L, top);
    if (order != DEBUG_CONTINUE) (void)luaRaise(L, errors[order]);
}

/* ------------------------------------------------------------------ functions of scripts */

int luaBreakpoint(lua_State *L) {
    debugSession *d = debugNow();
    if (d) debugBreak(d);
    lua_pushboolean(L, d != NULL);
    return 1;
}

int luaDebugShow(lua_State *L) {
    debugSession *d = debugNow();
    if (!d) return 0;
    luaVm *vm = luaVmOf(L);
    int argc = lua_gettop(L);
    luaL_checkstack(L, STACK_RESERVE, "too many values");
    luaVmHold(vm);
    str text = STR_EMPTY;
    printer p = {.L = L, .out = &text, .max = SIZE_MAX};
    for (int i = 1; i <= argc; i++) {
        if (i > 1) strAppendText(&text, ", ");
        printValue(&p, i, 0);
    }
    debugShow(d, strSlice(&text));
    strFree(&text);
    luaVmRelease(vm);
    return 0;
}

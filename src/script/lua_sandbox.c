/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The globals of scripts. Lua has no read-only tables, so scripts see proxies: empty tables whose metatable refers to
 * the real table and refuses assignments. Invariant: no script gets a real table or the metatable of a proxy, and no
 * function that writes without metamethods accepts a proxy; so a proxy stays empty. Functions that read without
 * metamethods (rawget, next, pairs) look behind it. Main thread only. */
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "script/lua_priv.h"

static const char READ_ONLY_TEXT[] = "Attempt to modify a readonly table";

/* ------------------------------------------------------------------ proxies */

static char
    proxy_mark; /* its address identifies the metatable of a proxy, at index 1; the real table is at index 2 */

bool luaPushBehindProxy(lua_State *L, int index) {
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

static bool isProxy(lua_State *L, int index) {
    bool yes = luaPushBehindProxy(L, index);
    if (yes) lua_pop(L, 1);
    return yes;
}

static int refuseAssignment(lua_State *L) { return luaL_error(L, READ_ONLY_TEXT); }

/* For functions in C, whose errors have no position. */
static void refuseProxy(lua_State *L, int index) {
    if (!isProxy(L, index)) return;
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

void luaMakeProxy(lua_State *L) {
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

/* ------------------------------------------------------------------ functions that bypass metamethods */

/* Replaces a proxy among the arguments by the real table, for functions that only read. */
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

/* For other tables the standard `next` is returned (upvalue 1), which the interpreter runs faster. */
static int basePairs(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    if (isProxy(L, 1)) {
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
    refuseProxy(L, 1);
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
    } else if (lua_islightuserdata(L, 1) || isProxy(L, 1) || !lua_getmetatable(L, 1)) {
        lua_pushnil(L);
    } else if (luaL_getmetafield(L, 1, "__metatable")) {
        return 1;
    }
    return 1;
}

static int baseSetmetatable(lua_State *L) {
    int type = lua_type(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
    refuseProxy(L, 1);
    if (luaL_getmetafield(L, 1, "__metatable"))
        return luaL_error(L, "cannot change a protected metatable");
    /* A proxy as a metatable would hide its fields, which are read raw. */
    lookBehind(L, 2);
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

/* A standard function (upvalue 1) that must not change a proxy. */
static int guardWrite(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    refuseProxy(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* Calls the function at index 2 with the two values on top, which it removes; true if it has returned a value, which
 * is then on top. */
static bool callForEach(lua_State *L) {
    lua_pushvalue(L, 2);
    lua_insert(L, -3);
    lua_call(L, 2, 1);
    if (!lua_isnil(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

static int tableForeach(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lookBehind(L, 1);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        if (callForEach(L)) return 1;
    }
    return 0;
}

static int tableForeachi(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    int count = (int)lua_objlen(L, 1);
    for (int i = 1; i <= count; i++) {
        lua_pushinteger(L, i);
        lua_rawgeti(L, 1, i);
        if (callForEach(L)) return 1;
    }
    return 0;
}

/* The standard one moves 2^31 elements for a position far below 1, and cannot be interrupted. */
static int tableInsert(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    refuseProxy(L, 1);
    luaVm *vm = luaVmOf(L);
    int end = (int)lua_objlen(L, 1) + 1, pos = end, argc = lua_gettop(L);
    if (argc != 2 && argc != 3) return luaL_error(L, "wrong number of arguments to 'insert'");
    if (argc == 3) pos = (int)luaL_checkinteger(L, 2);
    for (int i = pos > end ? pos : end; i > pos; i--) {
        luaVmStep(L, vm, 1);
        lua_rawgeti(L, 1, i - 1);
        lua_rawseti(L, 1, i);
    }
    lua_rawseti(L, 1, pos);
    return 0;
}

static int tableRemove(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    refuseProxy(L, 1);
    luaVm *vm = luaVmOf(L);
    int end = (int)lua_objlen(L, 1), pos = (int)luaL_optinteger(L, 2, end);
    if (pos < 1 || pos > end) return 0;
    lua_rawgeti(L, 1, pos);
    for (; pos < end; pos++) {
        luaVmStep(L, vm, 1);
        lua_rawgeti(L, 1, pos + 1);
        lua_rawseti(L, 1, pos);
    }
    lua_pushnil(L);
    lua_rawseti(L, 1, end);
    return 1;
}

static int tableGetn(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushinteger(L, (ptrdiff_t)lua_objlen(L, 1));
    return 1;
}

/* Errors of commands are tables; pcall() gives their text. */
static int basePcall(lua_State *L) {
    luaL_checkany(L, 1);
    int st = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    lua_pushboolean(L, st == 0);
    lua_insert(L, 1);
    if (st && lua_istable(L, 2)) {
        lua_pushliteral(L, "err");
        lua_rawget(L, 2);
        if (lua_isstring(L, -1)) {
            lua_replace(L, 2);
        } else {
            lua_settop(L, 2);
        }
    }
    return lua_gettop(L);
}

/* ------------------------------------------------------------------ coroutines */

/* The function that coroutine.wrap() returns; upvalue: the coroutine. Errors are prefixed by where it was called, which
 * LuaJIT's does not do. */
static int resumeWrapped(lua_State *L) {
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int argc = lua_gettop(L);
    bool is_dead = co == L || (lua_status(co) != LUA_YIELD && lua_gettop(co) == 0);
    int st = LUA_ERRRUN;
    if (is_dead) {
        lua_pushliteral(L, "cannot resume dead coroutine");
    } else if (!lua_checkstack(co, argc)) {
        return luaL_error(L, "too many arguments to resume");
    } else {
        lua_xmove(L, co, argc);
        st = lua_resume(co, argc);
        int count = st == 0 || st == LUA_YIELD ? lua_gettop(co) : 1;
        if (!lua_checkstack(L, count)) return luaL_error(L, "too many results to resume");
        lua_xmove(co, L, count);
        if (st == 0 || st == LUA_YIELD) return count;
    }
    if (lua_isstring(L, -1)) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int coroutineWrap(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    lua_pushcclosure(L, resumeWrapped, 1);
    return 1;
}

static int coroutineYield(lua_State *L) {
    bool is_main = lua_pushthread(L);
    lua_pop(L, 1);
    if (!is_main) return lua_yield(L, lua_gettop(L));
    lua_pushliteral(L, "attempt to yield across metamethod/C-call boundary");
    return lua_error(L);
}

/* ------------------------------------------------------------------ loading code */

/* Loads source text; leaves a function, or nil and a message. */
static int loadText(lua_State *L, slice code, const char *name) {
    luaVm *vm = luaVmOf(L);
    str source = STR_EMPTY, error = STR_EMPTY;
    luaVmHold(vm);
    bool ok = luaSourcePrepare(code, NULL, &source, &error);
    if (ok && luaL_loadbufferx(L, strText(&source), source.len, name, "t") != 0) {
        lua_pushnil(L);
        lua_insert(L, -2);
        strFree(&source);
        luaVmRelease(vm);
        return 2;
    }
    if (!ok) {
        lua_pushnil(L);
        lua_pushlstring(L, strText(&error), error.len);
    }
    strFree(&source);
    strFree(&error);
    luaVmRelease(vm);
    return ok ? 1 : 2;
}

static int baseLoadstring(lua_State *L) {
    size_t len;
    const char *code = luaL_checklstring(L, 1, &len);
    return loadText(L, sliceMake(code, len), luaL_optstring(L, 2, code));
}

static int baseLoad(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    const char *name = luaL_optstring(L, 2, "=(load)");
    luaL_Buffer pieces;
    lua_settop(L, 2);
    luaL_buffinit(L, &pieces);
    for (;;) {
        lua_pushvalue(L, 1);
        lua_call(L, 0, 1);
        if (lua_isnil(L, -1) || (lua_isstring(L, -1) && lua_objlen(L, -1) == 0)) break;
        if (!lua_isstring(L, -1)) return luaL_error(L, "reader function must return a string");
        luaL_addvalue(&pieces);
    }
    lua_pop(L, 1);
    luaL_pushresult(&pieces);
    size_t len;
    const char *code = lua_tolstring(L, -1, &len);
    return loadText(L, sliceMake(code, len), name);
}

/* ------------------------------------------------------------------ other functions */

static int baseCollectgarbage(lua_State *L) {
    static const char *const options[] = {"collect", "stop",     "restart",    "count",
                                          "step",    "setpause", "setstepmul", NULL};
    static const int calls[] = {LUA_GCCOLLECT, LUA_GCSTOP,     LUA_GCRESTART,   LUA_GCCOUNT,
                                LUA_GCSTEP,    LUA_GCSETPAUSE, LUA_GCSETSTEPMUL};
    int option = calls[luaL_checkoption(L, 1, "collect", options)];
    int arg = luaL_optint(L, 2, 0);
    if (option == LUA_GCSTOP) luaVmOf(L)->gc_stopped = true;
    if (option == LUA_GCSETPAUSE || option == LUA_GCSETSTEPMUL) {
        lua_pushnumber(L, 200); /* the interpreter is shared: its pace is fixed */
        return 1;
    }
    int result = lua_gc(L, option, arg);
    if (option == LUA_GCCOUNT) {
        lua_pushnumber(L, result + (double)lua_gc(L, LUA_GCCOUNTB, 0) / 1024);
    } else if (option == LUA_GCSTEP) {
        lua_pushboolean(L, result);
    } else {
        lua_pushnumber(L, result);
    }
    return 1;
}

/* The standard conversion of the argument at `index` to 32 bits; upvalue 1 is bit.tobit(). */
static int32_t toBits(lua_State *L, int index) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    int32_t bits = (int32_t)lua_tonumber(L, -1);
    lua_pop(L, 1);
    return bits;
}

/* The standard one writes outside of its buffer for a width of -2^31. */
static int bitTohex(lua_State *L) {
    static const char *const digits[] = {"0123456789abcdef", "0123456789ABCDEF"};
    (void)luaL_checknumber(L, 1);
    lua_settop(L, 2);
    uint32_t value = (uint32_t)toBits(L, 1);
    int64_t width = 8;
    if (!lua_isnil(L, 2)) {
        (void)luaL_checknumber(L, 2);
        width = toBits(L, 2);
    }
    const char *set = digits[width < 0];
    if (width < 0) width = -width;
    int len = width <= 8 ? (int)width : 8;
    char text[8];
    for (int i = len; i-- > 0; value >>= 4) text[i] = set[value & 15];
    lua_pushlstring(L, text, (size_t)len);
    return 1;
}

/* Of light userdata, cjson.null: as the C library prints pointers. */
static int pointerText(lua_State *L) {
    char text[64];
    int len = snprintf(text, sizeof(text), "userdata: %p", lua_touserdata(L, 1));
    lua_pushlstring(L, text, (size_t)len);
    return 1;
}

static int osClock(lua_State *L) {
    lua_pushnumber(L, (double)clock() / CLOCKS_PER_SEC);
    return 1;
}

static int tableSetn(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    return luaL_error(L, "'setn' is obsolete");
}

/* __index of the globals: called for names that do not exist. */
static int refuseUnknown(lua_State *L) {
    int argc = lua_gettop(L);
    if (argc != 2) return luaL_error(L, "Wrong number of arguments to luaProtectedTableError");
    if (!lua_isstring(L, -1) && !lua_isnumber(L, -1))
        return luaL_error(L,
                          "Second argument to luaProtectedTableError must be a string or number");
    return luaL_error(L, "Script attempted to access nonexistent global variable '%s'",
                      lua_tostring(L, -1));
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
            char other[64];
            const void *at = lua_islightuserdata(L, 1) ? lua_touserdata(L, 1) : lua_topointer(L, 1);
            int len = snprintf(other, sizeof(other), "ERR %s: %p", luaL_typename(L, 1), at);
            lua_pushlstring(L, other, (size_t)len);
        }
        lua_setfield(L, -2, "err");
        lua_replace(L, 1);
    } else if (isProxy(L, 1)) {
        return 1;
    }
    lua_Debug at;
    bool found = false;
    for (int level = 1; !found && lua_getstack(L, level, &at); level++)
        found = lua_getinfo(L, "Sl", &at) && at.currentline >= 0; /* not a function in C */
    bool is_library = luaVmOf(L)->use == SCRIPT_USE_FUNCTIONS;
    lua_pushstring(L, found ? at.source : is_library ? "@user_function" : "@user_script");
    lua_setfield(L, 1, "source");
    lua_pushinteger(L, found ? at.currentline : 1);
    lua_setfield(L, 1, "line");
    return 1;
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

/* Sets a field of the table on top to a function in C with the current value of the field as upvalue. */
static void wrapField(lua_State *L, const char *name, lua_CFunction function) {
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

static void setFunctions(lua_State *L, const luaL_Reg *functions) {
    for (; functions->name; functions++) {
        lua_pushcfunction(L, functions->func);
        lua_setfield(L, -2, functions->name);
    }
}

/* Pushes a new table with fields of the standard library `name` (a global). */
static void pushLibrary(lua_State *L, const char *name, const char *const *fields) {
    lua_getfield(L, LUA_GLOBALSINDEX, name);
    lua_newtable(L);
    copyFields(L, lua_gettop(L) - 1, fields);
    lua_remove(L, -2);
}

static void openTable(lua_State *L) {
    static const char *const fields[] = {"concat", "maxn", "sort", NULL};
    static const luaL_Reg functions[] = {{"foreach", tableForeach},
                                         {"foreachi", tableForeachi},
                                         {"getn", tableGetn},
                                         {"insert", tableInsert},
                                         {"remove", tableRemove},
                                         {"setn", tableSetn},
                                         {NULL, NULL}};
    pushLibrary(L, "table", fields);
    setFunctions(L, functions);
    wrapField(L, "sort", guardWrite);
}

static void openLibraries(luaVm *vm) {
    static const char *const string_fields[] = {"byte",    "char", "dump",  "len", "lower",
                                                "reverse", "sub",  "upper", NULL};
    static const char *const math_fields[] = {
        "abs",   "acos", "asin",  "atan", "atan2", "ceil", "cos",   "cosh", "deg", "exp",
        "floor", "fmod", "frexp", "huge", "ldexp", "log",  "log10", "max",  "min", "modf",
        "pi",    "pow",  "rad",   "sin",  "sinh",  "sqrt", "tan",   "tanh", NULL};
    static const char *const coroutine_fields[] = {"create", "resume", "running", "status", NULL};
    static const char *const bit_fields[] = {"arshift", "band", "bnot", "bor",    "bswap", "bxor",
                                             "lshift",  "rol",  "ror",  "rshift", "tobit", NULL};
    lua_State *L = vm->L;
    struct {
        const char *name;
        const char *const *fields;
    } plain[] = {{"coroutine", coroutine_fields}, {"bit", bit_fields}};
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        pushLibrary(L, plain[i].name, plain[i].fields);
        if (plain[i].fields == coroutine_fields) {
            lua_pushcfunction(L, coroutineWrap);
            lua_setfield(L, -2, "wrap");
            lua_pushcfunction(L, coroutineYield);
            lua_setfield(L, -2, "yield");
        } else if (plain[i].fields == bit_fields) {
            lua_getfield(L, -1, "tobit");
            lua_pushcclosure(L, bitTohex, 1);
            lua_setfield(L, -2, "tohex");
        }
        luaMakeProxy(L);
        lua_setfield(L, -2, plain[i].name);
    }
    openTable(L);
    luaMakeProxy(L);
    lua_setfield(L, -2, "table");
    pushLibrary(L, "string", string_fields);
    luaOpenString(vm);
    /* The metatable of strings refers to the real table, which scripts cannot reach. */
    lua_pushliteral(L, "");
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    luaMakeProxy(L);
    lua_setfield(L, -2, "string");
    pushLibrary(L, "math", math_fields);
    luaOpenMath(vm);
    luaMakeProxy(L);
    lua_setfield(L, -2, "math");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, osClock);
    lua_setfield(L, -2, "clock");
    luaMakeProxy(L);
    lua_setfield(L, -2, "os");
    luaOpenJson(L);
    luaMakeProxy(L);
    lua_setfield(L, -2, "cjson");
    luaOpenMsgpack(L);
    luaMakeProxy(L);
    lua_setfield(L, -2, "cmsgpack");
    luaOpenStruct(L);
    luaMakeProxy(L);
    lua_setfield(L, -2, "struct");
}

static void openBase(luaVm *vm) {
    static const char *const fields[] = {"_VERSION", "assert", "error",    "gcinfo",   "ipairs",
                                         "rawequal", "select", "tonumber", "tostring", "type",
                                         "unpack",   "xpcall", NULL};
    static const char *const insecure[] = {"getfenv", "setfenv", "newproxy", NULL};
    static const luaL_Reg functions[] = {{"next", baseNext},
                                         {"rawget", baseRawget},
                                         {"rawset", baseRawset},
                                         {"setmetatable", baseSetmetatable},
                                         {"pcall", basePcall},
                                         {"load", baseLoad},
                                         {"loadstring", baseLoadstring},
                                         {"collectgarbage", baseCollectgarbage},
                                         {NULL, NULL}};
    lua_State *L = vm->L;
    copyFields(L, LUA_GLOBALSINDEX, fields);
    if (vm->insecure) copyFields(L, LUA_GLOBALSINDEX, insecure);
    setFunctions(L, functions);
    lua_getfield(L, LUA_GLOBALSINDEX, "next");
    lua_pushcclosure(L, basePairs, 1);
    lua_setfield(L, -2, "pairs");
    if (vm->use != SCRIPT_USE_EVAL) return;
    lua_pushcfunction(L, luaErrorHandler);
    lua_setfield(L, -2, "__server__err__handler");
    lua_pushcfunction(L, luaErrorHandler);
    lua_setfield(L, -2, "__redis__err__handler");
}

/* Pushes a metatable that refuses unknown names. */
static void pushUnknownMeta(lua_State *L) {
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, refuseUnknown);
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
    luaMakeProxy(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "server");
    lua_setfield(L, -2, "redis");
}

/* Creates getmetatable(), for the real globals at index 1 and their proxy at index 2. */
static void openGetmetatable(lua_State *L) {
    lua_pushvalue(L, 2);
    pushUnknownMeta(L);
    luaMakeProxy(L);
    lua_createtable(L, 0, 1);
    lua_getfield(L, 1, "string");
    lua_setfield(L, -2, "__index");
    luaMakeProxy(L);
    lua_pushcclosure(L, baseGetmetatable, 3);
    lua_setfield(L, 1, "getmetatable");
}

void luaSandboxOpen(luaVm *vm) {
    static const lua_CFunction standard[] = {luaopen_base, luaopen_table, luaopen_string,
                                             luaopen_math, luaopen_bit};
    lua_State *L = vm->L;
    lua_settop(L, 0);
    for (size_t i = 0; i < COUNT_OF(standard); i++) {
        lua_pushcfunction(L, standard[i]);
        lua_call(L, 0, 0);
    }
    lua_pushlightuserdata(L, NULL);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, pointerText);
    lua_setfield(L, -2, "__tostring");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
    lua_newtable(L);
    openBase(vm);
    openLibraries(vm);
    setServer(vm, false);
    pushUnknownMeta(L);
    lua_setmetatable(L, -2);
    lua_pushvalue(L, 1);
    vm->globals = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 1);
    luaMakeProxy(L); /* index 2 */
    lua_pushvalue(L, 2);
    lua_setfield(L, 1, "_G");
    openGetmetatable(L);
    if (vm->use == SCRIPT_USE_FUNCTIONS) {
        lua_newtable(L);
        setServer(vm, true);
        pushUnknownMeta(L);
        lua_setmetatable(L, -2);
        vm->load_globals = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    bool has_meta = lua_getmetatable(L, 2);
    check(has_meta);
    vm->global_meta = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushcfunction(L, luaErrorHandler);
    vm->handler = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 2);
    lua_replace(L, LUA_GLOBALSINDEX);
    /* What the standard libraries have registered for require() is not needed. */
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_settop(L, 0);
}

void luaSandboxSetLoading(luaVm *vm, bool loading) {
    lua_State *L = vm->L;
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->global_meta);
    lua_rawgeti(L, LUA_REGISTRYINDEX, loading ? vm->load_globals : vm->globals);
    int real = lua_gettop(L);
    lua_pushvalue(L, real - 1);
    setBehind(L, real);
    lua_settop(L, real - 2);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table `server`, alias `redis`: commands, replies, log, registration of functions. Arguments
 * of a command are the bytes of Lua's strings; the reply becomes Lua values as it is produced. Main
 * thread only. */
#include <math.h>
#include <openssl/sha.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/command.h"
#include "engine/lifecycle.h"
#include "engine/user.h"
#include "script/debug.h"
#include "script/lua_priv.h"
#include "script/script_priv.h"

/* ------------------------------------------------------------------ call, pcall */

enum { ARGS_KEPT = 1024, STEPS_PER_COMMAND = 20 };

/* Arguments of the command being run; reused. */
static struct {
    slice *argv;
    char *numbers; /* NUMBER_TEXT_MAX for each */
    int cap;
} arguments;

static void reserveArguments(int count) {
    if (count <= arguments.cap) return;
    arguments.cap = count < 16 ? 16 : count;
    arguments.argv = memRealloc(arguments.argv, (size_t)arguments.cap * sizeof(slice));
    arguments.numbers = memRealloc(arguments.numbers, (size_t)arguments.cap * NUMBER_TEXT_MAX);
}

static void releaseArguments(void) {
    if (arguments.cap <= ARGS_KEPT) return;
    memFree(arguments.argv);
    memFree(arguments.numbers);
    memset(&arguments, 0, sizeof(arguments));
}

/* Collects the arguments of the Lua function; an error text, or NULL. */
static const char *takeArguments(lua_State *L, int argc) {
    if (argc == 0) return "ERR Please specify at least one argument for this call";
    reserveArguments(argc);
    for (int i = 0; i < argc; i++) {
        int type = lua_type(L, i + 1);
        if (type == LUA_TSTRING) {
            slice *arg = &arguments.argv[i];
            arg->ptr = lua_tolstring(L, i + 1, &arg->len);
        } else if (type == LUA_TNUMBER) {
            char *text = arguments.numbers + (size_t)i * NUMBER_TEXT_MAX;
            arguments.argv[i] = sliceMake(text, luaPrintNumber(text, lua_tonumber(L, i + 1)));
        } else {
            return "ERR Command arguments must be strings or integers";
        }
    }
    return NULL;
}

/* Leaves {err = text}; raises it if asked to. */
static int fail(lua_State *L, const char *text, bool raise) {
    if (raise) return luaRaise(L, text);
    lua_createtable(L, 0, 1);
    lua_pushstring(L, text);
    lua_setfield(L, -2, "err");
    return 1;
}

static int runCommand(lua_State *L, bool raise) {
    luaVm *vm = luaVmOf(L);
    if (!vm->run)
        return fail(L, "ERR server.call/pcall can only be called inside a script invocation",
                    raise);
    int argc = lua_gettop(L);
    const char *error = takeArguments(L, argc);
    if (unlikely(error != NULL)) {
        if (debugNow()) debugShowError(debugNow(), sliceOf(error));
        return fail(L, error, raise);
    }
    if (luaStackIsLow(vm, LUA_STACK_COMMAND)) return luaRaiseStackOverflow(L);
    luaVmStep(L, vm, STEPS_PER_COMMAND);
    luaReply reply = {.L = L, .proto = vm->run->proto, .granted = LUA_REPLY_GRANTED};
    replySink sink = {.take = luaReplyTake, .state = &reply};
    luaVmHold(vm);
    scriptRunCommand(vm->run, arguments.argv, argc, &sink);
    releaseArguments();
    if (unlikely(reply.broken)) {
        lua_settop(L, 0);
        (void)fail(L, "ERR the reply is too large for a script", false);
        reply.is_error = true;
    } else if (unlikely(reply.is_error)) {
        lua_pushboolean(L, 1);
        lua_setfield(L, -2, "ignore_error_stats_update");
    }
    luaVmRelease(vm);
    if (unlikely(vm->used > vm->limit)) return luaL_error(L, "not enough memory");
    if (unlikely(reply.is_error) && raise) return lua_error(L);
    return 1;
}

static int serverCall(lua_State *L) { return runCommand(L, true); }
int luaServerPcall(lua_State *L) { return runCommand(L, false); }

/* ------------------------------------------------------------------ replies and settings */

static int errorReply(lua_State *L) {
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING)
        return fail(L, "ERR wrong number or type of arguments", false);
    const char *text = lua_tostring(L, 1); /* as in Valkey, to the first NUL */
    if (*text == '-') text++;
    const char *blank = strchr(text, ' ');
    lua_createtable(L, 0, 1);
    if (blank) {
        /* After the code line breaks at both ends are dropped, as in Valkey. */
        const char *rest = blank + 1;
        while (*rest == '\r' || *rest == '\n') rest++;
        size_t len = strlen(rest);
        while (len && (rest[len - 1] == '\r' || rest[len - 1] == '\n')) len--;
        lua_pushlstring(L, text, (size_t)(blank + 1 - text));
        lua_pushlstring(L, rest, len);
    } else {
        lua_pushliteral(L, "ERR ");
        lua_pushstring(L, text);
    }
    lua_concat(L, 2);
    lua_setfield(L, -2, "err");
    return 1;
}

static int statusReply(lua_State *L) {
    if (lua_gettop(L) != 1 || lua_type(L, 1) != LUA_TSTRING)
        return fail(L, "ERR wrong number or type of arguments", false);
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "ok");
    return 1;
}

static int setResp(lua_State *L) {
    if (lua_gettop(L) != 1) return luaRaise(L, "ERR server.setresp() requires one argument.");
    int proto = luaToInt(lua_tonumber(L, 1));
    if (proto != 2 && proto != 3) return luaRaise(L, "ERR RESP version must be 2 or 3.");
    luaVm *vm = luaVmOf(L);
    if (vm->run) vm->run->proto = (uint8_t)proto;
    return 0;
}

enum { REPL_AOF = 1, REPL_REPLICA = 2, REPL_ALL = 3 };

static int setRepl(lua_State *L) {
    if (lua_gettop(L) != 1) return luaRaise(L, "ERR server.set_repl() requires one argument.");
    int flags = luaToInt(lua_tonumber(L, 1));
    if (flags & ~REPL_ALL)
        return luaRaise(L, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL "
                           "or REPL_NONE.");
    luaVm *vm = luaVmOf(L);
    if (!vm->run) return 0;
    uint8_t targets = 0;
    if (flags & REPL_AOF) targets |= PROPAGATE_AOF;
    if (flags & REPL_REPLICA) targets |= PROPAGATE_REPLICAS | PROPAGATE_SLOT_EXPORT;
    vm->run->targets = targets & vm->run->caller->targets;
    return 0;
}

static int sha1Hex(lua_State *L) {
    if (lua_gettop(L) != 1) return luaRaise(L, "ERR wrong number of arguments");
    size_t len = 0;
    const char *text = lua_tolstring(L, 1, &len);
    char digest[SCRIPT_DIGEST_LEN + 1];
    scriptDigest(sliceMake(text, len), digest);
    lua_pushlstring(L, digest, SCRIPT_DIGEST_LEN);
    return 1;
}

static int replicateCommands(lua_State *L) {
    lua_pushboolean(L, 1);
    return 1;
}

static int serverLog(lua_State *L) {
    int argc = lua_gettop(L);
    if (argc < 2) return luaRaise(L, "ERR server.log() requires two arguments or more.");
    if (!lua_isnumber(L, 1)) return luaRaise(L, "ERR First argument must be a number (log level).");
    int level = luaToInt(lua_tonumber(L, 1));
    if (level < LOG_DEBUG || level > LOG_WARNING) return luaRaise(L, "ERR Invalid log level.");
    str line = STR_EMPTY;
    luaVm *vm = luaVmOf(L);
    luaVmHold(vm);
    for (int i = 2; i <= argc; i++) {
        size_t len;
        const char *text = lua_tolstring(L, i, &len);
        if (!text) continue;
        if (line.len) strAppendByte(&line, ' ');
        strAppend(&line, text, len);
    }
    luaVmRelease(vm);
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\n' || line.ptr[i] == '\r') line.ptr[i] = ' ';
    }
    if (level >= logLevelNow) logWrite((logLevel)level, "<lua> %s", strText(&line));
    strFree(&line);
    return 0;
}

static int aclCheckCmd(lua_State *L) {
    luaVm *vm = luaVmOf(L);
    if (!vm->run)
        return luaRaise(L, "ERR server.acl_check_cmd can only be called inside a script "
                           "invocation");
    int argc = lua_gettop(L);
    const char *error = takeArguments(L, argc);
    if (error) return luaRaise(L, error);
    bool unknown_sub;
    const command *cmd = commandResolve(arguments.argv, argc, &unknown_sub);
    if (!cmd || unknown_sub)
        return luaRaise(L, "ERR Invalid command passed to server.acl_check_cmd()");
    lua_pushboolean(L, userMayRun(vm->run->caller->who, cmd, arguments.argv, argc));
    return 1;
}

/* ------------------------------------------------------------------ register_function */

static const char *const needs_load =
    "ERR server.register_function can only be called on FUNCTION LOAD command";

/* The set of flags of the table on top. False: one is unknown. */
static bool takeFlags(lua_State *L, unsigned *flags) {
    for (int i = 1;; i++) {
        lua_rawgeti(L, -1, i);
        if (lua_isnil(L, -1)) break;
        size_t len = 0;
        const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
        unsigned flag = name ? scriptFlagParse(sliceMake(name, len), true) : 0;
        lua_pop(L, 1);
        if (!flag) return false;
        *flags |= flag;
    }
    lua_pop(L, 1);
    return true;
}

/* The values of the call, at fixed indexes of the stack. */
enum { AT_NAME = 2, AT_CALLBACK = 3, AT_DESCRIPTION = 4 };

/* Stores the named argument on top; an error text or NULL. */
static const char *takeNamed(lua_State *L, slice key, unsigned *flags) {
    if (sliceIs(key, "function_name") || sliceIs(key, "description")) {
        bool is_name = sliceIs(key, "function_name");
        if (!lua_isstring(L, -1))
            return is_name ? "ERR function_name argument given to server.register_function must "
                             "be a string"
                           : "ERR description argument given to server.register_function must be "
                             "a string";
        lua_pushvalue(L, -1);
        lua_replace(L, is_name ? AT_NAME : AT_DESCRIPTION);
    } else if (sliceIs(key, "callback")) {
        if (!lua_isfunction(L, -1))
            return "ERR callback argument given to server.register_function must be a function";
        lua_pushvalue(L, -1);
        lua_replace(L, AT_CALLBACK);
    } else if (sliceIs(key, "flags")) {
        if (!lua_istable(L, -1))
            return "ERR flags argument to server.register_function must be a table representing "
                   "function flags";
        if (!takeFlags(L, flags)) return "ERR unknown flag given";
    } else {
        return "ERR unknown argument given to server.register_function";
    }
    return NULL;
}

/* The form with a table of named arguments, at index 1. */
static const char *takeTable(lua_State *L, unsigned *flags) {
    if (!lua_istable(L, 1))
        return "ERR calling server.register_function with a single argument is only applicable to "
               "Lua table (representing named arguments).";
    lua_settop(L, AT_DESCRIPTION);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        if (lua_type(L, -2) == LUA_TNUMBER)
            return "ERR unknown argument given to server.register_function";
        if (lua_type(L, -2) != LUA_TSTRING)
            return "ERR named argument key given to server.register_function is not a string";
        size_t len;
        const char *key = lua_tolstring(L, -2, &len);
        int top = lua_gettop(L);
        const char *error = takeNamed(L, sliceMake(key, len), flags);
        if (error) return error;
        lua_settop(L, top - 1);
    }
    if (lua_isnil(L, AT_NAME))
        return "ERR server.register_function must get a function name argument";
    if (lua_isnil(L, AT_CALLBACK))
        return "ERR server.register_function must get a callback argument";
    return NULL;
}

/* The form with a name and a function. */
static const char *takePair(lua_State *L) {
    if (!lua_isstring(L, 1))
        return "ERR first argument to server.register_function must be a string";
    if (!lua_isfunction(L, 2))
        return "ERR second argument to server.register_function must be a function";
    lua_settop(L, 2);
    lua_pushnil(L);
    lua_insert(L, 1);
    lua_pushnil(L);
    return NULL;
}

static int registerFunction(lua_State *L) {
    luaVm *vm = luaVmOf(L);
    if (!vm->load) return luaRaise(L, needs_load);
    int argc = lua_gettop(L);
    if (argc < 1 || argc > 2)
        return luaRaise(L, "ERR wrong number of arguments to server.register_function");
    unsigned flags = 0;
    const char *error = argc == 1 ? takeTable(L, &flags) : takePair(L);
    if (error) return luaRaise(L, error);
    scriptFunctionInfo info = {.flags = flags, .description = {NULL, 0}};
    str reason_text = STR_EMPTY;
    luaVmHold(vm);
    info.name.ptr = lua_tolstring(L, AT_NAME, &info.name.len);
    if (!lua_isnil(L, AT_DESCRIPTION))
        info.description.ptr = lua_tolstring(L, AT_DESCRIPTION, &info.description.len);
    lua_pushvalue(L, AT_CALLBACK);
    info.handle = luaL_ref(L, LUA_REGISTRYINDEX);
    status st = vm->load->add(vm->load->arg, &info, &reason_text);
    if (st != OK) {
        luaL_unref(L, LUA_REGISTRYINDEX, info.handle);
        lua_settop(L, 0);
        (void)fail(L, strText(&reason_text), false);
    }
    strFree(&reason_text);
    luaVmRelease(vm);
    return st == OK ? 0 : lua_error(L);
}

/* ------------------------------------------------------------------ the table */

static void setNumber(lua_State *L, const char *name, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

static void setText(lua_State *L, const char *name, const char *value) {
    lua_pushstring(L, value);
    lua_setfield(L, -2, name);
}

/* The version that is reported to scripts written for Redis. */
static const char redis_version[] = "7.2.4";
enum { REDIS_VERSION_NUMBER = 0x070204 };

/* "9.1.2" as 0x090102. */
static double versionNumber(const char *version) {
    unsigned parts[3] = {0, 0, 0};
    int part = 0;
    for (; *version && part < 3; version++) {
        if (*version == '.') {
            part++;
        } else {
            parts[part] = parts[part] * 10 + (unsigned)(*version - '0');
        }
    }
    return parts[0] << 16 | parts[1] << 8 | parts[2];
}

void luaOpenServer(luaVm *vm, bool loading) {
    hotCheck(threadIsMain());
    static const luaL_Reg usual[] = {
        {"call", serverCall},          {"pcall", luaServerPcall},      {"error_reply", errorReply},
        {"status_reply", statusReply}, {"setresp", setResp},           {"set_repl", setRepl},
        {"sha1hex", sha1Hex},          {"acl_check_cmd", aclCheckCmd}, {NULL, NULL}};
    static const luaL_Reg of_eval[] = {{"replicate_commands", replicateCommands},
                                       {"breakpoint", luaBreakpoint},
                                       {"debug", luaDebugShow},
                                       {NULL, NULL}};
    static const luaL_Reg of_load[] = {{"register_function", registerFunction}, {NULL, NULL}};
    lua_State *L = vm->L;
    lua_newtable(L);
    luaSetFunctions(L, loading ? of_load : usual);
    if (!loading && vm->use == SCRIPT_USE_EVAL) luaSetFunctions(L, of_eval);
    lua_pushcfunction(L, serverLog);
    lua_setfield(L, -2, "log");
    setNumber(L, "LOG_DEBUG", LOG_DEBUG);
    setNumber(L, "LOG_VERBOSE", LOG_VERBOSE);
    setNumber(L, "LOG_NOTICE", LOG_NOTICE);
    setNumber(L, "LOG_WARNING", LOG_WARNING);
    engineIdentity self;
    engineIdentify(&self);
    setText(L, "SERVER_NAME", "valkey");
    setText(L, "VALKEY_VERSION", self.version);
    setNumber(L, "VALKEY_VERSION_NUM", versionNumber(self.version));
    setText(L, "REDIS_VERSION", redis_version);
    setNumber(L, "REDIS_VERSION_NUM", REDIS_VERSION_NUMBER);
    if (loading) return;
    setNumber(L, "REPL_NONE", 0);
    setNumber(L, "REPL_AOF", REPL_AOF);
    setNumber(L, "REPL_REPLICA", REPL_REPLICA);
    setNumber(L, "REPL_SLAVE", REPL_REPLICA);
    setNumber(L, "REPL_ALL", REPL_ALL);
}

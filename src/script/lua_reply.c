/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values between Lua and replies, in both directions and both protocols, without text in between.
 * Invariant: after all items of a reply exactly one value was added to the stack. Main thread
 * only. */
#include <math.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/reply.h"
#include "script/lua_priv.h"

/* A function in C has LUA_MINSTACK values beyond its arguments, of which there may be as many as
 * the stack allows. */
enum { ARRAY_RESERVE_MAX = 1 << 20, DEPTH_WITHOUT_CHECK = 5 };
_Static_assert(DEPTH_WITHOUT_CHECK * 2 + 6 <= LUA_MINSTACK, "flat replies always fit");
static const size_t STRING_MAX = 0x7fffff00; /* longest string of the interpreter */

/* ------------------------------------------------------------------ reply to Lua */

/* The value on top is complete: stores it in the aggregate that it belongs to, and closes those
 * that are full. */
static void valueDone(luaReply *r) {
    lua_State *L = r->L;
    while (r->depth > 0) {
        int at = r->depth - 1;
        replyKind kind = r->open[at].kind;
        bool is_key = kind == REPLY_MAP && r->open[at].left % 2 == 0;
        if (kind == REPLY_SET) {
            lua_pushboolean(L, 1);
            if (lua_isnil(L, -2)) {
                lua_pop(L, 2);
            } else {
                lua_rawset(L, -3);
            }
        } else if (kind == REPLY_MAP && !is_key) {
            if (lua_isnil(L, -2)) {
                lua_pop(L, 2);
            } else {
                lua_rawset(L, -3);
            }
        } else if (kind != REPLY_MAP) {
            lua_rawseti(L, -2, r->open[at].next++);
        }
        if (--r->open[at].left > 0) return;
        if (kind == REPLY_MAP) lua_setfield(L, -2, "map");
        if (kind == REPLY_SET) lua_setfield(L, -2, "set");
        r->depth--;
    }
}

static void openAggregate(luaReply *r, replyKind kind, int64_t count) {
    lua_State *L = r->L;
    if (r->depth == REPLY_DEPTH_MAX || (r->depth >= DEPTH_WITHOUT_CHECK && !lua_checkstack(L, 8))) {
        r->broken = true;
        return;
    }
    int reserve = count < ARRAY_RESERVE_MAX ? (int)count : ARRAY_RESERVE_MAX;
    bool is_list = kind != REPLY_MAP && kind != REPLY_SET;
    if (!is_list) lua_createtable(L, 0, 1);
    lua_createtable(L, is_list ? reserve : 0, is_list ? 0 : reserve);
    r->open[r->depth].kind = kind;
    r->open[r->depth].left = kind == REPLY_MAP ? count * 2 : count;
    r->open[r->depth].next = 1;
    r->depth++;
    if (count > 0) return;
    if (!is_list) lua_setfield(L, -2, kind == REPLY_MAP ? "map" : "set");
    r->depth--;
    valueDone(r);
}

static void pushTagged(lua_State *L, const char *field, slice text) {
    lua_createtable(L, 0, 2);
    lua_pushlstring(L, text.ptr, text.len);
    lua_setfield(L, -2, field);
}

static void pushVerbatim(lua_State *L, const replyEvent *e) {
    lua_createtable(L, 0, 1);
    pushTagged(L, "string", e->text);
    lua_pushstring(L, e->format);
    lua_setfield(L, -2, "format");
    lua_setfield(L, -2, "verbatim_string");
}

static void pushScalar(luaReply *r, const replyEvent *e) {
    lua_State *L = r->L;
    switch (e->kind) {
    case REPLY_INTEGER: lua_pushnumber(L, (double)e->integer); break;
    case REPLY_BULK: lua_pushlstring(L, e->text.ptr, e->text.len); break;
    case REPLY_STATUS: pushTagged(L, "ok", e->text); break;
    case REPLY_ERROR:
        pushTagged(L, "err", e->text);
        if (!r->depth) r->is_error = true;
        break;
    case REPLY_NULL:
        if (r->proto == 2) {
            lua_pushboolean(L, 0);
        } else {
            lua_pushnil(L);
        }
        break;
    case REPLY_BOOL:
        if (r->proto == 2) {
            lua_pushnumber(L, (double)e->integer);
        } else {
            lua_pushboolean(L, e->integer != 0);
        }
        break;
    case REPLY_DOUBLE:
        lua_createtable(L, 0, 1);
        lua_pushnumber(L, e->number);
        lua_setfield(L, -2, "double");
        break;
    case REPLY_BIG_NUMBER: pushTagged(L, "big_number", e->text); break;
    case REPLY_VERBATIM: pushVerbatim(L, e); break;
    default: panic("a reply item of kind %d", (int)e->kind);
    }
}

/* Attributes are dropped, as scripts cannot see them. True if the item is one or belongs to one. */
static bool isDropped(luaReply *r, const replyEvent *e) {
    bool begins = e->kind == REPLY_ATTRIBUTE;
    if (!begins && r->to_drop == 0) return false;
    if (!begins) r->to_drop--; /* an attribute is not an item itself */
    bool pairs = begins || e->kind == REPLY_MAP;
    if (pairs || (e->kind >= REPLY_ARRAY && e->kind <= REPLY_PUSH))
        r->to_drop += (uint64_t)e->integer * (pairs ? 2 : 1);
    return true;
}

/* Allocations for a reply must not fail, because it arrives in the middle of a command: so they are
 * asked for before, in large amounts. False: there is not enough. */
static bool hasRoom(luaReply *r, size_t bytes) {
    enum { GRANTED = 256 << 10 };
    if (unlikely(bytes > r->granted)) {
        if (!luaVmHasRoom(luaVmOf(r->L), bytes + GRANTED)) return false;
        r->granted = bytes + GRANTED;
    }
    r->granted -= bytes;
    return true;
}

/* About what an item takes in Lua: tables grow by doubling, and are copied. */
static size_t bytesOf(const replyEvent *e) {
    enum { ITEM = 64, ELEMENT = 32, ENTRY = 80 };
    bool is_list = e->kind == REPLY_ARRAY || e->kind == REPLY_PUSH;
    if (e->kind >= REPLY_ARRAY && e->kind <= REPLY_PUSH)
        return ITEM * 2 + (size_t)e->integer * (is_list ? ELEMENT : ENTRY);
    return ITEM + e->text.len;
}

void luaReplyTake(void *state, const replyEvent *e) {
    hotCheck(threadIsMain());
    luaReply *r = state;
    if (r->broken || isDropped(r, e)) return;
    if (!hasRoom(r, bytesOf(e))) {
        r->broken = true;
        return;
    }
    if (e->kind >= REPLY_ARRAY && e->kind <= REPLY_PUSH) {
        openAggregate(r, e->kind, e->integer);
        return;
    }
    if (e->text.len > STRING_MAX && e->kind == REPLY_BULK) {
        r->broken = true;
        return;
    }
    pushScalar(r, e);
    valueDone(r);
}

/* ------------------------------------------------------------------ Lua to reply */

typedef struct writer {
    lua_State *L;
    luaVm *vm;
    const char *failure; /* why the reply is given up, NULL: it is not */
    size_t granted;      /* bytes to write before memory is asked for */
    size_t written;      /* about, before that */
    ctx *c;
    uint8_t script_proto;
    int depth;
} writer;

static void writeValue(writer *w);

/* False: the reply ends here, because memory is too short for so many bytes or the script is
 * killed. A reply may be as large as the script itself. */
static bool mayWrite(writer *w, size_t bytes) {
    enum { GRANTED = 1 << 20 };
    static const char too_large[] = "ERR the reply of the script does not fit into memory";
    if (unlikely(w->vm->steps_left <= 1)) {
        if (luaGuardServe(w->vm)) w->failure = luaKillText(w->vm);
    } else {
        w->vm->steps_left--;
    }
    if (unlikely(bytes > w->granted)) {
        size_t more = bytes + GRANTED;
        w->written += more;
        /* Blocks of output take more than their bytes. */
        bool fits = w->written <= w->vm->limit && memHasRoom(more + more / 2, true);
        if (!fits && !w->failure) w->failure = too_large;
        w->granted = more;
    }
    w->granted -= bytes;
    return !w->failure;
}

static void writeNumber(ctx *c, double n) {
    bool fits = n > -9223372036854775808.0 && n < 9223372036854775808.0;
    respInteger(c->out, fits ? (int64_t)n : INT64_MIN);
}

static void writeBoolean(const writer *w, bool yes) {
    if (w->script_proto == 3) {
        respBool(w->c->out, w->c->proto, yes);
    } else if (yes) {
        respInteger(w->c->out, 1);
    } else {
        replyNull(w->c);
    }
}

/* Pushes a field of the table on top, without metamethods. True if it has the type; else nothing is
 * pushed. */
static bool pushField(lua_State *L, const char *name, size_t len, int type) {
    lua_pushlstring(L, name, len);
    lua_rawget(L, -2);
    if (lua_type(L, -1) == type) return true;
    lua_pop(L, 1);
    return false;
}
#define PUSH_FIELD(L, name, type) pushField(L, name, sizeof(name) - 1, type)

static slice sliceAt(lua_State *L, int index) {
    size_t len;
    const char *text = lua_tolstring(L, index, &len);
    return sliceMake(text, len);
}

static void writeVerbatim(writer *w) {
    lua_State *L = w->L;
    if (!PUSH_FIELD(L, "format", LUA_TSTRING)) return;
    char format[4] = "   ";
    slice given = sliceAt(L, -1);
    memcpy(format, given.ptr, sizeMin(given.len, 3));
    lua_pop(L, 1);
    if (!PUSH_FIELD(L, "string", LUA_TSTRING)) return;
    respVerbatim(w->c->out, w->c->proto, sliceAt(L, -1), format);
    lua_pop(L, 1);
}

static bool isVerbatim(lua_State *L) {
    bool yes = PUSH_FIELD(L, "format", LUA_TSTRING);
    if (yes) lua_pop(L, 1);
    if (yes) {
        yes = PUSH_FIELD(L, "string", LUA_TSTRING);
        if (yes) lua_pop(L, 1);
    }
    return yes;
}

/* The map or set on top of the stack. */
static void writeEntries(writer *w, bool is_map) {
    lua_State *L = w->L;
    int64_t count = 0;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) count++;
    if (is_map) {
        replyMap(w->c, count);
    } else {
        replySet(w->c, count);
    }
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pushvalue(L, -2);
        writeValue(w);
        if (is_map) {
            writeValue(w);
        } else {
            lua_pop(L, 1);
        }
        if (unlikely(w->failure != NULL)) {
            lua_pop(L, 1);
            return;
        }
    }
}

static void writeArray(writer *w) {
    lua_State *L = w->L;
    int count = 0;
    for (;;) {
        lua_rawgeti(L, -1, count + 1);
        bool ends = lua_isnil(L, -1);
        lua_pop(L, 1);
        if (ends) break;
        count++;
    }
    replyArray(w->c, count);
    for (int i = 1; i <= count && !w->failure; i++) {
        lua_rawgeti(L, -1, i);
        writeValue(w);
    }
}

/* In RESP2 it is a bulk string, but on one line as in RESP3. */
static void writeBigNumber(ctx *c, slice digits) {
    str line = strNew(sliceMake(digits.ptr, strnlen(digits.ptr, digits.len)));
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\r' || line.ptr[i] == '\n') line.ptr[i] = ' ';
    }
    respBigNumber(c->out, c->proto, strSlice(&line));
    strFree(&line);
}

/* A table with one of the known fields, which is written; false if it is an array. */
static bool writeTagged(writer *w) {
    lua_State *L = w->L;
    ctx *c = w->c;
    if (PUSH_FIELD(L, "err", LUA_TSTRING)) {
        slice text = sliceAt(L, -1);
        text.len = strnlen(text.ptr, text.len);
        while (text.len && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
            text.len--;
        lua_pushliteral(L, "ignore_error_stats_update");
        lua_rawget(L, -3);
        scriptReplyError(c, text, lua_toboolean(L, -1));
        lua_pop(L, 1);
    } else if (PUSH_FIELD(L, "ok", LUA_TSTRING)) {
        slice text = sliceAt(L, -1);
        text.len = strnlen(text.ptr, text.len);
        replyStatus(c, text);
    } else if (PUSH_FIELD(L, "double", LUA_TNUMBER)) {
        replyDouble(c, lua_tonumber(L, -1));
    } else if (PUSH_FIELD(L, "map", LUA_TTABLE)) {
        writeEntries(w, true);
    } else if (PUSH_FIELD(L, "set", LUA_TTABLE)) {
        writeEntries(w, false);
    } else if (PUSH_FIELD(L, "big_number", LUA_TSTRING)) {
        writeBigNumber(c, sliceAt(L, -1));
    } else if (PUSH_FIELD(L, "verbatim_string", LUA_TTABLE)) {
        bool valid = isVerbatim(L);
        if (valid) writeVerbatim(w);
        lua_pop(L, 1);
        return valid;
    } else {
        return false;
    }
    lua_pop(L, 1);
    return true;
}

/* Writes the value on top of the stack and removes it. */
static void writeValue(writer *w) {
    enum { ITEM = 24 };
    lua_State *L = w->L;
    int type = lua_type(L, -1);
    if (unlikely(!mayWrite(w, ITEM + (type == LUA_TSTRING ? lua_objlen(L, -1) : 0)))) {
        lua_pop(L, 1);
        return;
    }
    switch (type) {
    case LUA_TSTRING: replyBulk(w->c, sliceAt(L, -1)); break;
    case LUA_TNUMBER: writeNumber(w->c, lua_tonumber(L, -1)); break;
    case LUA_TBOOLEAN: writeBoolean(w, lua_toboolean(L, -1)); break;
    case LUA_TTABLE:
        if (w->depth >= LUA_DEPTH_MAX || luaStackIsLow(w->vm, LUA_STACK_RECURSION) ||
            !lua_checkstack(L, 4)) {
            scriptReplyError(w->c, SLICE("ERR reached lua stack limit"), false);
            break;
        }
        w->depth++;
        if (!writeTagged(w)) writeArray(w);
        w->depth--;
        break;
    default: replyNull(w->c);
    }
    lua_pop(L, 1);
}

void luaReplyValue(luaVm *vm, scriptRun *run) {
    hotCheck(threadIsMain());
    ctx *c = run->caller;
    writer w = {
        .L = vm->L, .vm = vm, .c = c, .granted = LUA_REPLY_GRANTED, .script_proto = run->proto};
    outmark begin = outbufMark(c->out);
    writeValue(&w);
    if (likely(!w.failure)) return;
    outbufCutTo(c->out, begin);
    scriptReplyError(c, sliceOf(w.failure), false);
}

size_t luaPrintNumber(char *dst, double n) {
    hotCheck(threadIsMain());
    const double whole_max = 4611686018427387904.0; /* 2^62 */
    if (n > -whole_max && n < whole_max && n == (double)(int64_t)n)
        return numberPrintInt(dst, (int64_t)n);
    if (isnan(n)) {
        size_t len = signbit(n) ? 4 : 3;
        memcpy(dst, signbit(n) ? "-nan" : "nan", len + 1);
        return len;
    }
    return numberPrintDouble(dst, n);
}

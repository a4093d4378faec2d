/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table `cmsgpack`: MessagePack from and to Lua values. Texts from outside are checked against
 * the bytes that exist before anything is created. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "base/bytes.h"
#include "script/lua_priv.h"

enum { DEPTH_MAX = 16, BUFFER_KEPT_MAX = 1 << 16, PACKED_MAX = 16 };

/* ------------------------------------------------------------------ pack */

static str buffer; /* of the text being built; reused, so an error leaks nothing */

/* A type byte and a number of `size` bytes, big-endian. */
static void putNumber(uint8_t type, uint64_t value, size_t size) {
    char *at = strReserve(&buffer, 9);
    at[0] = (char)type;
    for (size_t i = 0; i < size; i++) at[1 + i] = (char)(value >> 8 * (size - 1 - i));
    strGrow(&buffer, 1 + size);
}

static void packInteger(int64_t n) {
    if (n >= 0) {
        if (n <= 127) {
            putNumber((uint8_t)n, 0, 0);
        } else if (n <= 0xff) {
            putNumber(0xcc, (uint64_t)n, 1);
        } else if (n <= 0xffff) {
            putNumber(0xcd, (uint64_t)n, 2);
        } else if (n <= 0xffffffffLL) {
            putNumber(0xce, (uint64_t)n, 4);
        } else {
            putNumber(0xcf, (uint64_t)n, 8);
        }
    } else if (n >= -32) {
        putNumber((uint8_t)n, 0, 0);
    } else if (n >= INT8_MIN) {
        putNumber(0xd0, (uint64_t)n, 1);
    } else if (n >= INT16_MIN) {
        putNumber(0xd1, (uint64_t)n, 2);
    } else if (n >= INT32_MIN) {
        putNumber(0xd2, (uint64_t)n, 4);
    } else {
        putNumber(0xd3, (uint64_t)n, 8);
    }
}

static void packNumber(double n) {
    if (n >= -9223372036854775808.0 && n < 9223372036854775808.0 && n == floor(n)) {
        packInteger((int64_t)n);
        return;
    }
    float narrow = (float)n;
    if ((double)narrow == n) {
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof(bits));
        putNumber(0xca, bits, 4);
    } else {
        uint64_t bits;
        memcpy(&bits, &n, sizeof(bits));
        putNumber(0xcb, bits, 8);
    }
}

static void packString(slice text) {
    if (text.len < 32) {
        putNumber((uint8_t)(0xa0 | text.len), 0, 0);
    } else if (text.len <= 0xff) {
        putNumber(0xd9, text.len, 1);
    } else if (text.len <= 0xffff) {
        putNumber(0xda, text.len, 2);
    } else {
        putNumber(0xdb, text.len, 4);
    }
    strAppendSlice(&buffer, text);
}

/* Header of an array or map: `fixed` for up to 15 items, `wide` with two bytes, wide + 1 with
 * four. */
static void packHead(uint8_t fixed, uint8_t wide, size_t count) {
    if (count <= 15) {
        putNumber((uint8_t)(fixed | count), 0, 0);
    } else if (count <= 0xffff) {
        putNumber(wide, count, 2);
    } else {
        putNumber((uint8_t)(wide + 1), count, 4);
    }
}

static void packValue(lua_State *L, luaVm *vm, int level);

/* The number of items if the keys of the table on top are 1..n, else -1; *entries is their
 * number. */
static ptrdiff_t arrayLength(lua_State *L, luaVm *vm, size_t *entries) {
    double max = 0;
    bool is_array = true;
    *entries = 0;
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        double k = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
        if (!(k >= 1) || k != floor(k)) is_array = false;
        if (k > max) max = k;
        (*entries)++;
        luaVmStep(L, vm, 1);
    }
    return is_array && max == (double)*entries ? (ptrdiff_t)*entries : -1;
}

static void packTable(lua_State *L, luaVm *vm, int level) {
    luaL_checkstack(L, 4, "in function table_to_msgpack");
    bool behind = luaPushBehindProxy(L, lua_gettop(L));
    size_t entries;
    ptrdiff_t length = arrayLength(L, vm, &entries);
    if (length >= 0) {
        packHead(0x90, 0xdc, (size_t)length);
        for (int i = 1; i <= length; i++) {
            lua_rawgeti(L, -1, i);
            packValue(L, vm, level + 1);
        }
    } else {
        packHead(0x80, 0xde, entries);
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            lua_pushvalue(L, -2);
            packValue(L, vm, level + 1);
            packValue(L, vm, level + 1);
        }
    }
    if (behind) lua_pop(L, 1);
}

/* Packs the value on top and removes it. */
static void packValue(lua_State *L, luaVm *vm, int level) {
    luaVmStep(L, vm, 1);
    int type = lua_type(L, -1);
    luaCheckGrowth(L, &buffer, PACKED_MAX + (type == LUA_TSTRING ? lua_objlen(L, -1) : 0));
    if (type == LUA_TTABLE && level == DEPTH_MAX) type = LUA_TNIL;
    switch (type) {
    case LUA_TSTRING: {
        slice text;
        text.ptr = lua_tolstring(L, -1, &text.len);
        packString(text);
        break;
    }
    case LUA_TBOOLEAN: putNumber(lua_toboolean(L, -1) ? 0xc3 : 0xc2, 0, 0); break;
    case LUA_TNUMBER: packNumber(lua_tonumber(L, -1)); break;
    case LUA_TTABLE: packTable(L, vm, level); break;
    default: putNumber(0xc0, 0, 0);
    }
    lua_pop(L, 1);
}

static int msgpackPack(lua_State *L) {
    int count = lua_gettop(L);
    if (count == 0) return luaL_argerror(L, 0, "MessagePack pack needs input.");
    luaL_checkstack(L, 2, "Too many arguments for MessagePack pack.");
    luaVm *vm = luaVmOf(L);
    strClear(&buffer);
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(L, i);
        packValue(L, vm, 0);
    }
    lua_pushlstring(L, strText(&buffer), buffer.len);
    if (buffer.cap > BUFFER_KEPT_MAX) strFree(&buffer);
    return 1;
}

/* ------------------------------------------------------------------ unpack */

typedef struct unpacker {
    lua_State *L;
    luaVm *vm;
    const uint8_t *at, *end;
} unpacker;

static void need(unpacker *u, uint64_t bytes) {
    if ((uint64_t)(u->end - u->at) < bytes) (void)luaL_error(u->L, "Missing bytes in input.");
}

static uint64_t takeNumber(unpacker *u, size_t size) {
    need(u, size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value = value << 8 | *u->at++;
    return value;
}

static void unpackValue(unpacker *u);

static void unpackString(unpacker *u, uint64_t len) {
    need(u, len);
    lua_pushlstring(u->L, (const char *)u->at, (size_t)len);
    u->at += len;
}

static void unpackArray(unpacker *u, uint64_t count) {
    luaL_checkstack(u->L, 4, "in function mp_decode_to_lua_array");
    lua_newtable(u->L);
    for (uint64_t i = 1; i <= count; i++) {
        unpackValue(u);
        lua_rawseti(u->L, -2, (int)i);
    }
}

static void unpackMap(unpacker *u, uint64_t count) {
    lua_State *L = u->L;
    luaL_checkstack(L, 4, "in function mp_decode_to_lua_hash");
    lua_newtable(L);
    for (uint64_t i = 0; i < count; i++) {
        unpackValue(u);
        unpackValue(u);
        bool is_nan = lua_type(L, -2) == LUA_TNUMBER && isnan(lua_tonumber(L, -2));
        if (is_nan || lua_isnil(L, -2)) {
            lua_pushstring(L, is_nan ? "table index is NaN" : "table index is nil");
            (void)lua_error(L);
        }
        lua_rawset(L, -3);
    }
}

static void unpackFloat(unpacker *u, bool wide) {
    uint64_t bits = takeNumber(u, wide ? 8 : 4);
    double value;
    if (wide) {
        memcpy(&value, &bits, sizeof(value));
    } else {
        uint32_t narrow_bits = (uint32_t)bits;
        float narrow = 0;
        memcpy(&narrow, &narrow_bits, sizeof(narrow));
        value = narrow;
    }
    lua_pushnumber(u->L, value);
}

/* Sign-extends a number of `size` bytes. */
static double signedNumber(unpacker *u, size_t size) {
    int shift = 64 - 8 * (int)size;
    return (double)((int64_t)(takeNumber(u, size) << shift) >> shift);
}

static void unpackTyped(unpacker *u, uint8_t type) {
    lua_State *L = u->L;
    switch (type) {
    case 0xc0: lua_pushnil(L); break;
    case 0xc2: lua_pushboolean(L, 0); break;
    case 0xc3: lua_pushboolean(L, 1); break;
    case 0xca: unpackFloat(u, false); break;
    case 0xcb: unpackFloat(u, true); break;
    case 0xcc: lua_pushnumber(L, (double)takeNumber(u, 1)); break;
    case 0xcd: lua_pushnumber(L, (double)takeNumber(u, 2)); break;
    case 0xce: lua_pushnumber(L, (double)takeNumber(u, 4)); break;
    case 0xcf: lua_pushnumber(L, (double)takeNumber(u, 8)); break;
    case 0xd0: lua_pushnumber(L, signedNumber(u, 1)); break;
    case 0xd1: lua_pushnumber(L, signedNumber(u, 2)); break;
    case 0xd2: lua_pushnumber(L, signedNumber(u, 4)); break;
    case 0xd3: lua_pushnumber(L, signedNumber(u, 8)); break;
    case 0xd9: unpackString(u, takeNumber(u, 1)); break;
    case 0xda: unpackString(u, takeNumber(u, 2)); break;
    case 0xdb: unpackString(u, takeNumber(u, 4)); break;
    case 0xdc: unpackArray(u, takeNumber(u, 2)); break;
    case 0xdd: unpackArray(u, takeNumber(u, 4)); break;
    case 0xde: unpackMap(u, takeNumber(u, 2)); break;
    case 0xdf: unpackMap(u, takeNumber(u, 4)); break;
    default: (void)luaL_error(L, "Bad data format in input.");
    }
}

/* Pushes the next value. */
static void unpackValue(unpacker *u) {
    luaVmStep(u->L, u->vm, 1);
    if (luaStackIsLow(u->vm, LUA_STACK_RECURSION)) (void)luaRaiseStackOverflow(u->L);
    need(u, 1);
    uint8_t type = *u->at++;
    if (type <= 0x7f) {
        lua_pushnumber(u->L, type);
    } else if (type >= 0xe0) {
        lua_pushnumber(u->L, (int8_t)type);
    } else if ((type & 0xf0) == 0x80) {
        unpackMap(u, type & 0xf);
    } else if ((type & 0xf0) == 0x90) {
        unpackArray(u, type & 0xf);
    } else if ((type & 0xe0) == 0xa0) {
        unpackString(u, type & 0x1f);
    } else {
        unpackTyped(u, type);
    }
}

/* Pushes up to `limit` values (0: all) from `offset` on; with a limit the next offset first, -1 at
 * the end. */
static int unpackFrom(lua_State *L, ptrdiff_t limit, ptrdiff_t offset) {
    size_t len;
    const uint8_t *text = (const uint8_t *)luaL_checklstring(L, 1, &len);
    if (offset < 0 || limit < 0)
        return luaL_error(L, "Invalid request to unpack with offset of %d and limit of %d.",
                          (int)offset, (int)len);
    if ((size_t)offset > len)
        return luaL_error(L, "Start offset %d greater than input length %d.", (int)offset,
                          (int)len);
    bool all = limit == 0 && offset == 0;
    if (all) limit = INT32_MAX;
    unpacker u = {.L = L, .vm = luaVmOf(L), .at = text + offset, .end = text + len};
    int count = 0;
    while (u.at < u.end && count < limit) {
        luaL_checkstack(L, 2, "in function mp_unpack");
        unpackValue(&u);
        count++;
    }
    if (all) return count;
    luaL_checkstack(L, 1, "in function mp_unpack");
    lua_pushinteger(L, u.at == u.end ? -1 : u.at - text);
    lua_insert(L, -count - 1);
    return count + 1;
}

static int msgpackUnpack(lua_State *L) { return unpackFrom(L, 0, 0); }

static int msgpackUnpackOne(lua_State *L) {
    ptrdiff_t offset = luaL_optinteger(L, 2, 0);
    lua_settop(L, 1);
    return unpackFrom(L, 1, offset);
}

static int msgpackUnpackLimit(lua_State *L) {
    ptrdiff_t limit = luaL_checkinteger(L, 2), offset = luaL_optinteger(L, 3, 0);
    lua_settop(L, 1);
    return unpackFrom(L, limit, offset);
}

void luaOpenMsgpack(lua_State *L) {
    static const luaL_Reg functions[] = {{"pack", msgpackPack},
                                         {"unpack", msgpackUnpack},
                                         {"unpack_one", msgpackUnpackOne},
                                         {"unpack_limit", msgpackUnpackLimit},
                                         {NULL, NULL}};
    lua_newtable(L);
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushcfunction(L, f->func);
        lua_setfield(L, -2, f->name);
    }
    lua_pushliteral(L, "cmsgpack");
    lua_setfield(L, -2, "_NAME");
    lua_pushliteral(L, "lua-cmsgpack 0.4.0");
    lua_setfield(L, -2, "_VERSION");
    lua_pushliteral(L, "Copyright (C) 2012, Redis Ltd."); /* as scripts know it */
    lua_setfield(L, -2, "_COPYRIGHT");
    lua_pushliteral(L, "MessagePack C implementation for Lua");
    lua_setfield(L, -2, "_DESCRIPTION");
}

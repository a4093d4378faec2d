/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The library `bit`: operations on 32 bits. Numbers are taken modulo 2^32, results are signed. */
#include <string.h>

#include "base/base.h"
#include "script/lua_priv.h"

/* Adding this number moves the integer part of another one to the low bits, rounded to even. */
static const double TO_LOW_BITS = 6755399441055744.0; /* 2^52 + 2^51 */

static uint32_t bitsAt(lua_State *L, int index) {
    double n = luaL_checknumber(L, index) + TO_LOW_BITS;
    uint64_t bits;
    memcpy(&bits, &n, sizeof(bits));
    return (uint32_t)bits;
}

static int pushBits(lua_State *L, uint32_t bits) {
    lua_pushnumber(L, (double)(int32_t)bits);
    return 1;
}

static int bitTobit(lua_State *L) { return pushBits(L, bitsAt(L, 1)); }
static int bitBnot(lua_State *L) { return pushBits(L, ~bitsAt(L, 1)); }
static int bitBswap(lua_State *L) { return pushBits(L, __builtin_bswap32(bitsAt(L, 1))); }

static int bitBand(lua_State *L) {
    uint32_t bits = bitsAt(L, 1);
    for (int i = lua_gettop(L); i > 1; i--) bits &= bitsAt(L, i);
    return pushBits(L, bits);
}

static int bitBor(lua_State *L) {
    uint32_t bits = bitsAt(L, 1);
    for (int i = lua_gettop(L); i > 1; i--) bits |= bitsAt(L, i);
    return pushBits(L, bits);
}

static int bitBxor(lua_State *L) {
    uint32_t bits = bitsAt(L, 1);
    for (int i = lua_gettop(L); i > 1; i--) bits ^= bitsAt(L, i);
    return pushBits(L, bits);
}

/* The value and the count of a shift, modulo 32. */
typedef struct shift {
    uint32_t bits, count;
} shift;

static shift shiftOf(lua_State *L) {
    uint32_t bits = bitsAt(L, 1);
    return (shift){bits, bitsAt(L, 2) & 31};
}

static int bitLshift(lua_State *L) {
    shift s = shiftOf(L);
    return pushBits(L, s.bits << s.count);
}

static int bitRshift(lua_State *L) {
    shift s = shiftOf(L);
    return pushBits(L, s.bits >> s.count);
}

static int bitArshift(lua_State *L) {
    shift s = shiftOf(L);
    return pushBits(L, (uint32_t)((int32_t)s.bits >> s.count));
}

static int bitRol(lua_State *L) {
    shift s = shiftOf(L);
    return pushBits(L, s.bits << s.count | s.bits >> ((32 - s.count) & 31));
}

static int bitRor(lua_State *L) {
    shift s = shiftOf(L);
    return pushBits(L, s.bits >> s.count | s.bits << ((32 - s.count) & 31));
}

/* A negative width asks for capital letters. */
static int bitTohex(lua_State *L) {
    static const char *const digits[] = {"0123456789abcdef", "0123456789ABCDEF"};
    uint32_t value = bitsAt(L, 1);
    int64_t width = lua_isnone(L, 2) ? 8 : (int32_t)bitsAt(L, 2);
    const char *set = digits[width < 0];
    if (width < 0) width = -width;
    int len = width <= 8 ? (int)width : 8;
    char text[8];
    for (int i = len; i-- > 0; value >>= 4) text[i] = set[value & 15];
    lua_pushlstring(L, text, (size_t)len);
    return 1;
}

void luaOpenBit(lua_State *L) {
    static const luaL_Reg functions[] = {{"arshift", bitArshift},
                                         {"band", bitBand},
                                         {"bnot", bitBnot},
                                         {"bor", bitBor},
                                         {"bswap", bitBswap},
                                         {"bxor", bitBxor},
                                         {"lshift", bitLshift},
                                         {"rol", bitRol},
                                         {"ror", bitRor},
                                         {"rshift", bitRshift},
                                         {"tobit", bitTobit},
                                         {"tohex", bitTohex},
                                         {NULL, NULL}};
    lua_newtable(L);
    luaSetFunctions(L, functions);
}

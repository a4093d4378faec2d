/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The library `table`: its functions count their steps, because Lua's hook is not called while they
 * run. They read and write without metamethods; a proxy has no elements, so only insert() could
 * change one. Main thread only. */
#include "base/base.h"
#include "script/lua_priv.h"

static int tableForeach(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaVm *vm = luaVmOf(L);
    if (luaPushBehindProxy(L, 1)) lua_replace(L, 1);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        luaVmStep(L, vm, 1);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -3);
        lua_pushvalue(L, -3);
        luaCallBack(L, vm, 2, 1);
        if (!lua_isnil(L, -1)) return 1;
        lua_pop(L, 2);
    }
    return 0;
}

static int tableForeachi(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    int count = (int)lua_objlen(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaVm *vm = luaVmOf(L);
    for (int i = 1; i <= count; i++) {
        luaVmStep(L, vm, 1);
        lua_pushvalue(L, 2);
        lua_pushinteger(L, i);
        lua_rawgeti(L, 1, i);
        luaCallBack(L, vm, 2, 1);
        if (!lua_isnil(L, -1)) return 1;
        lua_pop(L, 1);
    }
    return 0;
}

/* For a position far below 1 the elements before the first are moved, too, as in Lua: 2^31 at
 * most. */
static int tableInsert(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaVm *vm = luaVmOf(L);
    int end = (int)lua_objlen(L, 1) + 1, pos = end, argc = lua_gettop(L);
    if (argc != 2 && argc != 3) return luaL_error(L, "wrong number of arguments to 'insert'");
    if (argc == 3) pos = (int)luaL_checkinteger(L, 2);
    luaRefuseProxy(L, 1);
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

static int tableSetn(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    return luaL_error(L, "'setn' is obsolete");
}

/* ------------------------------------------------------------------ concat */

static int tableConcat(lua_State *L) {
    size_t separator_len;
    const char *separator = luaL_optlstring(L, 2, "", &separator_len);
    luaL_checktype(L, 1, LUA_TTABLE);
    int64_t at = (int)luaL_optinteger(L, 3, 1);
    int64_t last = lua_isnoneornil(L, 4) ? (int64_t)(int)lua_objlen(L, 1)
                                         : (int64_t)(int)luaL_checkinteger(L, 4);
    luaVm *vm = luaVmOf(L);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    for (; at <= last; at++) {
        lua_rawgeti(L, 1, (int)at);
        if (!lua_isstring(L, -1))
            return luaL_error(L, "invalid value (%s) at index %d in table for 'concat'",
                              luaL_typename(L, -1), (int)at);
        luaVmStep(L, vm, 1 + (uint32_t)(lua_objlen(L, -1) / 256));
        luaL_addvalue(&out);
        if (at < last) luaL_addlstring(&out, separator, separator_len);
    }
    luaL_pushresult(&out);
    return 1;
}

/* ------------------------------------------------------------------ sort */

/* The table is at index 1, the function that compares, or nil, at index 2. */
typedef struct sorter {
    lua_State *L;
    luaVm *vm;
} sorter;

/* Whether the value at index a is less than that at b, both relative to the top. */
static bool isLess(const sorter *s, int a, int b) {
    lua_State *L = s->L;
    luaVmStep(L, s->vm, 1);
    if (lua_isnil(L, 2)) {
        luaCheckCStack(L, s->vm);
        return lua_lessthan(L, a, b);
    }
    lua_pushvalue(L, 2);
    lua_pushvalue(L, a - 1);
    lua_pushvalue(L, b - 2);
    luaCallBack(L, s->vm, 2, 1);
    bool less = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return less;
}

/* Stores the two values on top at i (that on top) and j. */
static void storeBoth(lua_State *L, int i, int j) {
    lua_rawseti(L, 1, i);
    lua_rawseti(L, 1, j);
}

/* Exchanges the elements at i and j if that at j is less. */
static void order(const sorter *s, int i, int j) {
    lua_rawgeti(s->L, 1, i);
    lua_rawgeti(s->L, 1, j);
    if (isLess(s, -1, -2)) {
        storeBoth(s->L, i, j);
    } else {
        lua_pop(s->L, 2);
    }
}

/* Partitions low..high by the pivot on top of the stack, which is at high - 1, too; removes it.
 * Returns its position. */
static int partition(const sorter *s, int low, int high) {
    lua_State *L = s->L;
    int i = low, j = high - 1;
    for (;;) {
        for (lua_rawgeti(L, 1, ++i); isLess(s, -1, -2); lua_rawgeti(L, 1, ++i)) {
            if (i > high) (void)luaL_error(L, "invalid order function for sorting");
            lua_pop(L, 1);
        }
        for (lua_rawgeti(L, 1, --j); isLess(s, -3, -1); lua_rawgeti(L, 1, --j)) {
            if (j < low) (void)luaL_error(L, "invalid order function for sorting");
            lua_pop(L, 1);
        }
        if (j < i) break;
        storeBoth(L, i, j);
    }
    lua_pop(L, 3);
    lua_rawgeti(L, 1, high - 1);
    lua_rawgeti(L, 1, i);
    storeBoth(L, high - 1, i);
    return i;
}

/* Quicksort with the median of three, in the order of comparisons of Lua 5.1, which decides how
 * equal elements end up. The smaller part is sorted by recursion, so it is at most 31 deep. */
static void sortRange(const sorter *s, int low, int high) {
    lua_State *L = s->L;
    while (low < high) {
        order(s, low, high);
        if (high - low == 1) return;
        int middle = (int)(((int64_t)low + high) / 2);
        lua_rawgeti(L, 1, middle);
        lua_rawgeti(L, 1, low);
        if (isLess(s, -2, -1)) {
            storeBoth(L, middle, low);
        } else {
            lua_pop(L, 1);
            lua_rawgeti(L, 1, high);
            if (isLess(s, -1, -2)) {
                storeBoth(L, middle, high);
            } else {
                lua_pop(L, 2);
            }
        }
        if (high - low == 2) return;
        lua_rawgeti(L, 1, middle);
        lua_pushvalue(L, -1);
        lua_rawgeti(L, 1, high - 1);
        storeBoth(L, middle, high - 1);
        int pivot = partition(s, low, high);
        if (pivot - low < high - pivot) {
            sortRange(s, low, pivot - 1);
            low = pivot + 1;
        } else {
            sortRange(s, pivot + 1, high);
            high = pivot - 1;
        }
    }
}

static int tableSort(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    int count = (int)lua_objlen(L, 1);
    luaL_checkstack(L, 40, "");
    if (!lua_isnoneornil(L, 2)) luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    sorter s = {L, luaVmOf(L)};
    sortRange(&s, 1, count);
    return 0;
}

void luaAddTable(luaVm *vm) {
    hotCheck(threadIsMain());
    static const luaL_Reg functions[] = {
        {"concat", tableConcat}, {"foreach", tableForeach}, {"foreachi", tableForeachi},
        {"getn", tableGetn},     {"insert", tableInsert},   {"remove", tableRemove},
        {"setn", tableSetn},     {"sort", tableSort},       {NULL, NULL}};
    luaSetFunctions(vm->L, functions);
}

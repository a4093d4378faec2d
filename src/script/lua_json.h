/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of one instance of the JSON library. */
#ifndef SCRIPT_LUA_JSON_H
#define SCRIPT_LUA_JSON_H

#include "script/lua_priv.h"

enum { JSON_DEPTH_DEFAULT = 1000, JSON_PRECISION_MAX = 14 };
enum jsonInvalid { JSON_INVALID_REFUSED, JSON_INVALID_ALLOWED, JSON_INVALID_NULL };

typedef struct jsonSettings {
    int encode_depth, decode_depth;
    int precision;
    bool sparse_convert;
    int sparse_ratio, sparse_safe;
    int encode_invalid; /* enum jsonInvalid */
    bool decode_invalid;
    bool keep_buffer; /* accepted; the buffer is always kept */
} jsonSettings;

/* The settings are upvalue 1 of each function. */
static inline jsonSettings *jsonSettingsOf(lua_State *L) {
    return lua_touserdata(L, lua_upvalueindex(1));
}

int jsonEncode(lua_State *L);
int jsonDecode(lua_State *L);

#endif

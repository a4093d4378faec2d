/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table `struct`: binary records described by a format. A format is read by one iterator, which
 * both directions and the size use. */
#include <string.h>

#include "base/base.h"
#include "base/bytes.h"
#include "script/lua_priv.h"

enum { INTEGER_MAX = 32, ALIGN_NATIVE = 8 };

typedef struct format {
    lua_State *L;
    luaVm *vm;
    const char *at;
    bool big_endian;
    bool skips;   /* unknown letters and digits, as size() does */
    bool checks;  /* that each option is within the data */
    size_t len;   /* of the data */
    size_t align; /* 1: none */
    /* The current item. */
    char option;
    size_t size;    /* of the item; 0 for s and c0 */
    size_t padding; /* before it */
} format;

/* A decimal number, or `otherwise`. */
static size_t takeNumber(format *f, size_t otherwise) {
    if (*f->at < '0' || *f->at > '9') return otherwise;
    size_t n = 0;
    while (*f->at >= '0' && *f->at <= '9') {
        n = n * 10 + (size_t)(*f->at++ - '0');
        if (n > INT32_MAX) (void)luaL_error(f->L, "integral size overflow");
    }
    return n;
}

static size_t optionSize(format *f, char option) {
    switch (option) {
    case 'b':
    case 'B': return 1;
    case 'h':
    case 'H': return sizeof(short);
    case 'l':
    case 'L': return sizeof(long);
    case 'T': return sizeof(size_t);
    case 'f': return sizeof(float);
    case 'd': return sizeof(double);
    case 'x': return 1;
    case 'c': return takeNumber(f, 1);
    case 'i':
    case 'I': {
        size_t size = takeNumber(f, sizeof(int));
        if (size > INTEGER_MAX)
            (void)luaL_error(f->L, "integral size %d is larger than limit of %d", (int)size,
                             INTEGER_MAX);
        return size;
    }
    default: return 0; /* s, and options that are no items */
    }
}

static void control(format *f, char option) {
    switch (option) {
    case ' ': return;
    case '>': f->big_endian = true; return;
    case '<': f->big_endian = false; return;
    case '!': {
        size_t align = takeNumber(f, ALIGN_NATIVE);
        if (align == 0 || (align & (align - 1)) != 0)
            (void)luaL_error(f->L, "alignment %d is not a power of 2", (int)align);
        f->align = align;
        return;
    }
    default: {
        const char *text = lua_pushfstring(f->L, "invalid format option '%c'", option);
        (void)luaL_argerror(f->L, 1, text);
    }
    }
}

static bool isItem(char option) { return option && strchr("bBhHlLTfdxciIs", option); }

static bool isLetterOrDigit(char c) {
    char folded = (char)byteFold(c);
    return (c >= '0' && c <= '9') || (folded >= 'a' && folded <= 'z');
}

static size_t paddingFor(const format *f, char option, size_t done) {
    size_t align = f->size < f->align ? f->size : f->align;
    if (align <= 1 || option == 'c' || option == 's') return 0;
    return (align - (done & (align - 1))) & (align - 1);
}

/* Moves to the next item, for a record of which `done` bytes exist. False: there is none. */
static bool nextItem(format *f, size_t done) {
    for (;;) {
        luaVmStep(f->L, f->vm, 1);
        char option = *f->at;
        if (!option) return false;
        f->at++;
        f->size = optionSize(f, option);
        f->padding = isItem(option) ? paddingFor(f, option, done) : 0;
        size_t at = done + f->padding;
        if (f->checks)
            luaL_argcheck(f->L, f->size <= f->len && at <= f->len - f->size, 2,
                          "data string too short");
        if (!isItem(option)) {
            if (!f->skips || !isLetterOrDigit(option)) control(f, option);
            continue;
        }
        f->option = option;
        return true;
    }
}

static format newFormat(lua_State *L) {
    return (format){.L = L, .vm = luaVmOf(L), .at = luaL_checkstring(L, 1), .align = 1};
}

/* ------------------------------------------------------------------ pack */

static void packInteger(luaL_Buffer *out, const format *f, double n) {
    uint64_t value = luaToBits64(n);
    for (size_t i = 0; i < f->size; i++) {
        size_t byte = f->big_endian ? f->size - 1 - i : i;
        luaL_addchar(out, byte < 8 ? (char)(value >> 8 * byte) : 0);
    }
}

static void packBytes(luaL_Buffer *out, const format *f, const void *bytes) {
    const char *from = bytes;
    for (size_t i = 0; i < f->size; i++)
        luaL_addchar(out, from[f->big_endian ? f->size - 1 - i : i]);
}

/* Appends the item with argument `arg`; returns the number of bytes. */
static size_t packItem(luaL_Buffer *out, format *f, int arg) {
    lua_State *L = f->L;
    switch (f->option) {
    case 'x': luaL_addchar(out, '\0'); return 1;
    case 'f': {
        float narrow = (float)luaL_checknumber(L, arg);
        packBytes(out, f, &narrow);
        return f->size;
    }
    case 'd': {
        double wide = luaL_checknumber(L, arg);
        packBytes(out, f, &wide);
        return f->size;
    }
    case 'c':
    case 's': {
        size_t len;
        const char *text = luaL_checklstring(L, arg, &len);
        if (f->option == 's' || f->size == 0) f->size = len;
        luaL_argcheck(L, len >= f->size, arg + 1, "string too short");
        luaL_addlstring(out, text, f->size);
        if (f->option == 's') luaL_addchar(out, '\0');
        return f->size + (f->option == 's');
    }
    default: packInteger(out, f, luaL_checknumber(L, arg)); return f->size;
    }
}

static int structPack(lua_State *L) {
    format f = newFormat(L);
    luaL_Buffer out;
    lua_pushnil(L); /* the buffer is built on top of the arguments */
    luaL_buffinit(L, &out);
    size_t done = 0;
    int arg = 2;
    while (nextItem(&f, done)) {
        for (size_t i = 0; i < f.padding; i++) luaL_addchar(&out, '\0');
        done += f.padding;
        done += packItem(&out, &f, arg);
        if (f.option != 'x') arg++;
    }
    luaL_pushresult(&out);
    return 1;
}

/* ------------------------------------------------------------------ unpack */

static double unpackInteger(const format *f, const char *at) {
    uint64_t value = 0;
    size_t used = f->size < 8 ? f->size : 8;
    for (size_t i = 0; i < used; i++) {
        size_t byte = used - 1 - i; /* most significant first */
        value = value << 8 | (uint8_t)at[f->big_endian ? f->size - 1 - byte : byte];
    }
    bool is_signed = f->option >= 'a' && f->option <= 'z';
    if (!is_signed) return (double)value;
    int shift = 64 - 8 * (int)used;
    return shift == 64 ? 0 : (double)((int64_t)(value << shift) >> shift);
}

/* Copies `size` bytes, the size of the format's item, in the machine's order. */
static void unpackBytes(const format *f, const char *at, void *to, size_t size) {
    char *bytes = to;
    for (size_t i = 0; i < size; i++) bytes[i] = at[f->big_endian ? size - 1 - i : i];
}

/* A string of c or s at `at`, `left` bytes exist. Returns the bytes used. */
static size_t unpackText(format *f, const char *at, size_t left, int *count) {
    lua_State *L = f->L;
    if (f->option == 's') {
        const char *end = memchr(at, '\0', left);
        if (!end) (void)luaL_error(L, "unfinished string in data");
        lua_pushlstring(L, at, (size_t)(end - at));
        return (size_t)(end - at) + 1;
    }
    if (f->size == 0) {
        if (*count == 0 || !lua_isnumber(L, -1))
            (void)luaL_error(L, "format 'c0' needs a previous size");
        double size = lua_tonumber(L, -1);
        lua_pop(L, 1);
        (*count)--;
        luaL_argcheck(L, size >= 0 && size <= (double)left, 2, "data string too short");
        f->size = (size_t)size;
    }
    lua_pushlstring(L, at, f->size);
    return f->size;
}

static int structUnpack(lua_State *L) {
    format f = newFormat(L);
    size_t len;
    const char *data = luaL_checklstring(L, 2, &len);
    ptrdiff_t from = luaL_optinteger(L, 3, 1);
    luaL_argcheck(L, from != 0, 3, "offset must be 1 or greater");
    f.checks = true;
    f.len = len;
    size_t pos = (size_t)from - 1;
    int count = 0;
    lua_settop(L, 2);
    while (nextItem(&f, pos)) {
        pos += f.padding;
        luaL_checkstack(L, 2, "too many results");
        const char *at = data + pos;
        size_t used = f.size;
        if (f.option == 'c' || f.option == 's') {
            used = unpackText(&f, at, len - pos, &count);
            count++;
        } else if (f.option == 'f') {
            float narrow = 0;
            unpackBytes(&f, at, &narrow, sizeof(narrow));
            lua_pushnumber(L, narrow);
            count++;
        } else if (f.option == 'd') {
            double wide = 0;
            unpackBytes(&f, at, &wide, sizeof(wide));
            lua_pushnumber(L, wide);
            count++;
        } else if (f.option != 'x') {
            lua_pushnumber(L, unpackInteger(&f, at));
            count++;
        }
        pos += used;
    }
    lua_pushinteger(L, (ptrdiff_t)pos + 1);
    return count + 1;
}

static int structSize(lua_State *L) {
    format f = newFormat(L);
    f.skips = true;
    size_t size = 0;
    while (nextItem(&f, size)) {
        if (f.option == 's') (void)luaL_argerror(L, 1, "option 's' has no fixed size");
        if (f.option == 'c' && f.size == 0)
            (void)luaL_argerror(L, 1, "option 'c0' has no fixed size");
        size += f.padding + f.size;
    }
    lua_pushinteger(L, (ptrdiff_t)size);
    return 1;
}

void luaOpenStruct(lua_State *L) {
    lua_createtable(L, 0, 3);
    lua_pushcfunction(L, structPack);
    lua_setfield(L, -2, "pack");
    lua_pushcfunction(L, structUnpack);
    lua_setfield(L, -2, "unpack");
    lua_pushcfunction(L, structSize);
    lua_setfield(L, -2, "size");
}

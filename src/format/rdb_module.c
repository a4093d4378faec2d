/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Skipping the data of modules (rdb_module.h). */
#include "format/rdb_module.h"

#include "base/base.h"
#include "format/rdb_format.h"

void rdbModuleName(uint64_t id, char name[RDB_MODULE_NAME_SIZE]) {
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    id >>= 10;
    for (int i = RDB_MODULE_NAME_SIZE - 2; i >= 0; i--, id >>= 6) name[i] = alphabet[id & 63];
    name[RDB_MODULE_NAME_SIZE - 1] = 0;
}

static status skipItem(rdbReader *r, uint64_t opcode) {
    uint64_t integer;
    char real[sizeof(double)];
    slice text;
    switch (opcode) {
    case RDB_MODULE_SIGNED:
    case RDB_MODULE_UNSIGNED: return rdbReadLength(r, &integer);
    case RDB_MODULE_FLOAT: return rdbReadBytes(r, real, sizeof(float));
    case RDB_MODULE_DOUBLE: return rdbReadBytes(r, real, sizeof(double));
    case RDB_MODULE_STRING: return rdbReadString(r, &text);
    default:
        return rdbReaderFail(r, "Invalid opcode %llu in module data", (unsigned long long)opcode);
    }
}

status rdbSkipModuleData(rdbReader *r) {
    for (;;) {
        uint64_t opcode;
        status st = rdbReadLength(r, &opcode);
        if (st != OK || opcode == RDB_MODULE_EOF) return st;
        st = skipItem(r, opcode);
        if (st != OK) return st;
    }
}

status rdbSkipModuleValue(rdbReader *r) {
    uint64_t id;
    status st = rdbReadLength(r, &id);
    return st == OK ? rdbSkipModuleData(r) : st;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads of RESTORE from any server: the footer decides how the body is read, what is accepted is
 * the same after DUMP and RESTORE, and nothing stays allocated.
 *
 * Input: a payload without its checksum, which is added. */
#include <string.h>

#include "base/base.h"
#include "format/rdb_dump.h"
#include "store/slab.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VERSION_BYTES = 2 };

static const rdbReadOptions options = {
    .limits = {.hash = {512, 64},
               .zset = {128, 64},
               .set = {.packed = {128, 64}, .ints = 512},
               .list = {.fill = -2, .depth = 0}},
};

/* Reads a payload with its footer; NULL if it is refused. */
static robj *restore(slice payload) {
    int version;
    if (!rdbDumpHasFooter(payload, false, false, &version)) return NULL;
    slice body = sliceMake(payload.ptr, payload.len - RDB_DUMP_FOOTER);
    rdbReadOptions all = options;
    all.look = lookAtAll();
    robj *o = NULL;
    uint8_t type;
    reason why;
    char module[RDB_MODULE_NAME_SIZE];
    status st = rdbDumpRead(body, version, SLICE("key"), &all, &o, &type, &why);
    if (st == OK) {
        check(o);
        check(sliceEqual(objectKey(o), SLICE("key")));
        bool may_be_empty = objectType(o) == TYPE_STREAM || objectType(o) == TYPE_STRING;
        if (!may_be_empty) check(typeOf(o)->length(o) > 0);
    } else {
        check(!o);
        (void)rdbDumpForeignModule(body, module); /* any bytes are allowed */
    }
    return o;
}

/* In each form that has the value, the payload is read as the same value. */
static void checkForms(const robj *o) {
    digest before = {{0}};
    objectDigest(o, lookAtAll(), &before);
    for (int form = RDB_FORM_VALKEY; form <= RDB_FORM_REDIS; form++) {
        str out = STR_EMPTY;
        rdbDump(o, 0, (rdbForm)form, &out);
        robj *copy = restore(strSlice(&out));
        check(copy);
        digest after = {{0}};
        objectDigest(copy, lookAtAll(), &after);
        check(memcmp(&before, &after, sizeof(before)) == 0);
        objectFree(copy);
        strFree(&out);
    }
}

static void checkNothingLeft(slabStore *s) {
    slabStats stats;
    slabGetStats(s, &stats);
    check(stats.live_blocks == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < VERSION_BYTES) return 0;
    storeInit(1, false);
    str payload = STR_EMPTY;
    strAppend(&payload, data, size - VERSION_BYTES);
    int version = data[size - VERSION_BYTES] | data[size - 1] << 8;
    rdbDumpAppendFooter(&payload, 0, version);
    robj *o = restore(strSlice(&payload));
    if (o) {
        checkForms(o);
        objectFree(o);
    }
    strFree(&payload);
    checkNothingLeft(slabKeyspace());
    checkNothingLeft(slabElements());
    storeShutdown();
    return 0;
}

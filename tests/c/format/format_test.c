/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See format_test.h. */
#include "format_test.h"

#include <stdlib.h>

#include "store/digest.h"

int testSetUp(void **state) {
    (void)state;
    storeInit(1, false);
    return 0;
}

int testTearDown(void **state) {
    (void)state;
    storeShutdown();
    return 0;
}

rdbReadOptions testOptions(void) {
    return (rdbReadOptions){.limits = {.hash = {512, 64},
                                       .zset = {128, 64},
                                       .set = {.packed = {128, 64}, .ints = 512},
                                       .list = {.fill = -2, .depth = 0}},
                            .look = lookAtAll()};
}

str testBytes(const char *hex) {
    str out = STR_EMPTY;
    for (const char *at = hex; *at; at++) {
        if (*at == ' ') continue;
        char pair[3] = {at[0], at[1], 0};
        strAppendByte(&out, (char)strtol(pair, NULL, 16));
        at++;
    }
    return out;
}

status testRead(slice payload, const rdbReadOptions *options, robj **out, reason *why) {
    rdbSliceSource source;
    rdbSliceSourceInit(&source, payload);
    rdbReader r;
    rdbReaderInit(&r, &source.source, false);
    uint8_t type;
    bool dropped;
    *out = NULL;
    status st = rdbReadByte(&r, &type);
    if (st == OK) st = rdbReadValue(&r, type, SLICE("key"), options, out, &dropped);
    if (why) *why = r.why;
    rdbReaderClear(&r);
    return st;
}

bool testEqual(const robj *a, const robj *b) {
    if (!a || !b) return a == b;
    digest one = {{0}}, two = {{0}};
    objectDigest(a, lookAtAll(), &one);
    objectDigest(b, lookAtAll(), &two);
    return objectType(a) == objectType(b) && memcmp(&one, &two, sizeof(one)) == 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What building a value costs, and numbers as text: nanoseconds, the least of several rounds.
 * Objects are built into a ring of a thousand, so each building pays for the free of an older one,
 * as in a server at work. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "store/object.h"
#include "store/store.h"
#include "bench.h"

enum { ROUNDS = 9, TIMES = 1000000, RING = 1000 };

static robj *ring[RING];

static void put(int i, robj *o) {
    robj *old = ring[i % RING];
    ring[i % RING] = o;
    objectFree(old);
}

int main(void) {
    static char bytes[4096];
    static double doubles[256];
    char digits[64];
    slice key = SLICE("key:000000000001");
    clockInit();
    randomSeed(1);
    storeInit(1, false);
    memset(bytes, 'x', sizeof(bytes));
    for (int i = 0; i < RING; i++) ring[i] = objectNewInt(key, i, OBJECT_NO_EXPIRE, 0);
    for (size_t i = 0; i < COUNT_OF(doubles); i++) doubles[i] = (double)randomUniform(1u << 30) / 7;
    BENCH_ITEM("object of an integer", put(i, objectNewInt(key, i, OBJECT_NO_EXPIRE, 0)));
    static const size_t sizes[] = {16, 100, 1000};
    for (size_t k = 0; k < COUNT_OF(sizes); k++) {
        char name[64];
        slice value = sliceMake(bytes, sizes[k]);
        snprintf(name, sizeof(name), "object of a text of %zu B", sizes[k]);
        BENCH_ITEM(name, put(i, objectNewString(key, value, OBJECT_NO_EXPIRE, 0, KEEP_BEST)));
        snprintf(name, sizeof(name), "overwriting a text of %zu B", sizes[k]);
        BENCH_ITEM(name, sum += objectOverwrite(ring[i % RING], value));
    }
    BENCH_ITEM("object of a text of 16 B that expires",
               put(i, objectNewString(key, sliceMake(bytes, 16), 1790000000000, 0, KEEP_BEST)));
    BENCH_ITEM("printing an integer of 1-7 digits", sum += numberPrintInt(digits, i * 7));
    BENCH_ITEM("printing an integer of 18 digits",
               sum += numberPrintInt(digits, INT64_C(123456789012345678) + i));
    BENCH_ITEM("printing a double of 16 digits",
               sum += numberPrintDouble(digits, doubles[i & 255]));
    int64_t number = 0;
    BENCH_ITEM("reading an integer of 7 digits",
               sum += numberParseInt(SLICE("1234567"), &number) + (uint64_t)number);
    double read = 0;
    BENCH_ITEM("reading a double of 8 digits",
               sum += numberParseDouble(SLICE("1234.5678"), &read) + (uint64_t)read);
    return sum == 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values: written by servers, round trips of random values, and damaged ones. */
#include "format_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "store/type_hash.h"
#include "store/type_pathhash.h"
#include "store/type_zset.h"

/* Bodies of DUMP from Valkey 9.1.2 and the files of older versions, with the command that shows the
 * value. */
static const struct {
    const char *hex;
    valueType type;
    const char *encoding;
    size_t length;
} bodies[] = {
    {"00 03 616263", TYPE_STRING, "embstr", 3},
    {"00 c1 2c01", TYPE_STRING, "int", 3},
    {"02 02 c3 09 28 01 6161 e0 1b 00 01 6161 c0 07", TYPE_SET, "listpack", 2},
    {"05 03 0163 000000000000f07f 0162 0000000000000440 0161 000000000000f03f", TYPE_ZSET,
     "listpack", 3},
    {"16 02 0166 0176 ff1f4aa9d1010000 0167 0177 ffffffffffffffff", TYPE_HASH, "hashtable", 2},
    {"0b 0e 02000000 03000000 0100 0200 2c01", TYPE_SET, "intset", 3},
    {"12 01 02 0c 0c000000 0200 0101 816102 ff", TYPE_LIST, "listpack", 2},
    {"12 02 02 09 09000000 0100 0101 ff 01 03 616263", TYPE_LIST, "quicklist", 2},
    {"01 02 0161 c005", TYPE_LIST, "listpack", 2},
    {"04 01 0166 0176", TYPE_HASH, "listpack", 1},
    {"03 01 016d 03 312e35", TYPE_ZSET, "listpack", 1},
    /* A zipmap with f => v, and a ziplist with f, 5. */
    {"09 07 01 0166 01 00 76 ff", TYPE_HASH, "listpack", 1},
    /* The same with a value of 65 bytes. */
    {"09 4047 01 0166 41 00"
     "78787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
     "78787878787878787878787878787878787878 ff",
     TYPE_HASH, "hashtable", 1},
    {"0d 10 10000000 0d000000 0200 00 0166 03 f6 ff", TYPE_HASH, "listpack", 1},
    {"0a 10 10000000 0d000000 0200 00 0166 03 f6 ff", TYPE_LIST, "listpack", 2},
    {"0c 10 10000000 0d000000 0200 00 0166 03 f6 ff", TYPE_ZSET, "listpack", 1},
    {"0e 01 10 10000000 0d000000 0200 00 0166 03 f6 ff", TYPE_LIST, "listpack", 2},
};

static void values_of_other_versions_are_read(void **state) {
    (void)state;
    rdbReadOptions options = testOptions();
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        str bytes = testBytes(bodies[i].hex);
        reason why = {""};
        robj *o;
        if (testRead(strSlice(&bytes), &options, &o, &why) != OK)
            fail_msg("%s: %s", bodies[i].hex, why.text);
        assert_non_null(o);
        assert_int_equal(objectType(o), bodies[i].type);
        assert_string_equal(typeOf(o)->encoding(o), bodies[i].encoding);
        assert_int_equal(typeOf(o)->length(o), bodies[i].length);
        objectFree(o);
        strFree(&bytes);
    }
}

/* Bodies that are refused, with the reason. */
static const struct {
    const char *hex, *why;
} refused[] = {
    {"02 02 0161 0161", "Duplicate set members detected"},
    {"04 02 0161 0161 0161 0162", "Duplicate hash fields detected"},
    {"05 01 0161 000000000000f87f", "Zset with NAN score detected"},
    {"05 02 0161 000000000000f03f 0161 000000000000f03f", "Duplicate zset fields detected"},
    {"12 01 03 0161", "Quicklist integrity check failed."},
    {"12 01 02 0161", "Listpack integrity check failed."},
    {"10 0161", "Hash listpack integrity check failed."},
    {"10 0d 0d000000 0300 0101 0201 0301 ff", "Hash listpack integrity check failed."},
    {"10 0f 0f000000 0400 0101 0201 0101 0301 ff", "Hash with dup elements"},
    {"10 10 10000000 0400 0101 0201 813102 0301 ff", "Hash with dup elements"}, /* 1 and "1" */
    {"11 0c 0c000000 0200 0101 816102 ff", "Zset listpack with NAN score detected"},
    {"14 0b 0b000000 0200 0101 0101 ff", "Duplicate set members detected"},
    {"0b 0c 02000000 02000000 0200 0100", "Intset integrity check failed."},
    {"09 02 01ff", "Zipmap integrity check failed."},
    {"0d 0b 0b000000 0a000000 0000 fe", "Hash ziplist integrity check failed."},
    {"0d 15 15000000 12000000 0400 00 0166 03 f6 02 0166 03 f6 ff",
     "Hash ziplist integrity check failed."},             /* the same field twice */
    {"12 01 01 00", "Quicklist integrity check failed."}, /* a plain node without bytes */
    {"08 00", "Unknown RDB encoding type 8"},
    {"17 01 01 70 00", "A path of a path hash without fields"},
    {"17 02 0170 01 0166 0176 0170 01 0166 0176", "Duplicate paths in a path hash"},
    {"17 01 0170 02 0166 0176 0166 0177", "Duplicate fields in a path of a path hash"},
    {"17 01 0170 02 c001 0176 0131 0177", "Duplicate fields in a path of a path hash"}, /* "1" */
    {"18 00", "Unknown RDB encoding type 24"},
    {"00 82", "Unknown length encoding 2 in rdbLoadLen()"},
    {"00 c4", "Unknown RDB string encoding type 4"},
    {"00 05 6161", "Unexpected EOF reading RDB file"},
};

static void damaged_values_are_refused_with_the_reason(void **state) {
    (void)state;
    rdbReadOptions options = testOptions();
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        str bytes = testBytes(refused[i].hex);
        reason why = {""};
        robj *o;
        assert_int_not_equal(testRead(strSlice(&bytes), &options, &o, &why), OK);
        assert_null(o);
        assert_string_equal(why.text, refused[i].why);
        strFree(&bytes);
    }
}

/* ------------------------------------------------------------------ round trips */

static slice randomText(char *to, size_t max) {
    size_t len = (size_t)randomUniform(randomUniform(4) ? 30 : max);
    switch (randomUniform(4)) {
    case 0: return sliceMake(to, numberPrintInt(to, (int64_t)(randomNext() >> randomUniform(64))));
    case 1: memset(to, 'a' + (int)randomUniform(26), len); break;
    default:
        for (size_t i = 0; i < len; i++) to[i] = (char)randomNext();
    }
    return sliceMake(to, len);
}

static robj *randomPaths(const rdbLimits *limits, size_t count, size_t max) {
    static char text[3][12000];
    robj *o = pathHashObjectNew(SLICE("key"));
    size_t paths = 1 + (size_t)randomUniform(count);
    for (size_t i = 0; i < count; i++) {
        slice words[2] = {randomText(text[0], max), randomText(text[1], max)};
        slice path = sliceMake(text[2], numberPrintInt(text[2], (int64_t)randomUniform(paths)));
        pathHashSet(pathHashOf(o), path, words, 2, &limits->hash);
    }
    return o;
}

static robj *randomObject(const rdbLimits *limits) {
    static char text[2][12000];
    size_t count = 1 + (size_t)randomUniform(randomUniform(3) ? 20 : 700);
    size_t max = randomUniform(5) ? 60 : sizeof(text[0]);
    robj *o = NULL;
    switch (randomUniform(6)) {
    case 5: return randomPaths(limits, count, max);
    case 0:
        return objectNewString(SLICE("key"), randomText(text[0], max), OBJECT_NO_EXPIRE, 0,
                               KEEP_BEST);
    case 1:
        o = listNew(SLICE("key"));
        for (size_t i = 0; i < count; i++) {
            slice item = randomText(text[0], max);
            o = listPrepare(o, &item, 1, &limits->list);
            o = listPush(o, &item, 1, false);
        }
        return o;
    case 2:
        for (size_t i = 0; i < count; i++) {
            listpackItem item = listpackItemOf(randomText(text[0], max));
            bool added;
            if (!o) o = setNew(SLICE("key"), &item, count, &limits->set);
            o = setAdd(o, &item, &limits->set, &added);
        }
        return o;
    case 3:
        o = zsetNew(SLICE("key"), 1, 0, &limits->zset);
        for (size_t i = 0; i < count; i++) {
            zsetPair pair = {randomText(text[0], max), (double)(int64_t)randomNext() / 1e6};
            if (randomUniform(3) == 0) pair.score = (double)randomUniform(100);
            zsetAdded added;
            o = zsetAdd(o, &pair, 0, &limits->zset, &added);
        }
        return o;
    default:
        o = hashNew(SLICE("key"));
        for (size_t i = 0; i < count; i++) {
            slice pair[2] = {randomText(text[0], max), randomText(text[1], max)};
            hashOutcome outcome;
            int64_t time_ms =
                count % 3 && randomUniform(4) ? HASH_NO_TIME : (int64_t)randomUniform(1u << 30);
            if (count % 2) time_ms = HASH_NO_TIME;
            o = hashPrepare(o, pair, 2, &limits->hash);
            o = hashSetTimed(o, pair[0], pair[1], time_ms, lookAtAll(), &limits->hash, &outcome);
        }
        return o;
    }
}

enum {
#ifdef TESTS_SANITIZED
    ROUNDS = 60,
#else
    ROUNDS = 400,
#endif
};

static void random_values_survive_a_round_trip(void **state) {
    (void)state;
    randomSeed(7);
    rdbReadOptions options = testOptions();
    for (int i = 0; i < ROUNDS; i++) {
        options.limits.list.depth = i % 3;
        robj *o = randomObject(&options.limits), *back;
        str payload = STR_EMPTY;
        rdbDump(o, 0, RDB_FORM_VALKEY, &payload);
        int version;
        assert_true(rdbDumpHasFooter(strSlice(&payload), false, false, &version));
        assert_int_equal(version, objectType(o) == TYPE_PATHHASH ? 81 : 80);
        reason why = {""};
        slice body = sliceMake(payload.ptr, payload.len - RDB_DUMP_FOOTER);
        if (testRead(body, &options, &back, &why) != OK) fail_msg("round %d: %s", i, why.text);
        assert_true(testEqual(o, back));
        assert_string_equal(typeOf(o)->encoding(o), typeOf(back)->encoding(back));
        size_t at = (size_t)randomUniform(payload.len);
        payload.ptr[at] = (char)(payload.ptr[at] ^ 1 << randomUniform(8));
        assert_false(rdbDumpHasFooter(strSlice(&payload), true, false, &version));
        objectFree(o);
        objectFree(back);
        strFree(&payload);
    }
}

static void the_lowest_versions_are_read_back(void **state) {
    (void)state;
    randomSeed(13);
    rdbReadOptions options = testOptions();
    for (int i = 0; i < ROUNDS; i++) {
        rdbForm form = i % 2 ? RDB_FORM_LOWEST : RDB_FORM_REDIS;
        robj *o = randomObject(&options.limits), *back;
        bool timed = objectType(o) == TYPE_HASH && hashTimedCount(o) > 0;
        str payload = STR_EMPTY;
        rdbDump(o, 0, form, &payload);
        int version;
        assert_true(rdbDumpHasFooter(strSlice(&payload), false, false, &version));
        int lowest = !timed ? 11 : form == RDB_FORM_REDIS ? 12 : 80;
        assert_int_equal(version, objectType(o) == TYPE_PATHHASH ? 81 : lowest);
        reason why = {""};
        uint8_t type;
        slice body = sliceMake(payload.ptr, payload.len - RDB_DUMP_FOOTER);
        if (rdbDumpRead(body, version, SLICE("key"), &options, &back, &type, &why) != OK)
            fail_msg("round %d: %s", i, why.text);
        assert_int_equal(type == 24, timed && form == RDB_FORM_REDIS);
        assert_true(testEqual(o, back));
        objectFree(o);
        objectFree(back);
        strFree(&payload);
    }
}

static void every_cut_is_refused_and_no_change_of_a_byte_crashes(void **state) {
    (void)state;
    randomSeed(11);
    rdbReadOptions options = testOptions();
    for (int i = 0; i < ROUNDS / 10; i++) {
        robj *o = randomObject(&options.limits), *back;
        str payload = STR_EMPTY;
        rdbDump(o, 0, RDB_FORM_VALKEY, &payload);
        size_t len = payload.len - RDB_DUMP_FOOTER;
        size_t step = 1 + len / 50;
        for (size_t cut = 0; cut < len; cut += step) {
            assert_int_not_equal(testRead(sliceMake(payload.ptr, cut), &options, &back, NULL), OK);
            char byte = payload.ptr[cut];
            payload.ptr[cut] = (char)randomNext();
            if (testRead(sliceMake(payload.ptr, len), &options, &back, NULL) == OK && back)
                objectFree(back);
            payload.ptr[cut] = byte;
        }
        objectFree(o);
        strFree(&payload);
    }
}

static unsigned dropped_fields;
static void countDropped(void *arg, slice key, valueType type, slice field) {
    assert_ptr_equal(arg, &dropped_fields);
    assert_true(sliceIs(key, "key"));
    assert_int_equal(type, TYPE_HASH);
    assert_true(sliceIs(field, "f"));
    dropped_fields++;
}

static void expired_fields_are_dropped_on_request(void **state) {
    (void)state;
    str bytes = testBytes("16 02 0166 0176 0100000000000000 0167 0177 ffffffffffffffff");
    rdbReadOptions options = testOptions();
    options.look = lookAt(1000);
    options.item_dropped = countDropped;
    options.arg = &dropped_fields;
    robj *o;
    assert_int_equal(testRead(strSlice(&bytes), &options, &o, NULL), OK);
    assert_int_equal(hashLength(o), 1);
    assert_int_equal(dropped_fields, 1);
    objectFree(o);
    strFree(&bytes);
    bytes = testBytes("16 01 0166 0176 0100000000000000");
    assert_int_equal(testRead(strSlice(&bytes), &options, &o, NULL), OK);
    assert_null(o);
    strFree(&bytes);
}

static void values_beyond_the_limits_are_tables(void **state) {
    (void)state;
    rdbReadOptions options = testOptions();
    options.limits.hash.entries = options.limits.zset.entries = options.limits.set.packed.entries =
        0;
    options.limits.set.ints = 0;
    static const struct {
        const char *hex, *encoding;
    } cases[] = {
        {"10 0c 0c000000 0200 0101 816102 ff", "hashtable"},
        {"11 0c 0c000000 0200 816102 0101 ff", "skiplist"},
        {"14 0c 0c000000 0200 0101 816102 ff", "hashtable"},
        {"0b 0e 02000000 03000000 0100 0200 2c01", "hashtable"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        str bytes = testBytes(cases[i].hex);
        robj *o;
        status st = testRead(strSlice(&bytes), &options, &o, NULL);
        assert_int_equal(st, OK);
        assert_string_equal(typeOf(o)->encoding(o), cases[i].encoding);
        objectFree(o);
        strFree(&bytes);
    }
}

int test_rdb_values(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_other_versions_are_read),
        cmocka_unit_test(damaged_values_are_refused_with_the_reason),
        cmocka_unit_test(random_values_survive_a_round_trip),
        cmocka_unit_test(the_lowest_versions_are_read_back),
        cmocka_unit_test(every_cut_is_refused_and_no_change_of_a_byte_crashes),
        cmocka_unit_test(expired_fields_are_dropped_on_request),
        cmocka_unit_test(values_beyond_the_limits_are_tables),
    };
    return cmocka_run_group_tests_name("format/rdb values", tests, testSetUp, testTearDown);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A type that is added at run time, a counter with a name: saved, loaded, copied, expired, evicted,
 * unlinked, measured and written as commands; data outside of keys; types that are missing; imports
 * of slots. */
#include "format_test.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "format/aof_value.h"
#include "format/rdb_file.h"
#include "format/rdb_module.h"

typedef struct counter {
    int64_t value;
    size_t effort; /* to free it */
} counter;

static str told; /* what the callbacks were called for */
static bool copies_fail;
static int64_t aux_value; /* of the type as a whole; 0: none */

/* ------------------------------------------------------------------ the type */

static void note(const char *what, const valuePlace *at) {
    strAppendFormat(&told, "%s %d:%.*s;", what, at->db_id, (int)at->key.len, at->key.ptr);
}

static void assertTold(const char *expected) {
    assert_string_equal(strText(&told), expected);
    strClear(&told);
}

static void freeCounter(const moduleType *t, void *value) {
    assert_string_equal(t->name, "counter-t");
    memFree(value);
}

static void *copyCounter(const moduleType *t, const valuePlace *from, const valuePlace *to,
                         void *value) {
    (void)t; /* there is one */
    note("from", from);
    note("to", to);
    return copies_fail ? NULL : memDup(value, sizeof(counter));
}

static size_t memoryOfCounter(const moduleType *t, const valuePlace *at, const void *value,
                              size_t samples) {
    (void)t, (void)value; /* there is one; all are equally large */
    note("memory", at);
    return 1000 + samples;
}

static size_t effortOfCounter(const moduleType *t, const valuePlace *at, const void *value) {
    (void)t; /* there is one */
    note("effort", at);
    return ((const counter *)value)->effort;
}

static void unlinkCounter(const moduleType *t, const valuePlace *at, const void *value) {
    (void)t, (void)value; /* the key is enough */
    note("unlink", at);
}

static void digestCounter(const moduleType *t, const valuePlace *at, const void *value,
                          digest *to) {
    (void)t, (void)at; /* equal values are equal everywhere */
    digestMixNumber(to, (uint32_t)((const counter *)value)->value);
}

static const moduleTypeOps counter_ops = {.free_value = freeCounter,
                                          .copy = copyCounter,
                                          .memory = memoryOfCounter,
                                          .free_effort = effortOfCounter,
                                          .unlink = unlinkCounter,
                                          .digest = digestCounter};
static const moduleTypeOps plain_ops = {.free_value = freeCounter, .digest = digestCounter};

static moduleType counter_type = {.name = "counter-t", .ops = &counter_ops};

static void *counterNew(int64_t value, size_t effort) {
    counter *c = memNew(counter);
    *c = (counter){value, effort};
    return c;
}

/* ------------------------------------------------------------------ its codec */

static status readCounter(const moduleCodec *c, rdbReader *r, int version, const valuePlace *at,
                          void **value) {
    int64_t number;
    uint64_t effort;
    double half;
    float quarter;
    slice text;
    (void)c; /* there is one */
    note("read", at);
    status st = rdbReadModuleSigned(r, &number);
    if (st == OK) st = rdbReadModuleUnsigned(r, &effort);
    if (st == OK) st = rdbReadModuleDouble(r, &half);
    if (st == OK) st = rdbReadModuleFloat(r, &quarter);
    if (st == OK) st = rdbReadModuleString(r, &text);
    if (st != OK) return st;
    if (version != 3 || half != 0.5 || quarter != 0.25F || !sliceEqual(text, SLICE("text")))
        return rdbReaderFail(r, "not a counter");
    *value = counterNew(number, effort);
    return OK;
}

static void writeCounter(const moduleCodec *c, rdbWriter *w, const valuePlace *at,
                         const void *value) {
    const counter *own = value;
    (void)c; /* there is one */
    note("write", at);
    rdbWriteModuleSigned(w, own->value);
    rdbWriteModuleUnsigned(w, own->effort);
    rdbWriteModuleDouble(w, 0.5);
    rdbWriteModuleFloat(w, 0.25F);
    rdbWriteModuleString(w, SLICE("text"));
}

static void writeCounterCommands(const moduleCodec *c, rdbWriter *w, const valuePlace *at,
                                 const void *value) {
    (void)c, (void)value; /* there is one; its key is enough */
    slice words[] = {SLICE("counter.set"), at->key};
    aofWriteCommand(w, COUNT_OF(words), words);
}

static status readAux(const moduleCodec *c, rdbReader *r, int version, int when) {
    (void)c; /* there is one */
    assert_int_equal(version, 3);
    assert_int_equal(when, RDB_AUX_AFTER);
    return rdbReadModuleSigned(r, &aux_value);
}

static void writeAux(const moduleCodec *c, rdbWriter *w, int when) {
    (void)c; /* there is one */
    assert_int_equal(when, RDB_AUX_AFTER);
    if (aux_value) rdbWriteModuleSigned(w, aux_value);
}

static moduleCodec counter_codec = {.type = &counter_type,
                                    .read = readCounter,
                                    .write = writeCounter,
                                    .write_commands = writeCounterCommands,
                                    .aux_when = RDB_AUX_AFTER,
                                    .aux_if_any = true,
                                    .read_aux = readAux,
                                    .write_aux = writeAux};

static void ignoreKey(db *d, slice key) { (void)d, (void)key; }
static const storeListener listener = {.expired = ignoreKey, .evicted = ignoreKey};

static int setUp(void **state) {
    (void)state; /* everything is static */
    storeInit(2, false);
    storeSetListener(keyspaceMain(), &listener);
    counter_type.ops = &counter_ops;
    counter_codec.id = rdbModuleId(SLICE("counter-t"), 3);
    copies_fail = false;
    aux_value = 0;
    return moduleCodecRegister(&counter_codec) == OK ? 0 : -1;
}

static int tearDown(void **state) {
    (void)state; /* everything is static */
    (void)storeFlush(keyspaceMain(), false);
    assert_int_equal(moduleCodecUnregister(&counter_codec), OK);
    assert_false(moduleTypesExist());
    storeShutdown();
    strFree(&told);
    return 0;
}

/* ------------------------------------------------------------------ keys */

static void put(db *d, const char *name, int64_t value, int64_t expire_ms) {
    slice key = sliceOf(name);
    dbPosition at;
    assert_null(dbFind(d, key, storeHash(key), lookAt(0), &at));
    robj *o = moduleObjectNew(key, &counter_type, counterNew(value, 1));
    if (expire_ms != OBJECT_NO_EXPIRE) o = objectSetExpire(o, expire_ms);
    dbPlace(d, &at, o);
}

static robj *get(db *d, const char *name) {
    return dbFindRead(d, sliceOf(name), storeHash(sliceOf(name)), lookAt(0));
}

static int64_t valueOf(const robj *o) {
    return ((const counter *)moduleValueOf(o)->content)->value;
}

static void it_has_names_and_sizes_like_others(void **state) {
    (void)state; /* see setUp() */
    put(storeDb(0), "a", 7, OBJECT_NO_EXPIRE);
    const robj *o = get(storeDb(0), "a");
    typeFilter filter;
    assert_string_equal(objectTypeName(o), "counter-t");
    assert_string_equal(typeOf(o)->encoding(o), "raw");
    assert_true(typeFind(SLICE("COUNTER-T"), &filter));
    assert_true(typeMatches(&filter, o));
    assert_false(typeFind(SLICE("counter-x"), &filter));
    assert_true(typeFind(SLICE("hash"), &filter));
    assert_false(typeMatches(&filter, o));
    assert_in_range(objectMemoryAt(o, 0, 5), 1005, 1200);
    assertTold("memory 0:a;");
    moduleType same = {.name = "COUNTER-T", .ops = &plain_ops};
    assert_int_equal(moduleTypeRegister(&same), ERR_EXISTS);
    assert_int_equal(moduleCodecUnregister(&counter_codec), ERR_AGAIN);
}

/* Copies a key to another one, in place of what is there. */
static status copyKey(const dbKey *from, const dbKey *to) {
    robj *copy;
    status st = dbCopy(from, to, &copy);
    if (st == OK) dbPut(to, copy);
    return st;
}

static void it_is_copied_renamed_or_not_copied(void **state) {
    (void)state; /* see setUp() */
    put(storeDb(0), "a", 7, OBJECT_NO_EXPIRE);
    put(storeDb(1), "b", 8, OBJECT_NO_EXPIRE);
    dbKey a = {storeDb(0), SLICE("a"), storeHash(SLICE("a"))};
    dbKey b = {storeDb(1), SLICE("b"), storeHash(SLICE("b"))};
    copies_fail = true;
    assert_int_equal(copyKey(&a, &b), ERR_NO_MEMORY);
    assertTold("from 0:a;to 1:b;");
    assert_int_equal(valueOf(get(storeDb(1), "b")), 8); /* nothing was removed for it */
    copies_fail = false;
    assert_int_equal(copyKey(&a, &b), OK);
    assertTold("from 0:a;to 1:b;unlink 1:b;");
    assert_int_equal(valueOf(get(storeDb(1), "b")), 7);
    dbKey c = {storeDb(0), SLICE("c"), storeHash(SLICE("c"))};
    dbMove(&a, &c);
    assertTold("unlink 0:a;");
    assert_int_equal(valueOf(get(storeDb(0), "c")), 7);
    counter_type.ops = &plain_ops;
    assert_int_equal(copyKey(&c, &a), ERR_DENIED);
    assert_null(get(storeDb(0), "a"));
}

static void it_expires_and_is_evicted_and_unlinked_before(void **state) {
    (void)state; /* see setUp() */
    const evictRule rule = {.order = EVICT_RANDOM, .samples = 5};
    put(storeDb(0), "a", 1, 10);
    storeExpireTurn(keyspaceMain(), 11, 1000000, 1);
    assertTold("unlink 0:a;");
    assert_int_equal(dbSize(storeDb(0)), 0);
    put(storeDb(1), "b", 1, OBJECT_NO_EXPIRE);
    assert_true(storeEvictOne(keyspaceMain(), &rule));
    assertTold("unlink 1:b;");
    put(storeDb(0), "c", 1, OBJECT_NO_EXPIRE);
    (void)storeFlush(keyspaceMain(), false); /* this calls no callback */
    assertTold("");
}

static storeFreeProc *free_later;
static void *garbage;

static void keepForLater(storeFreeProc *proc, void *what) {
    free_later = proc;
    garbage = what;
}

static void it_is_freed_in_the_background_if_it_says_so(void **state) {
    (void)state; /* see setUp() */
    storeSetFreeLater(keepForLater);
    garbage = NULL;
    const size_t efforts[] = {1, 65, 0};
    for (size_t i = 0; i < COUNT_OF(efforts); i++) {
        put(storeDb(0), "a", 1, OBJECT_NO_EXPIRE);
        ((counter *)moduleValueOf(get(storeDb(0), "a"))->content)->effort = efforts[i];
        assert_true(dbUnlink(storeDb(0), SLICE("a"), storeHash(SLICE("a")), lookAt(0)));
        assertTold("unlink 0:a;effort 0:a;");
        assert_int_equal(garbage != NULL, efforts[i] != 1);
        if (!garbage) continue;
        assert_int_equal(moduleTypeUnregister(&counter_type), ERR_AGAIN);
        free_later(garbage);
        (void)storeReclaim(); /* what was sent back */
        garbage = NULL;
    }
    storeSetFreeLater(NULL);
}

/* ------------------------------------------------------------------ bytes */

static void a_payload_of_dump_is_read_again(void **state) {
    (void)state; /* see setUp() */
    rdbReadOptions options = testOptions();
    options.db_id = 1;
    put(storeDb(0), "a", -7, OBJECT_NO_EXPIRE);
    str payload = STR_EMPTY;
    reason why = {""};
    robj *o;
    rdbDump(get(storeDb(0), "a"), 0, RDB_FORM_VALKEY, &payload);
    slice body = sliceMake(payload.ptr, payload.len - RDB_DUMP_FOOTER);
    uint8_t type;
    status st = rdbDumpRead(body, RDB_VERSION, SLICE("b"), &options, &o, &type, &why);
    assert_int_equal(st, OK);
    assertTold("write 0:a;read 1:b;");
    assert_int_equal(valueOf(o), -7);
    assert_true(testEqual(o, get(storeDb(0), "a")));
    objectFree(o);
    for (size_t len = 1; len < body.len; len++) {
        slice cut = sliceMake(body.ptr, len);
        st = rdbDumpRead(cut, RDB_VERSION, SLICE("b"), &options, &o, &type, &why);
        assert_int_not_equal(st, OK);
        assert_null(o);
    }
    strFree(&payload);
}

static void what_a_missing_type_or_another_item_is_called(void **state) {
    (void)state; /* see setUp() */
    static const struct {
        const char *hex, *why;
    } refused[] = {
        {"07 81 0000000000001402 00",
         "The RDB file contains module data I can't load: no matching module type 'AAAAAAAAF'"},
        {"06 81 0000000000001402 00", "The RDB file contains module data I can't load: no modules"},
    };
    rdbReadOptions options = testOptions();
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        str bytes = testBytes(refused[i].hex);
        reason why;
        robj *o;
        assert_int_equal(testRead(strSlice(&bytes), &options, &o, &why), ERR_NOT_FOUND);
        assert_string_equal(why.text, refused[i].why);
        strFree(&bytes);
    }
    assert_int_equal(rdbModuleId(SLICE("counter"), 0), 0);
    assert_int_equal(rdbModuleId(SLICE("counter+t"), 0), 0);
    assert_int_equal(rdbModuleId(SLICE("counter-t"), 1024), 0);
    char name[RDB_MODULE_NAME_SIZE];
    rdbModuleName(counter_codec.id, name);
    assert_string_equal(name, "counter-t");
}

/* ------------------------------------------------------------------ files */

static status onDb(void *arg, rdbReader *r, uint64_t id) {
    (void)arg, (void)r; /* see onKey() */
    strAppendFormat(&told, "db %d;", (int)id);
    return OK;
}

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    (void)r;                /* it has no failure */
    if (!key->o) return OK; /* skipped */
    *(int64_t *)arg = valueOf(key->o);
    objectFree(key->o);
    return OK;
}

static status onSlotImport(void *arg, rdbReader *r, const slotImport *import) {
    (void)arg, (void)r; /* see onKey() */
    strAppendFormat(&told, "import %.*s", (int)import->job.len, import->job.ptr);
    for (size_t i = 0; i < import->count; i++)
        strAppendFormat(&told, " %d-%d", import->ranges[i].first, import->ranges[i].last);
    strAppendByte(&told, ';');
    return OK;
}

static status onAux(void *arg, rdbReader *r, const char *module) {
    (void)arg, (void)r; /* see onKey() */
    strAppendFormat(&told, "aux %s;", module);
    return OK;
}

static const char *const JOB = "0123456789012345678901234567890123456789";

/* Writes a file with a key in database 1. */
static str writeFile(void) {
    static const slotRange ranges[] = {{0, 0}, {5461, 16383}};
    rdbFileInfo info = {.version = RDB_VERSION, .server_version = "9.1.2"};
    str bytes = STR_EMPTY;
    rdbStrSink sink;
    rdbWriter w;
    rdbStrSinkInit(&sink, &bytes);
    rdbWriterInit(&w, &sink.sink, true, true);
    rdbFileBegin(&w, &info);
    rdbWriteModuleAux(&w, RDB_AUX_BEFORE);
    rdbFileSlotImport(&w, &(slotImport){sliceOf(JOB), ranges, COUNT_OF(ranges)});
    rdbFileDb(&w, 1, 1, 0);
    assert_int_equal(rdbFileKey(&w, get(storeDb(1), "a"), RDB_VERSION, RDB_ACCESS_NONE), OK);
    rdbWriteModuleAux(&w, RDB_AUX_AFTER);
    assert_int_equal(rdbFileEnd(&w, NULL), OK);
    rdbWriterClear(&w);
    return bytes;
}

static status readFile(const str *bytes, bool skips, int64_t *value, reason *why) {
    static const rdbFileHandler handler = {
        .db = onDb, .key = onKey, .slot_import = onSlotImport, .module_aux = onAux};
    rdbFileOptions options = {
        .values = testOptions(), .skip_modules = skips, .check_checksum = true};
    rdbSliceSource source;
    rdbReader r;
    rdbFileResult result;
    *value = 0;
    rdbSliceSourceInit(&source, strSlice(bytes));
    rdbReaderInit(&r, &source.source, true);
    status st = rdbFileRead(&r, &options, &handler, value, &result);
    *why = r.why;
    rdbReaderClear(&r);
    return st;
}

static void a_file_has_its_keys_its_own_data_and_imports_of_slots(void **state) {
    (void)state; /* see setUp() */
    int64_t value;
    reason why = {""};
    put(storeDb(1), "a", 42, OBJECT_NO_EXPIRE);
    aux_value = 99;
    str bytes = writeFile();
    assertTold("write 1:a;");
    aux_value = 0;
    assert_int_equal(readFile(&bytes, false, &value, &why), OK);
    assertTold("import 0123456789012345678901234567890123456789 0-0 5461-16383;db 1;read 1:a;");
    assert_int_equal(value, 42);
    assert_int_equal(aux_value, 99);
    assert_int_equal(readFile(&bytes, true, &value, &why), OK);
    assertTold("import 0123456789012345678901234567890123456789 0-0 5461-16383;db 1;"
               "aux counter-t;");
    (void)storeFlush(keyspaceMain(), false);
    assert_int_equal(moduleCodecUnregister(&counter_codec), OK);
    assert_int_equal(readFile(&bytes, false, &value, &why), ERR_NOT_FOUND);
    assert_string_equal(
        why.text,
        "The RDB file contains module data I can't load: no matching module type 'counter-t'");
    assert_int_equal(readFile(&bytes, true, &value, &why), OK);
    assert_int_equal(moduleCodecRegister(&counter_codec), OK);
    strFree(&bytes);
}

static void data_that_is_not_there_needs_no_module(void **state) {
    (void)state; /* see setUp() */
    int64_t value;
    reason why;
    put(storeDb(1), "a", 42, OBJECT_NO_EXPIRE);
    str bytes = writeFile();
    strClear(&told);
    assert_int_equal(readFile(&bytes, true, &value, &why), OK);
    assert_null(strstr(strText(&told), "aux"));
    strFree(&bytes);
}

static void it_is_written_as_commands(void **state) {
    (void)state; /* see setUp() */
    put(storeDb(0), "a", 7, 5);
    str bytes = STR_EMPTY;
    rdbStrSink sink;
    rdbWriter w;
    rdbStrSinkInit(&sink, &bytes);
    rdbWriterInit(&w, &sink.sink, false, false);
    aofWriteKey(&w, get(storeDb(0), "a"));
    assert_int_equal(rdbWriterFlush(&w), OK);
    rdbWriterClear(&w);
    assert_string_equal(strText(&bytes), "*2\r\n$11\r\ncounter.set\r\n$1\r\na\r\n"
                                         "*3\r\n$9\r\nPEXPIREAT\r\n$1\r\na\r\n$1\r\n5\r\n");
    strFree(&bytes);
}

int test_rdb_module(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)
    const struct CMUnitTest tests[] = {
        TEST(it_has_names_and_sizes_like_others),
        TEST(it_is_copied_renamed_or_not_copied),
        TEST(it_expires_and_is_evicted_and_unlinked_before),
        TEST(it_is_freed_in_the_background_if_it_says_so),
        TEST(a_payload_of_dump_is_read_again),
        TEST(what_a_missing_type_or_another_item_is_called),
        TEST(a_file_has_its_keys_its_own_data_and_imports_of_slots),
        TEST(data_that_is_not_there_needs_no_module),
        TEST(it_is_written_as_commands),
    };
    return cmocka_run_group_tests_name("format/rdb_module", tests, NULL, NULL);
}

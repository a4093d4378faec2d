/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of a keyspace with slots: those that are being imported, whose keys are hidden, are written
 * with the record that says so; a save of some slots has their keys alone. */
#include "persist_test.h"

#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/lifecycle.h"
#include "format/rdb_file.h"
#include "format/slot_imports.h"
#include "persist/rdb_save.h"
#include "store/store.h"

static const slice HIDDEN = SLICE("{h}idden"), SHOWN = SLICE("{s}hown");
static str seen; /* what was in a file, in its order */

static int slotOf(slice key) { return storeHashSlot(storeHash(key)); }

static void put(slice key) {
    dbPosition at;
    assert_null(dbFind(storeDb(0), key, storeHash(key), lookAt(0), &at));
    dbSetString(storeDb(0), key, &at, NULL, SLICE("v"), NULL, OBJECT_NO_EXPIRE);
}

/* The keeper: one import, of the hidden slot. */
static void eachImport(slotImportVisitProc *visit, void *arg) {
    slotRange range = {slotOf(HIDDEN), slotOf(HIDDEN)};
    slotImport import = {SLICE("0123456789012345678901234567890123456789"), &range, 1};
    visit(arg, &import);
}

static void importLoaded(const slotImport *import) {
    for (size_t i = 0; i < import->count; i++)
        strAppendFormat(&seen, "loaded %d;", import->ranges[i].first == slotOf(HIDDEN));
}

static const slotImportKeeper keeper = {.each = eachImport, .loaded = importLoaded};

static status onImport(void *arg, rdbReader *r, const slotImport *import) {
    (void)arg, (void)r; /* everything is in `seen` */
    strAppendText(&seen, "import;");
    slotImportsLoaded(import);
    return OK;
}

static status onKey(void *arg, rdbReader *r, rdbKey *key) {
    (void)arg, (void)r; /* see onImport() */
    strAppendFormat(&seen, "%.*s;", (int)key->name.len, key->name.ptr);
    objectFree(key->o);
    return OK;
}

/* Saves to a file and reads it. */
static void assertSaved(const slotMask *slots, const char *expected) {
    static const rdbFileHandler handler = {.key = onKey, .slot_import = onImport};
    const rdbSaveJob job = {.temporary = "temp.rdb", .name = "slots.rdb", .slots = slots};
    const rdbFileOptions options = {.values = {.look = lookAtAll()}};
    reason why;
    if (rdbSaveTo(&job, &why) != OK) fail_msg("%s", why.text);
    str bytes = testFile("slots.rdb");
    rdbSliceSource source;
    rdbReader r;
    rdbFileResult result;
    rdbSliceSourceInit(&source, strSlice(&bytes));
    rdbReaderInit(&r, &source.source, false);
    assert_int_equal(rdbFileRead(&r, &options, &handler, NULL, &result), OK);
    rdbReaderClear(&r);
    strFree(&bytes);
    assert_string_equal(strText(&seen), expected);
    strClear(&seen);
    assert_int_equal(unlink("slots.rdb"), 0);
}

static void identify(engineIdentity *out) { *out = (engineIdentity){.version = "9.1.2"}; }

static int setUp(void **state) {
    (void)state; /* everything is in the store */
    engineSetIdentityProc(identify);
    storeInit(1, true);
    put(HIDDEN);
    return 0;
}

static int tearDown(void **state) {
    (void)state; /* see setUp() */
    slotImportsSetKeeper(NULL);
    storeShutdown();
    strFree(&seen);
    return 0;
}

static void hidden_keys_are_saved_with_the_import_of_their_slot(void **state) {
    (void)state; /* see setUp() */
    storeHideSlot(keyspaceMain(), slotOf(HIDDEN), true);
    slotImportsSetKeeper(&keeper);
    assertSaved(NULL, "import;loaded 1;{h}idden;");
    slotImportsSetKeeper(NULL);
    assertSaved(NULL, "{h}idden;");
}

static void a_save_of_some_slots_has_their_keys_alone(void **state) {
    (void)state; /* see setUp() */
    slotMask some;
    memset(&some, 0, sizeof(some));
    put(SHOWN);
    slotMaskAdd(&some, slotOf(SHOWN));
    assertSaved(&some, "{s}hown;");
    slotMaskAdd(&some, slotOf(HIDDEN));
    slotMaskRemove(&some, slotOf(SHOWN));
    assertSaved(&some, "{h}idden;");
}

int test_rdb_slots(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setUp, tearDown)
    const struct CMUnitTest tests[] = {
        TEST(hidden_keys_are_saved_with_the_import_of_their_slot),
        TEST(a_save_of_some_slots_has_their_keys_alone),
    };
    return cmocka_run_group_tests_name("persist/rdb_slots", tests, testEnter, testLeave);
}

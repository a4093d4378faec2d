/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/child.c: who hears of a child, how its end is told, and that it keeps what it was forked with. */
#include "engine_test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hash.h"
#include "engine/child.h"
#include "engine/engine_priv.h"
#include "store/store.h"

static void onChild(childEvent e, int kind, int exit_code, int signal) {
    note("%d of %d: %d %d;", e, kind, exit_code, signal);
}

static const feature test_feature = {.name = "test_feature", .on_child = onChild};
static const feature *const features[] = {&test_feature};

static int setUp(void **state) {
    engineTestSetUp(state);
    hooksUninstall();
    hooksInstall(features, COUNT_OF(features), NULL, 0);
    return 0;
}

static int leaveWith(void *arg) { return *(int *)arg; }

static int waitForEver(void *arg) {
    (void)arg;
    for (;;) pause();
    return 0;
}

/* The cron asks again and again; here without its pauses. */
static void waitForEnd(void) {
    for (int i = 0; childAlive() != CHILD_NONE && i < 10000; i++) {
        childPoll(0);
        clockSleepUs(1000);
    }
    assert_int_equal(childAlive(), CHILD_NONE);
}

static void a_child_and_its_exit_code_are_reported(void **state) {
    int code = 7;
    reason why;
    assert_int_equal(childStart(CHILD_TEST, leaveWith, &code, &why), OK);
    assert_int_equal(childAlive(), CHILD_TEST);
    assert_noted("0 of 1: 0 0;2 of 1: 0 0;");
    waitForEnd();
    assert_noted("3 of 1: 7 0;");
}

static void there_is_one_at_a_time_and_it_can_be_killed(void **state) {
    reason why;
    assert_int_equal(childStart(CHILD_TEST, waitForEver, NULL, &why), OK);
    assert_int_equal(childStart(CHILD_TEST, waitForEver, NULL, &why), ERR_EXISTS);
    assert_string_equal(why.text, "another child process is running");
    childPoll(0);
    assert_int_equal(childAlive(), CHILD_TEST);
    (void)noted(); /* the start is another test's */
    childKill();
    assert_noted("3 of 1: -1 9;");
    assert_int_equal(childAlive(), CHILD_NONE);
    childKill();
    assert_noted("");
}

/* ------------------------------------------------------------------ what the child sees */

enum { KEYS = 500 };

static slice keyOf(int i) {
    static char text[16];
    return sliceMake(text, (size_t)snprintf(text, sizeof(text), "key:%d", i));
}

static void setAll(slice value) {
    for (int i = 0; i < KEYS; i++) {
        slice key = keyOf(i);
        uint64_t hash = storeHash(key);
        dbPosition at;
        robj *old = dbFind(storeDb(0), key, hash, lookAt(START_MS), &at);
        dbSetString(storeDb(0), key, &at, old, value, NULL, OBJECT_NO_EXPIRE);
    }
}

static bool allAre(slice value) {
    for (int i = 0; i < KEYS; i++) {
        slice key = keyOf(i);
        const robj *o = dbPeek(storeDb(0), key, storeHash(key));
        char space[32];
        if (!o || !sliceEqual(objectText(o, space), value)) return false;
    }
    return true;
}

/* Answers with 0 when it still has the old values after the parent has changed them. */
static int lookAgain(void *changed) {
    while (!*(volatile bool *)changed) clockSleepUs(100);
    return allAre(SLICE("before")) ? 0 : 1;
}

static void a_child_keeps_the_dataset_of_its_fork(void **state) {
    reason why;
    bool *changed =
        mmap(NULL, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(changed, MAP_FAILED);
    setAll(SLICE("before"));
    const robj *first = dbPeek(storeDb(0), keyOf(0), storeHash(SLICE("key:0")));
    assert_int_equal(childStart(CHILD_TEST, lookAgain, changed, &why), OK);
    setAll(SLICE("behind"));
    assert_ptr_not_equal(dbPeek(storeDb(0), keyOf(0), storeHash(SLICE("key:0"))),
                         first); /* not in place */
    *changed = true;
    (void)noted(); /* the start is another test's */
    waitForEnd();
    assert_noted("3 of 1: 0 0;");
    assert_true(allAre(SLICE("behind")));
    assert_int_equal(munmap(changed, sizeof(bool)), 0);
}

int test_child(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_child_and_its_exit_code_are_reported, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(there_is_one_at_a_time_and_it_can_be_killed, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(a_child_keeps_the_dataset_of_its_fork, setUp,
                                        engineTestTearDown),
    };
    return cmocka_run_group_tests_name("engine/child", tests, NULL, NULL);
}

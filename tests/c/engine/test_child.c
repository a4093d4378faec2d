/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/child.c: which callbacks are called, how the end is reported, and that the child
 * keeps its snapshot. */
#include "engine_test.h"

#include <dlfcn.h>
#include <errno.h>
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

static bool fork_fails;

/* The C library's, unless it is to fail. */
pid_t fork(void) {
    if (fork_fails) {
        errno = EAGAIN;
        return -1;
    }
    pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    return real();
}

static status start(childProc *run, void *arg, reason *why) {
    return childStart(&(childJob){.kind = CHILD_TEST, .run = run, .arg = arg}, why);
}

static int leaveWith(void *arg) { return *(int *)arg; }

static int waitForEver(void *arg) {
    (void)arg;
    for (;;) pause();
    return 0;
}

/* Like the cron, but without pauses. */
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
    assert_int_equal(start(leaveWith, &code, &why), OK);
    assert_int_equal(childAlive(), CHILD_TEST);
    assert_noted("0 of 5: 0 0;2 of 5: 0 0;");
    waitForEnd();
    assert_noted("3 of 5: 7 0;");
}

static void a_fork_returns_in_both_processes(void **state) {
    bool in_child;
    reason why;
    int here = 1;
    assert_int_equal(childFork(CHILD_MODULE, &in_child, &why), OK);
    if (in_child) {
        here = 2; /* its own copy */
        childReportProgress(3, 4);
        childExit(here + 5);
    }
    assert_int_equal(here, 1);
    assert_int_equal(childAlive(), CHILD_MODULE);
    assert_noted("0 of 4: 0 0;2 of 4: 0 0;");
    assert_int_equal(childFork(CHILD_MODULE, &in_child, &why), ERR_EXISTS);
    waitForEnd();
    assert_noted("3 of 4: 7 0;");
    assert_int_equal(childProgressNow().done, 3);
}

/* What never began does not end. */
static void a_failed_fork_is_no_end_of_a_child(void **state) {
    int code = 0;
    reason why;
    fork_fails = true;
    assert_int_equal(start(leaveWith, &code, &why), ERR_IO);
    fork_fails = false;
    assert_string_equal(why.text, "Can't fork: Resource temporarily unavailable");
    assert_noted("0 of 5: 0 0;4 of 5: 0 0;");
    assert_int_equal(childAlive(), CHILD_NONE);
    assert_int_equal(start(leaveWith, &code, &why), OK);
    waitForEnd();
    assert_noted("0 of 5: 0 0;2 of 5: 0 0;3 of 5: 0 0;");
}

static void there_is_one_at_a_time_and_it_can_be_killed(void **state) {
    reason why;
    assert_int_equal(start(waitForEver, NULL, &why), OK);
    assert_int_equal(start(waitForEver, NULL, &why), ERR_EXISTS);
    assert_string_equal(why.text, "another child process is running");
    childPoll(0);
    assert_int_equal(childAlive(), CHILD_TEST);
    (void)noted(); /* the start is another test's */
    childKill();
    assert_noted("3 of 5: -1 9;");
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
    assert_int_equal(start(lookAgain, changed, &why), OK);
    setAll(SLICE("behind"));
    assert_ptr_not_equal(dbPeek(storeDb(0), keyOf(0), storeHash(SLICE("key:0"))),
                         first); /* not in place */
    *changed = true;
    (void)noted(); /* the start is another test's */
    waitForEnd();
    assert_noted("3 of 5: 0 0;");
    assert_true(allAre(SLICE("behind")));
    assert_int_equal(munmap(changed, sizeof(bool)), 0);
}

/* ------------------------------------------------------------------ what the child reports */

enum { MESSAGES = 300, RESULT = 7, BULKY = 100000 };

static struct {
    int messages, bulky;
    childProgress at_result;
} heard;

static void hear(void *arg, uint32_t what, slice bytes) {
    assert_ptr_equal(arg, &heard);
    assert_int_equal(childAlive(), CHILD_RDB_SAVE);
    if (what == RESULT) {
        for (size_t i = 0; i < bytes.len; i++) assert_int_equal(bytes.ptr[i], 'x');
        heard.bulky += bytes.len == BULKY;
        return;
    }
    int number;
    assert_int_equal(bytes.len, sizeof(number));
    memcpy(&number, bytes.ptr, sizeof(number));
    assert_int_equal(number, heard.messages); /* in order */
    heard.messages++;
}

static int reportAll(void *arg) {
    (void)arg;
    for (int i = 0; i < MESSAGES; i++) {
        childReportProgress((uint64_t)i + 1, MESSAGES);
        childReport(0, sliceMake((const char *)&i, sizeof(i)));
    }
    char *bulky = memAlloc(BULKY); /* more than a pipe holds */
    memset(bulky, 'x', BULKY);
    childReport(RESULT, sliceMake(bulky, BULKY));
    memFree(bulky);
    return 3;
}

static void reportsArriveBeforeTheEnd(loop *l) {
    reason why;
    memset(&heard, 0, sizeof(heard));
    childSetLoop(l);
    childJob job = {.kind = CHILD_RDB_SAVE, .run = reportAll, .on_message = hear, .arg = &heard};
    assert_int_equal(childStart(&job, &why), OK);
    (void)noted(); /* the start is another test's */
    if (l) {
        for (int i = 0; childAlive() != CHILD_NONE && i < 100000; i++) {
            loopLimitSleep(l, 1);
            loopTurn(l, true);
            if (heard.bulky) childPoll(0);
        }
    }
    waitForEnd();
    childSetLoop(NULL);
    assert_int_equal(heard.messages, MESSAGES);
    assert_int_equal(heard.bulky, 1);
    assert_noted("3 of 1: 3 0;");
    childProgress p = childProgressNow();
    assert_int_equal(p.done, MESSAGES);
    assert_int_equal(p.total, MESSAGES);
    assert_true(p.copied > 0);
    assert_true(p.copied_peak >= p.copied);
    assert_true(p.reported_us > 0);
}

static void messages_of_a_child_arrive_in_order_before_its_end(void **state) {
    reportsArriveBeforeTheEnd(NULL);
    loop *l = loopNew(NULL, NULL);
    reportsArriveBeforeTheEnd(l);
    loopFree(l);
}

static void every_kind_has_a_name(void **state) {
    for (int kind = 0; kind < CHILD_KINDS; kind++)
        assert_true(strlen(childKindName((childKind)kind)) > 3);
    assert_string_equal(childKindName(CHILD_AOF_REWRITE), "aof-rewrite");
}

/* ------------------------------------------------------------------ a walk that can be stopped */

typedef struct fullDisk {
    int keys, room;
} fullDisk;

static status save(void *arg, const robj *o) {
    fullDisk *disk = arg;
    if (disk->keys == disk->room) return ERR_IO;
    disk->keys += objectKey(o).len > 0;
    return OK;
}

static void a_walk_ends_with_the_first_error(void **state) {
    setAll(SLICE("value"));
    fullDisk disk = {.room = 10};
    assert_int_equal(dbWalk(storeDb(0), -1, save, &disk), ERR_IO);
    assert_int_equal(disk.keys, 10);
    disk = (fullDisk){.room = 2 * KEYS};
    assert_int_equal(dbWalk(storeDb(0), -1, save, &disk), OK);
    assert_int_equal(disk.keys, KEYS);
}

int test_child(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_of_a_child_arrive_in_order_before_its_end, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(every_kind_has_a_name, setUp, engineTestTearDown),
        cmocka_unit_test_setup_teardown(a_walk_ends_with_the_first_error, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(a_child_and_its_exit_code_are_reported, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(a_fork_returns_in_both_processes, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(a_failed_fork_is_no_end_of_a_child, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(there_is_one_at_a_time_and_it_can_be_killed, setUp,
                                        engineTestTearDown),
        cmocka_unit_test_setup_teardown(a_child_keeps_the_dataset_of_its_fork, setUp,
                                        engineTestTearDown),
    };
    return cmocka_run_group_tests_name("engine/child", tests, NULL, NULL);
}

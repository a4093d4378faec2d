/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/bio: order within a kind, independence of kinds, draining, ending. */
#include "io_test.h"

#include <errno.h>
#include <pthread.h>

#include "base/alloc.h"
#include "io/bio.h"

enum { JOBS = 5000 };

static int order[JOBS];
static int done; /* by the worker; read after bioDrain() */

static void note(void *arg) {
    order[done++] = *(int *)arg;
    memFree(arg);
}

static void submitNumber(bioKind kind, int number) {
    int *arg = memAlloc(sizeof(*arg));
    *arg = number;
    bioSubmit(kind, note, arg);
}

/* A gate on which a job waits, so that others queue up after it. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void passGate(void *arg) {
    (void)arg;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void test_jobs_run_in_order_and_pending_counts(void **state) {
    (void)state;
    size_t before = memUsed();
    bioInit("");
    done = 0;
    assert_int_equal(bioPending(BIO_FREE), 0);
    bioDrain(BIO_FREE);
    pthread_mutex_lock(&gate);
    bioSubmit(BIO_FREE, passGate, NULL);
    for (int i = 0; i < JOBS; i++) submitNumber(BIO_FREE, i);
    assert_int_equal(bioPending(BIO_FREE), JOBS + 1);
    assert_int_equal(bioPending(BIO_CLOSE), 0);
    pthread_mutex_unlock(&gate);
    bioDrain(BIO_FREE);
    assert_int_equal(bioPending(BIO_FREE), 0);
    assert_int_equal(done, JOBS);
    for (int i = 0; i < JOBS; i++) assert_int_equal(order[i], i);
    bioShutdown();
    assert_int_equal(memUsed(), before);
}

static void test_queue_wraps_and_grows_in_the_middle(void **state) {
    (void)state;
    bioInit("");
    done = 0;
    int submitted = 0;
    for (int round = 1; submitted + round * 7 <= JOBS; round++) {
        for (int i = 0; i < round * 7; i++) submitNumber(BIO_CLOSE, submitted++);
        if (round % 3 == 0) bioDrain(BIO_CLOSE);
    }
    bioDrain(BIO_CLOSE);
    assert_int_equal(done, submitted);
    for (int i = 0; i < submitted; i++) assert_int_equal(order[i], i);
    bioShutdown();
}

static void test_kinds_do_not_wait_for_each_other(void **state) {
    (void)state;
    bioInit("");
    done = 0;
    pthread_mutex_lock(&gate);
    bioSubmit(BIO_FSYNC, passGate, NULL);
    submitNumber(BIO_FREE, 1);
    bioDrain(BIO_FREE); /* would never return if it were queued after the fsync */
    assert_int_equal(done, 1);
    assert_int_equal(bioPending(BIO_FSYNC), 1);
    pthread_mutex_unlock(&gate);
    bioDrain(BIO_FSYNC);
    bioShutdown();
}

static void test_shutdown_does_what_is_pending_and_allows_a_new_start(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++) {
        bioInit("");
        done = 0;
        for (int i = 0; i < 100; i++) submitNumber(BIO_CLOSE, i);
        bioShutdown();
        assert_int_equal(done, 100);
        assert_int_equal(bioPending(BIO_CLOSE), 0);
    }
    bioShutdown(); /* with nothing started */
}

/* ---- tasks that tell their end ---- */

enum { TASKS = 500 };
static struct {
    int count, failed;
    pthread_t by;
} told;

static int failOdd(void *arg) { return *(int *)arg % 2 ? ENOSPC : 0; }

static void tell(void *arg, int error) {
    assert_true(pthread_equal(told.by, pthread_self()));
    assert_int_equal(*(int *)arg, told.count); /* those of a kind end in order */
    assert_int_equal(error, told.count % 2 ? ENOSPC : 0);
    told.count++;
    told.failed += error != 0;
    memFree(arg);
}

static void submitTasks(void) {
    memset(&told, 0, sizeof(told));
    told.by = pthread_self();
    for (int i = 0; i < TASKS; i++) {
        int *arg = memAlloc(sizeof(*arg));
        *arg = i;
        bioSubmitTask(BIO_FSYNC, failOdd, tell, arg);
    }
}

static void test_the_loop_tells_how_tasks_ended(void **state) {
    (void)state;
    size_t before = memUsed();
    loop *l = loopNew(NULL, NULL);
    bioInit("");
    bioAttach(l);
    submitTasks();
    for (int i = 0; i < 100000 && told.count < TASKS; i++) {
        loopLimitSleep(l, 1000); /* an end wakes the loop */
        loopTurn(l, true);
    }
    assert_int_equal(told.count, TASKS);
    assert_int_equal(told.failed, TASKS / 2);
    bioShutdown();
    loopFree(l);
    assert_int_equal(memUsed(), before);
}

static void test_ends_are_told_without_a_loop_too(void **state) {
    (void)state;
    bioInit("");
    submitTasks();
    bioDrain(BIO_FSYNC);
    assert_int_equal(told.count, 0);
    bioComplete();
    assert_int_equal(told.count, TASKS);
    submitTasks();
    bioShutdown(); /* tells the rest */
    assert_int_equal(told.count, TASKS);
}

int test_bio(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_loop_tells_how_tasks_ended),
        cmocka_unit_test(test_ends_are_told_without_a_loop_too),
        cmocka_unit_test(test_jobs_run_in_order_and_pending_counts),
        cmocka_unit_test(test_queue_wraps_and_grows_in_the_middle),
        cmocka_unit_test(test_kinds_do_not_wait_for_each_other),
        cmocka_unit_test(test_shutdown_does_what_is_pending_and_allows_a_new_start),
    };
    return cmocka_run_group_tests_name("bio", tests, NULL, NULL);
}

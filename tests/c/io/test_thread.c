/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/thread. */
#define _GNU_SOURCE
#include "io_test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>

#include "io/thread.h"

typedef struct threadState {
    char name[32];
    sigset_t blocked;
    int arg_arrived;
} threadState;

static void *readThreadState(void *arg) {
    threadState *s = arg;
    s->arg_arrived = 1;
    assert_int_equal(pthread_getname_np(pthread_self(), s->name, sizeof(s->name)), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &s->blocked);
    return NULL;
}

static void test_thread_has_name_and_no_signals(void **state) {
    (void)state;
    thread t;
    threadState s = {0};
    sigset_t mask;
    reason why;
    assert_int_equal(threadStart(&t, "a_name_that_is_too_long", "", readThreadState, &s, &why), OK);
    assert_true(t.running);
    threadJoin(&t);
    assert_false(t.running);
    threadJoin(&t); /* a second call has no effect */
    assert_int_equal(s.arg_arrived, 1);
    assert_string_equal(s.name, "a_name_that_is_");
    assert_true(sigismember(&s.blocked, SIGTERM));
    assert_true(sigismember(&s.blocked, SIGINT));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
}

static void test_name_of_the_calling_thread(void **state) {
    (void)state;
    char before[32], name[32];
    pthread_getname_np(pthread_self(), before, sizeof(before));
    threadSetName("renamed");
    pthread_getname_np(pthread_self(), name, sizeof(name));
    assert_string_equal(name, "renamed");
    threadSetName(before);
}

static int cpusAllowed(cpu_set_t *set) {
    assert_int_equal(sched_getaffinity(0, sizeof(*set), set), 0);
    return CPU_COUNT(set);
}

static void *pinToFirst(void *arg) {
    cpu_set_t set;
    int *result = arg;
    char list[16];
    cpusAllowed(&set);
    int first = 0;
    while (!CPU_ISSET(first, &set)) first++;
    snprintf(list, sizeof(list), "%d", first);
    if (!threadSetCpus(list)) return NULL;
    *result = cpusAllowed(&set) == 1 && CPU_ISSET(first, &set);
    return NULL;
}

static void test_pinning_to_one_processor(void **state) {
    (void)state;
    thread t;
    int pinned = 0;
    assert_int_equal(threadStart(&t, "pin", NULL, pinToFirst, &pinned, NULL), OK);
    threadJoin(&t);
    assert_int_equal(pinned, 1);
}

/* Runs in its own thread, because an accepted list changes the processors of the thread. */
static void *tryLists(void *arg) {
    int *wrong = arg;
    static const char *const good[] = {"", "0-1023", "0,1,2,3", "0-1022:2,1-1023:2", "0-7,8-1023"};
    static const char *const bad[] = {"x",
                                      "0-",
                                      "-1",
                                      "1-0",
                                      "0,",
                                      ",0",
                                      "0-3:0",
                                      "0-3:",
                                      "1024",
                                      "0 1",
                                      "99999999999999999999",
                                      "0-3:2:2",
                                      "0x1",
                                      "0,,1"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) *wrong += !threadSetCpus(good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) *wrong += threadSetCpus(bad[i]);
    return NULL;
}

static void test_lists_of_processors(void **state) {
    (void)state;
    thread t;
    int wrong = 0;
    assert_int_equal(threadStart(&t, "lists", "", tryLists, &wrong, NULL), OK);
    threadJoin(&t);
    assert_int_equal(wrong, 0);
}

static void *nothing(void *arg) { return arg; }

/* A list that does not parse is logged, and the thread runs on any processor. */
static void test_thread_starts_with_a_wrong_list(void **state) {
    (void)state;
    thread t;
    assert_int_equal(threadStart(&t, "wrong", "no processors", nothing, NULL, NULL), OK);
    threadJoin(&t);
}

int test_thread(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_has_name_and_no_signals),
        cmocka_unit_test(test_name_of_the_calling_thread),
        cmocka_unit_test(test_pinning_to_one_processor),
        cmocka_unit_test(test_lists_of_processors),
        cmocka_unit_test(test_thread_starts_with_a_wrong_list),
    };
    return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}

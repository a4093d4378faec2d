/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/loop: descriptors, turns, waking. Every test runs on each back end there is. */
#include "io_test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "io/loop.h"

static const char *const backends[] = {"epoll", "poll"};

typedef struct fixture {
    loop *l;
    int ends[2];
} fixture;

/* What the callbacks saw, as words: "r5 w5 r7 ". */
static char story[4096];

static void tell(const char *word, int number) {
    size_t len = strlen(story);
    snprintf(story + len, sizeof(story) - len, "%s%d ", word, number);
}

static int openFixture(void **state) {
    fixture *f = calloc(1, sizeof(*f));
    f->l = loopNew(*state, NULL);
    if (!f->l) return -1;
    testPair(f->ends);
    story[0] = '\0';
    *state = f;
    return 0;
}

static int closeFixture(void **state) {
    fixture *f = *state;
    loopFree(f->l);
    close(f->ends[0]);
    close(f->ends[1]);
    free(f);
    return 0;
}

static void tellProc(loop *l, int fd, void *arg, int mask) {
    (void)l;
    (void)fd;
    if (mask & LOOP_READ) tell("r", (int)(intptr_t)arg);
    if (mask & LOOP_WRITE) tell("w", (int)(intptr_t)arg);
}

/* Another procedure with the same effect. */
static void tellProcToo(loop *l, int fd, void *arg, int mask) { tellProc(l, fd, arg, mask); }

#define NUMBER(n) ((void *)(intptr_t)(n))
#define assert_story(text) \
    do { \
        assert_string_equal(story, text); \
        story[0] = '\0'; \
    } while (0)

static void test_watch_and_unwatch_each_direction(void **state) {
    fixture *f = *state;
    int fd = f->ends[0];
    assert_int_equal(loopWatched(f->l, fd), 0);
    assert_int_equal(loopWatched(f->l, -1), 0);
    assert_int_equal(loopWatched(f->l, 1000000), 0);
    assert_int_equal(loopWatch(f->l, fd, LOOP_READ, tellProc, NUMBER(1)), OK);
    assert_int_equal(loopTurn(f->l, false), 0);
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r1 ");
    assert_int_equal(loopTurn(f->l, true), 1); /* level triggered */
    assert_story("r1 ");
    assert_int_equal(loopWatch(f->l, fd, LOOP_WRITE, tellProc, NUMBER(2)), OK);
    assert_int_equal(loopWatched(f->l, fd), LOOP_READ | LOOP_WRITE);
    assert_int_equal(loopTurn(f->l, true), 2);
    assert_story("r1 w2 ");
    loopUnwatch(f->l, fd, LOOP_READ);
    assert_int_equal(loopWatched(f->l, fd), LOOP_WRITE);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("w2 ");
    loopUnwatch(f->l, fd, LOOP_READ);
    loopUnwatch(f->l, fd, LOOP_READ | LOOP_WRITE);
    assert_int_equal(loopWatched(f->l, fd), 0);
    assert_int_equal(loopTurn(f->l, false), 0);
    loopUnwatch(f->l, fd, LOOP_READ);
    loopUnwatch(f->l, -1, LOOP_READ);
    loopUnwatch(f->l, 1000000, LOOP_READ);
}

static void test_watching_again_replaces_procedure_and_argument(void **state) {
    fixture *f = *state;
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, tellProc, NUMBER(1)), OK);
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, tellProcToo, NUMBER(2)), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("w2 ");
}

static void test_one_procedure_for_both_is_called_once(void **state) {
    fixture *f = *state;
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_READ | LOOP_WRITE, tellProc, NUMBER(1)), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r1 w1 ");
    /* The same procedure with another argument is another watcher. */
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, tellProc, NUMBER(2)), OK);
    assert_int_equal(loopTurn(f->l, true), 2);
    assert_story("r1 w2 ");
}

static void test_a_hang_up_event_reaches_all_callbacks(void **state) {
    fixture *f = *state;
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, tellProc, NUMBER(1)), OK);
    close(f->ends[1]);
    f->ends[1] = dup(f->ends[0]);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("w1 ");
    loopUnwatch(f->l, f->ends[0], LOOP_WRITE);
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_READ, tellProc, NUMBER(2)), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r2 ");
}

static void test_a_bad_descriptor_is_refused(void **state) {
    fixture *f = *state;
    if (strcmp(loopBackendName(f->l), "poll") == 0) return; /* finds it when it waits */
    int fd = dup(f->ends[0]);
    close(fd);
    assert_int_equal(loopWatch(f->l, fd, LOOP_READ, tellProc, NULL), ERR_IO);
    assert_int_equal(errno, EBADF);
    assert_int_equal(loopWatched(f->l, fd), 0);
}

/* Unwatches its own write side, or all of itself. */
static void dropWriteProc(loop *l, int fd, void *arg, int mask) {
    tellProc(l, fd, arg, mask);
    loopUnwatch(l, fd, LOOP_WRITE);
}

static void dropAllProc(loop *l, int fd, void *arg, int mask) {
    tellProc(l, fd, arg, mask);
    loopUnwatch(l, fd, LOOP_READ | LOOP_WRITE);
}

static void test_a_read_callback_may_remove_the_write_callback(void **state) {
    fixture *f = *state;
    int fd = f->ends[0];
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(loopWatch(f->l, fd, LOOP_READ, dropWriteProc, NUMBER(1)), OK);
    assert_int_equal(loopWatch(f->l, fd, LOOP_WRITE, tellProc, NUMBER(2)), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r1 ");
    assert_int_equal(loopWatched(f->l, fd), LOOP_READ);
    loopUnwatch(f->l, fd, LOOP_READ);
    assert_int_equal(loopWatch(f->l, fd, LOOP_READ, dropAllProc, NUMBER(3)), OK);
    assert_int_equal(loopWatch(f->l, fd, LOOP_WRITE, tellProc, NUMBER(4)), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r3 ");
    assert_int_equal(loopWatched(f->l, fd), 0);
}

/* Whichever of two ready descriptors comes first closes the other, and a new owner, who is not
 * ready, gets its number. */
static int pairs[2][2];
static int newcomer[2];

static void closeOtherProc(loop *l, int fd, void *arg, int mask) {
    tellProc(l, fd, arg, mask);
    int mine = fd == pairs[0][0] ? 0 : 1;
    int victim = pairs[1 - mine][0];
    loopUnwatch(l, victim, LOOP_READ | LOOP_WRITE);
    close(victim);
    testPair(newcomer);
    int reused = newcomer[0] == victim ? 0 : 1;
    assert_int_equal(newcomer[reused], victim);
    assert_int_equal(loopWatch(l, victim, LOOP_READ, tellProc, NUMBER(99)), OK);
    loopUnwatch(l, fd, LOOP_READ | LOOP_WRITE);
}

static void test_an_old_event_is_not_given_to_a_reused_descriptor(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        testPair(pairs[i]);
        assert_int_equal(write(pairs[i][1], "x", 1), 1);
        assert_int_equal(loopWatch(f->l, pairs[i][0], LOOP_READ, closeOtherProc, NUMBER(1)), OK);
    }
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r1 ");
    assert_int_equal(loopTurn(f->l, false), 0);
    for (int i = 0; i < 2; i++) {
        loopUnwatch(f->l, newcomer[i], LOOP_READ);
        close(newcomer[i]);
        close(pairs[i][1]);
        if (pairs[i][0] != newcomer[0] && pairs[i][0] != newcomer[1]) close(pairs[i][0]);
    }
}

/* The same within one descriptor: its reader closes it and a new owner watches for writing. */
static void replaceMyselfProc(loop *l, int fd, void *arg, int mask) {
    tellProc(l, fd, arg, mask);
    loopUnwatch(l, fd, LOOP_READ | LOOP_WRITE);
    assert_int_equal(dup2(newcomer[0], fd), fd);
    assert_int_equal(loopWatch(l, fd, LOOP_WRITE, tellProc, NUMBER(99)), OK);
}

static void test_a_read_callback_may_close_and_reuse_its_descriptor(void **state) {
    fixture *f = *state;
    int fd = f->ends[0];
    testPair(newcomer);
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(loopWatch(f->l, fd, LOOP_READ, replaceMyselfProc, NUMBER(1)), OK);
    assert_int_equal(loopWatch(f->l, fd, LOOP_WRITE, tellProc, NUMBER(2)), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r1 ");
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("w99 ");
    loopUnwatch(f->l, fd, LOOP_WRITE);
    close(newcomer[0]);
    close(newcomer[1]);
}

static void beforeProc(loop *l, void *arg) {
    (void)l;
    tell("before", (int)(intptr_t)arg);
}

static void afterProc(loop *l, void *arg) {
    (void)l;
    tell("after", (int)(intptr_t)arg);
}

static int64_t tellTimer(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id;
    tell("t", (int)(intptr_t)arg);
    return LOOP_TIMER_END;
}

static void test_order_of_a_turn(void **state) {
    fixture *f = *state;
    loopSetBeforeSleep(f->l, beforeProc, NUMBER(1));
    loopSetAfterSleep(f->l, afterProc, NUMBER(2));
    loopAddTimer(f->l, 0, tellTimer, NUMBER(3));
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, tellProc, NUMBER(4)), OK);
    assert_int_equal(loopTurn(f->l, true), 2);
    assert_story("before1 after2 w4 t3 ");
    loopSetBeforeSleep(f->l, NULL, NULL);
    loopSetAfterSleep(f->l, NULL, NULL);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("w4 ");
}

static void unwatchInBeforeSleep(loop *l, void *arg) { loopUnwatch(l, *(int *)arg, LOOP_WRITE); }

static void test_unwatching_before_the_sleep_counts(void **state) {
    fixture *f = *state;
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, tellProc, NUMBER(1)), OK);
    loopSetBeforeSleep(f->l, unwatchInBeforeSleep, &f->ends[0]);
    assert_int_equal(loopTurn(f->l, false), 0);
    assert_story("");
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, tellProc, NUMBER(1)), OK);
    loopSetBeforeSleep(f->l, NULL, NULL);
    loopSetAfterSleep(f->l, unwatchInBeforeSleep, &f->ends[0]);
    assert_int_equal(loopTurn(f->l, false), 0);
    assert_story("");
}

static void nestProc(loop *l, int fd, void *arg, int mask) {
    (void)mask;
    int level = loopDepth(l);
    tell("in", level);
    loopUnwatch(l, fd, LOOP_READ);
    int deepest = (int)(intptr_t)arg;
    if (level < deepest) {
        assert_int_equal(loopWatch(l, fd, LOOP_READ, nestProc, arg), OK);
        assert_true(loopTurn(l, true) >= 1);
    }
    tell("out", level);
}

static void test_turns_nest(void **state) {
    fixture *f = *state;
    assert_int_equal(loopDepth(f->l), 0);
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_READ, nestProc, NUMBER(4)), OK);
    loopTurn(f->l, true);
    assert_story("in1 in2 in3 in4 out4 out3 out2 out1 ");
    assert_int_equal(loopDepth(f->l), 0);
}

/* A nested turn closes what the outer turn has still to come to. */
static void nestedCloseProc(loop *l, int fd, void *arg, int mask) {
    tellProc(l, fd, arg, mask);
    if (loopDepth(l) == 1) {
        loopTurn(l, false); /* the other one, and this one again */
        return;
    }
    loopUnwatch(l, fd, LOOP_READ);
}

static void test_a_nested_turn_may_remove_events_of_the_outer_one(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        testPair(pairs[i]);
        assert_int_equal(write(pairs[i][1], "x", 1), 1);
        assert_int_equal(loopWatch(f->l, pairs[i][0], LOOP_READ, nestedCloseProc, NUMBER(i)), OK);
    }
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_int_equal(strlen(story), 9); /* one outside, two inside */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(loopWatched(f->l, pairs[i][0]), 0);
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
}

static void stopProc(loop *l, int fd, void *arg, int mask) {
    int *turns = arg;
    (void)fd, (void)mask;
    if (++*turns == 5) loopStop(l);
}

static void test_run_until_stopped(void **state) {
    fixture *f = *state;
    int turns = 0;
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_WRITE, stopProc, &turns), OK);
    loopRun(f->l);
    assert_int_equal(turns, 5);
    turns = 0;
    loopRun(f->l); /* a stop of the past does not count */
    assert_int_equal(turns, 5);
}

static void *wakeProc(void *arg) {
    loopWake(arg);
    return NULL;
}

/* Without the wake these turns would never end: nothing else can happen. */
static void test_wake_from_another_thread_and_in_advance(void **state) {
    fixture *f = *state;
    for (int round = 0; round < 20; round++) {
        pthread_t id;
        assert_int_equal(pthread_create(&id, NULL, wakeProc, f->l), 0);
        assert_int_equal(loopTurn(f->l, true), 0);
        assert_int_equal(pthread_join(id, NULL), 0);
        assert_int_equal(loopTurn(f->l, false), 0); /* takes a second report of it, if any */
    }
    for (int i = 0; i < 100; i++) loopWake(f->l);
    assert_int_equal(loopTurn(f->l, true), 0);
}

static loop *signalled;

static void wakeHandler(int number) {
    (void)number;
    loopWake(signalled);
}

static void raiseProc(loop *l, void *arg) {
    (void)l, (void)arg;
    raise(SIGUSR1);
}

static void test_wake_from_a_signal(void **state) {
    fixture *f = *state;
    signalled = f->l;
    signal(SIGUSR1, wakeHandler);
    loopSetBeforeSleep(f->l, raiseProc, NULL);
    assert_int_equal(loopTurn(f->l, true), 0);
    signal(SIGUSR1, SIG_DFL);
}

static void limitProc(loop *l, void *arg) { loopLimitSleep(l, (int64_t)(intptr_t)arg); }

/* These come back at all only because of the limit. */
static void test_limit_of_the_sleep_holds_for_one_turn(void **state) {
    fixture *f = *state;
    loopLimitSleep(f->l, 0);
    assert_int_equal(loopTurn(f->l, true), 0);
    loopLimitSleep(f->l, 1000000);
    loopLimitSleep(f->l, 1); /* the least counts */
    loopLimitSleep(f->l, 1000000);
    assert_int_equal(loopTurn(f->l, true), 0);
    loopLimitSleep(f->l, -5);
    assert_int_equal(loopTurn(f->l, true), 0);
    loopSetBeforeSleep(f->l, limitProc, NUMBER(0));
    assert_int_equal(loopTurn(f->l, true), 0);
    loopSetBeforeSleep(f->l, NULL, NULL);
    /* With no limit left over the turn ends with the timer only. */
    loopAddTimer(f->l, 2, tellTimer, NUMBER(1));
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("t1 ");
}

static void countProc(loop *l, int fd, void *arg, int mask) {
    (void)l, (void)mask;
    ((int *)arg)[fd]++;
}

/* More descriptors than one turn takes: all get their share. */
static void test_many_descriptors(void **state) {
    fixture *f = *state;
    enum { MANY = 1500 };
    static int fds[MANY], calls[MANY * 4];
    int opened = 0;
    memset(calls, 0, sizeof(calls));
    while (opened < MANY) {
        int fd = dup(f->ends[0]);
        if (fd < 0) break; /* the limit of descriptors; fewer will do */
        fds[opened++] = fd;
        assert_true(fd < (int)(sizeof(calls) / sizeof(calls[0])));
        assert_int_equal(loopWatch(f->l, fd, LOOP_WRITE, countProc, calls), OK);
    }
    assert_true(opened > 200);
    int handled = loopTurn(f->l, true);
    assert_true(handled <= 1024);
    for (int turn = 0; turn < 5; turn++) handled += loopTurn(f->l, true);
    int sum = 0;
    for (int i = 0; i < opened; i++) {
        assert_true(calls[fds[i]] > 0);
        sum += calls[fds[i]];
        loopUnwatch(f->l, fds[i], LOOP_WRITE);
        close(fds[i]);
    }
    assert_int_equal(sum, handled);
    assert_int_equal(loopTurn(f->l, false), 0);
}

/* A model of who watches what with which number, against the loop over random changes. */
enum { MODEL_PAIRS = 8 };

typedef struct modelEnd {
    int pair[2];
    int mask, read_number, write_number;
    bool readable;
    int reads, writes;
} modelEnd;

static modelEnd model[MODEL_PAIRS];

static modelEnd *modelOf(int fd) {
    for (int i = 0; i < MODEL_PAIRS; i++) {
        if (model[i].pair[0] == fd) return &model[i];
    }
    fail_msg("an event for descriptor %d, which nobody owns", fd);
    return NULL;
}

static void modelReadProc(loop *l, int fd, void *arg, int mask) {
    (void)l;
    modelEnd *m = modelOf(fd);
    assert_int_equal(mask, LOOP_READ);
    assert_true(m->mask & LOOP_READ);
    assert_true(m->readable);
    assert_int_equal(m->read_number, (intptr_t)arg);
    assert_int_equal(m->writes, 0); /* reader first */
    m->reads++;
}

static void modelWriteProc(loop *l, int fd, void *arg, int mask) {
    (void)l;
    modelEnd *m = modelOf(fd);
    assert_int_equal(mask, LOOP_WRITE);
    assert_true(m->mask & LOOP_WRITE);
    assert_int_equal(m->write_number, (intptr_t)arg);
    m->writes++;
}

static void modelChange(loop *l, modelEnd *m, int number) {
    char byte = 'x';
    switch (randomUniform(6)) {
    case 0:
        assert_int_equal(loopWatch(l, m->pair[0], LOOP_READ, modelReadProc, NUMBER(number)), OK);
        m->mask |= LOOP_READ;
        m->read_number = number;
        break;
    case 1:
        assert_int_equal(loopWatch(l, m->pair[0], LOOP_WRITE, modelWriteProc, NUMBER(number)), OK);
        m->mask |= LOOP_WRITE;
        m->write_number = number;
        break;
    case 2: {
        int mask = 1 + (int)randomUniform(3);
        loopUnwatch(l, m->pair[0], mask);
        m->mask &= ~mask;
        break;
    }
    case 3:
        if (!m->readable) assert_int_equal(write(m->pair[1], &byte, 1), 1);
        m->readable = true;
        break;
    case 4:
        if (m->readable) assert_int_equal(read(m->pair[0], &byte, 1), 1);
        m->readable = false;
        break;
    default: /* a new owner; the number is likely the old one */
        loopUnwatch(l, m->pair[0], LOOP_READ | LOOP_WRITE);
        close(m->pair[0]);
        close(m->pair[1]);
        testPair(m->pair);
        m->mask = 0;
        m->readable = false;
    }
}

static void test_random_changes_against_a_model(void **state) {
    fixture *f = *state;
    testSeed(__func__);
    memset(model, 0, sizeof(model));
    for (int i = 0; i < MODEL_PAIRS; i++) testPair(model[i].pair);
    for (int round = 0; round < 3000; round++) {
        for (int i = 0; i < 3; i++) modelChange(f->l, &model[randomUniform(MODEL_PAIRS)], round);
        int handled = loopTurn(f->l, false), expected = 0;
        for (int i = 0; i < MODEL_PAIRS; i++) {
            modelEnd *m = &model[i];
            assert_int_equal(loopWatched(f->l, m->pair[0]), m->mask);
            assert_int_equal(m->reads, m->readable && (m->mask & LOOP_READ) ? 1 : 0);
            assert_int_equal(m->writes, m->mask & LOOP_WRITE ? 1 : 0);
            expected += m->reads + m->writes;
            m->reads = m->writes = 0;
        }
        assert_int_equal(handled, expected);
    }
    for (int i = 0; i < MODEL_PAIRS; i++) {
        loopUnwatch(f->l, model[i].pair[0], LOOP_READ | LOOP_WRITE);
        close(model[i].pair[0]);
        close(model[i].pair[1]);
    }
}

static void test_an_unknown_back_end_is_reported(void **state) {
    (void)state;
    reason why = {{0}};
    assert_null(loopNew("abacus", &why));
    assert_non_null(strstr(why.text, "abacus"));
    loopFree(NULL);
    loop *l = loopNew(NULL, &why);
    assert_non_null(l);
#ifdef __linux__
    assert_string_equal(loopBackendName(l), "epoll");
#endif
    loopFree(l);
}

#define ON_BACKEND(test) \
    cmocka_unit_test_prestate_setup_teardown(test, openFixture, closeFixture, name)

static void tellHangup(loop *l, int fd, void *arg, int mask) {
    tellProc(l, fd, arg, mask);
    if (mask & LOOP_HANGUP) tell("h", (int)(intptr_t)arg);
}

/* Bytes that wait are reported once, and each arrival again. */
static void test_with_edge_an_event_is_reported_once(void **state) {
    fixture *f = *state;
    int fd = f->ends[0];
    assert_int_equal(loopWatch(f->l, fd, LOOP_READ, tellHangup, NUMBER(1)), OK);
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r1 ");
    if (strcmp(loopBackendName(f->l), "poll") == 0) {
        assert_int_equal(loopSetEdge(f->l, fd, true), ERR_IO);
        return;
    }
    assert_int_equal(loopSetEdge(f->l, fd, true), OK);
    assert_int_equal(loopTurn(f->l, true), 1); /* what waited at the call */
    assert_int_equal(loopTurn(f->l, false), 0);
    assert_story("r1 ");
    assert_int_equal(write(f->ends[1], "y", 1), 1);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_int_equal(loopTurn(f->l, false), 0);
    assert_story("r1 ");
    assert_int_equal(shutdown(f->ends[1], SHUT_WR), 0);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_int_equal(loopTurn(f->l, false), 0);
    assert_story("r1 h1 ");
    assert_int_equal(loopSetEdge(f->l, fd, false), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_int_equal(loopTurn(f->l, true), 1); /* level triggered */
    story[0] = '\0';
    assert_int_equal(loopSetEdge(f->l, fd, true), OK);
    loopUnwatch(f->l, fd, LOOP_READ); /* ends it */
    assert_int_equal(loopWatch(f->l, fd, LOOP_READ, tellProc, NUMBER(2)), OK);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("r2 r2 ");
}

static void test_events_with_priority_come_first(void **state) {
    fixture *f = *state;
    testPair(pairs[0]);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_READ, tellProc, NUMBER(1)), OK);
        assert_int_equal(loopWatch(f->l, pairs[0][0], LOOP_READ, tellProc, NUMBER(2)), OK);
        if (turn == 0) {
            assert_int_equal(write(f->ends[1], "x", 1), 1);
            assert_int_equal(write(pairs[0][1], "x", 1), 1);
        }
        int first = turn == 0 ? pairs[0][0] : f->ends[0];
        loopSetPriority(f->l, first, true);
        assert_int_equal(loopTurn(f->l, true), 2);
        assert_story(turn == 0 ? "r2 r1 " : "r1 r2 ");
        loopUnwatch(f->l, first, LOOP_READ); /* ends it */
    }
    close(pairs[0][0]);
    close(pairs[0][1]);
}

/* Makes the other pair readable and has it served before it ends. */
static void servePriorityProc(loop *l, int fd, void *arg, int mask) {
    char byte;
    assert_int_equal(read(fd, &byte, 1), 1);
    assert_int_equal(write(pairs[0][1], "x", 1), 1);
    tell("served", loopServePriority(l));
    tellProc(l, fd, arg, mask);
}

static void test_priority_is_served_in_the_middle_of_a_turn(void **state) {
    fixture *f = *state;
    testPair(pairs[0]);
    bool can = strcmp(loopBackendName(f->l), "epoll") == 0;
    assert_int_equal(loopWatch(f->l, f->ends[0], LOOP_READ, servePriorityProc, NUMBER(1)), OK);
    assert_int_equal(loopWatch(f->l, pairs[0][0], LOOP_READ, tellProc, NUMBER(2)), OK);
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story("served0 r1 "); /* nobody has it */
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    char byte;
    assert_int_equal(read(pairs[0][0], &byte, 1), 1);
    loopSetPriority(f->l, pairs[0][0], true);
    assert_int_equal(loopTurn(f->l, true), 1);
    assert_story(can ? "r2 served1 r1 " : "served0 r1 ");
    assert_int_equal(write(f->ends[1], "x", 1), 1);
    loopSetPriority(f->l, pairs[0][0], false);
    assert_int_equal(loopTurn(f->l, true), 2);
    assert_non_null(strstr(story, "served0 r1 ")); /* the order of the other event is open */
    close(pairs[0][0]);
    close(pairs[0][1]);
}

static int runOn(const char *backend) {
    char group[32];
    snprintf(group, sizeof(group), "loop on %s", backend);
    void *name = (void *)(uintptr_t)backend;
    const struct CMUnitTest tests[] = {
        ON_BACKEND(test_watch_and_unwatch_each_direction),
        ON_BACKEND(test_watching_again_replaces_procedure_and_argument),
        ON_BACKEND(test_one_procedure_for_both_is_called_once),
        ON_BACKEND(test_a_hang_up_event_reaches_all_callbacks),
        ON_BACKEND(test_a_bad_descriptor_is_refused),
        ON_BACKEND(test_a_read_callback_may_remove_the_write_callback),
        ON_BACKEND(test_an_old_event_is_not_given_to_a_reused_descriptor),
        ON_BACKEND(test_a_read_callback_may_close_and_reuse_its_descriptor),
        ON_BACKEND(test_order_of_a_turn),
        ON_BACKEND(test_unwatching_before_the_sleep_counts),
        ON_BACKEND(test_turns_nest),
        ON_BACKEND(test_a_nested_turn_may_remove_events_of_the_outer_one),
        ON_BACKEND(test_run_until_stopped),
        ON_BACKEND(test_wake_from_another_thread_and_in_advance),
        ON_BACKEND(test_wake_from_a_signal),
        ON_BACKEND(test_limit_of_the_sleep_holds_for_one_turn),
        ON_BACKEND(test_many_descriptors),
        ON_BACKEND(test_with_edge_an_event_is_reported_once),
        ON_BACKEND(test_events_with_priority_come_first),
        ON_BACKEND(test_priority_is_served_in_the_middle_of_a_turn),
        ON_BACKEND(test_random_changes_against_a_model),
    };
    return cmocka_run_group_tests_name(group, tests, NULL, NULL);
}

int test_loop(void) {
    int failed = 0;
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        loop *l = loopNew(backends[i], NULL);
        if (!l) continue; /* not on this platform */
        loopFree(l);
        failed += runOn(backends[i]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_unknown_back_end_is_reported)};
    return failed + cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}

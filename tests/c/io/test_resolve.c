/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/resolve.c: names are looked up on a thread of their own. The system's resolver is
 * replaced by one that waits for the test. */
#include "io_test.h"

#include <pthread.h>

#include "base/base.h"
#include "io/bio.h"
#include "io/loop.h"
#include "io/resolve.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_t looked_up_by;

static bool lookup(const char *host, char addr[NET_ADDR_TEXT_MAX]) {
    pthread_mutex_lock(&gate);
    looked_up_by = pthread_self();
    pthread_mutex_unlock(&gate);
    if (strcmp(host, "known.invalid") != 0) return false;
    strcpy(addr, "192.0.2.1");
    return true;
}

static int found, missed, files_read;

static void onResolved(void *arg, const char *addr) {
    assert_ptr_equal(arg, &found);
    if (addr) {
        assert_string_equal(addr, "192.0.2.1");
        found++;
    } else {
        missed++;
    }
}

static int readFile(void *arg) {
    (void)arg;
    return 0;
}

static void onRead(void *arg, int error) {
    (void)arg, (void)error;
    files_read++;
}

static void turnsUntil(loop *l, const int *count, int wanted) {
    for (int i = 0; i < 1000000 && *count < wanted; i++) {
        loopLimitSleep(l, 100);
        loopTurn(l, true);
    }
    assert_int_equal(*count, wanted);
}

static void a_slow_resolver_stops_neither_the_loop_nor_reading_files(void **state) {
    (void)state;
    reason why;
    loop *l = loopNew(NULL, &why);
    bioInit("");
    bioAttach(l);
    resolveSetLookup(lookup);
    pthread_mutex_lock(&gate);
    resolveHost("known.invalid", onResolved, &found);
    resolveHost("unknown.invalid", onResolved, &found);
    bioSubmitTask(BIO_READ, readFile, onRead, NULL);
    turnsUntil(l, &files_read, 1);
    assert_int_equal(found + missed, 0);
    /* A literal address needs no resolver. */
    resolveHost("192.0.2.1", onResolved, &found);
    assert_int_equal(found, 1);
    pthread_mutex_unlock(&gate);
    turnsUntil(l, &found, 2);
    turnsUntil(l, &missed, 1);
    assert_false(pthread_equal(looked_up_by, pthread_self()));
    resolveSetLookup(NULL);
    bioShutdown();
    bioAttach(NULL);
    loopFree(l);
}

int test_resolve(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_resolver_stops_neither_the_loop_nor_reading_files),
    };
    return cmocka_run_group_tests_name("io/resolve", tests, NULL, NULL);
}

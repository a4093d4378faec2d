/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/spsc: nothing is lost, repeated or reordered between two threads, and a consumer that
 * sleeps is woken. */
#include "io_test.h"

#include <pthread.h>

#include "base/random.h"
#include "io/spsc.h"

static void a_ring_takes_as_many_items_as_it_has_places(void **state) {
    (void)state;
    spsc r;
    spscItem item;
    spscInit(&r, 4);
    assert_false(spscPop(&r, &item));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 4; i++) assert_true(spscPush(&r, &(spscItem){.number = round * 4 + i}));
        assert_false(spscPush(&r, &(spscItem){.number = -1}));
        assert_true(spscHasItems(&r));
        for (int i = 0; i < 4; i++) {
            assert_true(spscPop(&r, &item));
            assert_int_equal(item.number, round * 4 + i);
        }
        assert_false(spscPop(&r, &item));
        assert_false(spscHasItems(&r));
    }
    spscFree(&r);
}

enum { ITEMS = 200000 };

typedef struct pair {
    spsc ring;
    sleeper rest;
    int64_t wrong;
} pair;

static void *consume(void *arg) {
    pair *p = arg;
    for (int64_t expected = 0; expected < ITEMS;) {
        spscItem item;
        if (!spscPop(&p->ring, &item)) {
            sleeperWait(&p->rest, &p->ring);
        } else {
            /* What the producer wrote before the push is visible. */
            p->wrong += item.number != expected || *(int64_t *)item.what != expected;
            expected++;
        }
    }
    return NULL;
}

static void items_arrive_in_order_at_a_consumer_that_sleeps_now_and_then(void **state) {
    (void)state;
    static int64_t values[ITEMS];
    pair p = {.wrong = 0};
    spscInit(&p.ring, 64);
    sleeperInit(&p.rest);
    pthread_t consumer;
    assert_int_equal(pthread_create(&consumer, NULL, consume, &p), 0);
    for (int64_t i = 0; i < ITEMS; i++) {
        values[i] = i;
        while (!spscPush(&p.ring, &(spscItem){.what = &values[i], .number = i}))
            sleeperWake(&p.rest, &p.ring);
        if (randomUniform(8) == 0) sleeperWake(&p.rest, &p.ring);
    }
    sleeperWake(&p.rest, &p.ring);
    assert_int_equal(pthread_join(consumer, NULL), 0);
    assert_int_equal(p.wrong, 0);
    sleeperFree(&p.rest);
    spscFree(&p.ring);
}

int test_spsc(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_takes_as_many_items_as_it_has_places),
        cmocka_unit_test(items_arrive_in_order_at_a_consumer_that_sleeps_now_and_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

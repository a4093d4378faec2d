/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reply_order.c: replies leave in the order of their requests, whenever they come. */
#include "gateway/reply_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static int left_count;

static void left(replyPlace *p) {
    assert_false(listHas(&p->node));
    left_count++;
}

static void fill(replyOrder *o, replyPlace *p, const char *text) {
    str bytes = strNew(sliceOf(text));
    replyOrderFill(o, p, &bytes);
    assert_null(bytes.ptr);
}

static void take(replyOrder *o, const char *expected) {
    str out = STR_EMPTY;
    replyOrderTake(o, &out, left);
    assert_string_equal(expected, strText(&out));
    strFree(&out);
}

static void test_later_replies_wait(void **state) {
    (void)state;
    replyOrder o;
    replyPlace a = {0}, b = {0}, c = {0};
    left_count = 0;
    replyOrderInit(&o);
    replyOrderKeep(&o, &a);
    replyOrderFollow(&o, SLICE("x"));
    replyOrderFollow(&o, SLICE("y"));
    replyOrderKeep(&o, &b);
    replyOrderKeep(&o, &c);
    replyOrderFollow(&o, SLICE("z"));
    take(&o, "");
    fill(&o, &b, "B");
    take(&o, "");
    assert_int_equal(4, o.bytes);
    assert_true(replyOrderWaits(&o));
    fill(&o, &a, "A");
    assert_false(replyOrderWaits(&o));
    take(&o, "AxyB");
    assert_int_equal(2, left_count);
    assert_false(replyOrderIsEmpty(&o));
    fill(&o, &c, "");
    take(&o, "z");
    assert_int_equal(3, left_count);
    assert_true(replyOrderIsEmpty(&o));
    assert_int_equal(0, o.bytes);
}

static void test_clear(void **state) {
    (void)state;
    replyOrder o;
    replyPlace a = {0}, b = {0};
    left_count = 0;
    replyOrderInit(&o);
    replyOrderKeep(&o, &a);
    replyOrderFollow(&o, SLICE("follows"));
    replyOrderKeep(&o, &b);
    fill(&o, &b, "done");
    replyOrderClear(&o, left);
    assert_int_equal(2, left_count);
    assert_true(replyOrderIsEmpty(&o));
    assert_int_equal(0, o.bytes);
}

/* Replies arrive in a random order, others follow in between: the sequence is that of requests. */
static void test_random_orders(void **state) {
    (void)state;
    enum { PLACES = 200 };
    randomSeed(7);
    for (int round = 0; round < 50; round++) {
        replyOrder o;
        replyPlace places[PLACES];
        str expected = STR_EMPTY, out = STR_EMPTY;
        int order[PLACES];
        memset(places, 0, sizeof(places));
        replyOrderInit(&o);
        for (int i = 0; i < PLACES; i++) {
            replyOrderKeep(&o, &places[i]);
            strAppendFormat(&expected, "<%d>", i);
            order[i] = i;
            for (uint64_t k = randomUniform(3); k > 0; k--) {
                replyOrderFollow(&o, SLICE("-"));
                strAppendByte(&expected, '-');
            }
        }
        for (int i = PLACES - 1; i > 0; i--) {
            int other = (int)randomUniform((uint64_t)i + 1), kept = order[i];
            order[i] = order[other];
            order[other] = kept;
        }
        for (int i = 0; i < PLACES; i++) {
            char text[16];
            snprintf(text, sizeof(text), "<%d>", order[i]);
            fill(&o, &places[order[i]], text);
            if (randomUniform(4) == 0) replyOrderTake(&o, &out, left);
        }
        replyOrderTake(&o, &out, left);
        assert_string_equal(strText(&expected), strText(&out));
        assert_true(replyOrderIsEmpty(&o));
        strFree(&expected);
        strFree(&out);
    }
}

int test_reply_order(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_later_replies_wait),
        cmocka_unit_test(test_clear),
        cmocka_unit_test(test_random_orders),
    };
    return cmocka_run_group_tests_name("reply_order", tests, NULL, NULL);
}

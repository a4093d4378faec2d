/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts of the stream as requests, against a list of what was appended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"
#include "psync/change_window.h"
#include "resp/resp.h"

enum { ITEMS = 400, LIMIT = 64 * 1024 * 1024 };

/* Request i of a stream: `words` words, of which the last one has `len` bytes of i. */
typedef struct appended {
    int words;
    size_t len;
    int64_t last;
} appended;

static void appendWords(replBacklog *b, int argc, const slice *argv) {
    size_t len;
    char *bytes = respRequest(argc, argv, &len);
    const slice span = sliceMake(bytes, len);
    backlogAppend(b, &span, 1);
    memFree(bytes);
}

static void appendText(replBacklog *b, const char *text) {
    const slice span = sliceOf(text);
    backlogAppend(b, &span, 1);
}

static appended appendRandom(replBacklog *b, int i) {
    slice argv[40];
    appended a = {.words = 1 + (int)randomUniform(COUNT_OF(argv)),
                  .len = randomUniform(randomUniform(50) ? 200 : 300000)};
    char *bytes = memAlloc(a.len + 1);
    memset(bytes, 'a' + i % 26, a.len);
    for (int k = 0; k < a.words; k++) argv[k] = SLICE("word");
    argv[a.words - 1] = a.len ? sliceMake(bytes, a.len) : SLICE("last");
    appendWords(b, a.words, argv);
    memFree(bytes);
    a.last = b->next - 1;
    return a;
}

static void expectItem(const changeWindow *w, int at, const appended *a, int i) {
    const changeItem *item = &w->items[at];
    assert_int_equal(item->argc, a->words);
    assert_int_equal(item->last, a->last);
    slice last = changeWords(w, item)[a->words - 1];
    if (!a->len) {
        assert_true(sliceEqual(last, SLICE("last")));
        return;
    }
    assert_int_equal(last.len, a->len);
    for (size_t k = 0; k < last.len; k++) assert_int_equal(last.ptr[k], 'a' + i % 26);
}

static void from_each_request_all_that_follow_are_read(void **state) {
    (void)state;
    uint64_t seed;
    randomSecret(&seed, sizeof(seed));
    print_message("seed %llu\n", (unsigned long long)seed);
    randomSeed(seed);
    replBacklog b;
    appended list[ITEMS];
    backlogInit(&b, 1001, LIMIT);
    for (int i = 0; i < ITEMS; i++) list[i] = appendRandom(&b, i);
    for (int first = 0; first < ITEMS; first += 7) {
        int i = first;
        int64_t from = first ? list[first - 1].last + 1 : 1001;
        while (i < ITEMS) {
            changeWindow w;
            changeWindowRead(&w, &b, from);
            assert_false(w.bad);
            assert_true(w.item_count > 0);
            for (int k = 0; k < w.item_count; k++, i++) expectItem(&w, k, &list[i], i);
            assert_int_equal(w.whole, i == ITEMS);
            from = list[i - 1].last + 1;
            changeWindowClear(&w);
        }
    }
    changeWindow w;
    changeWindowRead(&w, &b, b.next);
    assert_int_equal(w.item_count, 0);
    assert_true(w.whole);
    changeWindowClear(&w);
    backlogClear(&b);
}

static void positions_within_a_request_are_bad_or_other_requests(void **state) {
    (void)state;
    replBacklog b;
    backlogInit(&b, 1, LIMIT);
    const slice argv[] = {SLICE("set"), SLICE("key"), SLICE("value")};
    appendWords(&b, 3, argv);
    for (int64_t from = 2; from < b.next; from++) {
        changeWindow w;
        changeWindowRead(&w, &b, from);
        assert_int_equal(w.item_count, 0);
        changeWindowClear(&w);
    }
    changeWindow w;
    changeWindowRead(&w, &b, 2);
    assert_true(w.bad);
    changeWindowClear(&w);
    backlogClear(&b);
}

static void a_transaction_is_one_unit_as_soon_as_it_is_complete(void **state) {
    (void)state;
    replBacklog b;
    changeWindow w;
    backlogInit(&b, 1, LIMIT);
    appendText(&b, "*1\r\n$5\r\nMULTI\r\n");
    for (int i = 0; i < ITEMS; i++) (void)appendRandom(&b, i); /* what it is does not matter */
    changeWindowRead(&w, &b, 1);
    assert_true(w.whole);
    assert_int_equal(w.item_count, ITEMS + 1);
    assert_int_equal(changeUnitEnd(&w, 0), 0);
    assert_int_equal(changeUnitEnd(&w, 1), 2);
    changeWindowClear(&w);
    appendText(&b, "*1\r\n$4\r\nexec\r\n");
    int64_t last = b.next - 1;
    appendText(&b, "*1\r\n$4\r\nping\r\n*1\r\n$4\r\npi");
    changeWindowRead(&w, &b, 1);
    assert_int_equal(changeUnitEnd(&w, 0), ITEMS + 2);
    assert_int_equal(w.items[ITEMS + 1].last, last);
    assert_false(w.bad);
    changeWindowClear(&w);
    changeWindowRead(&w, &b, last + 1);
    assert_int_equal(w.item_count, 1); /* the other one is not complete */
    assert_true(w.whole);
    changeWindowClear(&w);
    backlogClear(&b);
}

int test_change_window(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_each_request_all_that_follow_are_read),
        cmocka_unit_test(positions_within_a_request_are_bad_or_other_requests),
        cmocka_unit_test(a_transaction_is_one_unit_as_soon_as_it_is_complete),
    };
    return cmocka_run_group_tests_name("psync/change_window", tests, NULL, NULL);
}

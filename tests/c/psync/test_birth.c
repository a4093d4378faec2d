/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which synchronisations would replace the data of a replica by a dataset that has begun later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "psync/birth.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* What a replica receives for a birth. */
static bool roundTrip(const replBirth *b, replBirth *out) {
    char text[BIRTH_TEXT_MAX + 1] = "+", process[REPL_ID_LEN + 1];
    size_t len = birthPrint(b, ID_B, text + 1);
    if (!birthParse(sliceMake(text, len + 1), out, process)) return false;
    assert_string_equal(process, ID_B);
    return true;
}

static void a_birth_is_told_and_read(void **state) {
    (void)state;
    replBirth b, read;
    birthBegin(&b);
    assert_true(b.is_new);
    assert_true(roundTrip(&b, &read));
    assert_memory_equal(&b, &read, sizeof(b));
    birthLoaded(&b, SLICE(ID_A));
    assert_true(roundTrip(&b, &read));
    assert_string_equal(read.id, ID_A);
    assert_false(read.is_new);
    birthLoaded(&b, SLICE(""));
    assert_true(roundTrip(&b, &read));
    assert_string_equal(read.id, "");
}

static void other_replies_tell_no_birth(void **state) {
    (void)state;
    static const char *const replies[] = {"+OK",
                                          "+OK ",
                                          "+OK 1",
                                          "+OK - 1",
                                          "+OK " ID_A " 1",
                                          "+OK - 2 " ID_B,
                                          "+OK - 1 " ID_B,
                                          "+OK - x " ID_B,
                                          "+OK -1 " ID_B,
                                          "-ERR no",
                                          "+OK " ID_A " " ID_B,
                                          "+OK " ID_A "  " ID_B,
                                          "+OK " ID_A "a 1 " ID_B,
                                          "+OK " ID_A " 1 " ID_B "b",
                                          "+OK " ID_A " 1" ID_B "b",
                                          "+OK " ID_A " 1 x" ID_B,
                                          "+OK a b 1 " ID_B,
                                          "",
                                          "+PONG " ID_A " 1 " ID_B};
    for (size_t i = 0; i < COUNT_OF(replies); i++) {
        replBirth read = {.id = "untouched"};
        char process[REPL_ID_LEN + 1] = "untouched";
        assert_false(birthParse(sliceOf(replies[i]), &read, process));
        assert_string_equal(read.id, "untouched");
        assert_string_equal(process, "untouched");
    }
}

static void a_dataset_is_adopted_with_its_birth(void **state) {
    (void)state;
    replBirth b, theirs = {.id = ID_A, .is_new = true};
    birthBegin(&b);
    birthAdopt(&b, &theirs, false, true);
    assert_string_equal(b.id, ID_A);
    assert_true(b.is_new);
    /* By order of a user: own replicas follow. */
    birthAdopt(&b, &theirs, true, true);
    assert_false(b.is_new);
    /* Released servers tell none: a dataset without keys may have been lost. */
    birthAdopt(&b, NULL, false, false);
    assert_true(b.is_new);
    birthAdopt(&b, NULL, false, true);
    assert_false(b.is_new);
    assert_string_equal(b.id, "");
}

static void data_are_kept_if_the_dataset_is_a_later_one(void **state) {
    (void)state;
    replHistory h;
    replBirth b = {.id = ID_A, .is_new = true};
    historyInit(&h);
    assert_true(birthLosesKept(&b, &h, SLICE(ID_B), SLICE("?"), -1));
    assert_true(birthLosesKept(&b, &h, SLICE("?"), SLICE("?"), -1));
    assert_false(birthLosesKept(&b, &h, SLICE(""), SLICE("?"), -1));
    assert_false(birthLosesKept(&b, &h, SLICE(ID_A), SLICE("?"), -1));
    /* A stream of this process, however old. */
    assert_false(birthLosesKept(&b, &h, SLICE(ID_B), sliceOf(h.id), 1));
    b.is_new = false;
    assert_false(birthLosesKept(&b, &h, SLICE(ID_B), SLICE("?"), -1));
    /* It was refused before, and comes from a file now. */
    assert_true(birthLosesKept(&b, &h, SLICE(ID_B "," ID_A), SLICE("?"), -1));
    assert_true(birthLosesKept(&b, &h, SLICE("?," ID_A), SLICE("?"), -1));
    assert_false(birthLosesKept(&b, &h, SLICE(ID_A "," ID_B), SLICE("?"), -1));
    assert_false(birthLosesKept(&b, &h, SLICE(ID_A ","), SLICE("?"), -1));
}

int test_birth(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_birth_is_told_and_read),
        cmocka_unit_test(other_replies_tell_no_birth),
        cmocka_unit_test(a_dataset_is_adopted_with_its_birth),
        cmocka_unit_test(data_are_kept_if_the_dataset_is_a_later_one),
    };
    return cmocka_run_group_tests_name("birth", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of io/sys. */
#include "io_test.h"

#include <errno.h>
#include <unistd.h>

#include "io/sys.h"

static ssize_t refuseRead(int fd, void *dst, size_t len) {
    (void)fd, (void)dst, (void)len;
    errno = EIO;
    return -1;
}

static void test_a_field_can_be_read_and_set_alone(void **state) {
    (void)state;
    int ends[2];
    char bytes[4];
    testPair(ends);
    const sysCalls bent = {.read = refuseRead};
    sysCallsSet(&bent);
    assert_int_equal(sysCallsNow()->write(ends[0], "abcd", 4), 4);
    assert_int_equal(sysCallsNow()->read(ends[1], bytes, 4), -1);
    assert_int_equal(errno, EIO);
    sysCallsSet(NULL);
    assert_int_equal(sysCallsNow()->read(ends[1], bytes, 4), 4);
    assert_memory_equal(bytes, "abcd", 4);
    close(ends[0]);
    close(ends[1]);
}

static void test_no_field_is_ever_empty(void **state) {
    (void)state;
    const sysCalls nothing = {0};
    sysCallsSet(&nothing);
    const sysCalls *calls = sysCallsNow();
    assert_non_null(calls->read);
    assert_non_null(calls->write);
    assert_non_null(calls->readv);
    assert_non_null(calls->writev);
    assert_non_null(calls->recv);
    assert_non_null(calls->send);
    assert_non_null(calls->accept4);
    assert_non_null(calls->fsync);
    assert_non_null(calls->rename);
    const sysCalls all = *calls;
    sysCallsSet(&all);
    assert_memory_equal(sysCallsNow(), &all, sizeof(all));
    sysCallsSet(NULL);
}

int test_sys(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_field_can_be_read_and_set_alone),
        cmocka_unit_test(test_no_field_is_ever_empty),
    };
    return cmocka_run_group_tests_name("sys", tests, NULL, NULL);
}

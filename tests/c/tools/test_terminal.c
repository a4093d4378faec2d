/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The terminal of valkey-cli. */
#define _GNU_SOURCE /* posix_openpt() */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "tools/cli/terminal.h"
#include "tools_test.h"

typedef struct terminalPair {
    int master, program, keys;
} terminalPair;

static terminalPair openTerminal(void) {
    terminalPair t = {.master = posix_openpt(O_RDWR | O_NOCTTY)};
    char name[128];
    struct termios mode;
    assert_true(t.master >= 0);
    assert_return_code(grantpt(t.master), 0);
    assert_return_code(unlockpt(t.master), 0);
    assert_int_equal(ptsname_r(t.master, name, sizeof(name)), 0);
    t.program = open(name, O_RDWR | O_NOCTTY);
    assert_true(t.program >= 0);
    assert_return_code(tcgetattr(t.program, &mode), 0);
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    assert_return_code(tcsetattr(t.program, TCSANOW, &mode), 0);
    t.keys = terminalOpenKeys(t.program);
    assert_true(t.keys >= 0);
    return t;
}

static void closeTerminal(terminalPair t) {
    close(t.keys);
    close(t.program);
    if (t.master >= 0) close(t.master);
}

static void type(terminalPair t, const char *text) {
    struct pollfd fd = {.fd = t.keys, .events = POLLIN};
    assert_int_equal(write(t.master, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(poll(&fd, 1, 10000), 1);
}

static void keysAreTakenOneByOne(void **state) {
    terminalPair t = openTerminal();
    char byte = 0;
    assert_int_equal(terminalReadKey(t.keys, &byte), TERMINAL_NO_KEY);
    type(t, "ab");
    assert_int_equal(terminalReadKey(t.keys, &byte), TERMINAL_KEY);
    assert_int_equal(byte, 'a');
    assert_int_equal(terminalReadKey(t.keys, &byte), TERMINAL_KEY);
    assert_int_equal(byte, 'b');
    assert_int_equal(terminalReadKey(t.keys, &byte), TERMINAL_NO_KEY);
    close(t.master);
    t.master = -1;
    assert_int_equal(terminalReadKey(t.keys, &byte), TERMINAL_END);
    closeTerminal(t);
}

/* As the terminal does it at a Ctrl-C between poll() and read(): valkey-cli once waited for another
 * key then. */
static void aKeyThatWasDiscardedAfterPollDoesNotBlock(void **state) {
    terminalPair t = openTerminal();
    char byte = 0;
    type(t, "a");
    assert_return_code(tcflush(t.program, TCIFLUSH), 0);
    assert_int_equal(terminalReadKey(t.keys, &byte), TERMINAL_NO_KEY);
    closeTerminal(t);
}

static void theDescriptorOfTheProgramKeepsItsFlags(void **state) {
    terminalPair t = openTerminal();
    assert_int_equal(fcntl(t.program, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(t.keys, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    closeTerminal(t);
}

static void aFileIsNoTerminal(void **state) {
    int fd = open("/dev/null", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(terminalOpenKeys(fd), -1);
    close(fd);
}

int test_terminal(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keysAreTakenOneByOne),
        cmocka_unit_test(aKeyThatWasDiscardedAfterPollDoesNotBlock),
        cmocka_unit_test(theDescriptorOfTheProgramKeepsItsFlags),
        cmocka_unit_test(aFileIsNoTerminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

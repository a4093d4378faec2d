/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress of long tasks. */
#define _GNU_SOURCE /* memfd_create() */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/cli/job_progress.h"
#include "tools_test.h"

/* What was printed on standard error since begin(). */
typedef struct capture {
    int file, saved;
} capture;

static capture begin(void) {
    capture c = {.file = memfd_create("output", MFD_CLOEXEC), .saved = dup(STDERR_FILENO)};
    assert_true(c.file >= 0);
    assert_true(c.saved >= 0);
    fflush(stderr);
    assert_return_code(dup2(c.file, STDERR_FILENO), 0);
    return c;
}

static void expectText(capture c, const char *expected) {
    char text[1024];
    fflush(stderr);
    assert_return_code(dup2(c.saved, STDERR_FILENO), 0);
    ssize_t len = pread(c.file, text, sizeof(text) - 1, 0);
    assert_true(len >= 0);
    text[len] = '\0';
    assert_string_equal(text, expected);
    close(c.file);
    close(c.saved);
}

/* A task that began two seconds ago, on a terminal. */
static jobProgress started(progressStyle style, uint64_t total) {
    jobProgress p;
    jobProgressBegin(&p, style, "task", "keys", total);
    p.style = style; /* standard error is no terminal here */
    p.started_ms -= 2000;
    p.printed_ms -= 2000;
    return p;
}

static void nothingIsPrintedDuringTheFirstSecond(void **state) {
    capture c = begin();
    jobProgress p;
    jobProgressBegin(&p, PROGRESS_JSON, "task", "keys", 10);
    jobProgressAt(&p, 5);
    jobProgressHide(&p);
    expectText(c, "");
}

/* --bigkeys once printed a key after the progress of the scan. */
static void theLineIsRemovedBeforeOtherOutput(void **state) {
    capture c = begin();
    jobProgress p = started(PROGRESS_LINE, 0);
    jobProgressHide(&p);
    jobProgressAt(&p, 0);
    jobProgressHide(&p);
    jobProgressHide(&p);
    jobProgressEnd(&p, 0);
    expectText(c, "\r\033[Ktask: 0 keys, 0/s\r\033[K");
}

static void aTextInTheLineKeepsTheCursor(void **state) {
    capture c = begin();
    jobProgress p = started(PROGRESS_LINE, 0);
    jobProgressInLine(&p);
    jobProgressAt(&p, 0);
    jobProgressAt(&p, 0); /* printed again: it may have been overwritten */
    jobProgressEnd(&p, 0);
    expectText(c, "\0337\033[?7l  [task: 0 keys, 0/s]\033[K\033[?7h\0338"
                  "\0337\033[?7l  [task: 0 keys, 0/s]\033[K\033[?7h\0338\033[K");
}

static void objectsOfJsonEndWithTheFinalState(void **state) {
    capture c = begin();
    jobProgress p = started(PROGRESS_JSON, 10);
    jobProgressAt(&p, 0);
    jobProgressEnd(&p, 0);
    expectText(c, "{\"task\":\"task\",\"unit\":\"keys\",\"done\":0,\"total\":10,\"rate\":0.0,"
                  "\"eta_seconds\":0.0,\"finished\":false}\n"
                  "{\"task\":\"task\",\"unit\":\"keys\",\"done\":0,\"total\":10,\"rate\":0.0,"
                  "\"eta_seconds\":0.0,\"finished\":true}\n");
}

static void noneIsSilent(void **state) {
    capture c = begin();
    jobProgress p = started(PROGRESS_NONE, 10);
    jobProgressAt(&p, 1);
    jobProgressEnd(&p, 1);
    expectText(c, "");
}

int test_job_progress(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothingIsPrintedDuringTheFirstSecond),
        cmocka_unit_test(theLineIsRemovedBeforeOtherOutput),
        cmocka_unit_test(aTextInTheLineKeepsTheCursor),
        cmocka_unit_test(objectsOfJsonEndWithTheFinalState),
        cmocka_unit_test(noneIsSilent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See base_test.h. */
#include "base_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"

/* Sanitizers shall refuse impossible sizes as malloc() does, not stop. They look for these
 * names. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

void testSeed(const char *name) {
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    printf("%s: TEST_SEED=%llu\n", name, (unsigned long long)seed);
    fflush(stdout); /* a crash shall not take it along */
    randomSeed(seed);
}

void testRandomText(char *dst, size_t len, const char *letters) {
    size_t count = strlen(letters);
    for (size_t i = 0; i < len; i++) dst[i] = letters[randomUniform(count)];
}

int testInChild(void (*proc)(void), char *output, size_t cap) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        proc();
        _exit(0);
    }
    close(ends[1]);
    size_t len = 0;
    for (;;) {
        char sink[256];
        ssize_t got = read(ends[0], sink, sizeof(sink));
        if (got <= 0) break;
        size_t kept = (size_t)got < cap - 1 - len ? (size_t)got : cap - 1 - len;
        memcpy(output + len, sink, kept);
        len += kept;
    }
    output[len] = '\0';
    close(ends[0]);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFSIGNALED(how) ? WTERMSIG(how) : -WEXITSTATUS(how);
}

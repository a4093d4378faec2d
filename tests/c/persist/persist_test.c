/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See persist_test.h. */
#define _GNU_SOURCE
#include "persist_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/file.h"

enum { PATIENCE_MS = 30000 };

loop *testLoop;
static char folder[64];

void testSeed(const char *name) {
    const char *given = getenv("TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)clockMonoUs();
    printf("%s: seed %llu\n", name, (unsigned long long)seed);
    randomSeed(seed);
}

int testEnter(void **state) {
    (void)state;
    testLoop = loopNew(NULL, NULL);
    snprintf(folder, sizeof(folder), "/tmp/persist-test-%d", (int)getpid());
    return !testLoop || mkdir(folder, 0755) < 0 || chdir(folder) < 0;
}

int testLeave(void **state) {
    (void)state;
    loopFree(testLoop);
    return chdir("/") < 0 || rmdir(folder) < 0; /* fails if a test has left a file */
}

snapshotStreamOptions testOptions(void) {
    return (snapshotStreamOptions){.temporary = "temp.rdb",
                                   .name = "out.rdb",
                                   .is_rdb = true,
                                   .checksum = true,
                                   .compress = true,
                                   .loop = testLoop};
}

void testSleep(void) {
    int64_t began_ms = clockMonoMs();
    loopLimitSleep(testLoop, PATIENCE_MS);
    (void)loopTurn(testLoop, true); /* the number of events does not matter */
    if (clockMonoMs() - began_ms >= PATIENCE_MS) fail_msg("nothing has woken the loop");
}

snapshotStreamState testAwaitEnd(snapshotStream *s, reason *why) {
    for (;;) {
        snapshotStreamState state = snapshotStreamPoll(s, why);
        if (state != SNAPSHOT_STREAM_RUNS) return state;
        testSleep();
    }
}

str testFile(const char *name) {
    str out = STR_EMPTY;
    reason why;
    if (fileReadAll(name, SIZE_MAX / 2, &out, &why) != OK) fail_msg("%s", why.text);
    return out;
}

bool testFileExists(const char *name) { return access(name, F_OK) == 0; }

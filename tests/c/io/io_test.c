/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See io_test.h. */
#include "io_test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "io/net_addr.h"

static char folder[64];

void testSeed(const char *name) {
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
    printf("%s: TEST_SEED=%llu\n", name, (unsigned long long)seed);
    fflush(stdout); /* a crash shall not take it along */
    randomSeed(seed);
}

void testPair(int ends[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
}

const char *testFolder(void) {
    if (!folder[0]) {
        snprintf(folder, sizeof(folder), "/tmp/test_io.%d", (int)getpid());
        if (mkdir(folder, 0700) != 0) abort();
    }
    return folder;
}

void testFolderRemove(void) {
    char command[128];
    if (!folder[0]) return;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (system(command) != 0) printf("%s is left behind\n", folder);
    folder[0] = '\0';
}

const char *testPath(const char *name) {
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", testFolder(), name);
    return path;
}

void testAwait(int fd, bool writing) {
    struct pollfd entry = {.fd = fd, .events = writing ? POLLOUT : POLLIN};
    assert_int_equal(poll(&entry, 1, 10000), 1);
}

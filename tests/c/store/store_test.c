/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See store_test.h. */
#include "store_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "store/slab.h"
#include "store/type.h"

uint64_t testScale(void) {
    const char *text = getenv("TEST_SCALE");
    return text ? strtoull(text, NULL, 10) : 1;
}

void testSeed(const char *name) {
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20240917;
    printf("%s: TEST_SEED=%llu\n", name, (unsigned long long)seed);
    randomSeed(seed);
}

bool testSurvives(void (*proc)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        if (!freopen("/dev/null", "w", stderr)) _exit(0);
        if (!freopen("/dev/null", "w", stdout)) _exit(0);
        proc();
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

robj *testCopied(robj *o) {
    robj *copy = objectCopy(o, SLICE("other"), 3);
    digest a = {{0}}, b = {{0}};
    objectDigest(o, lookAtAll(), &a);
    objectDigest(copy, lookAtAll(), &b);
    assert_memory_equal(&a, &b, sizeof(a));
    objectFree(o);
    return copy;
}

void testGiveName(const dbKey *from, slice name, bool copies) {
    dbKey to = {from->db, name, storeHash(name)};
    if (sliceEqual(from->key, name) || !dbPeek(from->db, from->key, from->hash)) return;
    if (copies) {
        assert_int_equal(copyKey(from, &to), OK);
        return;
    }
    (void)dbDelete(to.db, name, to.hash, lookAtAll()); /* or it is missing */
    dbMove(from, &to);
}

int testNoObjects(void **state) {
    (void)state;
    slabStats stats;
    slabGetStats(slabKeyspace(), &stats);
    slabStoreFree(slabKeyspaceTake());
    slabStats elements;
    slabGetStats(slabElements(), &elements);
    slabStoreFree(slabElementsTake());
    uint64_t left = stats.live_blocks + elements.live_blocks;
    if (left) fprintf(stderr, "%llu objects are left\n", (unsigned long long)left);
    return left != 0;
}

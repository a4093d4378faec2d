/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the slab store costs, beside memAlloc(): nanoseconds of processor time, bytes, pages.
 *
 *     bench_slab                  everything below
 *     bench_slab speed SIZE       alloc, free, replace of 1 M blocks; SIZE 0: a mix of 32 to 1,024
 *     bytes
 *     bench_slab bytes SIZE       resident bytes per block of a fresh fill
 *     bench_slab churn            fill, delete, overwrite, delete 90 %, with compaction
 *     bench_slab fork             pages copied by overwrites while a child lives
 *     bench_slab remote           frees from another thread, a whole store dropped
 *
 * Each measurement runs in a process of its own. The other side is whatever MALLOC= links. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/random.h"
#include "store/slab.h"

#define COUNT 1000000u

typedef struct allocator {
    const char *name;
    void *(*alloc)(size_t size);
    void (*free)(void *ptr, size_t size);
} allocator;

static void memFreeSized(void *ptr, size_t size) {
    (void)size;
    memFree(ptr);
}

static const allocator slab = {"slab", slabAlloc, slabFree};
static const allocator general = {"memAlloc", memAlloc, memFreeSized};

/* ---- tools ---- */

static uint32_t fixed_size;

/* 60 % 32-128, 30 % 128-320, 10 % 320-1,024 bytes: mean 182. */
static uint32_t anySize(void) {
    if (fixed_size) return fixed_size;
    uint64_t share = randomUniform(100);
    if (share < 60) return 32 + (uint32_t)randomUniform(97);
    if (share < 90) return 128 + (uint32_t)randomUniform(193);
    return 320 + (uint32_t)randomUniform(705);
}

static int64_t cpuNs(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double perBlock(int64_t start_ns, size_t count) {
    return (double)(cpuNs() - start_ns) / (double)count;
}

static size_t rssBytes(void) {
    memReport report;
    memReportRead(&report);
    return report.rss;
}

/* The arrays of the benchmark are shared mappings, touched first: not part of any difference, never
 * copied. */
static void *ownArray(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(p != MAP_FAILED);
    memset(p, 1, bytes);
    memset(p, 0, bytes);
    return p;
}

/* Runs a measurement in a child, so that none finds the memory of another. */
static void apart(void (*proc)(const allocator *), const allocator *a) {
    fflush(stdout);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        randomSeed(42);
        proc(a);
        fflush(stdout);
        _exit(0);
    }
    int how;
    check(waitpid(child, &how, 0) == child);
    check(how == 0);
}

/* ---- blocks: a plain array replaces the table, a block contains its index ---- */

static uint32_t **blocks; /* block[0]: place, block[1]: size */
static uint32_t block_count, live_count;
static size_t wanted_bytes;

static void blocksInit(uint32_t count) {
    block_count = count;
    blocks = ownArray(count * sizeof(*blocks));
}

static void blockPut(const allocator *a, uint32_t place, uint32_t size) {
    uint32_t *block = a->alloc(size);
    memset(block, (int)place, size);
    block[0] = place;
    block[1] = size;
    blocks[place] = block;
    wanted_bytes += size;
    live_count++;
}

static void blockDrop(const allocator *a, uint32_t place) {
    uint32_t *block = blocks[place];
    if (!block) return;
    wanted_bytes -= block[1];
    live_count--;
    blocks[place] = NULL;
    a->free(block, block[1]);
}

static uint32_t relocate(void *arg, void *const *old, void *const *moved, unsigned count) {
    (void)arg;
    for (unsigned i = 0; i < count; i++) prefetchWrite(&blocks[*(uint32_t *)moved[i]]);
    for (unsigned i = 0; i < count; i++) {
        uint32_t place = *(uint32_t *)moved[i];
        check(blocks[place] == old[i]);
        blocks[place] = moved[i];
    }
    return UINT32_MAX;
}

/* ---- speed ---- */

static void shuffle(uint32_t **array, size_t count) {
    for (size_t i = count - 1; i > 0; i--) {
        size_t j = randomUniform(i + 1);
        uint32_t *swap = array[i];
        array[i] = array[j];
        array[j] = swap;
    }
}

ALWAYS_INLINE void speedRounds(const allocator *a) {
    blocksInit(COUNT);
    int64_t t = cpuNs();
    for (uint32_t i = 0; i < COUNT; i++) blockPut(a, i, anySize());
    printf("  fill and write %.1f", perBlock(t, COUNT));
    for (int round = 0; round < 2; round++) { /* in order, then shuffled */
        if (round) shuffle(blocks, COUNT);
        uint32_t *sizes = ownArray(COUNT * sizeof(*sizes));
        for (uint32_t i = 0; i < COUNT; i++) sizes[i] = blocks[i][1];
        t = cpuNs();
        for (uint32_t i = 0; i < COUNT; i++) a->free(blocks[i], sizes[i]);
        printf(" | %s: free %.1f", round ? "random" : "in order", perBlock(t, COUNT));
        t = cpuNs();
        for (uint32_t i = 0; i < COUNT; i++) {
            blocks[i] = a->alloc(sizes[i]);
            blocks[i][1] = sizes[i];
        }
        printf(" alloc %.1f", perBlock(t, COUNT));
    }
    shuffle(blocks, COUNT);
    uint64_t *picks = ownArray(COUNT * sizeof(*picks));
    uint32_t *fresh_sizes = ownArray(COUNT * sizeof(*fresh_sizes));
    for (int round = 0; round < 2; round++) { /* the first reaches the steady state */
        for (uint32_t i = 0; i < COUNT; i++) picks[i] = randomUniform(COUNT);
        for (uint32_t i = 0; i < COUNT; i++) fresh_sizes[i] = anySize();
        t = cpuNs();
        for (uint32_t i = 0; i < COUNT; i++) {
            /* The engine fetches a batch's objects before it executes. */
            if (i + 16 < COUNT) prefetchRead(blocks[picks[i + 16]]);
            uint32_t *fresh = a->alloc(fresh_sizes[i]);
            uint32_t *old = blocks[picks[i]];
            fresh[1] = fresh_sizes[i];
            blocks[picks[i]] = fresh;
            a->free(old, *(volatile uint32_t *)&old[1]);
        }
    }
    printf(" | replace random %.1f", perBlock(t, COUNT));
    if (fixed_size) {
        t = cpuNs();
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t *fresh = a->alloc(fixed_size);
            uint32_t *dead = blocks[picks[i]];
            fresh[1] = fixed_size;
            blocks[picks[i]] = fresh;
            a->free(dead, fixed_size);
        }
        printf(" (%.1f when the old is cold and not read)", perBlock(t, COUNT));
    }
    t = cpuNs();
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t size = fresh_sizes[i & 1023];
        uint32_t *fresh = a->alloc(size);
        *(volatile uint32_t *)fresh = i;
        a->free(fresh, size);
    }
    printf(" | alloc + free at once %.1f\n", perBlock(t, COUNT));
}

static void benchSpeed(const allocator *a) {
    printf("speed %-8s %4u ns:", a->name, fixed_size);
    if (a == &slab) {
        speedRounds(&slab);
    } else {
        speedRounds(&general);
    }
}

/* ---- bytes ---- */

static void benchBytes(const allocator *a) {
    blocksInit(COUNT);
    size_t rss = rssBytes(), used = memUsed();
    for (uint32_t i = 0; i < COUNT; i++) blockPut(a, i, anySize());
    double rss_each = (double)(rssBytes() - rss) / COUNT, wanted = (double)wanted_bytes / COUNT;
    double used_each = (double)(memUsed() - used) / COUNT;
    printf("bytes %-8s %4u: wanted %.2f used_memory %.2f resident %.2f, %.1f %% over\n", a->name,
           fixed_size, wanted, used_each, rss_each, (rss_each / wanted - 1) * 100);
}

/* ---- churn ---- */

static void churnSay(const char *step, size_t rss_start) {
    double rss = (double)(rssBytes() - rss_start);
    printf("  %-26s wanted %6.1f MB, resident / wanted %.3f\n", step, (double)wanted_bytes / 1e6,
           rss / (double)wanted_bytes);
}

static void settle(const allocator *a, size_t rss_start) {
    if (a == &general) {
        memPurge();
        return;
    }
    churnSay("(before compaction)", rss_start);
    slabCompactReport report = {0};
    size_t rss = rssBytes();
    int64_t start = cpuNs(), worst = 0;
    for (bool more = true; more;) {
        int64_t t = cpuNs();
        more = slabCompact(slabKeyspace(), relocate, NULL, 500, &report);
        if (cpuNs() - t > worst) worst = cpuNs() - t;
    }
    int64_t compacted = cpuNs();
    size_t purged = slabPurge(slabKeyspace(), SIZE_MAX);
    double won = (double)rss / 1e6 - (double)rssBytes() / 1e6;
    printf("  compaction: moved %.0f k blocks at %.0f ns, worst call %.0f us, purge %.1f us per "
           "64 KB; won %.1f MB at %.0f us\n",
           (double)report.moved_blocks / 1e3,
           (double)(compacted - start) / (double)(report.moved_blocks + 1), (double)worst / 1e3,
           (double)(cpuNs() - compacted) / 1e3 / ((double)purged / 65536 + 1e-9), won,
           (double)(cpuNs() - start) / 1e3 / won);
}

static void benchChurn(const allocator *a) {
    const uint32_t count = 2 * COUNT;
    blocksInit(count);
    size_t rss = rssBytes();
    printf("churn %s\n", a->name);
    for (uint32_t i = 0; i < count; i++) blockPut(a, i, anySize());
    churnSay("fill 2 M", rss);
    for (uint32_t i = 0; i < count; i++) {
        if (randomUniform(2)) blockDrop(a, i);
    }
    settle(a, rss);
    churnSay("delete random 50 %", rss);
    for (uint32_t i = 0; i < count; i++) {
        if (!blocks[i]) blockPut(a, i, 64 + anySize());
    }
    churnSay("fill with 64 bytes more", rss);
    for (uint32_t n = 0; n < 2 * count; n++) {
        uint32_t i = (uint32_t)randomUniform(count);
        blockDrop(a, i);
        blockPut(a, i, anySize() + (n & 64));
    }
    settle(a, rss);
    churnSay("overwrite 4 M", rss);
    for (uint32_t i = 0; i < count; i++) {
        if (randomUniform(10)) blockDrop(a, i);
    }
    settle(a, rss);
    churnSay("delete random 90 %", rss);
    if (a == &slab) slabVerify(slabKeyspace());
}

/* ---- fork ---- */

static void benchFork(const allocator *a) {
    const uint32_t overwrites = 100000;
    blocksInit(COUNT);
    for (uint32_t i = 0; i < COUNT; i++) blockPut(a, i, anySize());
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i % 5 == 0) blockDrop(a, i);
    }
    if (a == &slab) slabForkBegin(slabKeyspace());
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        pause();
        _exit(0);
    }
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    int64_t t = cpuNs();
    for (uint32_t n = 0; n < overwrites; n++) {
        uint32_t i = (uint32_t)randomUniform(COUNT);
        if (!blocks[i]) continue;
        uint32_t size = blocks[i][1];
        blockDrop(a, i);
        blockPut(a, i, size);
    }
    double ns = perBlock(t, overwrites);
    getrusage(RUSAGE_SELF, &after);
    printf("fork %-8s: 100,000 overwrites took %ld page faults, %.0f ns each\n", a->name,
           after.ru_minflt - before.ru_minflt, ns);
    if (a == &slab) slabForkEnd(slabKeyspace());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ---- remote ---- */

static void benchRemote(const allocator *a) {
    (void)a;
    blocksInit(COUNT);
    for (uint32_t i = 0; i < COUNT; i++) blockPut(&slab, i, anySize());
    uint32_t *sizes = ownArray(COUNT * sizeof(*sizes));
    shuffle(blocks, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) sizes[i] = blocks[i][1];
    slabRemote remote = {.store = slabKeyspace()};
    int64_t t = cpuNs();
    for (uint32_t i = 0; i < COUNT; i++) slabRemoteFree(&remote, blocks[i]);
    slabRemoteFlush(&remote);
    printf("remote: put %.1f ns", perBlock(t, COUNT));
    t = cpuNs();
    while (slabDrain(slabKeyspace(), 1000)) {}
    printf(", drain %.1f ns", perBlock(t, COUNT));
    for (uint32_t i = 0; i < COUNT; i++) blockPut(&slab, i, anySize());
    t = cpuNs();
    slabStoreFree(slabKeyspaceTake());
    printf(", a store of 1 M blocks dropped in %.1f ms\n", (double)(cpuNs() - t) / 1e6);
}

/* ---- which ---- */

static void both(void (*proc)(const allocator *), uint32_t size) {
    fixed_size = size;
    apart(proc, &slab);
    apart(proc, &general);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    bool all = strcmp(what, "all") == 0;
    uint32_t size = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    if (all) {
        static const uint32_t sizes[] = {38, 44, 70, 86, 92, 118, 151, 215, 300, 535, 900};
        for (size_t i = 0; i < COUNT_OF(sizes); i++) both(benchBytes, sizes[i]);
        both(benchSpeed, 86);
    }
    if (all || strcmp(what, "bytes") == 0) both(benchBytes, size);
    if (all || strcmp(what, "speed") == 0) both(benchSpeed, size);
    if (all || strcmp(what, "churn") == 0) both(benchChurn, 0);
    if (all || strcmp(what, "fork") == 0) both(benchFork, 0);
    fixed_size = 0;
    if (all || strcmp(what, "remote") == 0) apart(benchRemote, &slab);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What ds/ordered costs alone: nanoseconds of CPU to insert, to tell the place of, and to delete
 * one of N entries in random order, to step over it, and bytes of the index per entry.
 *
 *     bench_ordered            1 M and 10 M entries
 *     bench_ordered N ... */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/random.h"
#include "ds/ordered.h"

/* As a member of a sorted set is: a score and a short text. */
typedef struct entry {
    uint64_t rank;
    char text[16];
} entry;

static uint64_t rankOf(const void *e) { return ((const entry *)e)->rank; }
static slice textOf(const void *e) { return sliceMake(((const entry *)e)->text, 16); }
static const orderedType type = {.rank_of = rankOf, .text_of = textOf};

static int64_t cpuNs(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void shuffle(entry **all, size_t count) {
    for (size_t i = count; i > 1; i--) {
        size_t other = randomUniform(i);
        entry *kept = all[i - 1];
        all[i - 1] = all[other];
        all[other] = kept;
    }
}

static double nsEach(int64_t from, size_t count) {
    return (double)(cpuNs() - from) / (double)count;
}

static void measure(size_t count) {
    entry **all = memNewArray(entry *, count);
    for (size_t i = 0; i < count; i++) {
        all[i] = memAlloc(sizeof(entry));
        /* Some scores are shared, as times and points are. */
        all[i]->rank = randomUniform(count / 2 + 1);
        snprintf(all[i]->text, sizeof(all[i]->text), "member%09zu", i % 1000000000);
    }
    shuffle(all, count);
    orderedIndex x = {0};
    int64_t from = cpuNs();
    for (size_t i = 0; i < count; i++) orderedInsert(&x, &type, all[i]);
    double insert = nsEach(from, count);
    double bytes = (double)x.bytes / (double)count;
    shuffle(all, count);
    uint64_t sum = 0;
    from = cpuNs();
    for (size_t i = 0; i < count; i++) sum += orderedIndexOf(&x, &type, all[i]);
    double rank = nsEach(from, count);
    check(sum == count * (count - 1) / 2);
    orderedCursor cursor;
    size_t steps = 1;
    from = cpuNs();
    for (void *e = orderedSeek(&x, 0, &cursor); (e = orderedNext(&cursor));) steps++;
    double step = nsEach(from, count);
    check(steps == count);
    shuffle(all, count);
    from = cpuNs();
    for (size_t i = 0; i < count; i++) orderedDelete(&x, &type, all[i]);
    double delete = nsEach(from, count);
    printf(
        "%9zu entries: insert %6.0f  place %6.0f  step %5.1f  delete %6.0f ns; %.1f bytes each\n",
        count, insert, rank, step, delete, bytes);
    for (size_t i = 0; i < count; i++) memFree(all[i]);
    memFree(all);
    orderedFree(&x);
}

int main(int argc, char **argv) {
    randomSeed(42);
    for (int i = 1; i < argc; i++) measure(strtoul(argv[i], NULL, 10));
    if (argc == 1) {
        measure(1000000);
        measure(10000000);
    }
    return 0;
}

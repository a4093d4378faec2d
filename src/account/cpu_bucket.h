/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpuBucket: the share of one user or client in the time of the main thread, as a plain struct
 * without a clock: the time and the number of the turn come as arguments.
 *
 * Credit grows with time, by `percent` of it, up to that of a tenth of a second; commands take
 * their duration from it. Without credit nothing runs while others want to run, and others want to
 * run if one of their commands was executed in the last CPU_IDLE_NS of the time that this bucket
 * has left to them. Else the time is free: commands run, and cost nothing. Whatever the credit is,
 * a turn of the loop has at most CPU_TURN_NS for a bucket, and the command that exceeds it, so that
 * others are read in between. */
#ifndef ACCOUNT_CPU_BUCKET_H
#define ACCOUNT_CPU_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_TURN_NS = 1000 * 1000, CPU_IDLE_NS = 10 * 1000 * 1000 };

typedef struct cpuBucket {
    int percent;       /* 1 to 99; 0 or 100: nothing is limited */
    int64_t credit_ns; /* as of `at_ns` */
    int64_t at_ns;
    uint64_t turn; /* the last turn in which it has run; `turn_ns`: for so long */
    int64_t turn_ns;
    uint64_t own;    /* commands that have run with credit */
    uint64_t others; /* commands of others that had been executed by `others_ns` */
    int64_t others_ns;
} cpuBucket;

/* Begins with the whole credit. */
void cpuBucketInit(cpuBucket *b, int percent, int64_t now_ns);
/* True if the next command may run. `executed`: the commands that have run with credit, or needed
 * none, of this bucket and of all others. */
bool cpuBucketAllows(cpuBucket *b, uint64_t turn, uint64_t executed, int64_t now_ns);
/* True if it has no credit: what runs all the same uses time that nobody else wants. */
bool cpuBucketIsOver(const cpuBucket *b);
/* `commands` commands have run for `ns`, `free` in time that nobody else wanted. */
void cpuBucketTake(cpuBucket *b, uint64_t turn, uint64_t commands, int64_t ns, bool is_free);
/* When cpuBucketAllows() may become true, if others do not stop; 0: in the next turn. */
int64_t cpuBucketWaitNs(const cpuBucket *b, int64_t now_ns);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpuBucket: the share of one user or client in the time of the main thread, as a plain struct
 * without a clock: the time and the number of the turn come as arguments.
 *
 * Credit grows by `percent` of the elapsed time, up to the credit of a tenth of a second; the
 * duration of each command is subtracted. While the credit is negative, commands of the bucket run
 * only if no other client wants to run. Another client wants to run if one of its commands was
 * executed in the last CPU_IDLE_NS, not counting the time in which this bucket has run. If no other
 * client wants to run, the time is free: commands run and use no credit. Independently of the
 * credit, a bucket begins no further command in a turn of the event loop in which it has run for
 * CPU_TURN_NS, so that other clients are read in between. */
#ifndef ACCOUNT_CPU_BUCKET_H
#define ACCOUNT_CPU_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

enum { CPU_TURN_NS = 1000 * 1000, CPU_IDLE_NS = 10 * 1000 * 1000 };

typedef struct cpuBucket {
    int percent;       /* 1 to 99; 0 or 100: nothing is limited */
    int64_t credit_ns; /* as of `at_ns` */
    int64_t at_ns;
    uint64_t turn; /* the last turn in which a command has run; `turn_ns`: for how long */
    int64_t turn_ns;
    uint64_t own;    /* commands that have run with credit */
    uint64_t others; /* commands of others that had been executed by `others_ns` */
    int64_t others_ns;
} cpuBucket;

/* Starts with full credit. */
void cpuBucketInit(cpuBucket *b, int percent, int64_t now_ns);
/* True if the next command may run. `executed` is the number of commands, of this bucket and of all
 * other clients, that have run with credit or without needing any. */
bool cpuBucketAllows(cpuBucket *b, uint64_t turn, uint64_t executed, int64_t now_ns);
/* True if the credit is used up: commands that run now use time that no other client wants. */
bool cpuBucketIsOver(const cpuBucket *b);
/* Records that `commands` commands have run for `ns`; `is_free`: in time that no other client
 * wanted. */
void cpuBucketTake(cpuBucket *b, uint64_t turn, uint64_t commands, int64_t ns, bool is_free);
/* Time until cpuBucketAllows() may become true, if other clients go on; 0: in the next turn. */
int64_t cpuBucketWaitNs(const cpuBucket *b, int64_t now_ns);

#endif

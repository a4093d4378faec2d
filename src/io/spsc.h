/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spsc: a ring of small messages from one thread, the producer, to another one, the consumer. What
 * the producer has written before a push is visible to the consumer after the pop. The consumer
 * sleeps on a `sleeper`; the producer wakes it only if it does. */
#ifndef IO_SPSC_H
#define IO_SPSC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/bytes.h"

typedef struct spscItem {
    void *what;
    int64_t number;
    uint32_t kind;
    int32_t code;
} spscItem;

typedef struct spsc {
    spscItem *items;
    uint32_t mask;                       /* number of items - 1 */
    uint32_t pushed ALIGNED(CACHE_LINE); /* written by the producer */
    uint32_t popped_seen;                /* the producer's copy of `popped` */
    uint32_t popped ALIGNED(CACHE_LINE); /* written by the consumer */
    uint32_t pushed_seen;                /* the consumer's copy of `pushed` */
} spsc;

/* `count` is a power of two: how many items fit. */
void spscInit(spsc *r, uint32_t count);
void spscFree(spsc *r);
/* Producer. False: the ring is full. */
bool spscPush(spsc *r, const spscItem *item) MUST_USE;
/* Consumer. False: the ring is empty. */
bool spscPop(spsc *r, spscItem *item) MUST_USE;

/* Sleeping without missing a push. The consumer announces that it is going to sleep in a variable,
 * and then looks once more (spscHasItems()); the producer calls spscPublish() after pushing, and
 * then reads that variable. The accesses to the variable must be sequentially consistent, as these
 * two are: so at least one of the two sees the other. */
void spscPublish(spsc *r);
bool spscHasItems(const spsc *r);

/* The place where a consumer sleeps. */
typedef struct sleeper {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool asleep;
} sleeper;

void sleeperInit(sleeper *s);
void sleeperFree(sleeper *s);
/* Consumer: sleeps until there are items. */
void sleeperWait(sleeper *s, const spsc *r);
/* Producer, after pushing: wakes the consumer if it sleeps. */
void sleeperWake(sleeper *s, spsc *r);

#endif

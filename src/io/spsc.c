/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring between two threads (spsc.h).
 *
 * Invariant: items [popped, pushed) are full; both counters only grow, modulo 2^32. Each side
 * writes one counter and reads the other one only when its copy says that the ring is full or
 * empty, so a push or pop usually touches no line that the other side has changed, except that of
 * the item. A wake-up of a consumer that does not sleep costs two accesses and no system call. */
#include "io/spsc.h"

#include "base/assert.h"

void spscInit(spsc *r, uint32_t count) {
    check(count > 0);
    check((count & (count - 1)) == 0);
    *r = (spsc){.items = memNewArray(spscItem, count), .mask = count - 1};
}

void spscFree(spsc *r) {
    memFree(r->items);
    r->items = NULL;
}

bool spscPush(spsc *r, const spscItem *item) {
    hotCheck(r->pushed - r->popped_seen <= r->mask + 1);
    if (unlikely(r->pushed - r->popped_seen > r->mask)) {
        r->popped_seen = __atomic_load_n(&r->popped, __ATOMIC_ACQUIRE);
        if (r->pushed - r->popped_seen > r->mask) return false;
    }
    hotCheck(r->pushed - r->popped_seen <= r->mask);
    r->items[r->pushed & r->mask] = *item;
    __atomic_store_n(&r->pushed, r->pushed + 1, __ATOMIC_RELEASE);
    return true;
}

bool spscPop(spsc *r, spscItem *item) {
    if (r->pushed_seen == r->popped) {
        r->pushed_seen = __atomic_load_n(&r->pushed, __ATOMIC_ACQUIRE);
        if (r->pushed_seen == r->popped) return false;
    }
    hotCheck(r->pushed_seen - r->popped <= r->mask + 1);
    *item = r->items[r->popped & r->mask];
    __atomic_store_n(&r->popped, r->popped + 1, __ATOMIC_RELEASE);
    return true;
}

void spscPublish(spsc *r) { __atomic_store_n(&r->pushed, r->pushed, __ATOMIC_SEQ_CST); }

bool spscHasItems(const spsc *r) {
    return __atomic_load_n(&r->pushed, __ATOMIC_SEQ_CST) != r->popped;
}

void sleeperInit(sleeper *s) {
    s->asleep = false;
    check(pthread_mutex_init(&s->lock, NULL) == 0);
    check(pthread_cond_init(&s->wake, NULL) == 0);
}

void sleeperFree(sleeper *s) {
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
}

void sleeperWait(sleeper *s, const spsc *r) {
    __atomic_store_n(&s->asleep, true, __ATOMIC_SEQ_CST);
    if (spscHasItems(r)) {
        __atomic_store_n(&s->asleep, false, __ATOMIC_RELAXED);
        return;
    }
    pthread_mutex_lock(&s->lock);
    while (__atomic_load_n(&s->asleep, __ATOMIC_RELAXED)) pthread_cond_wait(&s->wake, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void sleeperWake(sleeper *s, spsc *r) {
    spscPublish(r);
    if (likely(!__atomic_load_n(&s->asleep, __ATOMIC_SEQ_CST))) return;
    pthread_mutex_lock(&s->lock);
    __atomic_store_n(&s->asleep, false, __ATOMIC_RELAXED);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

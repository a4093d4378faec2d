/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot keys: the most frequently accessed keys, estimated from about one request in 256. Always on:
 * costs a subtraction per batch, and about 0.1 us per sampled request. What was asked counts half
 * after each HOTKEYS_HALF_LIFE_S, so figures are those of the last half a minute. Main thread
 * only. */
#ifndef ENGINE_HOTKEYS_H
#define ENGINE_HOTKEYS_H

#include "base/str.h"
#include "resp/resp.h"

enum { HOTKEYS_MAX = 64, HOTKEYS_SAMPLE = 256, HOTKEYS_HALF_LIFE_S = 10 };

typedef struct hotKey {
    str key; /* truncated if it is very long */
    uint64_t hash;
    int db_id;
    /* Filled by hotkeysRead(): requests per second, at most `error` too high. */
    double rate, error;
    double weight, error_weight; /* requests, as counted by hotkeys.c */
} hotKey;

/* Samples one request of the batch, and sets engineHot.hotkeys_in for the next sample. */
void hotkeysLook(int db_id, const request *requests, int count);

/* The keys in descending order of their rates, without those that were not asked for a long time;
 * borrowed until the next call of a function here. `*total` is the rate of all requests. */
const hotKey *hotkeysRead(int *count, double *total);
/* Number of sampled requests since hotkeysReset(), and its time (wall clock, ms). */
uint64_t hotkeysLooks(void);
int64_t hotkeysSince(void);
void hotkeysReset(void);

/* ---- as Valkey 9.2 counts them (hotkeys_window.c) */

typedef struct hotWindowKey {
    str key; /* truncated if it is very long */
    int db_id;
    int64_t rate; /* accesses per second */
} hotWindowKey;

/* hotkeys-top-k is above 0. */
bool hotkeysWindowIsOn(void);
/* The keys of the last finished window in descending order of their rates, at most hotkeys-top-k;
 * borrowed until the next call of a function here. */
const hotWindowKey *hotkeysWindowRead(int *count);
/* Forgets the running and the last finished window. */
void hotkeysWindowClear(void);

#endif

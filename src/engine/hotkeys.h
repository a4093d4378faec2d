/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot keys: which keys are asked for most, estimated from one request in some hundred. Always on: it costs a
 * subtraction a batch, and some 0.1 us for each request it looks at. Main thread only. */
#ifndef ENGINE_HOTKEYS_H
#define ENGINE_HOTKEYS_H

#include "base/str.h"
#include "resp/resp.h"

enum { HOTKEYS_MAX = 64, HOTKEYS_SAMPLE = 256 };

typedef struct hotKey {
    str key; /* its first bytes, when it is very long */
    uint64_t hash;
    int db_id;
    uint64_t count, error; /* looked at so often, at most `error` too much */
} hotKey;

/* Looks at one request of the batch, and says in engineHot.hotkeys_in when it wants to look again. */
void hotkeysLook(int db_id, const request *requests, int count);

/* The keys with the highest counts first; borrowed until the next call of any function here. */
const hotKey *hotkeysSorted(int *count);
/* Requests looked at since hotkeysReset(), and when that was (wall clock, ms). */
uint64_t hotkeysLooks(void);
int64_t hotkeysSince(void);
void hotkeysReset(void);

#endif

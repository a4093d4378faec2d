/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Space-Saving (Metwally, Agrawal, El Abbadi 2005) applied to a sample of the requests, with a
 * fixed number of counters. A key without a counter takes over the one with the lowest count, which
 * becomes its possible error. Any key in more than 1/HOTKEYS_MAX of the sampled requests has a
 * counter. */
#include "engine/hotkeys.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/random.h"
#include "engine/command.h"
#include "engine/hot.h"

enum { KEY_BYTES_MAX = 512 };

static struct {
    hotKey list[HOTKEYS_MAX];
    int count;
    uint64_t looks;
    int64_t since_ms;
} hot;

static hotKey *counterOf(int db_id, uint64_t hash) {
    hotCheck(db_id >= 0);
    hotKey *least = &hot.list[0];
    for (hotKey *k = hot.list; k < hot.list + hot.count; k++) {
        if (k->hash == hash && k->db_id == db_id) return k;
        if (k->count < least->count) least = k;
    }
    if (hot.count < HOTKEYS_MAX) return &hot.list[hot.count++];
    return least;
}

void hotkeysLook(int db_id, const request *requests, int count) {
    hotCheck(threadIsMain());
    /* Random within the batch and at random distances, because clients may send periodic
     * patterns. */
    engineHot.hotkeys_in = HOTKEYS_SAMPLE / 2 + (int)randomUniform(HOTKEYS_SAMPLE);
    const request *r = &requests[randomUniform((uint64_t)count)];
    if (!hot.looks++) hot.since_ms = engineHot.now_ms;
    const command *cmd = r->command;
    if (cmd->first_key != 1 || r->argc < 2) return;
    hotKey *k = counterOf(db_id, r->key_hash);
    if (k->count == 0 || k->hash != r->key_hash || k->db_id != db_id) {
        k->error = k->count;
        k->hash = r->key_hash;
        k->db_id = db_id;
        strClear(&k->key);
        strAppend(&k->key, r->argv[1].ptr, sizeMin(r->argv[1].len, KEY_BYTES_MAX));
    }
    k->count++;
}

static int byCount(const void *a, const void *b) {
    uint64_t x = ((const hotKey *)a)->count, y = ((const hotKey *)b)->count;
    return (x < y) - (x > y);
}

const hotKey *hotkeysSorted(int *count) {
    qsort(hot.list, (size_t)hot.count, sizeof(hotKey), byCount);
    *count = hot.count;
    return hot.list;
}

uint64_t hotkeysLooks(void) { return hot.looks; }

int64_t hotkeysSince(void) { return hot.since_ms; }

void hotkeysReset(void) {
    for (int i = 0; i < hot.count; i++) strFree(&hot.list[i].key);
    memset(&hot, 0, sizeof(hot));
}

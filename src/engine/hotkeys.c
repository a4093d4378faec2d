/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Space-Saving (Metwally, Agrawal, El Abbadi 2005) applied to a sample of the requests, with a
 * fixed number of counters. A key without a counter takes over the lowest one, which becomes its
 * possible error. A sample counts for all requests since the one before.
 *
 * Old requests count less (forward decay: Cormode, Shkapenyuk, Srivastava, Xu 2009): instead of
 * making all counters smaller, a request is added with a weight that doubles every half-life. */
#include "engine/hotkeys.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/random.h"
#include "engine/command.h"
#include "engine/hot.h"

enum {
    KEY_BYTES_MAX = 512,
    RESCALE_AFTER = 64, /* half-lives; a double has 52 bits and exponents for more */
};

static struct {
    hotKey list[HOTKEYS_MAX];
    int count;
    int interval; /* requests after which the next sample was due */
    uint64_t looks;
    int64_t since_ms;
    int64_t base_ms; /* a request at this time has weight 1 */
    double weight;   /* of all requests */
} hot;

/* Half-lives since the time at which a request has weight 1. */
static double halfLives(void) {
    return (double)(engineHot.now_ms - hot.base_ms) / (1000 * HOTKEYS_HALF_LIFE_S);
}

/* Keeps weights in the range of a double. */
static void rescale(void) {
    double factor = exp2(-halfLives());
    hot.base_ms = engineHot.now_ms;
    hot.weight *= factor;
    for (hotKey *k = hot.list; k < hot.list + hot.count; k++) {
        k->weight *= factor;
        k->error_weight *= factor;
    }
}

static hotKey *counterOf(int db_id, uint64_t hash) {
    hotCheck(db_id >= 0);
    hotKey *least = &hot.list[0];
    for (hotKey *k = hot.list; k < hot.list + hot.count; k++) {
        if (k->hash == hash && k->db_id == db_id) return k;
        if (k->weight < least->weight) least = k;
    }
    if (hot.count < HOTKEYS_MAX) return &hot.list[hot.count++];
    return least;
}

void hotkeysLook(int db_id, const request *requests, int count) {
    hotCheck(threadIsMain());
    hotCheck(engineHot.hotkeys_in < 0);
    int requests_seen = hot.interval - engineHot.hotkeys_in;
    /* Random within the batch and at random distances, because clients may send periodic
     * patterns. */
    hot.interval = HOTKEYS_SAMPLE / 2 + (int)randomUniform(HOTKEYS_SAMPLE);
    engineHot.hotkeys_in = hot.interval;
    const request *r = &requests[randomUniform((uint64_t)count)];
    if (!hot.looks++) hot.since_ms = hot.base_ms = engineHot.now_ms;
    if (halfLives() > RESCALE_AFTER) rescale();
    double weight = requests_seen * exp2(halfLives());
    hot.weight += weight;
    const command *cmd = r->command;
    if (cmd->first_key != 1 || r->argc < 2) return;
    hotKey *k = counterOf(db_id, r->key_hash);
    if (k->weight == 0 || k->hash != r->key_hash || k->db_id != db_id) {
        k->error_weight = k->weight;
        k->hash = r->key_hash;
        k->db_id = db_id;
        strClear(&k->key);
        strAppend(&k->key, r->argv[1].ptr, sizeMin(r->argv[1].len, KEY_BYTES_MAX));
    }
    k->weight += weight;
}

static int byRate(const void *a, const void *b) {
    double x = ((const hotKey *)a)->weight, y = ((const hotKey *)b)->weight;
    return (x < y) - (x > y);
}

/* Requests per second for a weight of 1: at a steady rate the weights of all time add up to the
 * requests of a half-life / ln 2; of less, if counting began lately. */
static double ratePerWeight(void) {
    double age = (double)(engineHot.now_ms - hot.since_ms) / 1000;
    double window = HOTKEYS_HALF_LIFE_S / log(2);
    window *= 1 - exp2(-(age > 1 ? age : 1) / HOTKEYS_HALF_LIFE_S);
    return exp2(-halfLives()) / window;
}

const hotKey *hotkeysRead(int *count, double *total) {
    qsort(hot.list, (size_t)hot.count, sizeof(hotKey), byRate);
    double rate = ratePerWeight();
    *total = hot.weight * rate;
    *count = 0;
    for (int i = 0; i < hot.count; i++) {
        hotKey *k = &hot.list[i];
        k->rate = k->weight * rate;
        k->error = k->error_weight * rate;
        /* Less than one request of the window is nothing that is still going on. */
        if (k->rate * HOTKEYS_HALF_LIFE_S >= 1) *count = i + 1;
    }
    return hot.list;
}

uint64_t hotkeysLooks(void) { return hot.looks; }

int64_t hotkeysSince(void) { return hot.since_ms; }

void hotkeysReset(void) {
    for (int i = 0; i < hot.count; i++) strFree(&hot.list[i].key);
    memset(&hot, 0, sizeof(hot));
}

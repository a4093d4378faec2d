/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed nodes of long lists and streams (compressed.h): the codec of ds/node_codec.h, and one
 * visit to the nodes of a value.
 *
 * Invariant: each coded node is counted as a user of its dictionary, and in the report, until it is
 * freed, by whichever thread. */
#include "base/base.h"
#include "base/clock.h"
#include "store/compressed.h"
#include "store/db_priv.h"
#include "store/dictionary.h"
#include "store/type_list.h"
#include "store/type_stream.h"

static struct {
    uint64_t nodes, text_bytes, packed_bytes; /* atomic: any thread may free nodes */
    uint64_t shown, expand_ticks;             /* the same */
    uint64_t made, futile, restored, make_ticks;
} all;

static void add(uint64_t *to, uint64_t number) {
    (void)__atomic_fetch_add(to, number, __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------------ the codec */

static void expandNode(unsigned dictionary, slice coded, void *out, size_t len) {
    uint64_t began = clockTicks();
    bool expanded = dictionaryExpand(dictionary, coded, out, len);
    check(expanded);
    add(&all.shown, 1);
    add(&all.expand_ticks, clockTicks() - began);
}

static void countNode(unsigned dictionary, size_t len, size_t coded_len, bool more) {
    uint64_t sign = more ? 1 : -(uint64_t)1;
    hotCheck(more || __atomic_load_n(&all.nodes, __ATOMIC_RELAXED) > 0);
    add(&all.nodes, sign);
    add(&all.text_bytes, sign * len);
    add(&all.packed_bytes, sign * coded_len);
    dictionaryCountNodes(dictionary, more);
}

/* As for values as a whole: the second read within the idle time stores a node plain. */
static nodeRead readNode(bool again) {
    if (!threadIsMain() || storeNow.forked) return NODE_STAYS;
    bool expands = storeNow.plain_idle_s == INT64_MAX || (again && storeNow.plain_idle_s >= 0);
    if (!expands) return NODE_NOTED;
    all.restored += again;
    return NODE_EXPANDS;
}

static const nodeCodec codec = {expandNode, countNode, readNode};

void compressedNodesInit(void) { nodeCodecSet(&codec); }

/* ------------------------------------------------------------------ a visit */

bool compressedHasNodes(const robj *o) {
    if (objectType(o) == TYPE_STREAM) return true;
    return objectType(o) == TYPE_LIST && objectForm(o) == FORM_POINTER;
}

uint64_t compressedNodesOf(const robj *o) {
    if (objectType(o) == TYPE_STREAM) return streamCodedNodes(streamOf(o));
    quicklistStats stats;
    quicklistGetStats(listQuicklist(o), &stats);
    return stats.coded;
}

/* The rest of a visit. */
typedef struct visitOf {
    const valueDictionary *dictionary;
    int64_t deadline_us;
} visitOf;

static slice code(void *arg, slice text, size_t most) {
    const visitOf *of = arg;
    uint64_t began = clockTicks();
    slice coded = compressedPack(of->dictionary, text, most);
    all.make_ticks += clockTicks() - began;
    if (coded.len) {
        all.made++;
    } else {
        all.futile++;
    }
    return coded;
}

static bool isOver(void *arg) {
    const visitOf *of = arg;
    return of->deadline_us < INT64_MAX && clockMonoUs() >= of->deadline_us;
}

bool storeCompressNodes(db *d, const robj *o, nodesVisit *visit) {
    hotCheck(threadIsMain());
    check(compressedHasNodes(o));
    const valueDictionary *dictionary = dictionaryOfKey(d->id, objectKey(o));
    if (!dictionary || !mayRewrite(d, o)) return false;
    visitOf of = {.dictionary = dictionary, .deadline_us = visit->deadline_us};
    nodeVisit v = {.min = visit->min,
                   .dictionary = dictionaryId(dictionary),
                   .idle = visit->idle,
                   .whole = visit->whole,
                   .code = code,
                   .is_over = isOver,
                   .arg = &of};
    keyspace *before = keyspaceUse(d->in);
    bool more = false;
    if (objectType(o) == TYPE_LIST) {
        more = quicklistCodeNodes(objectPointer(o), !visit->continues, &v);
    } else {
        if (!visit->continues) visit->from = STREAM_ID_MIN;
        more = streamCodeNodes(streamOf(o), &visit->from, &v);
    }
    (void)keyspaceUse(before); /* it was the one of `d` */
    visit->continues = more;
    return more;
}

uint64_t compressedNodesToSample(const robj *o) {
    if (!compressedHasNodes(o)) return 0;
    if (objectType(o) == TYPE_LIST) return quicklistNodesBetween(listQuicklist(o));
    uint64_t nodes = streamNodeCount(streamOf(o));
    return nodes ? nodes - 1 : 0; /* the tail is not compressed */
}

void compressedSampleNodes(const robj *o, uint64_t random, size_t most, nodeTextProc *visit,
                           void *arg) {
    enum { SKIPPED = 128 }; /* nodes of a list, at most: they are found one after the other */
    uint64_t nodes = compressedNodesToSample(o);
    hotCheck(nodes > 0);
    if (objectType(o) == TYPE_STREAM) {
        streamSample(streamOf(o), random, most, visit, arg);
        return;
    }
    size_t skip = nodes > most ? (size_t)((random >> 1) % (nodes - most)) % SKIPPED : 0;
    quicklistSample(listQuicklist(o), skip, random & 1, sizeMin(most, nodes), visit, arg);
}

/* ------------------------------------------------------------------ reports */

void compressedGetNodesReport(compressedReport *out) {
    *out = (compressedReport){
        .values = __atomic_load_n(&all.nodes, __ATOMIC_RELAXED),
        .text_bytes = __atomic_load_n(&all.text_bytes, __ATOMIC_RELAXED),
        .packed_bytes = __atomic_load_n(&all.packed_bytes, __ATOMIC_RELAXED),
        .shown = __atomic_load_n(&all.shown, __ATOMIC_RELAXED),
        .made = all.made,
        .futile = all.futile,
        .restored = all.restored,
        .make_us = (uint64_t)clockTicksToNs(all.make_ticks) / 1000,
    };
    uint64_t ticks = __atomic_load_n(&all.expand_ticks, __ATOMIC_RELAXED);
    out->expand_us = (uint64_t)clockTicksToNs(ticks) / 1000;
}

void compressedResetNodesStats(void) {
    all.made = all.futile = all.restored = all.make_ticks = 0;
    __atomic_store_n(&all.shown, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&all.expand_ticks, 0, __ATOMIC_RELAXED);
}

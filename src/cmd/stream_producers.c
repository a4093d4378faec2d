/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Idempotent production: a producer may send an entry twice, and it is added once. Implements IDMP
 * and IDMPAUTO of XADD, XCFGSET and XIDMPRECORD. Invariant: each change of the ids of producers
 * (ds/stream_producers.h), except their expiry, is propagated as XACK of a reserved group name
 * (AOF_PRODUCERS), which other servers accept without effect. Main thread only. */
#include <xxhash.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"
#include "ds/stream_producers.h"
#include "format/aof_value.h"

/* ------------------------------------------------------------------ propagation */

/* Propagates a change of the ids of producers of the key; `words` follow the name of the group. */
static void propagate(ctx *c, slice key, const slice *words, int count) {
    enum { HEAD = 3, WORDS_MAX = 4 };
    slice all[HEAD + WORDS_MAX] = {SLICE("XACK"), key, AOF_PRODUCERS};
    check(count <= WORDS_MAX);
    if (!engineHot.sinks) return;
    memcpy(all + HEAD, words, (size_t)count * sizeof(*words));
    ctxPropagateAs(c, HEAD + count, all);
}

static void propagateId(ctx *c, slice producer, slice iid, streamId id) {
    char text[STREAM_ID_TEXT_MAX];
    const slice words[] = {SLICE("ID"), producer, iid, streamIdText(id, text)};
    propagate(c, c->argv[1], words, COUNT_OF(words));
}

static void propagateLimits(ctx *c, const streamProducersState *state) {
    char duration[NUMBER_TEXT_MAX], most[NUMBER_TEXT_MAX];
    const slice words[] = {SLICE("LIMITS"),
                           sliceMake(duration, numberPrintUint(duration, state->duration_s)),
                           sliceMake(most, numberPrintUint(most, state->ids_max))};
    propagate(c, c->argv[1], words, COUNT_OF(words));
}

/* ------------------------------------------------------------------ the option of XADD */

/* True if the argument is IDMP or IDMPAUTO with its operands. */
static bool isOption(const ctx *c, int i, bool *is_auto) {
    *is_auto = ctxArgIs(c, i, "idmpauto") && i + 1 < c->argc;
    if (!*is_auto && (!ctxArgIs(c, i, "idmp") || i + 2 >= c->argc)) return false;
    return ctxHasExtensions(c);
}

streamWord streamArgProducer(ctx *c, int *i, streamProduced *out) {
    hotCheck(*i > 0);
    hotCheck(*i < c->argc);
    bool is_auto;
    if (!isOption(c, *i, &is_auto)) return STREAM_WORD_OTHER;
    const char *missing = NULL;
    if (out->words) {
        replyError(c, SLICE("ERR syntax error, IDMP/IDMPAUTO specified multiple times"));
        return STREAM_WORD_WRONG;
    }
    if (c->argv[*i + 1].len == 0) missing = "producer";
    if (!missing && !is_auto && c->argv[*i + 2].len == 0) missing = "idempotent";
    if (missing) {
        replyErrorFormat(c, "ERR syntax error, IDMP%s requires a non-empty %s ID",
                         is_auto ? "AUTO" : "", missing);
        return STREAM_WORD_WRONG;
    }
    *out = (streamProduced){.arg = *i, .words = is_auto ? 2 : 3, .producer = c->argv[*i + 1]};
    if (!is_auto) out->iid = c->argv[*i + 2];
    *i += out->words - 1;
    return STREAM_WORD_TAKEN;
}

/* Hashes a field and its value. The pair (ab, c) has another hash than (a, bc). */
static XXH128_hash_t pairHash(slice field, slice value) {
    XXH128_hash_t name = XXH3_128bits(field.ptr, field.len);
    XXH128_hash_t hash = XXH3_128bits_withSeed(value.ptr, value.len, name.low64);
    hash.high64 ^= name.high64;
    return hash;
}

void streamProducedHash(streamProduced *p, const slice *fields, int count) {
    hotCheck(count % 2 == 0);
    if (p->iid.len) return;
    uint64_t low = 0, high = 0; /* sums, because the order of the fields does not matter */
    for (int i = 0; i < count; i += 2) {
        XXH128_hash_t hash = pairHash(fields[i], fields[i + 1]);
        low += hash.low64;
        high += hash.high64;
    }
    storeU64(p->hash, low);
    storeU64(p->hash + sizeof(low), high);
    p->iid = sliceMake(p->hash, sizeof(p->hash));
}

/* Counts an entry that was sent again, and propagates the count. */
static void countDuplicate(ctx *c, stream *s) {
    const slice words[] = {SLICE("DUPLICATE")};
    streamProducersCountDuplicate(streamProducersMake(s));
    ctxDatasetChanged(c, 1);
    propagate(c, c->argv[1], words, COUNT_OF(words));
}

bool streamIsDuplicate(ctx *c, stream *s, const streamProduced *p, bool is_known) {
    hotCheck(p->words);
    streamId id = STREAM_ID_MIN;
    const streamProducers *t = s ? streamProducersOf(s) : NULL;
    bool found = t && streamProducedFind(t, c->now_ms, p->producer, p->iid, &id);
    if (is_known && !found) {
        if (s) countDuplicate(c, s);
        replyNull(c);
        return true;
    }
    if (!found) return false;
    countDuplicate(c, s);
    streamReplyId(c, id);
    return true;
}

void streamRecordProduced(ctx *c, stream *s, const streamProduced *p, streamId id) {
    enum { EXPIRED_MAX = 100 };
    streamProducers *t = streamProducersMake(s);
    hotCheck(p->iid.len);
    (void)streamProducersExpire(t, c->now_ms, EXPIRED_MAX); /* their number does not matter */
    streamProducedAdd(t, p->producer, p->iid, id);
    propagateId(c, p->producer, p->iid, id);
}

/* ------------------------------------------------------------------ records of a stream or file */

static bool argUint(const ctx *c, int i, uint64_t *out) {
    int64_t n;
    if (!numberParseInt(c->argv[i], &n) || n < 0) return false;
    *out = (uint64_t)n;
    return true;
}

/* Applies LIMITS or COUNTERS with two numbers. */
static bool applyNumbers(const ctx *c, streamProducers *t, bool limits) {
    uint64_t first, second;
    streamProducersState state = streamProducersGet(t);
    if (!argUint(c, 4, &first) || !argUint(c, 5, &second)) return false;
    if (limits) {
        state.duration_s = (uint32_t)sizeMin(first, UINT32_MAX);
        state.ids_max = (uint32_t)sizeMin(second, UINT32_MAX);
        if (!streamProducersStateIsValid(&state)) return false;
    } else {
        state.added = first;
        state.duplicates = second;
    }
    streamProducersSet(t, &state);
    return true;
}

static bool applyId(const ctx *c, streamProducers *t) {
    streamId id;
    if (c->argv[4].len == 0 || c->argv[5].len == 0 || !streamParseId(c->argv[6], 0, &id))
        return false;
    streamProducedAdd(t, c->argv[4], c->argv[5], id);
    return true;
}

bool streamApplyProducers(ctx *c, stream *s) {
    enum { LIMITS_WORDS = 6, ID_WORDS = 7, DUPLICATE_WORDS = 4 };
    if (!ctxIsReplay(c) || !sliceEqual(c->argv[2], AOF_PRODUCERS)) return false;
    streamProducers *t = streamProducersMake(s);
    bool applied = false;
    if (c->argc == LIMITS_WORDS && ctxArgIs(c, 3, "limits")) {
        applied = applyNumbers(c, t, true);
    } else if (c->argc == LIMITS_WORDS && ctxArgIs(c, 3, "counters")) {
        applied = applyNumbers(c, t, false);
    } else if (c->argc == ID_WORDS && ctxArgIs(c, 3, "id")) {
        applied = applyId(c, t);
    } else if (c->argc == DUPLICATE_WORDS && ctxArgIs(c, 3, "duplicate")) {
        streamProducersCountDuplicate(t);
        applied = true;
    }
    if (applied) {
        ctxDatasetChanged(c, 1);
        replyInteger(c, 0);
    } else {
        replyError(c, SLICE("ERR Invalid record of ids of producers"));
    }
    return true;
}

/* ------------------------------------------------------------------ XCFGSET, XIDMPRECORD */

/* The settings of a request; 0: not given. */
typedef struct streamSettings {
    int64_t duration_s, ids_max;
} streamSettings;

/* Parses the number of a setting at argument `i`; *out is 0 if it was not given before. */
static bool parseSetting(ctx *c, int i, const char *name, int64_t most, const char *unit,
                         int64_t *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    if (*out) {
        replyErrorFormat(c, "ERR %s specified multiple times", name);
        return false;
    }
    if (!ctxArgInt(c, i, out)) return false;
    if (*out >= 1 && *out <= most) return true;
    replyErrorFormat(c, "ERR %s must be between 1 and %lld %s", name, (long long)most, unit);
    return false;
}

static bool parseSettings(ctx *c, streamSettings *out) {
    *out = (streamSettings){0};
    for (int i = 2; i < c->argc; i += 2) {
        bool has_value = i + 1 < c->argc, valid = false;
        if (has_value && ctxArgIs(c, i, "idmp-duration")) {
            valid = parseSetting(c, i + 1, "IDMP-DURATION", STREAM_IDS_DURATION_MAX_S, "seconds",
                                 &out->duration_s);
        } else if (has_value && ctxArgIs(c, i, "idmp-maxsize")) {
            valid = parseSetting(c, i + 1, "IDMP-MAXSIZE", STREAM_IDS_COUNT_MAX, "entries",
                                 &out->ids_max);
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
        }
        if (!valid) return false;
    }
    return true;
}

/* XCFGSET key [IDMP-DURATION seconds] [IDMP-MAXSIZE ids]. Reply: OK. If a setting changes, the ids
 * of all producers of the stream are removed. */
void xcfgsetCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    stream *s;
    streamSettings p;
    if (!streamFindWrite(c, 1, &s)) return;
    if (!s) {
        replyError(c, ERR_NO_KEY_TEXT);
        return;
    }
    if (c->argc == 2) {
        replyError(c, SLICE("ERR At least one parameter must be specified"));
        return;
    }
    if (!parseSettings(c, &p)) return;
    const streamProducers *t = streamProducersOf(s);
    const streamProducersState before = t ? streamProducersGet(t) : streamProducersStateDefault();
    streamProducersState state = before;
    if (p.duration_s) state.duration_s = (uint32_t)p.duration_s;
    if (p.ids_max) state.ids_max = (uint32_t)p.ids_max;
    if (!streamProducersStateEqual(&state, &before)) {
        streamProducersSet(streamProducersMake(s), &state);
        ctxDatasetChanged(c, 1);
        propagateLimits(c, &state);
    }
    replyOk(c);
}

/* XIDMPRECORD key producer iid id. Reply: OK. Records that the producer has sent the entry, which
 * must be in the stream, with the id `iid`. */
void xidmprecordCommand(ctx *c) {
    hotCheck(c->argc == 5);
    stream *s;
    streamId id, known;
    slice producer = c->argv[2], iid = c->argv[3];
    if (!streamArgId(c, 4, 0, &id)) return;
    if (producer.len == 0 || iid.len == 0) {
        replyErrorFormat(c, "ERR %s ID must be non-empty",
                         producer.len == 0 ? "producer" : "idempotent");
        return;
    }
    if (!streamFindWrite(c, 1, &s)) return;
    if (!s || (!ctxIsReplay(c) && !streamHas(s, id))) {
        replyError(c, s ? SLICE("ERR No such message in stream") : ERR_NO_KEY_TEXT);
        return;
    }
    streamProducers *t = streamProducersMake(s);
    bool exists = streamProducedFind(t, c->now_ms, producer, iid, &known);
    if (exists && !streamIdEqual(known, id)) {
        replyError(c, SLICE("ERR IID already exists for this producer with a different stream ID"));
        return;
    }
    if (!exists) {
        streamProducedAdd(t, producer, iid, id);
        ctxDatasetChanged(c, 1);
        propagateId(c, producer, iid, id);
    }
    replyOk(c);
}

/* ------------------------------------------------------------------ XINFO */

int streamProducersInfoFields(const stream *s) { return streamProducersOf(s) ? 6 : 0; }

void streamReplyProducers(ctx *c, const stream *s) {
    streamProducers *t = streamProducersOf(s);
    if (!t) return;
    (void)streamProducersExpire(t, c->now_ms, UINT64_MAX); /* expired ids must not be counted */
    streamProducersState state = streamProducersGet(t);
    replyIntField(c, "idmp-duration", state.duration_s);
    replyIntField(c, "idmp-maxsize", state.ids_max);
    replyIntField(c, "pids-tracked", (int64_t)streamProducersCount(t));
    replyIntField(c, "iids-tracked", (int64_t)streamProducersIds(t));
    replyIntField(c, "iids-added", (int64_t)state.added);
    replyIntField(c, "iids-duplicates", (int64_t)state.duplicates);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removing entries together with what refers to them: XDELEX, XACKDEL, and KEEPREF, DELREF and
 * ACKED of XADD and XTRIM. All is propagated as XDEL, XACK, XADD and XTRIM, which every server
 * knows. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"

/* ------------------------------------------------------------------ lists of ids */

static void addId(streamIds *ids, streamId id) {
    enum { FIRST = 16 };
    if (ids->count == ids->cap) {
        ids->cap = sizeMax(2 * ids->cap, FIRST);
        ids->list = memRealloc(ids->list, ids->cap * sizeof(*ids->list));
    }
    ids->list[ids->count++] = id;
}

void streamIdsClear(streamIds *ids) {
    memFree(ids->list);
    *ids = (streamIds){0};
}

void streamPropagateIds(ctx *c, slice key, const streamGroup *acked_by, const streamIds *ids) {
    enum { BATCH = 256, HEAD_MAX = 3 }; /* ids in one command */
    if (!engineHot.sinks) return;
    char(*texts)[STREAM_ID_TEXT_MAX] = memAlloc(BATCH * sizeof(*texts));
    slice words[HEAD_MAX + BATCH] = {acked_by ? SLICE("XACK") : SLICE("XDEL"), key};
    int head = 2;
    if (acked_by) words[head++] = streamGroupName(acked_by);
    for (size_t i = 0; i < ids->count;) {
        int n = 0;
        for (; n < BATCH && i < ids->count; n++, i++)
            words[head + n] = streamIdText(ids->list[i], texts[n]);
        ctxPropagateAs(c, head + n, words);
    }
    memFree(texts);
}

/* ------------------------------------------------------------------ references */

/* KEEPREF, DELREF or ACKED. */
static bool refsNamed(const ctx *c, int i, streamRefs *out) {
    hotCheck(i > 0);
    hotCheck(i < c->argc);
    if (ctxArgIs(c, i, "keepref")) {
        *out = REFS_KEEP;
    } else if (ctxArgIs(c, i, "delref")) {
        *out = REFS_DELETE;
    } else if (ctxArgIs(c, i, "acked")) {
        *out = REFS_ACKED;
    } else {
        return false;
    }
    return true;
}

bool streamArgRefs(const ctx *c, int i, streamRefs *out) {
    hotCheck(out);
    return refsNamed(c, i, out) && ctxHasExtensions(c);
}

uint64_t streamDropRefs(ctx *c, slice key, stream *s, const streamIds *ids) {
    orderedCursor at;
    uint64_t removed = 0;
    for (streamGroup *g = streamGroupFirst(s, &at); g; g = streamGroupNext(&at)) {
        streamIds dropped = {0};
        for (size_t i = 0; i < ids->count; i++) {
            if (streamPendingRemove(g, ids->list[i])) addId(&dropped, ids->list[i]);
        }
        removed += dropped.count;
        streamPropagateIds(c, key, g, &dropped);
        streamIdsClear(&dropped);
    }
    return removed;
}

/* State of a trim. */
typedef struct refsTrim {
    const stream *s;
    streamIds *ids;
} refsTrim;

static void noteReferenced(void *arg, streamId id) {
    const refsTrim *t = arg;
    if (streamIsReferenced(t->s, id)) addId(t->ids, id);
}

static bool permitAcked(void *arg, streamId id) {
    const refsTrim *t = arg;
    if (streamIsReferenced(t->s, id)) return false;
    addId(t->ids, id);
    return true;
}

/* As XDEL, which this server propagates, ACKED raises the highest deleted id. The ACKED of a Redis
 * primary does not. */
static uint64_t trimAcked(ctx *c, stream *s, const streamTrimRule *rule) {
    streamId highest = streamMaxDeletedId(s);
    uint64_t removed = streamTrimPermitted(s, rule, permitAcked);
    if (ctxIsReplay(c)) streamSetMaxDeletedId(s, highest);
    return removed;
}

uint64_t streamTrimRefs(ctx *c, stream *s, const streamTrimRule *rule, streamRefs refs,
                        streamIds *ids) {
    refsTrim t = {.s = s, .ids = ids};
    streamTrimRule own = *rule;
    own.arg = &t;
    if (refs != REFS_KEEP) own.whole_nodes = false; /* entries are looked at one by one anyway */
    if (refs == REFS_ACKED) return trimAcked(c, s, &own);
    if (refs == REFS_DELETE) own.removes = noteReferenced;
    return streamTrim(s, &own);
}

/* ------------------------------------------------------------------ XDELEX, XACKDEL */

/* The request, and what it has done. */
typedef struct removal {
    streamRefs refs;
    int first, count; /* arguments with ids */
    streamIds asked;
    streamIds deleted, acked; /* entries that were removed; of XACKDEL: that were acknowledged */
} removal;

/* Results of each id. */
enum { ID_NOT_FOUND = -1, ID_DELETED = 1, ID_STILL_REFERENCED = 2 };

static void removalClear(removal *r) {
    streamIdsClear(&r->asked);
    streamIdsClear(&r->deleted);
    streamIdsClear(&r->acked);
}

/* Parses [KEEPREF|DELREF|ACKED] IDS numids id... from argument `from` on, in any order. */
static bool parseRemoval(ctx *c, int from, removal *out) {
    hotCheck(from > 0);
    hotCheck(from < c->argc);
    bool has_refs = false;
    *out = (removal){.refs = REFS_KEEP};
    for (int i = from; i < c->argc; i++) {
        if (!has_refs && refsNamed(c, i, &out->refs)) {
            has_refs = true;
        } else if (!out->first && i + 1 < c->argc && ctxArgIs(c, i, "ids")) {
            if (!streamArgIdCount(c, &i, &out->first, &out->count)) return false;
        } else {
            out->first = 0;
            break;
        }
    }
    if (!out->first) replyError(c, ERR_SYNTAX_TEXT);
    return out->first != 0;
}

/* Parses the ids themselves. */
static bool parseAsked(ctx *c, removal *r) {
    for (int i = 0; i < r->count; i++) {
        streamId id;
        if (!streamArgId(c, r->first + i, 0, &id)) return false;
        addId(&r->asked, id);
    }
    return true;
}

static void replyNotFound(ctx *c, int count) {
    replyArray(c, count);
    for (int i = 0; i < count; i++) replyInteger(c, ID_NOT_FOUND);
}

/* Removes an entry, unless references keep it. */
static int64_t removeOne(stream *s, removal *r, streamId id) {
    if (r->refs == REFS_ACKED && streamIsReferenced(s, id)) return ID_STILL_REFERENCED;
    if (!streamDelete(s, id)) return ID_NOT_FOUND;
    addId(&r->deleted, id);
    return ID_DELETED;
}

/* Propagates and notifies what was done; `unreferenced`: ids whose references are removed. */
static void finishRemoval(ctx *c, stream *s, const removal *r, const streamGroup *acked_by,
                          const streamIds *unreferenced) {
    slice key = c->argv[1];
    streamPropagateIds(c, key, acked_by, &r->acked);
    streamPropagateIds(c, key, NULL, &r->deleted);
    uint64_t acked = r->acked.count;
    if (r->refs == REFS_DELETE) acked += streamDropRefs(c, key, s, unreferenced);
    if (r->deleted.count) collectionChanged(c, key, &eventXdel, r->deleted.count);
    if (acked) ctxDatasetChanged(c, acked);
}

/* XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id ...]. Reply for each id: 1 the entry was
 * removed, -1 there is none, 2 it was not removed because it has references. */
void xdelexCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    removal r;
    stream *s;
    if (!streamFindWrite(c, 1, &s) || !parseRemoval(c, 2, &r)) return;
    if (!s) {
        replyNotFound(c, r.count);
        return;
    }
    if (parseAsked(c, &r)) {
        replyArray(c, r.count);
        for (int i = 0; i < r.count; i++) replyInteger(c, removeOne(s, &r, r.asked.list[i]));
        finishRemoval(c, s, &r, NULL, &r.asked);
    }
    removalClear(&r);
}

/* XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id ...]. Reply for each id: -1 it was not
 * pending in the group, 1 it was acknowledged and the entry removed (or was removed before), 2 it
 * was acknowledged and not removed because of other references. */
void xackdelCommand(ctx *c) {
    hotCheck(c->argc >= 6);
    removal r;
    stream *s;
    if (!streamFindWrite(c, 1, &s) || !parseRemoval(c, 3, &r)) return;
    streamGroup *g = s ? streamGroupFind(s, c->argv[2]) : NULL;
    if (!g) {
        replyNotFound(c, r.count);
        return;
    }
    if (parseAsked(c, &r)) {
        replyArray(c, r.count);
        for (int i = 0; i < r.count; i++) {
            int64_t result = ID_NOT_FOUND;
            if (streamPendingRemove(g, r.asked.list[i])) {
                addId(&r.acked, r.asked.list[i]);
                result = removeOne(s, &r, r.asked.list[i]);
                if (result == ID_NOT_FOUND) result = ID_DELETED;
            }
            replyInteger(c, result);
        }
        finishRemoval(c, s, &r, g, &r.acked);
    }
    removalClear(&r);
}

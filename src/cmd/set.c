/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Set commands on one set, and SMOVE. Those on several: set_many.c. Main thread only. */
#include "cmd/set_priv.h"

#include "base/base.h"
#include "cmd/cmd_priv.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/scan.h"
#include "engine/job.h"
#include "engine/keyspace.h"

setLimits setLimitsNow(void) {
    return (setLimits){.packed = {.entries = (size_t)cmdConf.set_max_listpack_entries,
                                  .bytes = (size_t)cmdConf.set_max_listpack_value},
                       .ints = (size_t)cmdConf.set_max_intset_entries};
}

static bool findRead(ctx *c, robj **out) { return collectionFindRead(c, 1, TYPE_SET, out); }
static bool findWrite(ctx *c, robj **out) { return collectionFindWrite(c, 1, TYPE_SET, out); }

/* ------------------------------------------------------------------ adding, removing */

/* SADD key member [member ...]. Reply: number of new members. */
void saddCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    robj *o;
    if (jobStartChange(c, (uint64_t)c->argc) || !findWrite(c, &o)) return;
    setLimits most = setLimitsNow();
    listpackItem member = listpackItemOf(c->argv[2]);
    size_t count = (size_t)c->argc - 2;
    int64_t added = 0;
    bool is_new = !o;
    o = is_new ? setNew(c->argv[1], &member, count, &most) : setPrepare(o, count, &most);
    for (int i = 2; i < c->argc; i++) {
        bool was_added;
        if (jobIsDue(c, 1) && !collectionSuspend(c, 1, &o, is_new)) return;
        if (i > 2) member = listpackItemOf(c->argv[i]);
        o = setAdd(o, &member, &most, &was_added);
        added += was_added;
    }
    collectionPlaceLast(c, 1, o, is_new);
    if (added) collectionChanged(c, c->argv[1], &eventSadd, (uint64_t)added);
    replyInteger(c, added);
}

/* SREM key member [member ...]. Reply: number of members removed. */
void sremCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    robj *o;
    if (jobStartChange(c, (uint64_t)c->argc) || !findWrite(c, &o)) return;
    int64_t removed = 0;
    bool emptied = false, changed = false;
    for (int i = 2; o && i < c->argc && !emptied; i++) {
        if (jobIsDue(c, 1) && !collectionSuspend(c, 1, &o, false)) return;
        listpackItem member = listpackItemOf(c->argv[i]);
        if (!setRemove(&o, &member)) continue;
        changed = true;
        removed++;
        emptied = setLength(o) == 0;
    }
    if (changed) {
        collectionPlace(c, 1, o);
        collectionReduced(c, 1, &eventSrem, (uint64_t)removed, emptied);
    }
    replyInteger(c, removed);
}

/* Removes the member at argument 3 from the set at argument 1, which contains it. */
static void removeMoved(ctx *c, const listpackItem *member) {
    robj *from;
    if (!findWrite(c, &from)) return; /* it was found before */
    check(setRemove(&from, member));
    collectionPlace(c, 1, from);
    bool emptied = setLength(from) == 0;
    collectionNotify(c, c->argv[1], &eventSrem);
    if (emptied) collectionRemove(c, 1);
}

/* SMOVE source destination member. Reply: 1, or 0 if the source does not contain the member. */
void smoveCommand(ctx *c) {
    hotCheck(c->argc == 4);
    robj *from, *to;
    if (!collectionFindWrite(c, 1, TYPE_SET, &from)) return;
    if (!from) {
        /* If the source is missing, the target may have any type. The lookup removes an expired
         * target. */
        (void)dbFind(c->db, c->argv[2], collectionHash(c, 2), c->look, &c->at);
        replyInteger(c, 0);
        return;
    }
    if (!collectionFindWrite(c, 2, TYPE_SET, &to)) return;
    if (unlikely(engineHot.observers)) { /* a module may have deleted it as the target expired */
        if (!collectionFindWrite(c, 1, TYPE_SET, &from)) return;
        if (!from) {
            replyInteger(c, 0);
            return;
        }
    }
    listpackItem member = listpackItemOf(c->argv[3]);
    bool has = setHas(from, &member);
    if (has && from != to) {
        removeMoved(c, &member);
        setLimits most = setLimitsNow();
        bool added;
        if (!collectionFindWrite(c, 2, TYPE_SET, &to)) return; /* it was found before */
        if (!to) to = setNew(c->argv[2], &member, 1, &most);
        collectionPlace(c, 2, setAdd(to, &member, &most, &added));
        ctxKeyChanged(c, c->argv[1], NULL);
        if (added) ctxKeyChanged(c, c->argv[2], &eventSadd);
    }
    replyInteger(c, has);
}

/* ------------------------------------------------------------------ queries */

/* SISMEMBER key member [XX]. Reply: 1 or 0; with XX -1 if the key is missing. */
void sismemberCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    bool given_xx = unlikely(c->argc > 3);
    if (given_xx && (c->argc > 4 || !ctxArgIs(c, 3, "xx"))) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    robj *o;
    if (!findRead(c, &o)) return;
    if (given_xx && !o) {
        replyInteger(c, -1);
        return;
    }
    listpackItem member = listpackItemOf(c->argv[2]);
    replyInteger(c, o && setHas(o, &member));
}

/* SMISMEMBER key member [member ...]. Reply: 1 or 0 for each. */
void smismemberCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    robj *o;
    if (!findRead(c, &o)) return;
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        listpackItem member = listpackItemOf(c->argv[i]);
        replyInteger(c, o && setHas(o, &member));
    }
}

/* SCARD key. Reply: number of members. */
void scardCommand(ctx *c) {
    robj *o;
    if (collectionFindToCount(c, 1, TYPE_SET, &o)) replyInteger(c, collectionCount(o, setLength));
}

void setReplyAll(ctx *c, const robj *o) {
    hotCheck(!o || objectType(o) == TYPE_SET);
    replySet(c, (int64_t)setLength(o));
    setIterator it;
    listpackItem batch[32];
    unsigned n;
    setIteratorInit(&it, o);
    while ((n = setNextMany(&it, batch, COUNT_OF(batch)))) {
        for (unsigned i = 0; i < n; i++) replyItem(c, &batch[i]);
        if (jobPoint(c, n)) break;
    }
    setIteratorClear(&it);
}

/* SMEMBERS key. Reply: all members. */
void smembersCommand(ctx *c) {
    robj *o;
    if (!findRead(c, &o)) return;
    if (o && jobStart(c, setLength(o))) return;
    if (o) {
        setReplyAll(c, o);
    } else {
        replySet(c, 0);
    }
}

/* ------------------------------------------------------------------ random members */

static void replyMember(void *arg, const listpackItem *member) { replyItem(arg, member); }

/* SRANDMEMBER key [count]. Reply: a member or null; with a count, that many distinct members, or if
 * it is negative, that many draws with repetition. */
void srandmemberCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    int64_t count = -1;
    if (c->argc > 3) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    bool many = c->argc == 3;
    if (many && !collectionArgCount(c, 2, &count)) return;
    robj *o;
    if (!findRead(c, &o)) return;
    if (!o && !many) {
        replyNull(c);
        return;
    }
    uint64_t wanted = o ? (uint64_t)(count < 0 ? -count : count) : 0;
    if (o && count > 0) wanted = sizeMin(wanted, setLength(o));
    if (jobStart(c, wanted)) return;
    if (o && count < -DRAWS_MANY) {
        outmark mark = outbufMark(c->out);
        setRandom(o, DRAWS_PROBED, false, replyMember, c);
        if (!collectionDrawsFit(c, mark, wanted)) return;
    }
    if (many) replyArray(c, (int64_t)wanted);
    if (wanted) setRandom(o, wanted, count > 0, replyMember, c);
}

/* Popped members are replied and propagated as SREM commands of at most this many arguments. */
enum { POP_WORDS_MAX = 1024 };
typedef struct popState {
    ctx *c;
    bool records; /* for a sink; there may be one at the end of a job */
    str texts;    /* pending members, concatenated */
    size_t *len;  /* length of each */
    size_t count, cap;
} popState;

static void propagatePopped(popState *p) {
    if (p->count == 0) return;
    slice *words = memNewArray(slice, sizeMin(p->count, POP_WORDS_MAX) + 2);
    words[0] = SLICE("SREM");
    words[1] = p->c->argv[1];
    const char *at = strText(&p->texts);
    for (size_t i = 0, part; i < p->count; i += part) {
        part = sizeMin(p->count - i, POP_WORDS_MAX);
        for (size_t k = 0; k < part; k++) {
            words[k + 2] = sliceMake(at, p->len[i + k]);
            at += p->len[i + k];
        }
        ctxPropagateAs(p->c, (int)part + 2, words);
    }
    memFree(words);
    strClear(&p->texts);
    p->count = 0;
}

static void popMember(void *arg, const listpackItem *member) {
    popState *p = arg;
    char digits[NUMBER_TEXT_MAX];
    slice text = listpackText(member, digits);
    replyBulk(p->c, text);
    if (!p->records) return;
    strAppendSlice(&p->texts, text);
    p->len[p->count++] = text.len;
    if (p->count == p->cap) propagatePopped(p);
}

/* Pops `count` > 0 members of a set that has at least as many; the reply header was already
 * written. */
static void popSome(ctx *c, robj *o, size_t count) {
    hotCheck(!o || objectType(o) == TYPE_SET);
    size_t one;
    bool sliced = unlikely(c->flags & CTX_SLICED), completed = false;
    popState p = {.c = c, .records = sliced || engineHot.sinks, .len = &one, .cap = 1};
    if (p.records && count > 1) {
        p.cap = sliced ? count : sizeMin(count, POP_WORDS_MAX); /* of a job all, at its end */
        p.len = memNewArray(size_t, p.cap);
    }
    bool emptied = count == setLength(o);
    for (size_t left = count, part; left > 0; left -= part) {
        part = jobPart(c, left);
        setPop(&o, part, popMember, &p);
        bool waits = part < left && jobIsDue(c, (unsigned)part);
        if (waits && !collectionSuspend(c, 1, &o, false)) goto done;
    }
    completed = true;
    collectionPlace(c, 1, o);
    propagatePopped(&p);
done:
    if (p.len != &one) memFree(p.len);
    strFree(&p.texts);
    if (!completed) return;
    collectionChanged(c, c->argv[1], &eventSpop, count);
    if (emptied) collectionRemove(c, 1);
}

/* Pops all members and deletes the key. */
static void popAll(ctx *c, const robj *o) {
    hotCheck(!o || objectType(o) == TYPE_SET);
    size_t count = setLength(o);
    setReplyAll(c, o);
    if (!jobMayStore(c)) return;
    slice words[2] = {keyspaceDeleteCommandName(), c->argv[1]};
    ctxPropagateAs(c, 2, words);
    collectionChanged(c, c->argv[1], &eventSpop, count);
    collectionRemove(c, 1);
}

static void popMany(ctx *c) {
    hotCheck(c->argc == 3);
    int64_t count;
    static const char not_positive[] = "ERR value is out of range, must be positive";
    if (!ctxArgIntIn(c, 2, 0, INT64_MAX, &count, not_positive)) return;
    robj *o;
    if (!findWrite(c, &o)) return;
    if (!o || count == 0) {
        replySet(c, 0);
    } else if ((uint64_t)count >= setLength(o)) {
        if (!jobStartStore(c, setLength(o))) popAll(c, o);
    } else if (!jobStartChangeFound(c, (uint64_t)count)) {
        replySet(c, count);
        popSome(c, o, (size_t)count);
    }
}

/* SPOP key [count]. Reply: a member or null; with a count, a set of members. */
void spopCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    if (c->argc > 3) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (c->argc == 3) {
        popMany(c);
        return;
    }
    robj *o;
    if (!findWrite(c, &o)) return;
    if (o) {
        popSome(c, o, 1);
    } else {
        replyNull(c);
    }
}

/* ------------------------------------------------------------------ SSCAN */

typedef struct memberScan {
    ctx *c;
    scanOptions options;
    collectionScanned scanned;
} memberScan;

static void replyScanned(void *arg, const listpackItem *member) {
    memberScan *s = arg;
    char digits[NUMBER_TEXT_MAX];
    slice text = listpackText(member, digits);
    s->scanned.visited++;
    if (!scanMatches(&s->options, text)) return;
    replyBulk(s->c, text);
    s->scanned.replied++;
}

static uint64_t scanSome(ctx *c, const robj *o, uint64_t cursor, void *arg) {
    hotCheck(!o || objectType(o) == TYPE_SET);
    (void)c; /* the visitor has it */
    return setScan(o, cursor, replyScanned, arg);
}

/* SSCAN key cursor [MATCH pattern] [COUNT count]. Reply: the next cursor and an array of
 * members. */
void sscanCommand(ctx *c) {
    uint64_t cursor;
    robj *o;
    memberScan s = {.c = c};
    if (!scanParseCursor(c, 2, &cursor)) return;
    if (!findRead(c, &o)) return;
    if (!o) {
        replyLiteral(c, "*2\r\n$1\r\n0\r\n*0\r\n");
        return;
    }
    if (!scanParseOptions(c, 3, SCAN_SET, &s.options)) return;
    collectionReplyScan(c, o, cursor, s.options.count, scanSome, &s, &s.scanned);
}

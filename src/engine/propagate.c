/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue between commands and sinks. Invariant: the queue is empty if no unit is open. An entry
 * either borrows the bytes of the single request being run (fast, without copying) or owns one
 * block with its slices and bytes. */
#include "engine/propagate.h"

#include "base/base.h"
#include "base/number.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "engine/session_slot.h"
#include "store/store.h"

enum { SPANS_MAX = 2 * 8 + 1 };

typedef struct queued {
    propagated what;        /* spans are set when it is handed over */
    void *block;            /* owns argv and its bytes, or NULL */
    const request *request; /* borrowed, or NULL */
} queued;

enum {
    UNIT_UNWRAPPED = 1u << 0, /* see propagateUnwrapped() */
    UNIT_HAS_END = 1u << 1,   /* at_end is to be called */
};

static struct {
    queued *items;
    int count, cap;
    int own_from; /* propagateOwnBegins() was called with so many entries */
    int depth;
    uint32_t unusual; /* UNIT_ */
    propagateEndProc *at_end;
    uint64_t units;               /* handed over */
    propagateNoteProc *note_also; /* NULL: none */
} queue;

static inline queued *push(void) {
    hotCheck(queue.count <= queue.cap);
    if (queue.count == queue.cap) {
        queue.cap = queue.cap ? queue.cap * 2 : 16;
        queue.items = memRealloc(queue.items, (size_t)queue.cap * sizeof(queued));
    }
    return &queue.items[queue.count++];
}

static queued queuedOf(propagateTo to, int argc, const slice *argv) {
    const propagated what = {
        .db_id = to.db_id, .targets = to.targets, .slot = to.slot, .argc = argc, .argv = argv};
    return (queued){.what = what};
}

propagateTo propagateToKey(int db_id, slice key) {
    hotCheck(db_id < storeDbCount());
    hotCheck(db_id >= 0);
    int slot = storeIsSlotted() ? storeHashSlot(storeHash(key)) : -1;
    return (propagateTo){.db_id = db_id, .targets = PROPAGATE_ALL, .slot = slot};
}

/* One key is enough: the others are in the same slot, or the command was refused. */
static NO_INLINE int slotOf(const ctx *c) {
    keyPosition first = {.arg_index = c->cmd->first_key};
    bool has_key = first.arg_index > 0 && first.arg_index < c->argc;
    if (!has_key && commandKeys(c->cmd, c->argv, c->argc, &first, 1) <= 0) return -1;
    return storeHashSlot(storeHash(c->argv[first.arg_index]));
}

propagateTo propagateToOf(const ctx *c) {
    propagateTo to = {.db_id = c->who->db_id, .targets = c->targets, .slot = -1};
    if (storeIsSlotted() && engineHot.sinks) to.slot = slotOf(c);
    return to;
}

void propagateCopy(propagateTo to, int argc, const slice *argv) {
    hotCheck(argc > 0);
    hotCheck(threadIsMain());
    if (!engineHot.sinks || !to.targets) return;
    size_t bytes = 0;
    for (int i = 0; i < argc; i++) bytes += argv[i].len;
    slice *copy = memAlloc((size_t)argc * sizeof(slice) + bytes);
    char *at = (char *)(copy + argc);
    for (int i = 0; i < argc; i++) {
        memcpy(at, argv[i].ptr, argv[i].len);
        copy[i] = sliceMake(at, argv[i].len);
        at += argv[i].len;
    }
    queued *q = push();
    *q = queuedOf(to, argc, copy);
    q->block = copy;
}

/* With each SET. Fields are moved one by one: a load of what was stored in two parts waits until
 * all earlier stores are in the cache, which took a tenth of the time of a SET. So no struct is
 * copied or returned here, and none in handOver(). */
NO_INLINE void propagateRequest(const ctx *c) {
    hotCheck(c->argc > 0);
    hotCheck(threadIsMain());
    if (!engineHot.sinks || !c->targets) return;
    if (unlikely(queue.depth > 1)) {
        propagateCopy(propagateToOf(c), c->argc, c->argv);
        return;
    }
    queued *q = push();
    q->what.db_id = c->who->db_id;
    q->what.targets = c->targets;
    q->what.slot = likely(!storeIsSlotted()) ? -1 : slotOf(c);
    q->what.argc = c->argc;
    q->what.argv = c->argv;
    q->block = NULL;
    q->request = c->request;
}

void propagateOwnBegins(void) { queue.own_from = queue.count; }

propagateMark propagateCallbackBegins(void) {
    hotCheck(queue.count >= 0);
    return (propagateMark){queue.own_from, queue.count};
}

static void reverse(queued *from, queued *end) {
    for (; from < --end; from++) {
        queued other = *from;
        *from = *end;
        *end = other;
    }
}

void propagateCallbackEnded(propagateMark begun, bool has_own) {
    queue.own_from = begun.own_from;
    int own = begun.count - begun.own_from, more = queue.count - begun.count;
    if (!has_own || own <= 0 || more <= 0) return;
    queued *first = &queue.items[begun.own_from], *end = &queue.items[queue.count];
    reverse(first, first + own);
    reverse(first + own, end);
    reverse(first, end);
    queue.own_from += more;
}

/* Collects the spans of a request's raw bytes: its buffer, interrupted by large arguments. Returns
 * their number; 0 if there are none or too many. */
static int requestSpans(const request *r, slice spans[SPANS_MAX]) {
    hotCheck(!r || r->large_count >= 0);
    if (!r || r->raw.len == 0 || r->large_count * 2 + 1 > SPANS_MAX) return 0;
    int n = 0;
    size_t from = 0;
    for (int i = 0; i < r->large_count; i++) {
        size_t at = r->large[i].gap_at;
        spans[n++] = sliceMake(r->raw.ptr + from, at - from);
        spans[n++] = r->argv[r->large[i].arg];
        from = at;
    }
    spans[n++] = sliceMake(r->raw.ptr + from, r->raw.len - from);
    return n;
}

static void handOver(queued *q) {
    hotCheck(q->what.argc > 0);
    slice spans[SPANS_MAX];
    propagated *p = &q->what;
    p->spans = spans;
    p->span_count = requestSpans(q->request, spans);
    if (likely(p->span_count)) {
        hooksSinks(p);
        return;
    }
    size_t len;
    char *bytes = respRequest(p->argc, p->argv, &len);
    spans[0] = sliceMake(bytes, len);
    p->span_count = 1;
    hooksSinks(p);
    memFree(bytes);
}

/* The targets that receive more than one entry of the unit. */
static uint32_t targetsOfSeveral(void) {
    hotCheck(queue.count > 1);
    uint32_t once = 0, several = 0;
    for (int i = 0; i < queue.count; i++) {
        several |= once & queue.items[i].what.targets;
        once |= queue.items[i].what.targets;
    }
    return several;
}

/* The slot of all entries of the unit; -1: none or several. */
static int slotOfUnit(void) {
    hotCheck(queue.count > 0);
    int slot = queue.items[0].what.slot;
    for (int i = 1; i < queue.count; i++) {
        if (queue.items[i].what.slot != slot) return -1;
    }
    return slot;
}

/* MULTI and EXEC have no database: a required SELECT follows MULTI. */
static void handOverWord(propagateTo to, slice word) {
    hotCheck(word.len > 0);
    queued q = queuedOf(to, 1, &word);
    handOver(&q);
}

void propagateAppendSelect(str *out, int db_id) {
    char digits[NUMBER_TEXT_MAX];
    size_t len = numberPrintInt(digits, db_id);
    hotCheck(db_id >= 0);
    strAppendFormat(out, "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%.*s\r\n", len, (int)len, digits);
}

void propagateUnitBegin(void) { queue.depth++; }

int propagateOwnUnitBegin(void) {
    bool is_own = !queue.count && !queue.unusual;
    int outer = is_own ? queue.depth : 0;
    queue.depth -= outer;
    propagateUnitBegin();
    return outer;
}

void propagateOwnUnitEnd(int outer) {
    hotCheck(outer >= 0);
    propagateUnitEnd();
    queue.depth += outer;
}

/* A session has this slot only after a change while a sink was armed. Its contents are the number
 * itself. */
static const sessionSlot change_slot = {.name = "last change"};

static int changeSlot(void) {
    static int index = -1;
    if (unlikely(index < 0)) index = sessionSlotRegister(&change_slot);
    return index;
}

static void noteChange(session *s) {
    int index = changeSlot();
    void *number = (void *)(uintptr_t)queue.units;
    if (likely(s->slots != NULL) && likely(index < s->slots->count)) {
        s->slots->at[index] = number;
    } else {
        sessionSlotSet(s, index, number);
    }
}

void propagateSetNoteProc(propagateNoteProc *note) { queue.note_also = note; }

void propagateNoteAll(session *s) {
    hotCheck(threadIsMain());
    noteChange(s);
    if (queue.note_also) queue.note_also(s);
}

uint64_t propagateNumberOf(const session *s) {
    return (uint64_t)(uintptr_t)sessionSlotGet(s, changeSlot());
}

/* Passes the queue to the sinks. */
static NO_INLINE void flushQueue(void) {
    hotCheck(queue.count > 0);
    queue.units++;
    if (engineHot.current) noteChange(engineHot.current->who);
    propagateTo wrap = {.db_id = -1, .slot = slotOfUnit()};
    if (queue.count > 1 && !(queue.unusual & UNIT_UNWRAPPED)) wrap.targets = targetsOfSeveral();
    queue.unusual &= ~(uint32_t)UNIT_UNWRAPPED;
    if (wrap.targets) handOverWord(wrap, SLICE("MULTI"));
    for (int i = 0; i < queue.count; i++) {
        handOver(&queue.items[i]);
        memFree(queue.items[i].block);
    }
    if (wrap.targets) handOverWord(wrap, SLICE("EXEC"));
    queue.count = 0;
}

/* Armed while something is to be done at the end: each command is a unit then. It takes nothing. */
static void takeNothing(const propagated *p) { (void)p; }
static const sink unit_end = {.name = "unit end", .take = takeNothing, .targets = 1u << 31};

/* The outermost unit has an end procedure or something to propagate. */
static NO_INLINE void endUnusual(void) {
    while (queue.unusual & UNIT_HAS_END) {
        queue.unusual &= ~(uint32_t)UNIT_HAS_END;
        queue.depth++;
        queue.at_end(); /* what it changes is a part of the unit; it may ask for another end */
        queue.depth--;
    }
    hotCheck(queue.depth == 0);
    if (queue.count) flushQueue();
    queue.unusual = 0;
    if (unlikely(queue.at_end != NULL)) sinkArm(&unit_end, false);
    queue.at_end = NULL;
}

void propagateUnitEnd(void) {
    hotCheck(threadIsMain());
    check(queue.depth > 0);
    if (--queue.depth > 0) return;
    if (unlikely(queue.count | queue.unusual)) endUnusual();
}

void propagateAtEnd(propagateEndProc *proc) {
    check(!queue.at_end || queue.at_end == proc);
    queue.at_end = proc;
    queue.unusual |= UNIT_HAS_END;
    sinkArm(&unit_end, true);
}

void propagateUnwrapped(void) {
    if (queue.depth == 1) queue.unusual |= UNIT_UNWRAPPED;
}

uint64_t propagateCount(void) { return queue.units; }

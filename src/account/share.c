/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shares of time (share.h). A command observer, armed only for sessions with a share, subtracts the
 * duration of each command from two buckets: that of the user, and that of the client. A gate of
 * the same sessions checks both buckets before each request.
 *
 * Invariant: a session is in the list of held sessions if and only if this file has set
 * SESSION_PAUSED; its carrier does not read from such a session. Held requests remain unparsed in
 * the carrier's buffer, so the requests of a client are not reordered. */
#include "account/share.h"

#include "account/account_priv.h"
#include "account/cpu_bucket.h"
#include "base/base.h"
#include "ds/list.h"
#include "engine/hot.h"
#include "engine/session_slot.h"
#include "engine/user.h"

enum {
    REQUEST_NS = 1000, /* added for reading a request and writing its reply */
    RELEASED_PER_TURN = 16,
    LOOKS_PER_TURN = 64,
};

struct share {
    user *of;
    cpuBucket bucket;
    uint64_t used_ns, commands, held;
    share *next;
};

/* State of a session that has, or had, a share: its own or that of its user. */
typedef struct sharedSession {
    session *who;
    cpuBucket bucket;
    listNode held;
    uint64_t mark; /* the number of executed commands before the one that is running */
    bool has_mark;
} sharedSession;

static struct {
    share *first;
    list held;
    uint64_t turn;
    bool begins;            /* the first session was held after turn `turn` was looked at */
    int looks, releases;    /* how many may follow in this turn */
    uint64_t free_commands; /* commands that have run without credit */
} shares;

int64_t accountClientShare;

/* ------------------------------------------------------------------ sessions */

static list *heldList(void) {
    if (!shares.held.head.next) listInit(&shares.held);
    return &shares.held;
}

static void freeState(session *s, void *state) {
    (void)s; /* the session ends */
    sharedSession *shared = state;
    if (listHas(&shared->held)) listRemove(heldList(), &shared->held);
    memFree(shared);
}

static size_t stateMemory(const void *state) { return memSizeOf(state); }

static const sessionSlot slot = {.name = "share", .free = freeState, .memory = stateMemory};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&slot);
    return index;
}

static sharedSession *stateOf(session *s) { return sessionSlotGet(s, slotIndex()); }

static share *shareOf(const session *s) { return s->user ? s->user->share : NULL; }

/* True for sessions whose requests never wait: internal ones, replication, the admin port. */
static bool isExempt(const session *s) {
    return s->flags & (SESSION_INTERNAL | SESSION_REPLAY | SESSION_STREAMS | SESSION_ADMIN_PORT);
}

/* ------------------------------------------------------------------ holding requests */

/* Number of commands that have run within a share, or need none. */
static uint64_t executed(void) {
    return engineHot.commands > shares.free_commands ? engineHot.commands - shares.free_commands
                                                     : 0;
}

static bool mayRun(const session *s, sharedSession *shared) {
    int64_t now_ns = clockMonoNs();
    share *of_user = shareOf(s);
    return (!of_user || cpuBucketAllows(&of_user->bucket, shares.turn, executed(), now_ns)) &&
           cpuBucketAllows(&shared->bucket, shares.turn, executed(), now_ns);
}

/* Does not hold requests in a nested turn: a command is being executed then, and its duration
 * includes them. */
static gateVerdict admit(ctx *c) {
    session *s = c->who;
    sharedSession *shared = stateOf(s);
    if (!shared || c->below || isExempt(s) || mayRun(s, shared)) return GATE_PASS;
    hotCheck(!listHas(&shared->held));
    if (!shares.held.count) shares.begins = true;
    s->flags |= SESSION_PAUSED;
    listAppend(heldList(), &shared->held);
    if (shareOf(s)) shareOf(s)->held++;
    if (s->carrier && s->carrier->pause_reading) s->carrier->pause_reading(s, true);
    return GATE_HELD;
}

const gate shareGate = {.name = "cpu-share", .admit = admit, .origins = GATE_FOR_CLIENTS};

bool sharesHold(void) { return shares.held.count != 0; }

/* `shares.turn` does not advance in turns without held sessions: the time that a bucket has used in
 * several of them may hold it for one turn. */
session *shareNextReleased(uint64_t turn) {
    if (turn != shares.turn) {
        shares.turn = turn;
        shares.looks = shares.begins ? 0 : LOOKS_PER_TURN; /* others are read first */
        shares.begins = false;
        shares.releases = RELEASED_PER_TURN;
    }
    if (!shares.held.count || engineHot.current) return NULL;
    if ((size_t)shares.looks > shares.held.count) shares.looks = (int)shares.held.count;
    while (shares.looks > 0 && shares.releases > 0) {
        shares.looks--;
        sharedSession *shared = LIST_OWNER(listFirst(heldList()), sharedSession, held);
        listRemove(heldList(), &shared->held);
        if (!isExempt(shared->who) && !mayRun(shared->who, shared)) {
            listAppend(heldList(), &shared->held);
            continue;
        }
        shares.releases--;
        shared->who->flags &= ~SESSION_PAUSED;
        return shared->who;
    }
    return NULL;
}

int64_t shareNextMs(void) {
    check(shares.held.count > 0);
    int64_t now_ns = clockMonoNs(), least_ns = INT64_MAX;
    int looks = LOOKS_PER_TURN;
    for (listNode *n = listFirst(heldList()); n && looks; n = listNext(heldList(), n), looks--) {
        const sharedSession *shared = LIST_OWNER(n, sharedSession, held);
        const share *of_user = shareOf(shared->who);
        int64_t wait_ns = cpuBucketWaitNs(&shared->bucket, now_ns);
        int64_t user_ns = of_user ? cpuBucketWaitNs(&of_user->bucket, now_ns) : 0;
        if (user_ns > wait_ns) wait_ns = user_ns;
        if (wait_ns < least_ns) least_ns = wait_ns;
    }
    hotCheck(least_ns >= 0);
    return (least_ns + 999999) / 1000000;
}

/* ------------------------------------------------------------------ counting */

static void before(ctx *c) {
    sharedSession *shared = stateOf(ctxClient(c));
    if (!shared || c->outer) return;
    shared->mark = engineHot.commands;
    shared->has_mark = true;
}

/* Subtracts the time from both buckets. The time is free if one of them has no credit: the commands
 * were allowed to run then because no other client wanted to. */
static void take(session *s, sharedSession *shared, uint64_t commands, int64_t ns) {
    share *of_user = shareOf(s);
    if (isExempt(s)) return;
    bool is_free =
        cpuBucketIsOver(&shared->bucket) || (of_user && cpuBucketIsOver(&of_user->bucket));
    if (is_free) shares.free_commands += commands;
    cpuBucketTake(&shared->bucket, shares.turn, commands, ns, is_free);
    if (of_user) cpuBucketTake(&of_user->bucket, shares.turn, commands, ns, is_free);
}

/* Commands that EXEC or a script runs are counted in engineHot.commands one by one; their time is
 * part of that of EXEC or the script. */
static void after(ctx *c, int64_t duration_ns) {
    session *s = c->who;
    sharedSession *shared = c->outer || c->origin != ORIGIN_CLIENT ? NULL : stateOf(s);
    if (!shared) return;
    hotCheck(duration_ns >= 0);
    uint64_t inner = shared->has_mark ? engineHot.commands - shared->mark : 0;
    shared->has_mark = false;
    bool ran = !(c->flags & (CTX_NOT_RUN | CTX_REJECTED));
    take(s, shared, inner + ran, duration_ns + REQUEST_NS);
    share *of_user = shareOf(s);
    if (!of_user) return;
    of_user->used_ns += (uint64_t)duration_ns;
    of_user->commands += ran;
}

static void refused(ctx *c, size_t pending) {
    (void)pending; /* the error does not matter */
    sharedSession *shared = stateOf(c->who);
    if (shared && !c->outer) take(c->who, shared, 0, REQUEST_NS);
}

static const commandObserver observer = {
    .name = "cpu-share", .before = before, .after = after, .refused = refused};

/* ------------------------------------------------------------------ who has a share */

/* Arms the gate and the observer for the session if it has a share; disarms them if not. */
static void arm(session *s) {
    hotCheck(threadIsMain());
    bool wanted = !(s->flags & SESSION_INTERNAL) && (shareOf(s) || accountClientShare);
    sharedSession *shared = stateOf(s);
    if (!wanted && !shared) return;
    if (!shared) {
        shared = memNew(sharedSession);
        *shared = (sharedSession){.who = s};
        sessionSlotSet(s, slotIndex(), shared);
    }
    if (shared->bucket.percent != (int)accountClientShare || !shared->bucket.at_ns)
        cpuBucketInit(&shared->bucket, (int)accountClientShare, clockMonoNs());
    gateArmSession(s, &shareGate, wanted);
    commandObserverArmSession(s, &observer, wanted);
}

static void onSession(session *s, sessionEvent e) {
    if (likely(!shares.first && !accountClientShare)) return;
    if (e == SESSION_OPENED || e == SESSION_USER_CHANGED) arm(s);
}

void shareNew(user *u, int percent) {
    check(!u->share);
    check(percent > 0);
    share *s = memNew(share);
    *s = (share){.of = u, .next = shares.first};
    cpuBucketInit(&s->bucket, percent, clockMonoNs());
    shares.first = s;
    u->share = s;
    userEachSession(u, arm);
}

void shareFree(user *u) {
    share *s = u->share;
    if (!s) return;
    share **at = &shares.first;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    u->share = NULL;
    memFree(s);
    userEachSession(u, arm);
}

void shareSetPercent(share *s, int percent) {
    check(percent > 0);
    if (s->bucket.percent != percent) cpuBucketInit(&s->bucket, percent, clockMonoNs());
}

void shareRead(const share *s, shareReport *out) {
    *out = (shareReport){.percent = s->bucket.percent,
                         .used_us = s->used_ns / 1000,
                         .commands = s->commands,
                         .held = s->held};
}

status shareApplyClients(reason *why) {
    (void)why; /* cannot fail */
    userEverySession(arm);
    return OK;
}

/* ------------------------------------------------------------------ reports */

/* The name of the user is the last field, because it may contain commas. */
static void printUsers(str *out) {
    int number = 0;
    for (const share *s = shares.first; s; s = s->next) {
        shareReport r;
        shareRead(s, &r);
        strAppendFormat(out, "user_cpu_%d:share=%d,used_usec=%llu,commands=%llu,held=%llu,name=",
                        number++, r.percent, (unsigned long long)r.used_us,
                        (unsigned long long)r.commands, (unsigned long long)r.held);
        strAppendSlice(out, s->of->name);
        strAppendText(out, "\r\n");
    }
}

static void resetStats(void) {
    for (share *s = shares.first; s; s = s->next) s->used_ns = s->commands = s->held = 0;
}

static const infoSection sections[] = {{"users", "# Users", 0, INFO_USERS, printUsers}, {0}};
static const gate *const gates[] = {&shareGate, NULL};
static const commandObserver *const observers[] = {&observer, NULL};

const feature shareFeature = {.name = "share",
                              .info = sections,
                              .gates = gates,
                              .command_observers = observers,
                              .on_session = onSession,
                              .on_stats_reset = resetStats};

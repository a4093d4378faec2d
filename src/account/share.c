/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shares of time (share.h). A command observer, armed only for sessions with a share, subtracts the
 * duration of each command from up to three buckets: that of the user, that of the database which
 * was selected when the command began, and that of the client. A gate of the same sessions checks
 * these buckets before each request. If a database has a share, all sessions are observed.
 *
 * Invariant: a session is in the list of held sessions if and only if this file has set
 * SESSION_PAUSED; its carrier does not read from such a session. Held requests remain unparsed in
 * the carrier's buffer, so the requests of a client are not reordered. */
#include "account/share.h"

#include "account/account_priv.h"
#include <limits.h>

#include "account/cpu_bucket.h"
#include "base/base.h"
#include "base/number.h"
#include "ds/list.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/session_slot.h"
#include "engine/user.h"

enum {
    REQUEST_NS = 1000, /* added for reading a request and writing its reply */
    RELEASED_PER_TURN = 16,
    LOOKS_PER_TURN = 64,
};

struct share {
    user *of; /* NULL: the share of a database: */
    int db_id;
    cpuBucket bucket;
    uint64_t used_ns, commands, held;
    share *next;
};

/* State of a session that has, or had, a share: its own, or that of its user or database. */
typedef struct sharedSession {
    session *who;
    int db_id; /* the database for which the command that is running counts */
    cpuBucket bucket;
    listNode held;
    uint64_t mark; /* the number of executed commands before the one that is running */
    bool has_mark;
} sharedSession;

enum { SHARES_MAX = 2 }; /* beside that of the session itself */

static struct {
    share *first;     /* of users */
    share *databases; /* in ascending order */
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

/* The shares of which a session uses time with a command that begins in that database; their
 * number. */
static int sharesOf(const session *s, int db_id, share *out[SHARES_MAX]) {
    int count = 0;
    if (shareOf(s)) out[count++] = shareOf(s);
    share *d = shares.databases;
    while (d && d->db_id < db_id) d = d->next;
    if (d && d->db_id == db_id) out[count++] = d;
    return count;
}

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
    share *of[SHARES_MAX];
    int count = sharesOf(s, s->db_id, of);
    for (int i = 0; i < count; i++)
        if (!cpuBucketAllows(&of[i]->bucket, shares.turn, executed(), now_ns)) return false;
    return cpuBucketAllows(&shared->bucket, shares.turn, executed(), now_ns);
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
    share *of[SHARES_MAX];
    for (int i = sharesOf(s, s->db_id, of); i > 0; i--) of[i - 1]->held++;
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
        int64_t wait_ns = cpuBucketWaitNs(&shared->bucket, now_ns);
        share *of[SHARES_MAX];
        for (int i = sharesOf(shared->who, shared->who->db_id, of); i > 0; i--) {
            int64_t other_ns = cpuBucketWaitNs(&of[i - 1]->bucket, now_ns);
            if (other_ns > wait_ns) wait_ns = other_ns;
        }
        if (wait_ns < least_ns) least_ns = wait_ns;
    }
    hotCheck(least_ns >= 0);
    return (least_ns + 999999) / 1000000;
}

/* ------------------------------------------------------------------ counting */

static void before(ctx *c) {
    sharedSession *shared = stateOf(ctxClient(c));
    if (!shared || c->outer) return;
    shared->db_id = ctxClient(c)->db_id; /* before SELECT */
    shared->mark = engineHot.commands;
    shared->has_mark = true;
}

/* Subtracts the time from all buckets. The time is free if one of them has no credit: the commands
 * were allowed to run then because no other client wanted to. */
static void take(session *s, sharedSession *shared, uint64_t commands, int64_t ns) {
    share *of[SHARES_MAX];
    if (isExempt(s)) return;
    int count = sharesOf(s, shared->db_id, of);
    bool is_free = cpuBucketIsOver(&shared->bucket);
    for (int i = 0; i < count; i++) is_free |= cpuBucketIsOver(&of[i]->bucket);
    if (is_free) shares.free_commands += commands;
    cpuBucketTake(&shared->bucket, shares.turn, commands, ns, is_free);
    for (int i = 0; i < count; i++)
        cpuBucketTake(&of[i]->bucket, shares.turn, commands, ns, is_free);
}

/* Commands that EXEC or a script runs are counted in engineHot.commands one by one; their time is
 * part of that of EXEC or the script. */
static void after(ctx *c, int64_t duration_ns) {
    session *s = c->who;
    sharedSession *shared = c->outer || c->origin != ORIGIN_CLIENT ? NULL : stateOf(s);
    if (!shared) return;
    hotCheck(duration_ns >= 0);
    if (!shared->has_mark) shared->db_id = s->db_id;
    uint64_t inner = shared->has_mark ? engineHot.commands - shared->mark : 0;
    shared->has_mark = false;
    bool ran = !(c->flags & (CTX_NOT_RUN | CTX_REJECTED));
    take(s, shared, inner + ran, duration_ns + REQUEST_NS);
    share *of[SHARES_MAX];
    for (int i = sharesOf(s, shared->db_id, of); i > 0; i--) {
        of[i - 1]->used_ns += (uint64_t)duration_ns;
        of[i - 1]->commands += ran;
    }
}

static void refused(ctx *c, size_t pending) {
    (void)pending; /* the error does not matter */
    sharedSession *shared = stateOf(c->who);
    if (!shared || c->outer) return;
    shared->db_id = c->who->db_id;
    take(c->who, shared, 0, REQUEST_NS);
}

static const commandObserver observer = {
    .name = "cpu-share", .before = before, .after = after, .refused = refused};

/* ------------------------------------------------------------------ who has a share */

/* Arms the gate and the observer for the session if it has a share; disarms them if not. */
static void arm(session *s) {
    hotCheck(threadIsMain());
    bool any = shareOf(s) || accountClientShare || shares.databases;
    bool wanted = any && !(s->flags & SESSION_INTERNAL);
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
    if (likely(!shares.first && !accountClientShare && !shares.databases)) return;
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

/* ------------------------------------------------------------------ databases */

bool shareParsePercent(slice text, int *out) {
    int64_t percent;
    if (text.len && text.ptr[text.len - 1] == '%') text.len--;
    if (!numberParseInt(text, &percent) || percent < 0 || percent > 100) return false;
    *out = (int)percent;
    return true;
}

/* Sets, replaces or, with 0, removes the share of a database. */
static void setDatabase(share **list, int db_id, int percent) {
    share **at = list;
    while (*at && (*at)->db_id < db_id) at = &(*at)->next;
    share *s = *at;
    if (s && s->db_id == db_id && !percent) {
        *at = s->next;
        memFree(s);
    } else if (s && s->db_id == db_id) {
        shareSetPercent(s, percent);
    } else if (percent) {
        share *new = memNew(share);
        *new = (share){.db_id = db_id, .next = s};
        cpuBucketInit(&new->bucket, percent, clockMonoNs());
        *at = new;
    }
}

static status checkList(const slice *words, int count, reason *why) {
    if (count % 2)
        return reasonSet(why, ERR_SYNTAX,
                         "Invalid db-cpu-share parameters: a database and percent, in pairs");
    for (int i = 0; i < count; i += 2) {
        int64_t id;
        int percent;
        if (!numberParseInt(words[i], &id) || id < 0 || id >= INT_MAX ||
            (engineDatabaseCount() && id >= engineDatabaseCount()))
            return reasonSet(why, ERR_SYNTAX, "Invalid database in db-cpu-share");
        if (!shareParsePercent(words[i + 1], &percent))
            return reasonSet(why, ERR_SYNTAX, "Invalid percent in db-cpu-share");
    }
    return OK;
}

/* Databases that keep a share keep their credit and statistics. */
static status setList(const slice *words, int count, bool more, reason *why) {
    if (count == 1 && !words[0].len) count = 0;
    status st = checkList(words, count, why);
    if (st != OK) return st;
    for (share *s = more ? NULL : shares.databases, *next; s; s = next) {
        bool stays = false;
        next = s->next;
        for (int i = 0; i < count; i += 2) {
            int64_t id;
            stays |= numberParseInt(words[i], &id) && id == s->db_id;
        }
        if (!stays) setDatabase(&shares.databases, s->db_id, 0);
    }
    for (int i = 0; i < count; i += 2) {
        int64_t id;
        int percent;
        check(numberParseInt(words[i], &id));
        check(shareParsePercent(words[i + 1], &percent));
        setDatabase(&shares.databases, (int)id, percent);
    }
    return OK;
}

static void getList(str *out) {
    for (const share *s = shares.databases; s; s = s->next)
        strAppendFormat(out, "%s%d %d%%", s == shares.databases ? "" : " ", s->db_id,
                        s->bucket.percent);
}

const configSpecial shareDirective = {.set = setList, .get = getList};

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

static void printDatabases(str *out) {
    for (const share *s = shares.databases; s; s = s->next) {
        shareReport r;
        shareRead(s, &r);
        strAppendFormat(out, "cpu_db%d:share=%d,used_usec=%llu,commands=%llu,held=%llu\r\n",
                        s->db_id, r.percent, (unsigned long long)r.used_us,
                        (unsigned long long)r.commands, (unsigned long long)r.held);
    }
}

static void printShares(str *out) {
    printUsers(out);
    printDatabases(out);
}

static void resetStats(void) {
    for (share *s = shares.first; s; s = s->next) s->used_ns = s->commands = s->held = 0;
    for (share *s = shares.databases; s; s = s->next) s->used_ns = s->commands = s->held = 0;
}

static const infoSection sections[] = {{"users", "# Users", 0, INFO_USERS, printShares}, {0}};
static const gate *const gates[] = {&shareGate, NULL};
static const commandObserver *const observers[] = {&observer, NULL};

const feature shareFeature = {.name = "share",
                              .info = sections,
                              .gates = gates,
                              .command_observers = observers,
                              .on_session = onSession,
                              .on_stats_reset = resetStats};

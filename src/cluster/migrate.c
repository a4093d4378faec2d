/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfers keys to another server (migrate.h).
 *
 * The phases are: connect; send AUTH and SELECT, and await their replies before the first key is
 * sent, so that a refused transfer leaves nothing at the target; rounds of keys. Within a round
 * keys are written while replies arrive. Replies arrive in the order of the requests, so the next
 * one belongs to `next_reply`. */
#include "cluster/migrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/base.h"
#include "base/number.h"
#include "cluster/cluster.h"
#include "cluster/migrate_link.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "format/aof_reader.h"
#include "format/rdb_dump.h"
#include "io/resolve.h"
#include "resp/resp.h"
#include "store/placeholder.h"
#include "store/store.h"

enum {
    READ_STEP = 16 * 1024,
    REPLY_MAX = 16 * 1024, /* a longer line cannot be a reply to RESTORE */
    RESTORE_ARGS = 5,
};

typedef enum keyState {
    KEY_WAITS,   /* to be sent in this round */
    KEY_SENT,    /* its reply is expected */
    KEY_MOVED,   /* the target has it */
    KEY_MISSING, /* it was gone before it was sent, or was deleted there again */
    KEY_REFUSED, /* the target replied an error */
} keyState;

typedef struct migrateKey {
    str name;
    uint64_t hash;
    uint8_t state;   /* keyState */
    uint8_t replies; /* expected ones */
    bool there;      /* the target has a copy, which may be outdated */
    bool changed;    /* since it was serialised */
} migrateKey;

typedef enum phase { PHASE_CONNECT, PHASE_GREET, PHASE_KEYS, PHASE_ENDED } phase;

struct migration {
    loop *loop;
    migrateDoneProc *done;
    void *arg;
    char *host;
    int port, source_db, target_db;
    int64_t timeout_ms;
    bool copy, replace;
    str user, password;
    bool has_user, has_password;
    migrateKey *keys; /* in the order they are sent */
    int count;
    int *by_hash;              /* indexes of keys, by ascending hash */
    int next_send, next_reply; /* keys before are sent, replied to */
    int greetings;             /* replies to AUTH and SELECT that are expected */
    int rounds;
    bool paused;
    phase phase;
    bool resolving; /* hostFound() will be called */
    bool busy;      /* a callback is running */
    bool freed;     /* to be freed when neither of these holds */
    migrateLink *link;
    bool replied; /* something arrived on this connection */
    str out, in;
    size_t out_at;
    replyReader reader;
    uint64_t timer;      /* its id + 1; 0: none */
    int64_t progress_ms; /* time of the last progress, monotonic */
    str error;
    migration *next;
};

static migration *running; /* transfers whose keys are observed */
static int pausing;        /* transfers in their last round */

/* ------------------------------------------------------------------ changed keys */

static int compareHashes(const migration *m, int a, uint64_t hash) {
    uint64_t other = m->keys[a].hash;
    return other < hash ? -1 : other > hash;
}

/* The first place in by_hash with that hash, or a greater one. */
static int findHash(const migration *m, uint64_t hash) {
    int low = 0, high = m->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (compareHashes(m, m->by_hash[middle], hash) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void markKey(migration *m, slice name) {
    uint64_t hash = storeHash(name);
    int low = findHash(m, hash);
    for (; low < m->count && m->keys[m->by_hash[low]].hash == hash; low++) {
        migrateKey *k = &m->keys[m->by_hash[low]];
        if (sliceEqual(strSlice(&k->name), name)) k->changed = true;
    }
}

bool migrateHolds(const db *d, slice key) {
    if (!running) return false;
    uint64_t hash = storeHash(key);
    for (const migration *m = running; m; m = m->next) {
        if (m->source_db != dbId(d)) continue;
        for (int i = findHash(m, hash); i < m->count; i++) {
            const migrateKey *k = &m->keys[m->by_hash[i]];
            if (k->hash != hash) break;
            if (sliceEqual(strSlice(&k->name), key)) return true;
        }
    }
    return false;
}

static void noteChange(db *d, slice key, const keyEvent *event) {
    (void)event;
    for (migration *m = running; m; m = m->next)
        if (m->source_db == dbId(d)) markKey(m, key);
}

const keyObserver migrateObserver = {.name = "migrate", .changed = noteChange};

void migrateDbEvent(const dbEvent *e) {
    if (e->kind != DB_FLUSHED && e->kind != DB_SWAPPED && e->kind != DB_LOAD_ENDED) return;
    for (migration *m = running; m; m = m->next) {
        if (e->db_id >= 0 && e->db_id != m->source_db && e->other_id != m->source_db) continue;
        for (int i = 0; i < m->count; i++) m->keys[i].changed = true;
    }
}

static void observe(migration *m) {
    if (!running) keyObserverArm(&migrateObserver, true);
    m->next = running;
    running = m;
}

static void stopObserving(migration *m) {
    migration **at = &running;
    while (*at && *at != m) at = &(*at)->next;
    if (!*at) return;
    *at = m->next;
    if (!running) keyObserverArm(&migrateObserver, false);
}

static void pauseWrites(migration *m) {
    m->paused = true;
    pausing++;
    (void)jobEndChanges(); /* a change that has begun has its effect before */
    pauseBegin(PAUSE_FOR_SLOT_MIGRATION, PAUSE_WRITES, engineHot.now_ms + m->timeout_ms);
}

static void endPause(migration *m) {
    if (!m->paused) return;
    m->paused = false;
    if (--pausing == 0) pauseEnd(PAUSE_FOR_SLOT_MIGRATION);
}

/* ------------------------------------------------------------------ the end */

static void end(migration *m) {
    if (m->phase == PHASE_ENDED) return;
    bool healthy = m->phase == PHASE_KEYS && m->next_reply == m->next_send;
    m->phase = PHASE_ENDED;
    if (m->timer) loopRemoveTimer(m->loop, m->timer - 1);
    m->timer = 0;
    if (m->link && healthy && m->loop == engineLoop()) {
        migrateLinkKeep(m->link, clockMonoMs());
    } else if (m->link) {
        migrateLinkClose(m->link);
    }
    m->link = NULL;
    if (m->done) m->done(m, m->arg);
}

static void setError(migration *m, const char *prefix, slice text) {
    if (m->error.len) return; /* the first one is replied */
    strAppendText(&m->error, prefix);
    strAppendSlice(&m->error, text);
}

static void fail(migration *m) {
    bool writing = m->phase == PHASE_CONNECT || m->out_at < m->out.len;
    setError(m, "IOERR error or timeout ",
             writing ? SLICE("writing to target instance") : SLICE("reading to target instance"));
    end(m);
}

static void failUnresolved(migration *m) {
    setError(m, "IOERR error or timeout ", SLICE("connecting to the client"));
    end(m);
}

/* ------------------------------------------------------------------ requests */

static void addSelect(migration *m) {
    char digits[NUMBER_TEXT_MAX];
    slice argv[] = {SLICE("SELECT"), sliceMake(digits, numberPrintInt(digits, m->target_db))};
    aofPrintCommand(&m->out, 2, argv);
    m->greetings++;
}

static void greet(migration *m) {
    m->phase = PHASE_GREET;
    if (m->has_password) {
        slice argv[3];
        int argc = 0;
        argv[argc++] = SLICE("AUTH");
        if (m->has_user) argv[argc++] = strSlice(&m->user);
        argv[argc++] = strSlice(&m->password);
        aofPrintCommand(&m->out, argc, argv);
        m->greetings++;
    }
    if (m->link->db != m->target_db) addSelect(m);
    if (m->greetings == 0) m->phase = PHASE_KEYS;
}

static void addRestore(migration *m, migrateKey *k, const robj *o) {
    char digits[NUMBER_TEXT_MAX];
    int64_t ttl_ms = 0;
    if (objectHasExpire(o)) {
        ttl_ms = objectExpire(o) - engineHot.now_ms;
        if (ttl_ms < 1) ttl_ms = 1;
    }
    str payload = STR_EMPTY;
    /* Older targets read all but hashes with expiring fields, which are the same in version 80. */
    rdbForm form = rdbOutgoingForm() == RDB_FORM_REDIS ? RDB_FORM_REDIS : RDB_FORM_LOWEST;
    rdbDump(o, m->source_db, form, &payload);
    slice argv[RESTORE_ARGS] = {
        clusterIsEnabled() ? SLICE("RESTORE-ASKING") : SLICE("RESTORE"), strSlice(&k->name),
        sliceMake(digits, numberPrintInt(digits, ttl_ms)), strSlice(&payload), SLICE("REPLACE")};
    aofPrintCommand(&m->out, m->replace || k->there ? RESTORE_ARGS : RESTORE_ARGS - 1, argv);
    strFree(&payload);
}

/* Removes an outdated copy of a key that no longer exists here. */
static void addDelete(migration *m, migrateKey *k) {
    if (clusterIsEnabled()) aofPrintCommand(&m->out, 1, (slice[]){SLICE("ASKING")});
    k->replies = clusterIsEnabled() ? 2 : 1;
    aofPrintCommand(&m->out, 2, (slice[]){SLICE("DEL"), strSlice(&k->name)});
}

static void addKey(migration *m, migrateKey *k) {
    const robj *o = dbFindQuiet(storeDb(m->source_db), strSlice(&k->name), k->hash,
                                lookWithoutTouch(lookAt(engineHot.now_ms)));
    k->changed = false;
    if (o && !objectIsPlaceholder(o)) {
        addRestore(m, k, o);
        k->replies = 1;
        k->there = true; /* once it is replied to */
        k->state = KEY_SENT;
    } else if (k->there) {
        addDelete(m, k);
        k->there = false;
        k->state = KEY_SENT;
    } else {
        k->state = KEY_MISSING;
    }
}

/* Serialises keys up to about one chunk. */
static void fillOutput(migration *m) {
    strClear(&m->out);
    m->out_at = 0;
    for (; m->next_send < m->count && m->out.len < MIGRATE_CHUNK; m->next_send++) {
        migrateKey *k = &m->keys[m->next_send];
        if (k->state == KEY_WAITS) addKey(m, k);
    }
}

/* ------------------------------------------------------------------ replies */

/* Begins another round if keys have changed since they were sent. */
static bool beginRound(migration *m) {
    bool any = false;
    for (int i = 0; i < m->count && !m->copy; i++) {
        migrateKey *k = &m->keys[i];
        if (!k->changed || k->state != KEY_MOVED) continue;
        k->state = KEY_WAITS;
        any = true;
    }
    if (!any) return false;
    m->next_send = m->next_reply = 0;
    if (++m->rounds == MIGRATE_FREE_ROUNDS) pauseWrites(m);
    return true;
}

static void takeReply(migration *m, const replyEvent *e) {
    static const char prefix[] = "ERR Target instance replied with error: ";
    bool refused = e->kind == REPLY_ERROR;
    if (refused) setError(m, prefix, e->text);
    if (m->phase == PHASE_GREET) {
        if (--m->greetings > 0) return;
        if (m->error.len) {
            end(m);
            return;
        }
        m->link->db = m->target_db;
        m->phase = PHASE_KEYS;
        return;
    }
    while (m->next_reply < m->next_send && m->keys[m->next_reply].state != KEY_SENT)
        m->next_reply++;
    if (m->next_reply == m->next_send) { /* a reply to nothing */
        fail(m);
        return;
    }
    migrateKey *k = &m->keys[m->next_reply];
    if (--k->replies > 0) return;               /* of ASKING */
    if (k->there && e->kind == REPLY_INTEGER) { /* RESTORE has no such reply */
        fail(m);
        return;
    }
    m->next_reply++;
    if (refused) {
        k->state = KEY_REFUSED;
    } else {
        k->state = k->there ? KEY_MOVED : KEY_MISSING;
    }
}

/* True if all keys of the round are sent and replied to. */
static bool roundIsComplete(migration *m) {
    if (m->phase != PHASE_KEYS || m->next_send < m->count || m->out_at < m->out.len) return false;
    while (m->next_reply < m->count && m->keys[m->next_reply].state != KEY_SENT) m->next_reply++;
    return m->next_reply == m->count;
}

static void parseReplies(migration *m) {
    replyEvent e;
    size_t at = 0;
    while (m->phase != PHASE_ENDED) {
        replyReadStatus st = replyRead(&m->reader, m->in.ptr, m->in.len, &at, &e);
        if (st == REPLY_NEED_MORE) break;
        /* Nothing that is sent has another reply: what looks like one confirms nothing. */
        bool fits = e.kind == REPLY_STATUS || e.kind == REPLY_INTEGER || e.kind == REPLY_ERROR;
        if (st == REPLY_BAD || e.depth > 0 || !fits) {
            fail(m);
            return;
        }
        if (e.complete) takeReply(m, &e);
    }
    memmove(m->in.ptr, m->in.ptr + at, m->in.len - at);
    strCut(&m->in, m->in.len - at);
}

/* ------------------------------------------------------------------ connection */

static void readable(conn *c);
static void writable(conn *c);
static void hostFound(void *arg, const char *addr);

static migration *userOf(conn *c) {
    return ((migrateLink *)((char *)c - offsetof(migrateLink, conn)))->user;
}

/* At the end of each callback. */
static void leave(migration *m) {
    m->busy = false;
    if (m->freed) migrateFree(m);
}

/* Sends what can be sent. When everything is done, the transfer ends, or its user concludes it
 * later: this may be a nested turn, after which keys can change. */
static void proceed(migration *m) {
    if (m->phase == PHASE_ENDED) return;
    if (roundIsComplete(m)) {
        if (!m->done) {
            end(m);
            return;
        }
        m->done(m, m->arg);
    }
    bool more = m->out_at < m->out.len || (m->phase == PHASE_KEYS && m->next_send < m->count);
    if (connOnWrite(&m->link->conn, more ? writable : NULL) != OK) fail(m);
}

/* A kept connection that the target has closed meanwhile is replaced once. */
static bool reconnects(migration *m) {
    if (!m->link || !m->link->used || m->replied) return false;
    migrateLinkClose(m->link);
    m->link = NULL;
    strClear(&m->out);
    m->out_at = 0;
    m->greetings = 0;
    m->next_send = m->next_reply = 0;
    for (int i = 0; i < m->count; i++) m->keys[i].state = KEY_WAITS;
    m->phase = PHASE_CONNECT;
    m->resolving = true;
    resolveHost(m->host, hostFound, m);
    return true;
}

static void broken(migration *m) {
    if (!reconnects(m)) fail(m);
}

static void sendMore(migration *m) {
    conn *c = &m->link->conn;
    if (c->state != CONN_OPEN) {
        broken(m);
        return;
    }
    if (m->phase == PHASE_CONNECT) {
        greet(m);
        if (connOnRead(c, readable) != OK) {
            fail(m);
            return;
        }
    }
    if (m->out_at == m->out.len && m->phase == PHASE_KEYS) fillOutput(m);
    if (m->out_at < m->out.len) {
        struct iovec part = {m->out.ptr + m->out_at, m->out.len - m->out_at};
        ssize_t n = connWritev(c, &part, 1);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            broken(m);
            return;
        }
        if (n > 0) {
            m->out_at += (size_t)n;
            m->progress_ms = clockMonoMs();
        }
    }
    proceed(m);
}

static void writable(conn *c) {
    migration *m = userOf(c);
    m->busy = true;
    sendMore(m);
    leave(m);
}

static void receive(migration *m) {
    char *to = strReserve(&m->in, READ_STEP);
    ssize_t n = connRead(&m->link->conn, to, READ_STEP);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        broken(m);
        return;
    }
    strGrow(&m->in, (size_t)n);
    m->replied = true;
    m->progress_ms = clockMonoMs();
    parseReplies(m);
    proceed(m);
}

static void readable(conn *c) {
    migration *m = userOf(c);
    m->busy = true;
    receive(m);
    leave(m);
}

static int64_t checkTimeout(loop *l, uint64_t id, void *arg) {
    (void)l, (void)id;
    migration *m = arg;
    if (roundIsComplete(m)) return m->timeout_ms; /* a command that runs for long delays the end */
    int64_t left_ms = m->progress_ms + m->timeout_ms - clockMonoMs();
    if (left_ms > 0) return left_ms;
    m->timer = 0;
    m->busy = true;
    fail(m);
    leave(m);
    return LOOP_TIMER_END;
}

static void useLink(migration *m, migrateLink *link) {
    m->link = link;
    m->replied = false;
    link->user = m;
    replyReaderInit(&m->reader);
    m->reader.bulk_max = REPLY_MAX;
    if (connOnWrite(&link->conn, writable) != OK) fail(m);
}

static void connectTo(migration *m, const char *addr) {
    reason why;
    migrateLink *link = migrateLinkOpen(m->host, addr, m->port, m->loop, &why);
    if (!link) {
        fail(m);
        return;
    }
    useLink(m, link);
}

static void hostFound(void *arg, const char *addr) {
    migration *m = arg;
    bool nested = m->busy;
    m->resolving = false;
    m->busy = true;
    if (!m->freed && m->phase == PHASE_CONNECT) { /* not timed out */
        if (addr) {
            connectTo(m, addr);
        } else {
            failUnresolved(m);
        }
    }
    if (!nested) leave(m);
}

/* ------------------------------------------------------------------ begin and free */

static const migration *sorted; /* for byHash() */

static int byHash(const void *a, const void *b) {
    return compareHashes(sorted, *(const int *)a, sorted->keys[*(const int *)b].hash);
}

migration *migrateNew(const migrateParams *p) {
    migration *m = memCalloc(1, sizeof(*m));
    m->host = memDup(p->host.ptr, p->host.len);
    m->port = p->port;
    m->source_db = p->source_db;
    m->target_db = p->target_db;
    m->timeout_ms = p->timeout_ms;
    m->copy = p->copy;
    m->replace = p->replace;
    m->has_user = p->user.ptr != NULL;
    m->has_password = p->password.ptr != NULL;
    if (m->has_user) m->user = strNew(p->user);
    if (m->has_password) m->password = strNew(p->password);
    m->count = p->key_count;
    m->keys = memCalloc((size_t)m->count, sizeof(*m->keys));
    m->by_hash = memNewArray(int, (size_t)m->count);
    for (int i = 0; i < m->count; i++) {
        m->keys[i].name = strNew(p->keys[i]);
        m->keys[i].hash = storeHash(p->keys[i]);
        m->by_hash[i] = i;
    }
    sorted = m;
    qsort(m->by_hash, (size_t)m->count, sizeof(int), byHash);
    return m;
}

static int64_t begin(loop *l, uint64_t id, void *arg) {
    (void)id;
    migration *m = arg;
    m->busy = true;
    m->progress_ms = clockMonoMs();
    m->timer = 1 + loopAddTimer(l, m->timeout_ms, checkTimeout, m);
    migrateLink *link = migrateLinkTake(m->host, m->port);
    if (link) {
        useLink(m, link);
    } else {
        m->resolving = true;
        resolveHost(m->host, hostFound, m);
    }
    leave(m);
    return LOOP_TIMER_END;
}

void migrateStart(migration *m, migrateDoneProc *done, void *arg) {
    m->loop = engineLoop();
    m->done = done;
    m->arg = arg;
    observe(m);
    m->timer = 1 + loopAddTimer(m->loop, 0, begin, m);
}

void migrateRun(migration *m) {
    reason why;
    char addr[NET_ADDR_TEXT_MAX];
    m->loop = loopNew(NULL, &why);
    if (!m->loop) {
        fail(m);
    } else if (!resolveHostNow(m->host, addr)) {
        failUnresolved(m);
    } else {
        m->progress_ms = clockMonoMs();
        m->timer = 1 + loopAddTimer(m->loop, m->timeout_ms, checkTimeout, m);
        connectTo(m, addr);
        while (m->phase != PHASE_ENDED) (void)loopTurn(m->loop, true);
    }
    if (m->loop) loopFree(m->loop);
    m->loop = NULL;
}

bool migrateConclude(migration *m) {
    if (roundIsComplete(m)) {
        m->busy = true;
        if (beginRound(m)) {
            proceed(m);
        } else {
            end(m);
        }
        m->busy = false;
    }
    return m->phase == PHASE_ENDED;
}

slice migrateError(const migration *m) { return strSlice(&m->error); }

const str *migrateNextMoved(const migration *m, int *at) {
    while (*at < m->count) {
        const migrateKey *k = &m->keys[(*at)++];
        if (k->state == KEY_MOVED && !k->changed) return &k->name;
    }
    return NULL;
}

void migrateFree(migration *m) {
    m->done = NULL;
    if (m->loop) end(m);
    stopObserving(m);
    endPause(m);
    if (m->resolving || m->busy) {
        m->freed = true;
        return;
    }
    for (int i = 0; i < m->count; i++) strFree(&m->keys[i].name);
    memFree(m->keys);
    memFree(m->by_hash);
    memFree(m->host);
    strFree(&m->user);
    strFree(&m->password);
    strFree(&m->out);
    strFree(&m->in);
    strFree(&m->error);
    memFree(m);
}

void migrateCloseIdle(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    migrateLinksCloseIdle(clockMonoMs());
}

int migrateIdleConnections(void) { return migrateLinkCount(); }

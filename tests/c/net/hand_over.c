/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The model (hand_over.h): a search of all states that can be reached.
 *
 * A state is the memory that the threads share and the place of each in its program. A step is what
 * a thread does between two accesses that the other one can notice: to a ring, to the announcement
 * of a sleep, to the client. The accesses of rings and announcements are sequentially consistent in
 * the model; that push and pop are, as release and acquire, is the subject of test_spsc.c. */
#include "hand_over.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 6, REQUESTS = 3, MESSAGES = 2, STATES_MAX = 1 << 22 };

/* Items of the rings. */
enum { NOTHING, GIVE_NEW, GIVE, GIVE_AND_WRITE, WRITE, RELEASE, BATCH, WROTE, RELEASED };

/* Places in the program of the main thread, and of the I/O thread. */
enum { M_TAKE, M_SEND, M_WAKE, M_ANNOUNCE, M_LOOK, M_WAIT };
enum { T_JOBS, T_WRITE, T_LOOP, T_GIVE, T_WAKE, T_ANNOUNCE, T_LOOK, T_WAIT };

typedef struct state {
    uint8_t jobs[RING], results[RING];
    uint8_t main_at, thread_at;
    uint8_t main_asleep, thread_asleep; /* announced */
    uint8_t main_woken, thread_woken;   /* the event that ends the wait */
    /* The client: what the main thread knows. */
    uint8_t away, lent, closing, releasing, freed;
    uint8_t output, waiting; /* bytes to be written; those that are added when it is not lent */
    /* What the thread knows. */
    uint8_t mine, ready, watched, in_batch;
    /* The socket. */
    uint8_t event, received; /* reported by the loop next; requests that wait to be read */
    /* What the environment may still do. */
    uint8_t requests, messages, may_close, may_release;
} state;

static struct {
    state *all;     /* in the order in which they were found */
    uint32_t *slot; /* hash table: index + 1 */
    long count;
    enum handOverRule without;
    const char *violation;
} search;

static bool holds(enum handOverRule rule) { return search.without != rule; }

static void require(bool good, const char *what) {
    if (!good && !search.violation) search.violation = what;
}

static void found(const state *s) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof(*s); i++)
        hash = (hash ^ ((const uint8_t *)s)[i]) * 1099511628211u;
    size_t at = (size_t)(hash ^ hash >> 29) % (2 * STATES_MAX);
    while (search.slot[at]) {
        if (memcmp(&search.all[search.slot[at] - 1], s, sizeof(*s)) == 0) return;
        at = (at + 1) % (2 * STATES_MAX);
    }
    require(search.count < STATES_MAX, "too many states");
    if (search.violation) return;
    search.all[search.count++] = *s;
    search.slot[at] = (uint32_t)search.count;
}

static void push(uint8_t *ring, uint8_t item) {
    int at = 0;
    while (at < RING && ring[at]) at++;
    require(at < RING, "a ring is full");
    if (at < RING) ring[at] = item;
}

static uint8_t pop(uint8_t *ring) {
    uint8_t first = ring[0];
    memmove(ring, ring + 1, RING - 1);
    ring[RING - 1] = NOTHING;
    return first;
}

/* ------------------------------------------------------------------ the main thread */

static void mainTouchesOutput(const state *s) {
    require(s->thread_at != T_WRITE, "the main thread changes output that is being written");
}

static void mainWrites(state *s) {
    if (s->lent || !s->output || s->closing) return;
    if (s->releasing && !s->away) s->output = 0; /* it writes without the thread */
    if (s->releasing && (!s->away || holds(RULE_RELEASE_IS_LAST))) return;
    if (!s->away) push(s->jobs, GIVE_AND_WRITE);
    if (s->away) push(s->jobs, WRITE);
    s->away = s->lent = 1;
}

static void mainAddsOutput(state *s) {
    if (s->lent && holds(RULE_LENT_IS_NOT_CHANGED)) {
        s->waiting = 1;
        return;
    }
    mainTouchesOutput(s);
    s->output = 1;
}

static void outputIsBack(state *s) {
    s->lent = 0;
    s->output |= s->waiting;
    s->waiting = 0;
}

static void mainReleases(state *s) {
    s->may_release = 0;
    if (!s->releasing) push(s->jobs, RELEASE);
    s->releasing = 1;
}

static void mainCloses(state *s) {
    s->may_close = 0;
    mainReleases(s);
    s->closing = 1;
    if (!s->away && !holds(RULE_FREED_WHEN_RELEASED)) s->freed = 1;
}

/* The requests of a batch are executed; `last`: one of them closes the client. */
static void mainExecutes(state *s, bool last) {
    require(s->away, "a batch of a client that is not away");
    s->away = 0;
    if (s->lent) outputIsBack(s); /* the job to write it is void */
    if (s->closing || last) {
        mainCloses(s);
    } else {
        mainAddsOutput(s);
    }
}

/* One result. */
static void mainTakes(state *s, bool last) {
    switch (pop(s->results)) {
    case BATCH: mainExecutes(s, last); break;
    case WROTE:
        require(s->away && s->lent, "written, but not lent");
        mainTouchesOutput(s);
        s->output = 0;
        outputIsBack(s);
        break;
    case RELEASED:
        s->away = s->releasing = 0;
        if (s->lent) outputIsBack(s);
        if (s->closing) {
            s->freed = 1;
        } else {
            push(s->jobs, GIVE_NEW);
            s->away = 1;
        }
        break;
    default: s->main_at = M_SEND; return;
    }
    mainWrites(s);
}

static void mainStep(const state *from) {
    state s = *from;
    switch (s.main_at) {
    case M_TAKE:
        mainTakes(&s, false);
        found(&s);
        if (!from->may_close || from->results[0] != BATCH) return;
        s = *from;
        mainTakes(&s, true);
        found(&s);
        return;
    case M_SEND: /* some of these may happen, or nothing */
        if (s.messages && !s.closing) {
            s.messages--;
            mainAddsOutput(&s);
            mainWrites(&s);
            found(&s);
            s = *from;
        }
        if (s.may_close) {
            mainCloses(&s);
            found(&s);
            s = *from;
        }
        if (s.may_release) {
            mainReleases(&s);
            found(&s);
            s = *from;
        }
        s.main_at = M_WAKE;
        found(&s);
        return;
    case M_WAKE:
        if (s.thread_asleep && holds(RULE_MAIN_WAKES)) {
            s.thread_asleep = 0;
            s.thread_woken = 1;
        }
        s.main_at = M_ANNOUNCE;
        found(&s);
        return;
    case M_ANNOUNCE:
        s.main_asleep = 1;
        s.main_at = M_LOOK;
        found(&s);
        return;
    case M_LOOK:
        s.main_at = M_WAIT;
        if (s.results[0] && holds(RULE_MAIN_LOOKS_AGAIN)) {
            s.main_asleep = 0;
            s.main_at = M_TAKE;
        }
        found(&s);
        return;
    default: /* M_WAIT: woken, or by a timer if the environment has something left */
        if (!s.main_woken && !s.messages && !s.may_close && !s.may_release) return;
        s.main_woken = s.main_asleep = 0;
        s.main_at = M_TAKE;
        found(&s);
    }
}

/* ------------------------------------------------------------------ the I/O thread */

static void threadTouches(const state *s) {
    require(!s->freed, "the thread touches a client that is freed");
}

static void threadReads(state *s) {
    threadTouches(s);
    s->ready = 0;
    if (!s->received) return;
    require(s->away, "the thread reads a client that is not its own");
    s->received = 0;
    s->in_batch = 1;
    s->mine = 0;
}

static void giveBatch(state *s) {
    if (s->in_batch) push(s->results, BATCH);
    s->in_batch = 0;
}

/* After a job: what has been noted is read. */
static void endJob(state *s) {
    s->thread_at = T_JOBS;
    if (s->mine && s->ready) threadReads(s);
}

static void threadJob(state *s) {
    uint8_t job = pop(s->jobs);
    if (!job) {
        s->thread_at = T_LOOP;
        return;
    }
    threadTouches(s);
    if (job == RELEASE) {
        if (holds(RULE_BATCH_BEFORE_RELEASE)) giveBatch(s);
        s->mine = s->watched = s->event = 0;
        push(s->results, RELEASED);
    } else if (job == GIVE_NEW || job == GIVE || job == GIVE_AND_WRITE) {
        s->mine = 1;
        if (job == GIVE_NEW) {
            s->watched = 1;
            s->event = s->received; /* the loop reports what is there already */
        }
        if (job == GIVE_AND_WRITE) s->thread_at = T_WRITE;
        if (job != GIVE_AND_WRITE) endJob(s);
    } else if (s->mine || !holds(RULE_CROSSED_WRITE_IS_VOID)) {
        s->thread_at = T_WRITE;
    }
}

static void threadStep(const state *from) {
    state s = *from;
    switch (s.thread_at) {
    case T_JOBS: threadJob(&s); break;
    case T_WRITE: /* the output was read since the last step */
        threadTouches(&s);
        push(s.results, WROTE);
        endJob(&s);
        break;
    case T_LOOP:
        s.thread_at = T_GIVE;
        if (s.event && s.watched) {
            s.event = 0;
            threadTouches(&s);
            if (s.mine || holds(RULE_READY_IS_NOTED)) s.ready = 1;
            if (s.mine) threadReads(&s);
        }
        break;
    case T_GIVE:
        giveBatch(&s);
        s.thread_at = T_WAKE;
        break;
    case T_WAKE:
        if (s.main_asleep && s.results[0] && holds(RULE_THREAD_WAKES)) {
            s.main_asleep = 0;
            s.main_woken = 1;
        }
        s.thread_at = T_ANNOUNCE;
        break;
    case T_ANNOUNCE:
        s.thread_asleep = 1;
        s.thread_at = T_LOOK;
        break;
    case T_LOOK:
        s.thread_at = T_WAIT;
        if (s.jobs[0] && holds(RULE_THREAD_LOOKS_AGAIN)) {
            s.thread_asleep = 0;
            s.thread_at = T_JOBS;
        }
        break;
    default: /* T_WAIT */
        if (!s.thread_woken && !(s.event && s.watched)) return;
        s.thread_woken = s.thread_asleep = 0;
        s.thread_at = s.event && s.watched ? T_LOOP : T_JOBS;
    }
    found(&s);
}

/* ------------------------------------------------------------------ the search */

static void peerStep(const state *from) {
    state s = *from;
    if (!s.requests) return;
    s.requests--;
    s.received = s.event = 1;
    found(&s);
}

/* When both threads wait and the environment is done, nothing is left to do. */
static void checkEnd(const state *s) {
    if (s->main_at != M_WAIT || s->thread_at != T_WAIT || s->main_woken || s->thread_woken) return;
    if (s->requests || s->messages || s->may_close || s->may_release) return;
    if (s->event && s->watched) return;
    require(!s->jobs[0], "both sleep, and a job waits");
    require(!s->results[0], "both sleep, and a result waits");
    require(!s->releasing, "a client is never released");
    require(!s->closing || s->freed, "a closed client is never freed");
    if (s->closing) return;
    require(s->away && s->mine, "nobody watches the client");
    require(!s->received, "a request is never read");
    require(!s->output && !s->waiting && !s->lent, "output is never written");
}

const char *handOverCheck(enum handOverRule without, long *states) {
    search.all = malloc(sizeof(state) * STATES_MAX);
    search.slot = calloc(2 * STATES_MAX, sizeof(*search.slot));
    search.count = 0;
    search.without = without;
    search.violation = NULL;
    state first;
    memset(&first, 0, sizeof(first));
    first.away = first.mine = first.watched = 1;
    first.requests = REQUESTS;
    first.messages = MESSAGES;
    for (int may = 0; may < 4; may++) {
        first.may_close = may & 1;
        first.may_release = may >> 1;
        found(&first);
    }
    for (long i = 0; i < search.count && !search.violation; i++) {
        checkEnd(&search.all[i]);
        mainStep(&search.all[i]);
        threadStep(&search.all[i]);
        peerStep(&search.all[i]);
    }
    *states = search.count;
    free(search.all);
    free(search.slot);
    return search.violation;
}

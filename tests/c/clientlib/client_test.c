/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counting allocator and the scripted servers; see the header. */
#include "client_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clientlib/client_priv.h"

/* ------------------------------------------------------------------ memory */

/* In front of each block, so that its size is known. */
typedef union blockHead {
    size_t size;
    max_align_t align;
} blockHead;

static size_t bytes_used, blocks_used, calls;
static long fail_at = -1;
static bool fail_all, has_failed;

static bool mayAllocate(void) {
    long number = (long)calls++;
    if (fail_at < 0 || number < fail_at || (number > fail_at && !fail_all)) return true;
    has_failed = true;
    return false;
}

static void *countingMalloc(size_t size) {
    if (!mayAllocate()) return NULL;
    blockHead *h = malloc(sizeof(*h) + size);
    if (!h) return NULL;
    h->size = size;
    bytes_used += size;
    blocks_used++;
    return h + 1;
}

static void *countingCalloc(size_t count, size_t size) {
    void *p = countingMalloc(count * size);
    if (p) memset(p, 0, count * size);
    return p;
}

static void countingFree(void *ptr) {
    if (!ptr) return;
    blockHead *h = (blockHead *)ptr - 1;
    bytes_used -= h->size;
    blocks_used--;
    free(h);
}

static void *countingRealloc(void *ptr, size_t size) {
    if (!ptr) return countingMalloc(size);
    if (!mayAllocate()) return NULL;
    blockHead *h = (blockHead *)ptr - 1;
    size_t old = h->size;
    h = realloc(h, sizeof(*h) + size);
    if (!h) return NULL;
    bytes_used += size - old;
    h->size = size;
    return h + 1;
}

static char *countingStrdup(const char *text) {
    char *copy = countingMalloc(strlen(text) + 1);
    if (copy) strcpy(copy, text);
    return copy;
}

void countingStart(void) {
    valkeyAllocFuncs funcs = {countingMalloc, countingCalloc, countingRealloc, countingStrdup,
                              countingFree};
    valkeySetAllocators(&funcs);
    bytes_used = blocks_used = 0;
    countingFailAt(-1, false);
}

void countingStop(void) { valkeyResetAllocators(); }
size_t countingBytes(void) { return bytes_used; }
size_t countingBlocks(void) { return blocks_used; }
size_t countingCalls(void) { return calls; }
bool countingHasFailed(void) { return has_failed; }

void countingFailAt(long number, bool all) {
    calls = 0;
    fail_at = number;
    fail_all = all;
    has_failed = false;
}

/* ------------------------------------------------------------------ servers */

enum { CONNECTIONS_MAX = 64 };

struct fakeConnection {
    int fd;
    int node, number;
    bool closing;
    char *in, *out;
    size_t in_len, in_cap, out_len, out_cap;
};

/* What the thread is to do; node -1: to end. */
typedef struct order {
    int node;
    fakeMode mode;
} order;

struct fakeServer {
    int nodes, family, ports[FAKE_NODES_MAX];
    int listeners[FAKE_NODES_MAX]; /* -1: refusing */
    int guards[FAKE_NODES_MAX];    /* keep the ports */
    fakeMode modes[FAKE_NODES_MAX];
    int orders[2]; /* a pipe of `order` */
    sem_t executed;
    fakeProc *proc;
    void *arg;
    pthread_t thread;
    atomic_int accepted, open;
    int count;
    fakeConnection *connections[CONNECTIONS_MAX];
};

static void grow(char **buf, size_t *cap, size_t want) {
    if (*cap >= want) return;
    *cap = want * 2;
    *buf = realloc(*buf, *cap);
    assert_non_null(*buf);
}

void fakeSendBytes(fakeRequest *q, const char *bytes, size_t len) {
    fakeConnection *c = q->connection;
    grow(&c->out, &c->out_cap, c->out_len + len + 1);
    memcpy(c->out + c->out_len, bytes, len);
    c->out_len += len;
}

void fakeSend(fakeRequest *q, const char *format, ...) {
    char text[8192];
    va_list ap;
    va_start(ap, format);
    int len = vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    assert_true(len >= 0 && (size_t)len < sizeof(text));
    fakeSendBytes(q, text, (size_t)len);
}

void fakeClose(fakeRequest *q) { q->connection->closing = true; }

bool fakeIs(const fakeRequest *q, int index, const char *word) {
    return index < q->argc && strcasecmp(q->argv[index], word) == 0;
}

/* Reads "<type><digits>\r\n"; false if it is incomplete. */
static bool readHeader(fakeConnection *c, size_t *at, char type, size_t *value) {
    char *end = memchr(c->in + *at, '\n', c->in_len - *at);
    if (!end) return false;
    assert_int_equal(c->in[*at], type);
    *value = strtoul(c->in + *at + 1, NULL, 10);
    *at = (size_t)(end + 1 - c->in);
    return true;
}

/* Parses and serves one request; false if it is incomplete. */
static bool serveOne(fakeServer *s, fakeConnection *c) {
    size_t at = 0, argc, len;
    fakeRequest q = {
        .server = s, .connection = c, .arg = s->arg, .node = c->node, .number = c->number};
    if (c->in_len == 0 || !readHeader(c, &at, '*', &argc)) return false;
    assert_true(argc <= FAKE_ARGS_MAX);
    for (size_t i = 0; i < argc; i++) {
        if (at >= c->in_len || !readHeader(c, &at, '$', &len)) return false;
        if (c->in_len - at < len + 2) return false;
        q.argv[i] = c->in + at;
        q.len[i] = len;
        at += len + 2;
    }
    q.argc = (int)argc;
    for (int i = 0; i < q.argc; i++) q.argv[i][q.len[i]] = '\0';
    if (s->modes[c->node] == FAKE_DROP) {
        fakeClose(&q);
        return false;
    }
    s->proc(&q);
    memmove(c->in, c->in + at, c->in_len - at);
    c->in_len -= at;
    return true;
}

static void closeConnection(fakeServer *s, int i) {
    fakeConnection *c = s->connections[i];
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c);
    s->connections[i] = s->connections[--s->count];
    atomic_store(&s->open, s->count);
}

static bool readConnection(fakeServer *s, fakeConnection *c) {
    grow(&c->in, &c->in_cap, c->in_len + 65536);
    ssize_t n = recv(c->fd, c->in + c->in_len, 65536, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    c->in_len += (size_t)n;
    while (!c->closing && serveOne(s, c)) {}
    return true;
}

static bool mayWrite(const fakeServer *s, const fakeConnection *c) {
    return c->out_len > 0 && s->modes[c->node] != FAKE_HOLD;
}

static bool writeConnection(const fakeServer *s, fakeConnection *c) {
    if (s->modes[c->node] == FAKE_HOLD) return true;
    if (c->out_len > 0) {
        ssize_t n = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n > 0) {
            memmove(c->out, c->out + n, c->out_len - (size_t)n);
            c->out_len -= (size_t)n;
        }
    }
    return !(c->closing && c->out_len == 0);
}

static void acceptConnection(fakeServer *s, int node) {
    int fd = accept(s->listeners[node], NULL, NULL);
    if (fd < 0) return;
    assert_true(s->count < CONNECTIONS_MAX);
    fakeConnection *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    *c = (fakeConnection){.fd = fd, .node = node, .number = atomic_fetch_add(&s->accepted, 1)};
    s->connections[s->count++] = c;
    atomic_store(&s->open, s->count);
}

/* A socket bound to `*port`, which is chosen if it is 0. */
static int bindPort(int family, int *port) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {0};
    socklen_t len = family == AF_INET ? sizeof(a.v4) : sizeof(a.v6);
    if (family == AF_INET) {
        a.v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)*port),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    } else {
        a.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                     .sin6_port = htons((uint16_t)*port),
                                     .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    }
    int fd = socket(family, SOCK_STREAM, 0), on = 1;
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &a.any, len) != 0 || getsockname(fd, &a.any, &len) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
    return fd;
}

static void execute(fakeServer *s, const order *o) {
    int *listener = &s->listeners[o->node];
    s->modes[o->node] = o->mode;
    if (o->mode == FAKE_REFUSE && *listener >= 0) {
        close(*listener);
        *listener = -1;
        for (int i = s->count - 1; i >= 0; i--) {
            if (s->connections[i]->node == o->node) closeConnection(s, i);
        }
    } else if (o->mode != FAKE_REFUSE && *listener < 0) {
        *listener = bindPort(s->family, &s->ports[o->node]);
        assert_int_equal(listen(*listener, 16), 0);
    }
    sem_post(&s->executed);
}

static void *serve(void *arg) {
    fakeServer *s = arg;
    for (;;) {
        struct pollfd p[1 + FAKE_NODES_MAX + CONNECTIONS_MAX] = {
            {.fd = s->orders[0], .events = POLLIN}};
        for (int i = 0; i < s->nodes; i++)
            p[1 + i] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
        int count = s->count, first = 1 + s->nodes;
        for (int i = 0; i < count; i++) {
            fakeConnection *c = s->connections[i];
            p[first + i] = (struct pollfd){
                .fd = c->fd, .events = (short)(POLLIN | (mayWrite(s, c) ? POLLOUT : 0))};
        }
        if (poll(p, (nfds_t)(first + count), -1) < 0) continue;
        if (p[0].revents) {
            order o;
            assert_int_equal(read(s->orders[0], &o, sizeof(o)), sizeof(o));
            if (o.node < 0) break;
            execute(s, &o);
            continue; /* the connections are others now */
        }
        for (int i = count - 1; i >= 0; i--) {
            fakeConnection *c = s->connections[i];
            if (!p[first + i].revents) continue;
            bool open =
                !(p[first + i].revents & (POLLIN | POLLHUP | POLLERR)) || readConnection(s, c);
            if (!open || !writeConnection(s, c)) closeConnection(s, i);
        }
        for (int i = 0; i < s->nodes; i++) {
            if (p[1 + i].revents) acceptConnection(s, i);
        }
    }
    while (s->count > 0) closeConnection(s, s->count - 1);
    return NULL;
}

static fakeServer *start(fakeServer *s, fakeProc *proc, void *arg) {
    s->proc = proc;
    s->arg = arg;
    assert_int_equal(pipe(s->orders), 0);
    assert_int_equal(sem_init(&s->executed, 0, 0), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    return s;
}

static fakeServer *startFamily(int family, int nodes, fakeProc *proc, void *arg) {
    fakeServer *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    assert_true(nodes <= FAKE_NODES_MAX);
    s->nodes = nodes;
    s->family = family;
    for (int i = 0; i < nodes; i++) {
        s->guards[i] = bindPort(family, &s->ports[i]);
        if (s->guards[i] < 0) {
            free(s);
            return NULL;
        }
        s->listeners[i] = bindPort(family, &s->ports[i]);
        assert_int_equal(listen(s->listeners[i], 16), 0);
    }
    return start(s, proc, arg);
}

fakeServer *fakeStart(int nodes, fakeProc *proc, void *arg) {
    fakeServer *s = startFamily(AF_INET, nodes, proc, arg);
    assert_non_null(s);
    return s;
}

fakeServer *fakeStartIpv6(int nodes, fakeProc *proc, void *arg) {
    return startFamily(AF_INET6, nodes, proc, arg);
}

fakeServer *fakeStartUnix(const char *path, fakeProc *proc, void *arg) {
    fakeServer *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->nodes = 1;
    s->guards[0] = -1;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, path);
    s->listeners[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listeners[0], (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(s->listeners[0], 16), 0);
    return start(s, proc, arg);
}

static void sendOrder(fakeServer *s, order o) {
    assert_int_equal(write(s->orders[1], &o, sizeof(o)), sizeof(o));
}

void fakeSetMode(fakeServer *s, int node, fakeMode mode) {
    sendOrder(s, (order){.node = node, .mode = mode});
    while (sem_wait(&s->executed) != 0) {}
}

void fakeStop(fakeServer *s) {
    sendOrder(s, (order){.node = -1});
    pthread_join(s->thread, NULL);
    for (int i = 0; i < s->nodes; i++) {
        if (s->listeners[i] >= 0) close(s->listeners[i]);
        if (s->guards[i] >= 0) close(s->guards[i]);
    }
    close(s->orders[0]);
    close(s->orders[1]);
    sem_destroy(&s->executed);
    free(s);
}

void fakeEnd(fakeServer *s) {
    size_t blocks = countingBlocks();
    countingStop();
    fakeStop(s);
    assert_int_equal(blocks, 0);
}

int fakeTeardown(void **state) {
    fakeEnd(*state);
    return 0;
}

int fakeOpen(fakeServer *s) { return atomic_load(&s->open); }
int fakePort(const fakeServer *s, int node) { return s->ports[node]; }
int fakeAccepted(fakeServer *s) { return atomic_load(&s->accepted); }

/* ------------------------------------------------------------------ a simulated event loop */

enum { SIM_MAX = 32 };

typedef struct simEvents {
    valkeyAsyncContext *context; /* NULL: unused */
    unsigned generation;         /* of this use */
    bool reading, writing;
    long long due; /* 0: the timer does not run */
} simEvents;

static simEvents sim[SIM_MAX];
static long long sim_now_us;
static long long (*real_clock)(void);
static unsigned sim_generation;
static int sim_timers;

static long long simClock(void) { return sim_now_us; }

void simStart(void) {
    memset(sim, 0, sizeof(sim));
    sim_now_us = 1000000000;
    sim_timers = 0;
    real_clock = vkClock;
    vkClock = simClock;
}

void simStop(void) {
    vkClock = real_clock;
    assert_int_equal(simContexts(), 0);
}

int simContexts(void) {
    int count = 0;
    for (int i = 0; i < SIM_MAX; i++) count += sim[i].context != NULL;
    return count;
}

int simTimers(void) { return sim_timers; }

static void simAddRead(void *data) { ((simEvents *)data)->reading = true; }
static void simDelRead(void *data) { ((simEvents *)data)->reading = false; }
static void simAddWrite(void *data) { ((simEvents *)data)->writing = true; }
static void simDelWrite(void *data) { ((simEvents *)data)->writing = false; }
static void simCleanup(void *data) { *(simEvents *)data = (simEvents){0}; }
static void simScheduleTimer(void *data, struct timeval tv) {
    ((simEvents *)data)->due = sim_now_us + tv.tv_sec * 1000000LL + tv.tv_usec;
    sim_timers++;
}

int simAttach(valkeyAsyncContext *ac, void *unused) {
    (void)unused;
    simEvents *e = sim;
    while (e->context) e++;
    assert_true(e < sim + SIM_MAX);
    *e = (simEvents){.context = ac, .generation = ++sim_generation};
    ac->ev.data = e;
    ac->ev.addRead = simAddRead;
    ac->ev.delRead = simDelRead;
    ac->ev.addWrite = simAddWrite;
    ac->ev.delWrite = simDelWrite;
    ac->ev.cleanup = simCleanup;
    ac->ev.scheduleTimer = simScheduleTimer;
    return VALKEY_OK;
}

void simTurn(int ms) {
    struct pollfd p[SIM_MAX];
    unsigned generations[SIM_MAX];
    for (int i = 0; i < SIM_MAX; i++) {
        simEvents *e = &sim[i];
        int wanted = (e->reading ? POLLIN : 0) | (e->writing ? POLLOUT : 0);
        generations[i] = e->generation;
        p[i] = (struct pollfd){.fd = e->context && wanted ? e->context->c.fd : -1,
                               .events = (short)wanted};
    }
    if (poll(p, SIM_MAX, ms) <= 0) return;
    /* A handler may free any context. */
    for (int i = 0; i < SIM_MAX; i++) {
        simEvents *e = &sim[i];
        bool same = e->context && e->generation == generations[i];
        if (same && e->reading && (p[i].revents & (POLLIN | POLLHUP | POLLERR)))
            valkeyAsyncHandleRead(e->context);
        same = e->context && e->generation == generations[i];
        if (same && e->writing && (p[i].revents & (POLLOUT | POLLHUP | POLLERR)))
            valkeyAsyncHandleWrite(e->context);
    }
}

void simPass(long long us) {
    long long end = sim_now_us + us;
    for (;;) {
        simEvents *next = NULL;
        for (simEvents *e = sim; e < sim + SIM_MAX; e++) {
            bool runs = e->context && e->due && e->due <= end;
            if (runs && (!next || e->due < next->due)) next = e;
        }
        if (!next) break;
        sim_now_us = next->due;
        next->due = 0;
        valkeyAsyncHandleTimeout(next->context);
    }
    sim_now_us = end;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fixed work that tests/bench/gate.py holds against its budgets: a whole server in this
 * process, served by real turns of its loop, and clients on socket pairs. No peer, no network, no
 * second thread at work, clocks that stand still: the same binary runs the same instructions each
 * time.
 *
 *     gate requests [ROW]     what callgrind counts: all that gateTurn() calls
 *     gate bytes [ROW]        bytes of memory a key
 *
 * Each row runs in a forked child, so that none finds the keys of another. Prints
 * "name|pipeline|requests|process id" or "name|bytes". main.c is linked under the name
 * serverMain(); its loop is gateLoop(), its cron never starts, and no port is opened. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/hot.h"
#include "net/client.h"
#include "request_text.h"

int serverMain(int argc, char **argv);
void gateLoop(loop *l);
void gateCronStart(void);
status gateListen(reason *why);
void gateTurn(loop *l, int *events);

enum { CLIENTS = 10, KEYS = 10000, WARM = 1000, COUNTED = 3000, IDLE_CLIENTS = 500, PIPELINES = 3 };
enum { P1 = 1, P16 = 2, P100 = 4, ALL = P1 | P16 | P100 };
/* Also a flag of rows: tables grow in leaps, so these are counted until there are eight times as
 * many keys. */
enum { GROWS = 8 };

static const int pipelines[PIPELINES] = {1, 16, 100};

/* Requests are written as described in request_text.h. */
#define TEN(text) text text text text text text text text text text

/* Fields of a hash that many others have, too. */
#define RECORD "id %a name %a email %a created %a status %a owner %a"

typedef struct requestRow {
    const char *name, *request;
    char reply; /* how each reply begins */
    uint8_t pipelines;
    const char *fixture; /* run so many times before; NULL: the common keys do */
    int fixture_count;
} requestRow;

static const requestRow request_rows[] = {
    {"PING", "PING", '+', ALL, NULL, 0},
    {"GET hit", "GET key:%r", '$', ALL, NULL, 0},
    {"GET miss", "GET none:%r", '$', ALL, NULL, 0},
    {"GET, user &x", "GET key:%r", '$', P100, "ACL SETUSER default resetchannels &x", 1},
    {"GET, user ~key:*", "GET key:%r", '$', P100, "ACL SETUSER default resetkeys ~key:*", 1},
    {"GET, user of 5 globs", "GET key:%r", '$', P100,
     "ACL SETUSER default resetkeys ~key:*x ~k?y:*x ~k[abc]*x ~*x ~k*0*", 1},
    {"GET, user of commands", "GET key:%r", '$', P100, "ACL SETUSER default -flushall", 1},
    {"SET overwrite", "SET key:%r %a", '+', ALL, NULL, 0},
    {"SET new", "SET new:%n %a", '+', ALL | GROWS, NULL, 0},
    {"INCR", "INCR counter:%r", ':', ALL, "SET counter:%n 1000", KEYS},
    {"EXISTS", "EXISTS key:%r", ':', ALL, NULL, 0},
    {"DEL", "DEL key:%p", ':', ALL, NULL, 0},
    {"LPUSH", "LPUSH list %a", ':', ALL, NULL, 0},
    {"RPOP", "RPOP list", '$', ALL, "LPUSH list " TEN("%a "), 600},
    {"SADD", "SADD set element:%r", ':', ALL, NULL, 0},
    {"HSET", "HSET hash element:%r %a", ':', ALL, NULL, 0},
    {"ZADD", "ZADD zset %r element:%r", ':', ALL, NULL, 0},
    {"ZRANK", "ZRANK zset member:%r", ':', ALL, "ZADD zset %p member:%n", KEYS},
    {"MGET 10", "MGET " TEN("key:%r "), '*', P1 | P16, NULL, 0},
    {"MSET 10", "MSET " TEN("key:%r %a "), '+', P1 | P16, NULL, 0},
    {"LRANGE 100", "LRANGE list 0 99", '*', P1 | P16, "RPUSH list member:%n", 1000},
    {"ZRANGE 100", "ZRANGE zset 0 99", '*', P1 | P16, "ZADD zset %n member:%n", 1000},
    {"HGETALL 50", "HGETALL hash", '*', P1 | P16, "HSET hash field:%n %a", 50},
    {"HGETALL 1000", "HGETALL hash", '*', P1 | P16, "HSET hash field:%n %a", 1000},
    {"SMEMBERS 100", "SMEMBERS set", '*', P1 | P16, "SADD set member:%n", 100},
    {"HGET small", "HGET small:%r c", '$', ALL, "HSET small:%n a %a b %a c %a d %a", KEYS},
    {"HSET small", "HSET small:%r c %a", ':', ALL, "HSET small:%n a %a b %a c %a d %a", KEYS},
    {"HGET record", "HGET record:%r status", '$', P1 | P100, "HSET record:%n " RECORD, KEYS},
    {"HGETALL record", "HGETALL record:%r", '*', P1 | P100, "HSET record:%n " RECORD, KEYS},
    {"HSET record", "HSET record:%r status %a", ':', P100, "HSET record:%n " RECORD, KEYS},
    {"HSET record, new", "HSET new:%n " RECORD, ':', P100 | GROWS, "HSET record:%n " RECORD, 100},
    {"GET 512 B", "GET mid:%r", '$', P1 | P16, "SET mid:%n %b", KEYS},
    {"SET 512 B", "SET mid:%r %b", '+', P1 | P16, "SET mid:%n %b", KEYS},
    {"GET 4 KB", "GET big:%r", '$', P1 | P16, "SET big:%n %c", KEYS},
    {"SET 4 KB", "SET big:%r %c", '+', P1 | P16, "SET big:%n %c", KEYS},
    {"GETPXT", "GETPXT key:%r", '*', P16, NULL, 0},
    {"CL.THROTTLE", "CL.THROTTLE limit:%r 1000000 1000 1", '*', P16, NULL, 0},
    {"SET IFNE", "SET key:%r %a IFNE other", '+', P16, NULL, 0},
    {"DELEX IFNE", "DELEX key:%p IFNE other", ':', P16, NULL, 0},
    {"DIGEST 512 B", "DIGEST mid:%r", '$', P16, "SET mid:%n %b", KEYS},
    {"XADD", "XADD stream * field %a", '$', P16, NULL, 0},
    {"SADDEX", "SADDEX set EX 1000 MEMBERS 1 element:%r", ':', P16, NULL, 0},
    {"ZADDEX", "ZADDEX zset EX 1000 MEMBERS 1 %r element:%r", ':', P16, NULL, 0},
    {"SPEXPIRE", "SPEXPIRE set 100000%r MEMBERS 1 member:%r", '*', P16, "SADD set member:%n", KEYS},
    {"STTL", "STTL set MEMBERS 1 member:%r", '*', P16, "SADDEX set EX 1000 MEMBERS 1 member:%n",
     KEYS},
    {"SISMEMBER, TTLs", "SISMEMBER set member:%r", ':', P16,
     "SADDEX set EX 1000 MEMBERS 1 member:%n", KEYS},
};

/* Memory used by `count` requests, per request. */
typedef struct bytesRow {
    const char *name, *request;
    int count;
} bytesRow;

static const bytesRow bytes_rows[] = {
    {"string 16+16, 600k", "SET key:%n %a", 600000},
    {"string 16+16, 1M", "SET key:%n %a", 1000000},
    {"string 16+16, 1.5M", "SET key:%n %a", 1500000},
    {"string 16+512", "SET key:%n %b", 200000},
    {"string 16+4096", "SET key:%n %c", 50000},
    {"string 16+16, expires", "SET key:%n %a EX 1000000", 600000},
    {"string of an integer", "SET key:%n 12345678", 300000},
    {"hash of 3 fields", "HSET key:%n field:1 %a field:2 %a field:3 %a", 50000},
    {"record of 6 fields", "HSET key:%n " RECORD, 50000},
    {"set of 3 members", "SADD key:%n one two three", 50000},
    {"zset of 3 members", "ZADD key:%n 1 one 2 two 3 three", 50000},
    {"list of 3 elements", "RPUSH key:%n %a %a %a", 50000},
    {"field of a large hash", "HSET hash field:%n %a", 200000},
    {"member of a large set", "SADD set member:%n", 200000},
    {"member of a set, TTL", "SADDEX set EX 1000000 MEMBERS 1 member:%n", 200000},
    {"integer of a large set", "SADD set %n", 200000},
    {"member of a large zset", "ZADD zset %n member:%n", 200000},
    {"element of a long list", "RPUSH list %a", 200000},
};

/* ---- clocks that do not advance ---- */

static int64_t frozenMonoNs(void) { return INT64_C(1000000000); }
static int64_t frozenWallUs(void) { return INT64_C(1790000000000000); }
static const clockSource frozen = {frozenMonoNs, frozenWallUs};

/* ---- clients ---- */

typedef struct peer {
    client *cl;
    int fd; /* the other end */
} peer;

static peer peers[CLIENTS];
static requestNumbers numbers = {.range = KEYS, .random = 1};

static peer peerNew(void) {
    int pair[2];
    int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    check(failed == 0);
    client *cl = clientNew(pair[0], &connUnix, SESSION_LOCAL);
    check(cl != NULL);
    return (peer){cl, pair[1]};
}

/* Reads what has come; every helping must begin as the replies do, if it is known where one
 * begins. */
static void drain(peer *p, char begins) {
    static char replies[1 << 20];
    ssize_t n = read(p->fd, replies, sizeof(replies));
    check(n > 0 || errno == EAGAIN);
    if (n > 0 && begins && replies[0] != begins) {
        fprintf(stderr, "gate: unexpected reply: %.*s\n", (int)n, replies);
        exit(1);
    }
}

/* The only thing that is counted: one turn of the server's loop. */
__attribute__((noinline, noclone, externally_visible)) void gateTurn(loop *l, int *events) {
    *events = loopTurn(l, false);
}

static NO_INLINE void plainTurn(loop *l, int *events) { *events = loopTurn(l, false); }

static bool outputWaits(void) {
    for (int i = 0; i < CLIENTS; i++) {
        if (outbufPending(&peers[i].cl->session.out)) return true;
    }
    return false;
}

/* Each client sends `pipeline` requests in one write, and the server runs turns until all are
 * answered. */
static void playRound(loop *l, const requestText *request, char begins, int pipeline,
                      bool counted) {
    static char input[100 * REQUEST_BYTES_MAX];
    uint64_t before = engineHot.commands;
    for (int i = 0; i < CLIENTS; i++) {
        size_t len = 0;
        for (int k = 0; k < pipeline; k++) len += requestWrite(request, &numbers, input + len);
        ssize_t written = write(peers[i].fd, input, len);
        check(written == (ssize_t)len);
    }
    int events;
    bool fresh = true;
    do {
        if (counted) {
            gateTurn(l, &events);
        } else {
            plainTurn(l, &events);
        }
        bool answered = engineHot.commands > before;
        for (int i = 0; i < CLIENTS; i++) drain(&peers[i], fresh ? begins : 0);
        if (answered) fresh = false; /* a later helping may begin in the middle of a reply */
    } while (events > 0 || outputWaits());
    check(engineHot.commands == before + (uint64_t)pipeline * CLIENTS);
}

/* At least `count` requests; returns how many. */
static int play(loop *l, const char *request, char begins, int pipeline, int count, bool counted) {
    static requestText text;
    int played = 0;
    requestTextInit(&text, request);
    for (; played < count; played += pipeline * CLIENTS)
        playRound(l, &text, begins, pipeline, counted);
    return played;
}

/* ---- rows ---- */

static void runRequestRow(loop *l, const requestRow *row, int pipeline) {
    numbers.running = 0;
    play(l, row->request, row->reply, pipeline, WARM, false);
    int count = row->pipelines & GROWS ? 7 * KEYS : COUNTED;
    count = play(l, row->request, row->reply, pipeline, count, true);
    printf("%s|%d|%d|%d\n", row->name, pipeline, count, (int)getpid());
}

static void runBytesRow(loop *l, const bytesRow *row) {
    play(l, "PING", '+', 10, 100, false);
    size_t before = memUsed();
    numbers.running = 0;
    int count = play(l, row->request, 0, 10, row->count, false);
    printf("%s|%.3f\n", row->name, (double)(memUsed() - before) / count);
}

/* Clients that have sent one large request and are idle now. */
static void runIdleRow(loop *l) {
    play(l, "SET key:%n %c", '+', 10, 100, false);
    size_t before = memUsed();
    for (int i = 0; i < IDLE_CLIENTS; i += CLIENTS) {
        for (int k = 0; k < CLIENTS; k++) peers[k] = peerNew();
        play(l, "GET key:000000000007", '$', 10, 100, false);
        play(l, "PING %c", '$', 10, 100, false);
    }
    printf("idle client|%.3f\n", (double)(memUsed() - before) / IDLE_CLIENTS);
}

static const char *mode, *only;

static bool wanted(const char *name) { return !only || strcmp(only, name) == 0; }

/* True in the child, which ends with childEnds(); false in the parent when that has happened. */
static bool inChild(void) {
    fflush(stdout);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) return true;
    int how;
    pid_t ended = waitpid(child, &how, 0);
    check(ended == child);
    if (how != 0) exit(1);
    return false;
}

static void childEnds(void) {
    fflush(stdout);
    _exit(0);
}

static void runRequests(loop *l) {
    play(l, "SET key:%n %a", '+', 10, KEYS, false);
    for (size_t i = 0; i < COUNT_OF(request_rows); i++) {
        const requestRow *row = &request_rows[i];
        if (!wanted(row->name) || !inChild()) continue;
        numbers.running = 0;
        if (row->fixture) play(l, row->fixture, 0, 10, row->fixture_count, false);
        for (int k = 0; k < PIPELINES; k++) {
            if (!(row->pipelines & 1u << k) || !inChild()) continue;
            runRequestRow(l, row, pipelines[k]);
            childEnds();
        }
        childEnds();
    }
}

static void runBytes(loop *l) {
    for (size_t i = 0; i < COUNT_OF(bytes_rows); i++) {
        if (!wanted(bytes_rows[i].name) || !inChild()) continue;
        runBytesRow(l, &bytes_rows[i]);
        childEnds();
    }
    if (!wanted("idle client") || !inChild()) return;
    runIdleRow(l);
    childEnds();
}

void gateLoop(loop *l) {
    clockSetSource(&frozen);
    for (int i = 0; i < CLIENTS; i++) peers[i] = peerNew();
    if (strcmp(mode, "requests") == 0) {
        runRequests(l);
    } else {
        runBytes(l);
    }
    fflush(stdout);
    _exit(0);
}

/* What happens by the clock would not happen the same way twice. */
void gateCronStart(void) {}

/* No connection is to arrive. */
status gateListen(reason *why) {
    (void)why;
    return OK;
}

int main(int argc, char **argv) {
    mode = argc > 1 ? argv[1] : "";
    only = argc > 2 ? argv[2] : NULL;
    if (strcmp(mode, "requests") != 0 && strcmp(mode, "bytes") != 0) {
        fprintf(stderr, "usage: gate requests|bytes [ROW]\n");
        return 2;
    }
    static const char *const words[] = {"gate",      "--port",      "0",       "--save",
                                        "",          "--hash-seed", "gate",    "--logfile",
                                        "/dev/null", "--loglevel",  "warning", "--set-proc-title",
                                        "no"};
    char *server_argv[COUNT_OF(words) + 1] = {NULL};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        server_argv[i] = memDup(words[i], strlen(words[i]));
    return serverMain((int)COUNT_OF(words), server_argv);
}

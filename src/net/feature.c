/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of `net`, and the functions it exports to startup and other folders. Main thread
 * only. */
#include <stdio.h>

#include "account/share.h"
#include "base/base.h"
#include "defrag/defrag.h"
#include "engine/block.h"
#include "engine/hooks.h"
#include "engine/job_gate.h"
#include "engine/keyspace.h"
#include "engine/options.h"
#include "engine/pause.h"
#include "engine/session_report.h"
#include "engine/timer.h"
#include "io/net_addr.h"
#include "net/client.h"
#include "net/client_list.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"
#include "net/trial.h"
#include "resp/outbuf_drop.h"

/* Descriptors for the server itself: listeners, log, files, pipes to a child. */
enum { OWN_DESCRIPTORS = 32 };

/* Resumes sessions that a share of time held back, after all other sessions. */
static NO_INLINE bool resumeShares(void) {
    uint64_t turn = loopTurnNumber(netLoop());
    bool any = false;
    for (session *s; (s = shareNextReleased(turn)) != NULL; any = true) {
        s->carrier->resume(s);
        if (!(s->flags & (SESSION_IN_BATCH | SESSION_STOPS))) s->carrier->pause_reading(s, false);
    }
    return any;
}

/* Thousands may have waited for the end of a pause: others are served in between. */
enum { RESUMED_PER_TURN = 64 };
static int resumed; /* in this turn, after a pause */

static bool resumePaused(void) {
    bool any = false;
    for (session *s; resumed < RESUMED_PER_TURN && (s = pauseNextReleased()) != NULL; any = true) {
        resumed++;
        s->carrier->resume(s);
    }
    return any;
}

static bool resumeReleased(void) {
    bool any = resumePaused();
    /* Before the clients of the jobs that have ended: their next reads would hold it again. */
    for (session *s; (s = jobNextReleased()) != NULL; any = true) s->carrier->resume(s);
    for (session *s; (s = blockNextReleased()) != NULL; any = true) s->carrier->resume(s);
    if (unlikely(sharesHold()) && resumeShares()) any = true;
    return any;
}

/* Runs what was read, then sessions released from a pause or from blocking, possibly by what has
 * just been run. */
static void execute(void) {
    int64_t timer_ms;
    do {
        readerExecute();
        if (unlikely(ioThreadsInUse())) ioThreadsExecute();
        timersTurn(&timer_ms);
    } while (resumeReleased());
    readerContinue();
    const int64_t next_ms[] = {timer_ms, defragNextMs(), keyspaceNextMs()};
    for (size_t i = 0; i < COUNT_OF(next_ms); i++) {
        if (next_ms[i] >= 0) loopLimitSleep(netLoop(), next_ms[i]);
    }
    if (unlikely(sharesHold())) loopLimitSleep(netLoop(), shareNextMs());
}

/* Sessions woken in stage WAKE continue in the same turn. */
static void executeWoken(void) {
    if (resumeReleased()) execute();
}

/* To close a connection takes 10 to 20 us: others are served in between. */
static void beforeSleep(void) {
    enum { FREED_PER_TURN = 64, DROPPED_PER_TURN = 4 * 1024 * 1024 /* half a millisecond */ };
    clientFreeClosed(FREED_PER_TURN);
    if (unlikely(resumed)) {
        if (resumed == RESUMED_PER_TURN) loopLimitSleep(netLoop(), 0);
        resumed = 0;
    }
    if (unlikely(outbufFreeDropped(DROPPED_PER_TURN))) loopLimitSleep(netLoop(), 0);
    timersNewTurn();
    if (unlikely(ioThreadsInUse())) ioThreadsBeforeSleep();
}

static const stageJob stages[] = {{STAGE_EXECUTE, execute},
                                  {STAGE_WAKE, executeWoken},
                                  {STAGE_WRITE, writerRun},
                                  {STAGE_FREE, beforeSleep},
                                  {0}};

static status init(reason *why) {
    (void)why; /* cannot fail */
    sessionSetFindProc(netFindClient);
    sessionSetDescribeProc(clientDescribe);
    sessionSetMemoryClassesProc(limitsAppendClasses);
    return OK;
}

static size_t releaseMemory(void) {
    (void)outbufFreeDropped(SIZE_MAX); /* nothing is left */
    (void)outbufPoolTrim();            /* its bytes are free at once */
    return limitsEvict();
}

static const gate *const gates[] = {&trialGate, NULL};

const feature netFeature = {.name = "net",
                            .gates = gates,
                            .options = netOptions,
                            .info = netSections,
                            .ticks = netTicks,
                            .stages = stages,
                            .init = init,
                            .on_child = listenerChildEvent,
                            .on_pressure = releaseMemory,
                            .on_stats_reset = netResetStats};

bool netHasGateway(void) {
    return netConf.cluster_gateway_port || netConf.cluster_gateway_tls_port;
}

int netPort(void) { return netConf.port ? netConf.port : netConf.tls_port; }

void netListenPorts(int *tcp, int *tls) {
    *tcp = netConf.port;
    *tls = netConf.tls_port;
}

status netFitDescriptors(reason *why) {
    hotCheck(threadIsMain());
    int64_t want = netConf.maxclients + OWN_DESCRIPTORS;
    int64_t have = netRaiseFdLimit(want);
    if (have >= want) return OK;
    int64_t clients = have - OWN_DESCRIPTORS;
    if (clients < 1) {
        return reasonSet(
            why, ERR_LIMIT,
            "Your current 'ulimit -n' of %lld is not enough for the server to start. Please increase your "
            "open file limit to at least %lld. Exiting.",
            (long long)have, (long long)want);
    }
    reasonSet(
        why, OK,
        "You requested maxclients of %lld requiring at least %lld max file descriptors. Current maximum open files "
        "is %lld. maxclients has been reduced to %lld to compensate for low ulimit.",
        (long long)netConf.maxclients, (long long)want, (long long)have, (long long)clients);
    netConf.maxclients = clients;
    return OK;
}

int64_t netMaxClients(void) { return netConf.maxclients; }

static void printListener(str *out, int kind, const char *name, int port) {
    if (!port) return;
    strAppendFormat(out, "listener%d:name=%s", kind, name);
    for (int i = 0; i < netConf.bind_count; i++) strAppendFormat(out, ",bind=%s", netConf.bind[i]);
    strAppendFormat(out, ",port=%d\r\n", port);
}

void netPrintListeners(str *out) {
    hotCheck(threadIsMain());
    printListener(out, 0, "tcp", netConf.port);
    if (netConf.unixsocket[0])
        strAppendFormat(out, "listener1:name=unix,bind=%s\r\n", netConf.unixsocket);
    printListener(out, 2, "tls", netConf.tls_port);
    printListener(out, 3, "admin", netConf.admin_port);
    printListener(out, 4, "gateway", netConf.cluster_gateway_port);
    printListener(out, 5, "gateway-tls", netConf.cluster_gateway_tls_port);
}

size_t netClientsMemory(void) {
    size_t sum = 0;
    list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        const client *cl = LIST_OWNER(n, client, all);
        if (!(cl->session.flags & SESSION_REPLICA)) sum += clientMemory(cl);
    }
    return sum;
}

size_t netUnfinishedMemory(void) {
    hotCheck(threadIsMain());
    const uint64_t others = SESSION_REPLICA | SESSION_REPLAY | SESSION_INTERNAL;
    size_t sum = 0;
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        const client *cl = LIST_OWNER(n, client, all);
        if (cl->before_auth || cl->session.flags & others) continue;
        sum += clientIsAway(cl) ? (size_t)cl->away_units * CLIENT_AWAY_UNIT : clientInputMemory(cl);
    }
    return sum;
}

const session *netLargestClient(void) {
    hotCheck(threadIsMain());
    const client *largest = NULL;
    list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        const client *cl = LIST_OWNER(n, client, all);
        if (cl->session.flags & SESSION_REPLICA) continue;
        if (!largest || clientMemory(cl) > clientMemory(largest)) largest = cl;
    }
    return largest ? &largest->session : NULL;
}

void clientDescribeForLog(const client *cl, str *out) {
    hotCheck(threadIsMain());
    static const char *const fields[] = {" name=", " user=", " lib-name=", " lib-ver="};
    if (!engineHidesUserData()) {
        clientDescribe(&cl->session, out);
        return;
    }
    str line = STR_EMPTY;
    clientDescribe(&cl->session, &line);
    for (size_t i = 0; i < line.len;) {
        size_t len = 0;
        for (size_t f = 0; f < COUNT_OF(fields) && !len; f++) {
            if (!strncmp(line.ptr + i, fields[f], strlen(fields[f]))) len = strlen(fields[f]);
        }
        if (!len) {
            strAppendByte(out, line.ptr[i++]);
            continue;
        }
        strAppend(out, line.ptr + i, len);
        strAppendText(out, "*redacted*");
        for (i += len; i < line.len && line.ptr[i] != ' ';) i++;
    }
    strFree(&line);
}

void netDescribeClients(int most, bool for_log, str *out) {
    hotCheck(threadIsMain());
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n && most > 0; n = listNext(all, n), most--) {
        const client *cl = LIST_OWNER(n, client, all);
        if (for_log) {
            clientDescribeForLog(cl, out);
        } else {
            clientDescribe(&cl->session, out);
        }
        strAppendByte(out, '\n');
    }
}

void netDescribeLargest(int most, str *out) {
    hotCheck(most <= NET_LARGEST_MAX);
    const client *largest[NET_LARGEST_MAX];
    size_t bytes[NET_LARGEST_MAX];
    int count = 0;
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        const client *cl = LIST_OWNER(n, client, all);
        size_t own = clientMemory(cl);
        int place = count;
        if (count < most) {
            count++;
        } else if (count == 0 || own <= bytes[count - 1]) {
            continue;
        } else {
            place--; /* the smallest one is replaced */
        }
        for (; place > 0 && bytes[place - 1] < own; place--) {
            largest[place] = largest[place - 1];
            bytes[place] = bytes[place - 1];
        }
        largest[place] = cl;
        bytes[place] = own;
    }
    for (int i = 0; i < count; i++) {
        clientDescribe(&largest[i]->session, out);
        strAppendByte(out, '\n');
    }
}

bool netDescribeForLog(const session *s, str *out) {
    if (!s || s->carrier != &clientCarrier) return false;
    clientDescribeForLog((const client *)s, out);
    return true;
}

bool netDescribeOrderer(const session *s, str *out) {
    if (!s || s->carrier != &clientCarrier) return false;
    clientDescribeShort((const client *)s, engineHidesUserData(), out);
    return true;
}

int netBindAddresses(const char *const **addrs) {
    *addrs = (const char *const *)netConf.bind;
    return netConf.bind_count;
}

bool netIsProtected(void) { return netConf.protected_mode; }

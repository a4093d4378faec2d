/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits for which clients are closed: output limits of the client's class, the query buffer limit,
 * a smaller output limit before authentication, idle timeouts, maxmemory-clients. Main thread
 * only. */
#include "net/client.h"

#include <stdlib.h>

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/options.h"
#include "engine/transaction.h"
#include "net/client_list.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"

/* Output limit of a client that has not authenticated, about what Valkey holds before it allocates
 * memory for replies. */
enum { UNAUTHENTICATED_OUTPUT_MAX = 16 * 1024 };

static const outputLimit *limitOf(const session *s) {
    if (s->flags & SESSION_PUBSUB) return &netConf.output_limits[OUTPUT_PUBSUB];
    return &netConf.output_limits[OUTPUT_NORMAL];
}

size_t netReplicaOutputLimit(void) { return netConf.output_limits[OUTPUT_REPLICA].hard_bytes; }

/* True if the soft limit has been exceeded for longer than allowed. Must see every change of
 * `held`. */
static bool softLimitHolds(client *cl, const outputLimit *limit, size_t held) {
    hotCheck(limit->soft_seconds >= 0);
    if (!limit->soft_bytes || held < limit->soft_bytes) {
        cl->soft_limit_since_ms = 0;
        return false;
    }
    if (!cl->soft_limit_since_ms) cl->soft_limit_since_ms = engineHot.now_ms;
    return engineHot.now_ms - cl->soft_limit_since_ms > limit->soft_seconds * 1000;
}

static bool isOverLimit(client *cl, const outputLimit *limit, size_t held) {
    bool soft = softLimitHolds(cl, limit, held);
    return soft || (limit->hard_bytes && held >= limit->hard_bytes);
}

static void closeOverLimit(client *cl) {
    hotCheck(!(cl->session.flags & SESSION_CLOSE_NOW));
    str line = STR_EMPTY;
    clientDescribeForLog(cl, &line);
    logWarning("Client %s scheduled to be closed ASAP for overcoming of output buffer limits.",
               strText(&line));
    strFree(&line);
    netStats()->output_limit_closed++;
    clientCloseLater(cl);
}

size_t netReplicaSoftLimit(size_t backlog_limit) {
    const outputLimit *limit = &netConf.output_limits[OUTPUT_REPLICA];
    size_t bytes = limit->soft_bytes ? limit->soft_bytes : limit->hard_bytes;
    return bytes ? sizeMax(bytes, backlog_limit) : 0;
}

/* A limit below the size of the backlog would close replicas for what is kept anyway. */
void netLimitReplica(session *s, size_t held, size_t backlog_limit) {
    hotCheck(threadIsMain());
    client *cl = clientOf(s);
    if (s->flags & SESSION_CLOSE_NOW) return;
    outputLimit limit = netConf.output_limits[OUTPUT_REPLICA];
    if (limit.hard_bytes && limit.hard_bytes < backlog_limit) limit.hard_bytes = backlog_limit;
    if (limit.soft_bytes && limit.soft_bytes < backlog_limit) limit.soft_bytes = backlog_limit;
    if (isOverLimit(cl, &limit, held)) closeOverLimit(cl);
}

bool limitsCheckOutput(client *cl) {
    session *s = &cl->session;
    if (s->flags & SESSION_CLOSE_NOW) return true;
    const uint64_t others = SESSION_INTERNAL | SESSION_REPLAY | SESSION_REPLICA;
    if (s->flags & (others | SESSION_SLOT_EXPORT)) return false;
    bool over = isOverLimit(cl, limitOf(s), sessionOutputMemory(s));
    if (!sessionIsAuthenticated(s) && outbufPending(&s->out) > UNAUTHENTICATED_OUTPUT_MAX)
        over = true;
    if (!over) return false;
    closeOverLimit(cl);
    return true;
}

bool limitsCheckInput(client *cl) {
    if (cl->session.flags & SESSION_CLOSE_NOW) return true;
    if (unlikely(cl->session.flags & SESSION_REPLAY)) return false;
    /* As in Valkey, counts received bytes; the memory to store them counts for
     * maxmemory-clients. */
    size_t held =
        cl->in_len + requestParserBytes(&cl->parser) + transactionArgumentBytes(&cl->session);
    if (likely(held <= (size_t)netConf.client_query_buffer_limit)) return false;
    str line = STR_EMPTY;
    clientDescribeForLog(cl, &line);
    logWarning("Closing client that reached max query buffer length: %s", strText(&line));
    strFree(&line);
    netStats()->input_limit_closed++;
    clientCloseLater(cl);
    return true;
}

/* ------------------------------------------------------------------ maxmemory-clients */

static size_t counted_sum; /* sum of `counted` of all clients */

void limitsUncount(client *cl) {
    hotCheck(counted_sum >= cl->counted);
    if (unlikely(cl->before_auth)) beforeAuthSubtract(cl);
    counted_sum -= cl->counted;
    cl->counted = 0;
}

/* Bytes to send that are not in the output's own memory: messages are kept once for all their
 * receivers, but a client that does not read them is a reason to close it, not to evict keys. */
static size_t sharedPending(const outbuf *o) {
    size_t pending = outbufPending(o), own = outbufMemory(o);
    return pending > own ? pending - own : 0;
}

static void count(client *cl, size_t more) {
    limitsUncount(cl);
    cl->counted =
        clientSessionMemory(cl) + clientConnMemory(cl) + sharedPending(&cl->session.out) + more;
    counted_sum += cl->counted;
}

/* What others decide to send to a server without knowing its password. */
static void countBeforeAuth(client *cl) {
    hotCheck(cl->counted == 0);
    size_t input = clientIsAway(cl) ? clientConnMemory(cl) : clientInputMemory(cl);
    cl->counted = sizeof(*cl) + input + outbufMemory(&cl->session.out);
    counted_sum += cl->counted;
    beforeAuthAdd(cl);
}

enum { SESSION_TRUSTED = SESSION_AUTHENTICATED | SESSION_REPLAY | SESSION_INTERNAL };

static NO_INLINE void recount(client *cl) {
    limitsUncount(cl);
    if (listHas(&cl->closing)) return;
    if (!(cl->session.flags & SESSION_TRUSTED)) {
        countBeforeAuth(cl);
    } else if (netConf.maxmemory_clients) {
        count(cl, 0);
    }
}

void limitsRecount(client *cl) {
    bool is_trusted = cl->session.flags & SESSION_TRUSTED;
    if (unlikely(netConf.maxmemory_clients || !is_trusted || cl->counted)) recount(cl);
}

status limitsApplyClientMemory(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* cannot fail */
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        recount(LIST_OWNER(n, client, all));
    }
    return OK;
}

/* In bytes; 0: no limit. */
static size_t clientMemoryLimit(void) {
    int64_t limit = netConf.maxmemory_clients;
    if (limit >= 0) return (size_t)limit;
    return (size_t)((double)engineMaxmemory() * (double)-limit / 100);
}

int clientCompareCounted(const void *a, const void *b) {
    const client *x = *(client *const *)a, *y = *(client *const *)b;
    return (x->counted < y->counted) - (x->counted > y->counted);
}

static bool mayBeEvicted(const client *cl) {
    const uint32_t spared = SESSION_NO_EVICT | SESSION_REPLAY | SESSION_REPLICA | SESSION_CLOSE_NOW;
    return !(cl->session.flags & spared) && cl->counted;
}

/* Frees the input and output buffers of the client before stage FREE, if no other thread or command
 * uses them. Otherwise the clients of one turn could use several times the limit. */
static void dropBytes(client *cl) {
    hotCheck(cl->session.flags & SESSION_CLOSE_NOW);
    if (engineHot.current || clientIsAway(cl) || cl->conn.thread) return;
    outbufClear(&cl->session.out);
    readerDropInput(cl);
}

/* Returns the memory of the closed clients. */
static size_t evictLargest(size_t limit) {
    hotCheck(counted_sum > limit);
    list *all = clientAll();
    client **victims = memNewArray(client *, all->count);
    size_t count = 0, other_sum = 0; /* the limit excludes clients of replication */
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        client *cl = LIST_OWNER(n, client, all);
        if (mayBeEvicted(cl)) victims[count++] = cl;
        if (cl->session.flags & (SESSION_REPLAY | SESSION_REPLICA)) other_sum += cl->counted;
    }
    qsort(victims, count, sizeof(*victims), clientCompareCounted);
    size_t sum = counted_sum - other_sum, before = sum;
    for (size_t i = 0; i < count && sum > limit; i++) {
        str line = STR_EMPTY;
        clientDescribeForLog(victims[i], &line);
        logNotice("Evicting client: %s", strText(&line));
        strFree(&line);
        sum -= victims[i]->counted;
        netStats()->evicted++;
        sessionCloseNow(&victims[i]->session);
        dropBytes(victims[i]);
    }
    memFree(victims);
    return before - sum;
}

size_t limitsEvict(void) {
    if (likely(!netConf.maxmemory_clients)) return 0;
    size_t limit = clientMemoryLimit();
    if (unlikely(limit && counted_sum > limit) && ioThreadsInUse()) ioThreadsCountWritten();
    return limit && counted_sum > limit ? evictLargest(limit) : 0;
}

bool limitsAdmitInput(client *cl, size_t bytes) {
    enum { SMALL = 16 * 1024 }; /* the rest of the limit is checked after each turn */
    if (likely(!netConf.maxmemory_clients) || bytes < SMALL) return true;
    count(cl, bytes);
    (void)limitsEvict(); /* how much that frees does not matter */
    return !(cl->session.flags & SESSION_CLOSE_NOW);
}

bool limitsAppendClasses(str *out) {
    enum { FIRST_BIT = 15, CLASSES = 19 }; /* class i > 0 begins at 2^(FIRST_BIT + i - 1) bytes */
    size_t bytes[CLASSES] = {0}, clients[CLASSES] = {0};
    if (!netConf.maxmemory_clients) return false;
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        const client *cl = LIST_OWNER(n, client, all);
        if (!mayBeEvicted(cl)) continue;
        int at = 0;
        while (at < CLASSES - 1 && cl->counted >> (FIRST_BIT + at)) at++;
        bytes[at] += cl->counted;
        clients[at]++;
    }
    for (int i = 0; i < CLASSES; i++) {
        unsigned long long from = i ? 1ULL << (FIRST_BIT + i - 1) : 0;
        if (i < CLASSES - 1) {
            strAppendFormat(out, "bucket %10llu - %10llu", from, (1ULL << (FIRST_BIT + i)) - 1);
        } else {
            strAppendFormat(out, "bucket %10llu+            ", from);
        }
        strAppendFormat(out, ": tot-mem: %10zu, clients: %zu\n", bytes[i], clients[i]);
    }
    return true;
}

/* True for clients exempt from the idle timeout. */
static bool neverIdle(const session *s) {
    return s->flags & (SESSION_REPLICA | SESSION_REPLAY | SESSION_BLOCKED | SESSION_PAUSED |
                       SESSION_PUBSUB | SESSION_MONITOR);
}

/* Checks a share of the clients each time, so that all are checked about once per second, and while
 * the cron rests before a sample of buffers is forgotten. */
void limitsTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* the share is small whatever the budget */
    list *all = clientAll();
    size_t share = all->count / 8 + 8;
    if (share > all->count) share = all->count;
    while (share--) {
        /* The list rotates: checked clients move to its end. */
        listNode *n = listFirst(all);
        client *cl = LIST_OWNER(n, client, all);
        listRemove(all, n);
        listAppend(all, n);
        session *s = &cl->session;
        if (listHas(&cl->closing)) continue;
        netSampleBuffers(cl);
        int64_t idle_s = (engineHot.now_ms - s->active_ms) / 1000;
        if (netConf.timeout && idle_s > netConf.timeout && !neverIdle(s)) {
            logVerbose("Closing idle client");
            clientCloseLater(cl);
        } else if (outbufPending(&s->out)) {
            (void)limitsCheckOutput(cl); /* a soft limit may be reached without an event */
        }
    }
}

bool limitsAreBusy(void) {
    list *all = clientAll();
    if (netConf.timeout && all->count) return true;
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        if (outbufPending(&LIST_OWNER(n, client, all)->session.out)) return true; /* soft limits */
    }
    return false;
}

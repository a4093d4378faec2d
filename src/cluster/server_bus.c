/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects the bus of this server with sockets, the clock and directives. There is one bus in a
 * process, so the callbacks do not use their argument.
 *
 * Invariant: nothing is sent before the changes of the map are saved that preceded it
 * (bus/map_saves.h). serverBusFlush() marks the messages of a turn, and sends what may leave. A
 * link with messages that have no mark, or whose mark waits, is in serverLinks.unsent, and
 * serverBusFlush() alone sends its output. writable() sends that of the others, whose socket was
 * full, as soon as the socket takes bytes again. Main thread only. */
#include "cluster/server_bus.h"

#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "base/random.h"
#include "bus/bus_secret.h"
#include "cluster/bus_names.h"
#include "cluster/cluster_priv.h"
#include "cluster/held_messages.h"
#include "cluster/peers.h"
#include "cluster/peers_priv.h"
#include "cluster/redirect.h"
#include "cluster/server_map.h"
#include "cluster/server_role.h"
#include "cluster/shared_link.h"
#include "cluster/shared_state.h"
#include "cluster/slot_stats.h"
#include "engine/hot.h"
#include "engine/job.h"
#include "engine/lifecycle.h"
#include "engine/pause.h"
#include "io/net_addr.h"
#include "io/resolve.h"
#include "io/tls.h"
#include "net/net.h"
#include "pubsub/pubsub.h"
#include "repl/role.h"

enum {
    LISTENERS_MAX = 16,
    BACKLOG = 511,
    READ_BYTES = 64 * 1024,
    READS_PER_EVENT = 16, /* then other connections are served first */
};

/* The connection of a link. */
typedef struct busConn {
    conn conn;
    busLink *link; /* NULL: it has ended */
    str out;
    size_t sent;       /* of `out` */
    saveMarks marks;   /* which of `out` waits for saves of the map */
    listNode unsent;   /* in serverLinks.unsent */
    bool is_reading;   /* its callback is running, and frees it */
    busSecret *secret; /* NULL: nothing has to be proven any more */
} busConn;

clusterBus serverBus;

static struct {
    int listeners[LISTENERS_MAX];
    int listener_count;
    list unsent;
    int64_t clock_ahead_ms; /* of the monotonic clock */
    int count;
    int unproven; /* connections with a `secret` */
    size_t memory;
    uint64_t sent_bytes, limit_exceeded;
} serverLinks;

int64_t serverBusNowMs(void) {
    int64_t mono_ms = clockMonoMs();
    if (!serverLinks.clock_ahead_ms) serverLinks.clock_ahead_ms = clockWallMs() - mono_ms;
    return mono_ms + serverLinks.clock_ahead_ms;
}

/* ------------------------------------------------------------------ connections */

static busConn *newConn(int fd, connState state) {
    busConn *bc = memNew(busConn);
    bool tls = netTlsForCluster();
    (void)netSetNoDelay(fd, true); /* without it messages are only slower */
    connInit(&bc->conn, tls ? &connTls : &connTcp, engineLoop(), fd, state);
    connSetPriority(&bc->conn, true); /* a late answer counts as a failure */
    serverLinks.count++;
    return bc;
}

static void account(busConn *bc) {
    busLink *l = bc->link;
    check(bc->sent <= bc->out.len);
    check(serverLinks.memory >= l->allocated);
    serverLinks.memory -= l->allocated;
    l->allocated = bc->out.cap;
    l->unsent = bc->out.len - bc->sent;
    serverLinks.memory += l->allocated;
}

static void endSecret(busConn *bc) {
    if (!bc->secret) return;
    check(serverLinks.unproven > 0);
    memFree(bc->secret);
    bc->secret = NULL;
    serverLinks.unproven--;
}

static void freeConn(busConn *bc) {
    check(!bc->link);
    check(!listHas(&bc->unsent));
    check(serverLinks.count > 0);
    strFree(&bc->out);
    endSecret(bc);
    memFree(bc);
    serverLinks.count--;
}

/* The link has ended or is about to. */
static void closeConn(busConn *bc) {
    check(bc->link);
    serverLinks.memory -= bc->link->allocated;
    bc->link = NULL;
    if (listHas(&bc->unsent)) listRemove(&serverLinks.unsent, &bc->unsent);
    connClose(&bc->conn);
    if (!bc->is_reading) freeConn(bc);
}

/* The connection has failed or ended. */
static void ended(busConn *bc, bool refused) {
    busLink *l = bc->link;
    closeConn(bc);
    busClosed(&serverBus, l, refused, serverBusNowMs());
}

/* ------------------------------------------------------------------ sending */

static void writable(conn *c);

/* Removes what was sent, if that is worth it. */
static void trim(busConn *bc) {
    check(bc->sent <= bc->marks.free);
    if (bc->sent == bc->out.len) {
        strFree(&bc->out);
    } else if (bc->sent > bc->out.len / 2) {
        memmove(bc->out.ptr, bc->out.ptr + bc->sent, bc->out.len - bc->sent);
        strCut(&bc->out, bc->out.len - bc->sent);
    } else {
        return;
    }
    saveMarksSent(&bc->marks, bc->sent);
    bc->sent = 0;
}

/* Sends what may leave. False: the connection has failed. */
static bool sendPending(busConn *bc) {
    size_t end = saveMarksFree(&bc->marks, &serverMapSaves);
    while (bc->sent < end) {
        struct iovec iov = {bc->out.ptr + bc->sent, end - bc->sent};
        ssize_t n = connWritev(&bc->conn, &iov, 1);
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) return false;
        bc->sent += (size_t)n;
        serverLinks.sent_bytes += (uint64_t)n;
    }
    bool is_full = bc->sent < end;
    trim(bc);
    account(bc);
    return connOnWrite(&bc->conn, is_full ? writable : NULL) == OK;
}

static void writable(conn *c) {
    busConn *bc = CONTAINER_OF(c, busConn, conn);
    bool sent = listHas(&bc->unsent) ? connOnWrite(c, NULL) == OK : sendPending(bc);
    if (!sent) ended(bc, false);
}

static bool isOverLimit(const busLink *l) {
    size_t limit = clusterConf.cluster_link_sendbuf_limit;
    size_t memory = l->allocated + sizeof(*l) + sizeof(busConn);
    if (!limit || memory <= limit || !l->allocated) return false;
    logWarning("Freeing cluster link(%s node %s, used memory: %zu) due to exceeding send buffer "
               "memory limit.",
               l->is_inbound ? "from" : "to",
               l->node ? clusterNodeLabel(l->node).text : "<unknown>", memory);
    serverLinks.limit_exceeded++;
    return true;
}

/* Sends, and drops links that exceed the limit: nothing is added to a link before the next turn. */
void serverBusFlush(void) {
    size_t count = serverLinks.unsent.count; /* each once, those that wait as well */
    while (count--) {
        listNode *at = listFirst(&serverLinks.unsent);
        if (!at) break; /* one that was dropped had others closed */
        busConn *bc = CONTAINER_OF(at, busConn, unsent);
        listRemove(&serverLinks.unsent, at);
        saveMarksAdd(&bc->marks, &serverMapSaves, bc->out.len);
        if (!sendPending(bc)) {
            ended(bc, false);
        } else if (isOverLimit(bc->link)) {
            busDrop(&serverBus, bc->link);
        } else if (bc->marks.count) {
            listAppend(&serverLinks.unsent, at);
        }
    }
}

/* Called after bytes were added to the output of a connection. */
static void outGrew(busConn *bc) {
    account(bc);
    if (!listHas(&bc->unsent)) listAppend(&serverLinks.unsent, &bc->unsent);
}

static void sendOn(void *arg, busLink *l, const str *bytes) {
    (void)arg;
    busConn *bc = l->carrier;
    check(bc->link == l);
    check(bc->conn.state == CONN_OPEN);
    check(!bc->secret);
    strAppendSlice(&bc->out, strSlice(bytes));
    outGrew(bc);
}

/* ------------------------------------------------------------------ the secret of the bus */

/* The connection is established. True if its ends have to prove first that they know the secret. */
static bool beginSecret(busConn *bc) {
    uint8_t nonce[SECRET_NONCE_LEN];
    if (!clusterConf.cluster_bus_secret[0]) {
        bc->link->is_proven = netTlsForCluster(); /* both ends have certificates */
        return false;
    }
    randomSecret(nonce, sizeof(nonce));
    bc->secret = memNew(busSecret);
    serverLinks.unproven++;
    busSecretInit(bc->secret, bc->link->is_inbound, nonce, &bc->out);
    if (bc->out.len) outGrew(bc);
    return true;
}

static void logRefused(const busConn *bc) {
    static int64_t told_ms; /* a node without the secret tries again ten times a second */
    char peer[NET_ADDR_TEXT_MAX];
    if (!logIsDue(&told_ms, serverBusNowMs(), BUS_COMPLAINT_MS)) return;
    logWarning("Cluster bus connection %s %s closed: the other end does not know the "
               "cluster-bus-secret of this node.",
               bc->link->is_inbound ? "from" : "to",
               netPeerText(bc->conn.fd, peer) ? peer : "an unknown address");
}

/* Takes from `bytes` what belongs to the proof. False: nothing is left for the bus, or the
 * connection has ended. */
static bool takeSecret(busConn *bc, slice *bytes) {
    slice secret = sliceOf(clusterConf.cluster_bus_secret);
    secretVerdict verdict = SECRET_REFUSED; /* there may be no secret any more */
    if (secret.len) verdict = busSecretTake(bc->secret, secret, bytes, &bc->out);
    if (verdict == SECRET_REFUSED) {
        logRefused(bc);
        ended(bc, false);
        return false;
    }
    if (bc->out.len > bc->sent) outGrew(bc);
    if (verdict == SECRET_PENDING) return false;
    endSecret(bc);
    bc->link->is_proven = true;
    if (!bc->link->is_inbound) busOpened(&serverBus, bc->link, serverBusNowMs());
    return bc->link && bytes->len;
}

/* A stranger must not keep connections for ever. */
static bool isUnproven(clusterBus *b, const busLink *l) {
    (void)b;
    const busConn *bc = l->carrier;
    return bc && bc->secret && serverBusNowMs() - l->created_ms > clusterConf.bus.timeout_ms;
}

/* ------------------------------------------------------------------ receiving */

static void readable(conn *c) {
    static char bytes[READ_BYTES];
    busConn *bc = CONTAINER_OF(c, busConn, conn);
    if (c->state == CONN_FAILED) { /* in the handshake of TLS */
        logVerbose("Error accepting cluster node connection: %s", connErrorText(c));
        ended(bc, false);
        return;
    }
    check(bc->link->carrier == bc);
    serverMapNoteOrders(); /* in a long turn some requests have been executed */
    bc->is_reading = true;
    for (int i = 0; i < READS_PER_EVENT && bc->link; i++) {
        ssize_t n = connRead(c, bytes, sizeof(bytes));
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            if (n == 0) logDebug("I/O error reading from node link: connection closed");
            ended(bc, false);
        } else {
            slice input = sliceMake(bytes, (size_t)n);
            if (!bc->secret || takeSecret(bc, &input))
                busReceived(&serverBus, bc->link, input, serverBusNowMs());
            if ((size_t)n < sizeof(bytes)) break;
        }
    }
    bc->is_reading = false;
    if (!bc->link) freeConn(bc);
    serverMapNote();
    /* The requests of this turn are executed in the new role. */
    if (serverRoleIsPending() && !engineHot.current) clusterApplyChanges();
}

/* The open connections; grows with the number of nodes. */
static struct {
    busConn **conns;
    int count;
} opened;

static void addOpened(void *arg, const busLink *l) {
    (void)arg;
    busConn *bc = l->carrier;
    if (!bc || bc->conn.state != CONN_OPEN) return;
    check(bc->link == l);
    opened.conns[opened.count++] = bc;
}

/* An earlier one may have ended it. */
static bool isConnected(const busConn *bc) {
    for (const listNode *at = listFirst(&serverBus.links); at; at = listNext(&serverBus.links, at))
        if (CONTAINER_OF(at, const busLink, all)->carrier == bc) return true;
    return false;
}

void serverBusRead(void) {
    size_t most = (size_t)serverLinks.count;
    opened.conns = memRealloc(opened.conns, (most + 1) * sizeof(busConn *));
    opened.count = 0;
    busEachLink(&serverBus, addOpened, NULL);
    check((size_t)opened.count <= most);
    for (int i = 0; i < opened.count; i++)
        if (isConnected(opened.conns[i])) readable(&opened.conns[i]->conn);
}

/* ------------------------------------------------------------------ connecting */

static void connected(conn *c) {
    busConn *bc = CONTAINER_OF(c, busConn, conn);
    check(!bc->link->is_inbound);
    if (c->state == CONN_FAILED) {
        const busLink *l = bc->link;
        if (c->last_errno != ECONNREFUSED && l->node)
            logVerbose("Connection with Node %.40s at %s:%d failed: %s", l->node->id, l->peer_ip,
                       l->peer_port, connErrorText(c));
        ended(bc, c->last_errno == ECONNREFUSED);
    } else if (connOnWrite(c, NULL) != OK || connOnRead(c, readable) != OK) {
        ended(bc, false);
    } else if (!beginSecret(bc)) {
        busOpened(&serverBus, bc->link, serverBusNowMs());
    }
}

static busConnect connectTo(void *arg, busLink *l) {
    (void)arg;
    reason why;
    const char *ip = busNameAddress(l->peer_ip, serverBusNowMs());
    if (!ip) return BUS_IMPOSSIBLE;
    int fd = netConnectTcp(ip, l->peer_port, netSourceAddress(), false, &why);
    if (fd < 0) {
        if (errno == ECONNREFUSED) return BUS_REFUSED;
        logVerbose("Unable to connect to Cluster Node [%s]:%d -> %s", ip, l->peer_port, why.text);
        return BUS_IMPOSSIBLE;
    }
    busConn *bc = newConn(fd, CONN_CONNECTING);
    bc->link = l;
    l->carrier = bc;
    if (netTlsForCluster() && netTlsConnect(&bc->conn, l->peer_ip) != OK) goto fail;
    if (connOnWrite(&bc->conn, connected) != OK) goto fail;
    return BUS_CONNECTING;
fail:
    closeConn(bc);
    l->carrier = NULL;
    return BUS_IMPOSSIBLE;
}

static void closeLink(void *arg, busLink *l) {
    (void)arg;
    check(!l->is_closed);
    if (l->carrier) closeConn(l->carrier);
}

/* The bus port of the host that is being looked up; 0: none is. One at a time, so that a resolver
 * that does not answer delays replication, which uses it too, by one name at most. */
static int looked_up_port;

static void lookedUp(void *arg, const char *addr) {
    (void)arg;
    int bus_port = looked_up_port;
    check(bus_port > 0);
    looked_up_port = 0;
    if (addr) busProbe(&serverBus, sliceOf(addr), bus_port, serverBusNowMs());
}

static bool lookUp(void *arg, slice host, int bus_port) {
    char name[NODE_HOSTNAME_MAX];
    (void)arg;
    if (looked_up_port || host.len >= sizeof(name)) return false;
    memcpy(name, host.ptr, host.len);
    name[host.len] = '\0';
    looked_up_port = bus_port;
    resolveHost(name, lookedUp, NULL);
    return true;
}

/* ------------------------------------------------------------------ listening */

static void acceptOne(int fd) {
    char peer[NET_ADDR_TEXT_MAX], own[NET_ADDR_TEXT_MAX];
    bool known = netPeerText(fd, peer) && netLocalText(fd, own);
    busConn *bc = known ? newConn(fd, CONN_OPEN) : NULL;
    if (!bc) {
        close(fd);
        return;
    }
    /* A failure only means that a dead connection is noticed later. */
    (void)netSetKeepAlive(fd, (int)(clusterConf.bus.timeout_ms / 500) + 1);
    logVerbose("Accepting cluster node connection from %s", peer);
    bc->link = busAccepted(&serverBus, bc, serverBusNowMs());
    bc->link->peer_port = netSplitText(peer, bc->link->peer_ip, BUS_IP_MAX);
    (void)netSplitText(own, bc->link->own_ip, BUS_IP_MAX); /* the port is known */
    if ((netTlsForCluster() && netTlsAcceptNode(&bc->conn) != OK) ||
        connOnRead(&bc->conn, readable) != OK) {
        ended(bc, false);
    } else {
        (void)beginSecret(bc); /* the other end begins, in either case */
    }
}

static void acceptable(loop *l, int fd, void *arg, int mask) {
    (void)mask; /* only readability is watched */
    if (engineHot.loading && serverMap.myself->flags & NODE_PRIMARY) return;
    int most = netMostAccepts(netTlsForCluster());
    for (int i = 0; i < most; i++) {
        int accepted = netAccept(fd);
        if (accepted < 0) {
            netAcceptFailed(&(netAccepter){l, fd, acceptable, arg, false});
            return;
        }
        acceptOne(accepted);
    }
}

static status listenOn(const char *addr, reason *why) {
    netListenOptions options = {.backlog = BACKLOG, .ip6_only = true};
    bool optional = addr[0] == '-', unsupported = false;
    reason detail;
    int fd = netListenTcp(addr + optional, serverBusPort(), &options, &unsupported, &detail);
    if (fd < 0 && optional && unsupported) return OK;
    if (fd >= 0 && serverLinks.listener_count < LISTENERS_MAX &&
        loopWatch(engineLoop(), fd, LOOP_READ, acceptable, NULL) == OK) {
        serverLinks.listeners[serverLinks.listener_count++] = fd;
        return OK;
    }
    if (fd >= 0) {
        close(fd);
    } else {
        logWarning("Warning: Could not create server TCP listening socket %s:%d: %s",
                   addr + optional, serverBusPort(), detail.text);
    }
    return reasonSet(why, ERR_IO, "Failed listening on port %d (cluster), aborting.",
                     serverBusPort());
}

static status openListeners(reason *why) {
    const char *const *addrs;
    int count = netBindAddresses(&addrs);
    for (int i = 0; i < count; i++) {
        status st = listenOn(addrs[i], why);
        if (st != OK) return st;
    }
    return OK;
}

int serverBusBasePort(void) {
    int tcp, tls;
    netListenPorts(&tcp, &tls);
    return netTlsForCluster() && tls ? tls : netPort();
}

int serverBusPort(void) {
    static int port; /* the listeners stay where they are when directives change */
    if (!port)
        port = clusterConf.cluster_port ? clusterConf.cluster_port
                                        : serverBusBasePort() + CLUSTER_BUS_PORT_OFFSET;
    return port;
}

/* ------------------------------------------------------------------ what the bus asks for */

static int64_t offsetNow(void *arg) {
    (void)arg;
    return replOffset();
}

static uint64_t streamNow(void *arg) {
    (void)arg;
    return replStreamNumber();
}

static void holdAcks(void *arg, bool on) {
    (void)arg;
    replHoldAcks(on);
}

static bool hasCaughtUp(void *arg) {
    (void)arg;
    return replHasCaughtUp();
}

static int64_t dataAge(void *arg) {
    (void)arg;
    return replLinkAgeMs();
}

static bool isLinked(void *arg) {
    (void)arg;
    return serverRoleIsLinked();
}

/* Roles are compared with the map at the end of the turn. */
static void follow(void *arg, clusterNode *primary) {
    (void)arg, (void)primary;
    serverRoleChanged();
}

static void promoted(void *arg) {
    (void)arg;
    serverRoleChanged();
}

static void slotsLost(void *arg) {
    (void)arg;
    serverRoleSlotsLost();
}

static void pauseWrites(void *arg, int64_t until_ms) {
    (void)arg;
    if (until_ms) {
        (void)jobEndChanges(); /* a change that has begun has its effect before */
        pauseBegin(PAUSE_FOR_FAILOVER, PAUSE_WRITES, clockWallMs() + (until_ms - serverBusNowMs()));
    } else {
        pauseEnd(PAUSE_FOR_FAILOVER);
    }
    replHoldStream(until_ms != 0);
}

static void published(void *arg, bool shard, slice channel, slice text) {
    (void)arg;
    pubsubDeliver(shard, channel, text);
    if (shard) slotStatsDelivered(channel, text);
}

static void moduleMessage(void *arg, const busLink *l, clusterNode *from, const message *m) {
    (void)arg;
    if (m->module_id == SHARED_MODULE_ID) {
        if (l->is_proven) sharedLinkReceived(from, m->module_type, m->payload);
        return;
    }
    peersReceived(from, m->module_id, m->module_type, m->payload);
}

static const busProcs procs = {.connect = connectTo,
                               .lookUp = lookUp,
                               .send = sendOn,
                               .close = closeLink,
                               .offset = offsetNow,
                               .dataAge = dataAge,
                               .stream = streamNow,
                               .holdAcks = holdAcks,
                               .hasCaughtUp = hasCaughtUp,
                               .isLinked = isLinked,
                               .follow = follow,
                               .promoted = promoted,
                               .slotsLost = slotsLost,
                               .pauseWrites = pauseWrites,
                               .publish = published,
                               .module = moduleMessage};

/* ------------------------------------------------------------------ periodically */

/* A replica keeps data that this node was started without: it is to be promoted, unless nothing was
 * heard of it for so long that it would have been. */
static bool hasLostData(void) {
    enum { KEPT_MS = 30 * 1000, TIMEOUTS = 3 };
    int64_t ms = replLostDataMs(), timeouts_ms = TIMEOUTS * clusterConf.bus.timeout_ms;
    return ms >= 0 && ms < (timeouts_ms > KEPT_MS ? timeouts_ms : KEPT_MS);
}

void serverBusTakeRules(void) {
    bool lost_data = hasLostData();
    serverBus.rules = clusterConf.bus;
    serverBus.server = (busServer){.tls = netTlsForCluster(),
                                   .announces_ip = clusterConf.cluster_announce_ip[0] != '\0',
                                   .forbids_failover = clusterPeersForbidFailover(),
                                   .shares_acl = sharedAnnouncesAcl(),
                                   .shares_functions = sharedAnnouncesFunctions(),
                                   .shares_config = sharedAnnouncesConfig(),
                                   .repl_ping_ms = replPingMs(),
                                   .quorum = replQuorumSize(),
                                   .read_lease_ms = replReadLeaseMs(),
                                   .is_silent = lost_data || replIsBehind(),
                                   .lost_data = lost_data,
                                   .seeds = &clusterConf.cluster_seeds};
}

static bool mustDrop(clusterBus *b, const busLink *l) {
    (void)b;
    return isOverLimit(l);
}

void serverBusTick(int64_t budget_us) {
    (void)budget_us; /* takes little time */
    serverBusTakeRules();
    if (clusterConf.cluster_link_sendbuf_limit) busDropIf(&serverBus, mustDrop);
    if (serverLinks.unproven) busDropIf(&serverBus, isUnproven);
    busTick(&serverBus, serverBusNowMs());
}

void serverBusStep(void) {
    static bool recheck, was_ok;
    if (serverMap.changed & CLUSTER_MAP_STATE) recheck = true;
    if (serverMap.changed & CLUSTER_MAP_STATE || busAwaitsOffset(&serverBus))
        busStep(&serverBus, serverBusNowMs());
    serverRoleApply();
    if (serverClusterState.ok != was_ok) recheck = true;
    was_ok = serverClusterState.ok;
    if (likely(!recheck) || engineHot.current) return;
    recheck = false;
    slotStatsSlotsChanged();
    redirectBlocked();
}

/* ------------------------------------------------------------------ reports */

size_t serverBusMemory(void) {
    return serverLinks.memory + (size_t)serverLinks.count * (sizeof(busConn) + sizeof(busLink));
}

uint64_t serverBusSentBytes(void) { return serverLinks.sent_bytes; }
uint64_t serverBusLimitExceeded(void) { return serverLinks.limit_exceeded; }

void serverBusResetStats(void) {
    serverBus.counts = (busCounts){.bytes_received = 0};
    serverLinks.sent_bytes = serverLinks.limit_exceeded = 0;
}

/* ------------------------------------------------------------------ beginning and end */

/* The host may have had another address when the file was written. The first node that connects
 * tells which one it has now. */
static void verifyAddress(void) {
    clusterNode *myself = serverMap.myself;
    if (serverBus.server.announces_ip || !myself->ip.len || netAddrIsOwn(strText(&myself->ip)))
        return;
    logNotice("This host does not have the address %s of the cluster configuration file any more.",
              strText(&myself->ip));
    clusterMapSetText(&serverMap, &myself->ip, SLICE(""));
}

status serverBusInit(reason *why) {
    listInit(&serverLinks.unsent);
    busInit(&serverBus, &serverMap, &serverClusterState, &procs, NULL, serverBusNowMs());
    serverBusTakeRules();
    verifyAddress();
    pubsubSetOutward(heldMessagePublish);
    return openListeners(why);
}

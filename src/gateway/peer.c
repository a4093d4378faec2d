/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links to other nodes (peer.h). Before the first request a link proves that this node knows
 * cluster-bus-secret (identity.h); a node that does not understand that, or a cluster without a
 * secret, is logged in at with primaryuser and primaryauth. After that each change of user, client,
 * database or protocol is sent before the request that needs it. On a proven link the node refuses
 * the request if it refuses the change; on others the request waits until that is replied.
 *
 * Invariant: `flying` has the calls that were written to `out`, in their order: the next reply that
 * is read belongs to the first one. A link for one call at a time has at most one. Main thread
 * only. */
#include "gateway/peer.h"

#include <errno.h>

#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "bus/bus_secret.h"
#include "cluster/owners.h"
#include "engine/hot.h"
#include "engine/latency.h"
#include "engine/lifecycle.h"
#include "gateway/caching.h"
#include "gateway/client.h"
#include "gateway/identity.h"
#include "gateway/merge.h"
#include "gateway/shard.h"
#include "io/conn.h"
#include "io/net_addr.h"
#include "io/tls.h"
#include "net/net.h"
#include "repl/role.h"
#include "resp/resp.h"

enum {
    READ_MAX = 64 * 1024,
    IN_KEPT = 1024 * 1024,         /* a larger buffer is freed when it is empty */
    OUTPUT_MAX = 16 * 1024 * 1024, /* bytes that wait for one node */
    IDLE_MS = 60000,
    IOVECS = 64,
};

typedef enum peerState {
    PEER_CONNECTING,
    PEER_PROVING, /* the other end has to prove that it knows the secret */
    PEER_PROOF,   /* this end has sent its own proof */
    PEER_LOGIN,
    PEER_READY,
    PEER_CHANGING, /* not proven: a change of protocol or database was sent */
} peerState;

struct gatewayPeer {
    listNode all;
    char id[NODE_ID_LEN];
    conn conn;
    peerState state;
    bool is_proven;
    bool leads_here;         /* to this node: it tells its own clients of changes without a link */
    bool is_broken;          /* to be closed when nothing uses it */
    bool is_alone, is_taken; /* used by one call at a time; it is used, or held */
    bool tracks;             /* the node tracks keys for it */
    bool knows_prefixes;     /* the node has got prefixes of broadcast mode since it has slots */
    int prefixes;            /* so many, the first ones, need not be sent */
    bool telling_prefixes;   /* it was sent them, and has not replied */
    bool refuses_prefixes;   /* it tells of no changes of keys with them */
    /* The last call that was sent before them, whose reply precedes theirs; NULL: it has come. */
    const gatewayCall *before_prefixes;
    const void *holder;
    busSecret secret;
    list queued; /* calls that wait for PEER_READY; of PEER_CHANGING the first one needs it */
    list flying;
    size_t queued_bytes;
    outbuf out;
    uint64_t written; /* bytes that the socket has taken */
    str in;
    size_t reply_at, read_to; /* in `in`: the reply that is being read; where to read on */
    replyReader reader;
    /* As the other end knows them; db_id -1: it is not known. */
    str user, client;
    int db_id;
    uint8_t proto;
    int changes;      /* of PEER_CHANGING: replies to come, the first one */
    bool tells_proto; /* is that to HELLO */
    str change_error; /* the first error among them */
    int64_t used_ms;
};

static struct {
    list all;
    int64_t told_ms;
} peers;

static list *allPeers(void) {
    if (!peers.all.head.next) listInit(&peers.all);
    return &peers.all;
}

int peerCount(void) { return (int)allPeers()->count; }

bool peerIs(const gatewayPeer *p, const clusterNode *n) {
    return memcmp(p->id, n->id, NODE_ID_LEN) == 0;
}

bool peerIsFull(const gatewayPeer *p) {
    return outbufPending(&p->out) + p->queued_bytes > OUTPUT_MAX;
}

/* ------------------------------------------------------------------ requests */

static uint64_t streamEnd(const gatewayPeer *p) { return p->written + outbufPending(&p->out); }

static void sendWords(gatewayPeer *p, int count, const slice *words) {
    respArray(&p->out, count);
    for (int i = 0; i < count; i++) respBulk(&p->out, words[i]);
}

static slice numberText(char *dst, int64_t number) {
    return sliceMake(dst, numberPrintInt(dst, number));
}

static void keepText(str *to, slice text) {
    strClear(to);
    strAppendSlice(to, text);
}

/* True if requests of this protocol (0: of any) can be sent as they are. */
static bool knowsProto(const gatewayPeer *p, const gatewayCall *c) {
    return !c->proto || p->proto == c->proto;
}

static bool knowsDatabase(const gatewayPeer *p, const gatewayCall *c) {
    return knowsProto(p, c) && (c->flags & CALL_BY_NODE || p->db_id == c->db_id);
}

static bool knowsUser(const gatewayPeer *p, const gatewayCall *c) {
    return c->flags & CALL_BY_NODE || sliceEqual(strSlice(&p->user), callUser(c));
}

/* Sends over a proven link what the other end has to know before the request; returns the number of
 * replies to it. */
static int sendContext(gatewayPeer *p, const gatewayCall *c) {
    char db[NUMBER_TEXT_MAX], proto[NUMBER_TEXT_MAX];
    int replies = 0;
    slice user = callUser(c), client = callClient(c);
    check(p->is_proven);
    check(user.len == 0 || !(c->flags & CALL_BY_NODE));
    if (!knowsDatabase(p, c) || !knowsUser(p, c)) {
        slice words[] = {SLICE("GATEWAY"), SLICE("AS"), user, numberText(db, c->db_id),
                         numberText(proto, c->proto)};
        sendWords(p, COUNT_OF(words), words);
        keepText(&p->user, user);
        p->db_id = c->db_id;
        p->proto = c->proto;
        replies++;
    }
    /* Requests of this node itself have no client. */
    if (client.len && !sliceEqual(strSlice(&p->client), client)) {
        slice words[] = {SLICE("GATEWAY"), SLICE("FOR"), client};
        sendWords(p, COUNT_OF(words), words);
        keepText(&p->client, client);
        replies++;
    }
    return replies;
}

/* Sends the same over a link that is not proven. The calls wait: with the change refused, the
 * request would be executed in another database. */
static void beginChange(gatewayPeer *p, const gatewayCall *c) {
    char text[NUMBER_TEXT_MAX];
    check(!p->is_proven);
    check(!p->change_error.len);
    p->state = PEER_CHANGING;
    p->changes = 0;
    if (p->proto != c->proto) {
        slice words[] = {SLICE("HELLO"), numberText(text, c->proto)};
        sendWords(p, COUNT_OF(words), words);
        p->tells_proto = true;
        p->changes++;
    }
    if (p->db_id != c->db_id) {
        slice words[] = {SLICE("SELECT"), numberText(text, c->db_id)};
        sendWords(p, COUNT_OF(words), words);
        p->changes++;
    }
    check(p->changes > 0);
}

/* User, database and protocol are sent again before the next request: the other end may have no
 * user any more. On a link without proof an error changes nothing of them, and the user who is
 * logged in may lack the right to SELECT or HELLO. */
static void forgetContext(gatewayPeer *p) {
    if (!p->is_proven) return;
    p->db_id = -1;
    p->proto = 0;
}

/* Tells an owner of slots those of the first `count` prefixes of broadcast mode that it has not
 * got: the link existed before the node became an owner, or before there were so many. */
static void tellPrefixes(gatewayPeer *p, int count) {
    str request = STR_EMPTY;
    if (p->prefixes >= count || p->telling_prefixes || p->leads_here) return;
    if (p->state != PEER_READY || !p->is_proven || p->is_alone) return;
    cachingAppendPrefixes(&request, p->prefixes, count);
    outbufAppend(&p->out, request.ptr, request.len);
    strFree(&request);
    p->prefixes = count;
    p->tracks = p->knows_prefixes = p->telling_prefixes = true;
    listNode *last = listLast(&p->flying);
    p->before_prefixes = last ? LIST_OWNER(last, gatewayCall, node) : NULL;
}

/* True if the reply that has come is the one to tellPrefixes(). A node of an older version may
 * refuse them: what clients in broadcast mode read there is forgotten at once. */
static bool takesPrefixes(gatewayPeer *p, slice reply) {
    if (!p->telling_prefixes || p->before_prefixes) return false;
    p->telling_prefixes = false;
    if (reply.ptr[0] == '-') p->refuses_prefixes = true;
    cachingPrefixesTold();
    return true;
}

/* Asks the node to track what the call reads. Returns the number of replies to that. */
static int sendTracking(gatewayPeer *p, gatewayCall *c) {
    const uint32_t wanted = c->flags & (CALL_CACHES | CALL_SILENT);
    slice words[4] = {SLICE("GATEWAY"), SLICE("TRACK")};
    int count = 2;
    /* Without the secret, or while a slot moves, nobody would tell of changes: caching.c. */
    c->flags &= ~(uint32_t)CALL_TRACKED;
    if (!p->is_proven || c->flags & CALL_ASKS) return 0;
    bool has_all = c->flags & CALL_PREFIXES ||
                   (c->flags & CALL_MORE && p->prefixes >= cachingPrefixesTo(CALL_MORE));
    if (has_all) p->prefixes = cachingPrefixesTo(0);
    if (has_all) p->tracks = p->knows_prefixes = true;
    /* In broadcast mode the shared link is told, before the reply if the request has another. */
    bool has_prefixes = !p->is_alone && !p->refuses_prefixes;
    if (c->flags & CALL_CACHES || has_prefixes) c->flags |= CALL_TRACKED;
    if (!wanted) return 0;
    if (c->flags & CALL_CACHES) words[count++] = SLICE("CACHE");
    if (c->flags & CALL_SILENT) words[count++] = SLICE("SILENT");
    sendWords(p, count, words);
    p->tracks = true;
    return 1;
}

static void sendCall(gatewayPeer *p, gatewayCall *c) {
    check(p->state == PEER_READY);
    check(p->is_proven || knowsDatabase(p, c));
    if (c->flags & CALL_PROVEN && !p->is_proven) {
        callFail(
            c,
            SLICE(
                "ERR The gateway sends scripts, SORT with BY or GET, WAIT and commands of modules "
                "only to nodes that know the same cluster-bus-secret"));
        return;
    }
    /* The node may be an owner of slots before this one has heard of that. */
    bool is_at_owner = c->slot >= 0 && !(c->flags & CALL_ASKS);
    if (is_at_owner || c->flags & CALL_MORE) tellPrefixes(p, cachingPrefixesTo(c->flags));
    c->begins_at = streamEnd(p);
    c->sent_ms = engineHot.now_ms;
    c->skip = (p->is_proven ? sendContext(p, c) : 0) + c->extra;
    c->skip += sendTracking(p, c);
    if (c->flags & CALL_ASKS) {
        slice asking = SLICE("ASKING");
        sendWords(p, 1, &asking);
        c->skip++;
    }
    slice bytes = callBytes(c);
    outbufAppend(&p->out, bytes.ptr, bytes.len);
    listAppend(&p->flying, &c->node);
    callStatistics.sent++;
}

void peerAdd(gatewayPeer *p, gatewayCall *c) {
    check(!listHas(&c->node));
    c->peer = p;
    p->used_ms = engineHot.now_ms;
    bool may_send = p->state == PEER_READY && (p->is_proven || knowsDatabase(p, c));
    if (may_send) {
        sendCall(p, c);
        return;
    }
    listAppend(&p->queued, &c->node);
    p->queued_bytes += c->request_len;
    if (p->state == PEER_READY) beginChange(p, c);
}

static gatewayCall *takeQueued(gatewayPeer *p) {
    gatewayCall *c = LIST_OWNER(listFirst(&p->queued), gatewayCall, node);
    listRemove(&p->queued, &c->node);
    check(p->queued_bytes >= c->request_len);
    p->queued_bytes -= c->request_len;
    return c;
}

static bool leadsToOwner(const gatewayPeer *p) {
    const clusterNode *n = clusterNodeOfId(sliceMake(p->id, NODE_ID_LEN));
    return n && clusterNodeVotes(n);
}

static void sendQueued(gatewayPeer *p) {
    if (leadsToOwner(p)) tellPrefixes(p, cachingPrefixesTo(0));
    while (p->state == PEER_READY && !listIsEmpty(&p->queued)) {
        const gatewayCall *next = LIST_OWNER(listFirst(&p->queued), gatewayCall, node);
        if (p->is_proven || knowsDatabase(p, next)) {
            sendCall(p, takeQueued(p));
        } else {
            beginChange(p, next);
        }
    }
}

/* ------------------------------------------------------------------ end of a link */

static void freePeer(gatewayPeer *p) {
    check(listIsEmpty(&p->flying));
    check(listIsEmpty(&p->queued));
    listRemove(allPeers(), &p->all);
    connClose(&p->conn);
    outbufClear(&p->out);
    strFree(&p->in);
    strFree(&p->user);
    strFree(&p->client);
    strFree(&p->change_error);
    memFree(p);
}

/* The calls become what callLost() says. The memory stays until the end of the turn: the caller may
 * be reading from the link. */
static void endLink(gatewayPeer *p, const char *why) {
    if (p->is_broken) return;
    p->is_broken = true;
    if (p->tracks) cachingLinkEnded();
    if (!p->is_alone && logIsDue(&peers.told_ms, engineHot.now_ms, 1000))
        logNotice("The gateway's link to node %.*s has ended: %s", NODE_ID_LEN, p->id, why);
    connClose(&p->conn);
    for (listNode *n; (n = listFirst(&p->flying));) {
        gatewayCall *c = LIST_OWNER(n, gatewayCall, node);
        listRemove(&p->flying, n);
        callLost(c, c->begins_at < p->written);
    }
    while (!listIsEmpty(&p->queued)) callLost(takeQueued(p), false);
    gatewayProgress();
    engineStayAwake();
}

/* ------------------------------------------------------------------ handshake */

static void beginLogin(gatewayPeer *p) {
    slice words[3] = {SLICE("AUTH")}, user, password;
    int count = 1;
    replCredentials(&user, &password);
    p->state = PEER_LOGIN;
    if (!password.len) {
        /* Only its reply tells that the node has accepted the connection: what was sent to one that
         * has not would be UNKNOWN. */
        slice ping = SLICE("PING");
        sendWords(p, 1, &ping);
        return;
    }
    if (user.len) words[count++] = user;
    words[count++] = password;
    sendWords(p, count, words);
}

static void sendProof(gatewayPeer *p, const str *bytes) {
    slice words[] = {SLICE("GATEWAY"), SLICE("LINK"), strSlice(bytes)};
    sendWords(p, COUNT_OF(words), words);
}

static void beginLink(gatewayPeer *p) {
    uint8_t nonce[SECRET_NONCE_LEN];
    if (!clusterSecret().len) {
        beginLogin(p);
        return;
    }
    str bytes = STR_EMPTY;
    randomSecret(nonce, sizeof(nonce));
    busSecretInit(&p->secret, false, nonce, &bytes);
    sendProof(p, &bytes);
    strFree(&bytes);
    p->state = PEER_PROVING;
}

static void takeProof(gatewayPeer *p, slice reply) {
    slice bytes = mergeBulk(reply);
    str out = STR_EMPTY, key = STR_EMPTY;
    if (reply.ptr[0] == '-') { /* it does not know the command, or has no secret */
        beginLogin(p);
        return;
    }
    identityKey(&key);
    if (busSecretTake(&p->secret, strSlice(&key), &bytes, &out) == SECRET_PROVEN) {
        sendProof(p, &out);
        p->state = PEER_PROOF;
    } else {
        endLink(p, "the node does not know the cluster-bus-secret of this one");
    }
    strFree(&out);
    strFree(&key);
}

/* True if the node takes no connection of this one now: it has no place for it, or is in protected
 * mode. */
static bool isTurnedAway(slice reply) {
    return sliceHasPrefix(reply, SLICE("-ERR max number of clients")) ||
           sliceHasPrefix(reply, SLICE("-DENIED "));
}

/* The reply to PING of a node that wants a password is an error: so are those to requests. */
static bool isAccepted(slice reply) {
    slice user, password;
    replCredentials(&user, &password);
    return reply.ptr[0] == '+' || !password.len;
}

/* The database or protocol of the first queued call is in effect, or the call fails. */
static void endChange(gatewayPeer *p) {
    p->state = PEER_READY;
    if (p->change_error.len) {
        str error = p->change_error;
        p->change_error = STR_EMPTY;
        callReplied(takeQueued(p), strSlice(&error));
        strFree(&error);
    }
    sendQueued(p);
}

static void takeChange(gatewayPeer *p, slice reply) {
    check(p->changes > 0);
    check(!listIsEmpty(&p->queued));
    const gatewayCall *first = LIST_OWNER(listFirst(&p->queued), gatewayCall, node);
    bool is_proto = p->tells_proto;
    p->tells_proto = false;
    if (reply.ptr[0] == '-') {
        if (!p->change_error.len) strAppendSlice(&p->change_error, reply);
    } else if (is_proto) {
        p->proto = first->proto;
    } else {
        p->db_id = first->db_id;
    }
    if (--p->changes == 0) endChange(p);
}

static void takeHandshake(gatewayPeer *p, slice reply) {
    if (p->state == PEER_CHANGING) {
        takeChange(p, reply);
    } else if (isTurnedAway(reply)) {
        endLink(p, "the node has no place for it");
    } else if (p->state == PEER_PROVING) {
        takeProof(p, reply);
    } else if (p->state == PEER_PROOF ? reply.ptr[0] != '+' : !isAccepted(reply)) {
        endLink(p, p->state == PEER_PROOF ? "the node has refused cluster-bus-secret"
                                          : "the node has refused primaryuser and primaryauth");
    } else {
        p->is_proven = p->state == PEER_PROOF;
        p->state = PEER_READY;
        sendQueued(p);
    }
}

/* ------------------------------------------------------------------ replies */

/* The node closes the connection, and has executed neither the request nor those after it. */
static void turnAway(gatewayPeer *p) {
    for (listNode *n = listFirst(&p->flying); n; n = listNext(&p->flying, n))
        LIST_OWNER(n, gatewayCall, node)->begins_at = UINT64_MAX;
    endLink(p, "the node has no place for it");
}

static void takeReply(gatewayPeer *p, slice reply) {
    check(reply.len > 0);
    bool is_change = p->state == PEER_CHANGING && listIsEmpty(&p->flying);
    if (p->state < PEER_READY || is_change) {
        takeHandshake(p, reply);
        return;
    }
    if (takesPrefixes(p, reply)) return;
    listNode *first = listFirst(&p->flying);
    if (!first) {
        endLink(p, "it has sent what was not asked for");
        return;
    }
    gatewayCall *c = LIST_OWNER(first, gatewayCall, node);
    if (!p->is_proven && isTurnedAway(reply)) {
        turnAway(p);
        return;
    }
    if (c->skip > 0) {
        c->skip--;
        if (reply.ptr[0] != '-') return;
        if (!c->early.len) strAppendSlice(&c->early, reply);
        forgetContext(p); /* the user may be made later */
        return;
    }
    listRemove(&p->flying, first);
    if (c == p->before_prefixes) p->before_prefixes = NULL;
    /* The user may have been removed, and the other end has none then. */
    if (sliceHasPrefix(reply, SLICE("-NOPERM "))) forgetContext(p);
    if (!(c->flags & CALL_OWN_LINK)) latencyNote("gateway-hop", engineHot.now_ms - c->sent_ms);
    callReplied(c, reply);
}

static void takeReplies(gatewayPeer *p) {
    while (!p->is_broken) {
        replyEvent e;
        replyReadStatus st = replyRead(&p->reader, p->in.ptr, p->in.len, &p->read_to, &e);
        if (st == REPLY_NEED_MORE) break;
        if (st == REPLY_BAD) {
            endLink(p, p->reader.error);
            return;
        }
        slice reply = sliceMake(p->in.ptr + p->reply_at, p->read_to - p->reply_at);
        p->reply_at = p->read_to;
        if (e.kind == REPLY_PUSH) {
            cachingTakePush(reply);
            shardTakePush(reply);
        } else {
            takeReply(p, reply);
        }
    }
    if (p->reply_at == 0) return;
    memmove(p->in.ptr, p->in.ptr + p->reply_at, p->in.len - p->reply_at);
    strCut(&p->in, p->in.len - p->reply_at);
    p->read_to -= p->reply_at;
    p->reply_at = 0;
    if (!p->in.len && p->in.cap > IN_KEPT) strFree(&p->in);
}

static void readable(conn *c) {
    gatewayPeer *p = CONTAINER_OF(c, gatewayPeer, conn);
    ssize_t n = connRead(c, strReserve(&p->in, READ_MAX), READ_MAX);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        endLink(p, n == 0 ? "it has closed the connection" : connErrorText(c));
    } else {
        strGrow(&p->in, (size_t)n);
        takeReplies(p);
    }
    gatewayProgress();
}

static void flush(gatewayPeer *p);

static void writable(conn *c) {
    gatewayPeer *p = CONTAINER_OF(c, gatewayPeer, conn);
    if (connOnWrite(c, NULL) != OK) endLink(p, "it cannot be watched");
    flush(p);
    gatewayProgress();
}

static void flush(gatewayPeer *p) {
    if (p->is_broken || p->state == PEER_CONNECTING || p->conn.on_write) return;
    for (size_t pending; (pending = outbufPending(&p->out)) > 0;) {
        struct iovec iov[IOVECS];
        ssize_t n = connWritev(&p->conn, iov, outbufIovecs(&p->out, iov, IOVECS));
        if (n < 0 && errno == EAGAIN) {
            if (connOnWrite(&p->conn, writable) != OK) endLink(p, "it cannot be watched");
            return;
        }
        if (n < 0) {
            endLink(p, connErrorText(&p->conn));
            return;
        }
        check((size_t)n <= pending);
        outbufConsume(&p->out, (size_t)n);
        outbufReap(&p->out);
        p->written += (uint64_t)n;
    }
}

void peersFlush(void) {
    list *all = allPeers();
    for (listNode *n = listFirst(all), *next; n; n = next) {
        next = listNext(all, n);
        gatewayPeer *p = LIST_OWNER(n, gatewayPeer, all);
        flush(p);
        if (p->is_broken) freePeer(p);
    }
}

/* ------------------------------------------------------------------ opening */

static void connectEnded(conn *c) {
    gatewayPeer *p = CONTAINER_OF(c, gatewayPeer, conn);
    if (c->state == CONN_CONNECTING || c->state == CONN_HANDSHAKING) return;
    if (c->state == CONN_OPEN && connOnWrite(c, NULL) == OK && connOnRead(c, readable) == OK) {
        beginLink(p);
    } else {
        endLink(p, connErrorText(c));
    }
}

static gatewayPeer *openPeer(const clusterNode *n, bool alone) {
    reason why = {{0}};
    bool tls = netTlsForCluster();
    const char *ip = clusterNodeAddress(n);
    int fd = ip ? netConnectTcp(ip, clusterNodePort(n, tls), netSourceAddress(), false, &why) : -1;
    if (fd < 0) return NULL;
    (void)netSetNoDelay(fd, true); /* it works without */
    gatewayPeer *p = memCalloc(1, sizeof(*p));
    memcpy(p->id, n->id, NODE_ID_LEN);
    listInit(&p->queued);
    listInit(&p->flying);
    listAppend(allPeers(), &p->all);
    outbufInit(&p->out);
    replyReaderInit(&p->reader);
    p->reader.skip = true;
    p->proto = 2; /* and database 0, as any connection begins */
    p->is_alone = p->is_taken = alone;
    p->leads_here = clusterIsMyself(n);
    p->used_ms = engineHot.now_ms;
    connInit(&p->conn, tls ? &connTls : &connTcp, engineLoop(), fd, CONN_CONNECTING);
    bool works = !tls || netTlsConnect(&p->conn, strText(&n->ip)) == OK;
    if (works && connOnWrite(&p->conn, connectEnded) == OK) return p;
    freePeer(p);
    return NULL;
}

gatewayPeer *peerTo(const clusterNode *n) {
    list *all = allPeers();
    for (listNode *at = listFirst(all); at; at = listNext(all, at)) {
        gatewayPeer *p = LIST_OWNER(at, gatewayPeer, all);
        if (peerIs(p, n) && !p->is_broken && !p->is_alone) return p;
    }
    return openPeer(n, false);
}

gatewayPeer *peerAlone(const clusterNode *n) {
    list *all = allPeers();
    int count = 0;
    for (listNode *at = listFirst(all); at; at = listNext(all, at)) {
        gatewayPeer *p = LIST_OWNER(at, gatewayPeer, all);
        if (!p->is_alone || p->is_broken || !peerIs(p, n)) continue;
        count++;
        if (p->is_taken) continue;
        check(listIsEmpty(&p->flying));
        p->is_taken = true;
        return p;
    }
    return count < PEERS_ALONE_MAX ? openPeer(n, true) : NULL;
}

void peerRelease(gatewayPeer *p, const void *holder) {
    if (!p->is_alone || p->is_broken) return;
    check(p->is_taken);
    p->holder = holder;
    p->is_taken = holder != NULL;
    p->used_ms = engineHot.now_ms;
}

gatewayPeer *peerHeldBy(const void *holder) {
    list *all = allPeers();
    check(holder);
    for (listNode *at = listFirst(all); at; at = listNext(all, at)) {
        gatewayPeer *p = LIST_OWNER(at, gatewayPeer, all);
        if (p->holder == holder && !p->is_broken) return p;
    }
    return NULL;
}

void peerDrop(const void *holder) {
    gatewayPeer *p = peerHeldBy(holder);
    if (!p) return;
    p->holder = NULL;
    endLink(p, "its client does not need it any more");
}

gatewayCall *peerTakeBack(const void *owner) {
    list *all = allPeers();
    for (listNode *at = listFirst(all); at; at = listNext(all, at)) {
        gatewayPeer *p = LIST_OWNER(at, gatewayPeer, all);
        list *of = listIsEmpty(&p->flying) ? &p->queued : &p->flying;
        listNode *first = p->is_alone && !p->is_broken ? listFirst(of) : NULL;
        gatewayCall *c = first ? LIST_OWNER(first, gatewayCall, node) : NULL;
        if (!c || c->owner != owner) continue;
        listRemove(of, first);
        endLink(p, "its client has gone");
        return c;
    }
    return NULL;
}

/* ------------------------------------------------------------------ time */

/* The node has lost its slots: what was read of them is tracked there no more. The link may have
 * calls under way, and goes on. */
static void stopTracking(gatewayPeer *p, const clusterNode *to) {
    bool had_prefixes = p->knows_prefixes;
    p->prefixes = 0;
    p->tracks = p->knows_prefixes = p->refuses_prefixes = false;
    cachingLinkEnded();
    if (had_prefixes && !clusterIsMyself(to)) cachingNoPrefixes(to);
}

void peersTick(void) {
    list *all = allPeers();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        gatewayPeer *p = LIST_OWNER(n, gatewayPeer, all);
        const clusterNode *to = clusterNodeOfId(sliceMake(p->id, NODE_ID_LEN));
        bool has_calls = !listIsEmpty(&p->flying) || !listIsEmpty(&p->queued) || p->holder;
        if (p->tracks && gatewayCountsNow().clients) has_calls = true;
        if (!to) {
            endLink(p, "the node is not known any more");
        } else if (to->flags & NODE_FAILED) {
            endLink(p, "the node has failed");
        } else if (!has_calls && engineHot.now_ms - p->used_ms > IDLE_MS) {
            endLink(p, "it was not used");
        } else if (clusterNodeVotes(to)) {
            tellPrefixes(p, cachingPrefixesTo(0));
        } else if (p->tracks && !p->telling_prefixes) {
            stopTracking(p, to);
        }
    }
}

void peersCutPrefixes(int count) {
    list *all = allPeers();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        gatewayPeer *p = LIST_OWNER(n, gatewayPeer, all);
        if (p->prefixes > count) p->prefixes = count;
        if (!count) p->refuses_prefixes = false;
    }
}

void peersCloseAll(void) {
    list *all = allPeers();
    for (listNode *n; (n = listFirst(all));) {
        gatewayPeer *p = LIST_OWNER(n, gatewayPeer, all);
        endLink(p, "the server ends");
        freePeer(p);
    }
}

void peersPrint(str *out) {
    list *all = allPeers();
    int i = 0;
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        const gatewayPeer *p = LIST_OWNER(n, gatewayPeer, all);
        strAppendFormat(out, "gateway_link%d:id=%.*s,ready=%d,proven=%d,calls=%llu,output=%llu\r\n",
                        i++, NODE_ID_LEN, p->id, p->state >= PEER_READY, p->is_proven,
                        (unsigned long long)(p->flying.count + p->queued.count),
                        (unsigned long long)(outbufPending(&p->out) + p->queued_bytes));
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * REPLCONF, PSYNC and SYNC, which replicas send to their primary, and ROLE. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "engine/reply.h"
#include "format/rdb_settings.h"
#include "net/net.h"
#include "persist/sync.h"
#include "repl/ack_hold.h"
#include "repl/followed.h"
#include "repl/procs.h"
#include "repl/quorum_server.h"
#include "repl/repl_priv.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/role_priv.h"
#include "store/store.h"
#include "store/type_pathhash.h"

enum { IP_MAX = 255 };

/* ------------------------------------------------------------------ REPLCONF */

/* Options reply an error and return false if the value is wrong. */
typedef bool optionProc(ctx *c, replPeer *peer, slice value);

static bool setListeningPort(ctx *c, replPeer *peer, slice value) {
    if (numberParseInt(value, &peer->port)) return true;
    replyError(c, ERR_NOT_INTEGER_TEXT);
    return false;
}

static bool setIpAddress(ctx *c, replPeer *peer, slice value) {
    if (value.len > IP_MAX) {
        replyErrorFormat(
            c, "ERR REPLCONF ip-address provided by replica instance is too long: %zu bytes",
            value.len);
        return false;
    }
    strFree(&peer->ip);
    peer->ip = strNew(value);
    return true;
}

static bool setCapability(ctx *c, replPeer *peer, slice value) {
    (void)c; /* unknown ones are ignored */
    if (sliceIs(value, "eof")) {
        peer->capabilities |= PEER_CAN_READ_TO_MARK;
    } else if (sliceIs(value, "psync2")) {
        peer->capabilities |= PEER_CAN_CONTINUE;
    } else if (sliceIs(value, "skip-rdb-checksum")) {
        peer->capabilities |= PEER_CAN_SKIP_CHECKSUM;
    } else if (sliceIs(value, "turn-acks")) {
        peer->capabilities |= PEER_CAN_ACK_TURNS;
    } else if (sliceIs(value, "member-ttls")) {
        peer->capabilities |= PEER_KNOWS_MEMBER_TTLS;
    } else if (sliceIs(value, "path-hashes")) {
        peer->capabilities |= PEER_KNOWS_PATH_HASHES;
    } else if (sliceIs(value, "confirmed-data")) {
        peer->capabilities |= PEER_HAS_CONFIRMED;
    } else if (sliceIs(value, "rdb-channel-repl")) {
        peer->capabilities |= PEER_IS_REDIS_8;
    } else if (sliceIs(value, "lz4")) {
        peer->capabilities |= PEER_CAN_LZ4;
    } else if (sliceIs(value, "zstd")) {
        peer->capabilities |= PEER_CAN_ZSTD;
    } else if (sliceIs(value, "birth")) {
        peer->capabilities |= PEER_ASKS_BIRTH;
    } else if (value.len > 6 && value.len <= 6 + BIRTH_KEPT_MAX &&
               !memcmp(value.ptr, "keeps:", 6)) {
        strFree(&peer->keeps);
        peer->keeps = strNew(sliceMake(value.ptr + 6, value.len - 6));
    } else if (sliceIs(value, "dual-channel") && replConf.dual_channel_replication_enabled) {
        if (replConf.repl_diskless_sync) {
            peer->capabilities |= PEER_CAN_DUAL_CHANNEL;
        } else {
            logNotice("Dual channel capability ignored: repl-diskless-sync disabled");
        }
    }
    return true;
}

/* "9.1.2" to 0x090102. */
static bool parseVersion(slice text, int *version) {
    int parts = 0;
    *version = 0;
    while (parts < 3) {
        size_t len = 0;
        int64_t number;
        while (len < text.len && text.ptr[len] != '.') len++;
        if (!numberParseInt(sliceMake(text.ptr, len), &number) || number < 0 || number > UINT8_MAX)
            return false;
        *version = *version << 8 | (int)number;
        parts++;
        if (len == text.len) return parts == 3;
        text = sliceMake(text.ptr + len + 1, text.len - len - 1);
    }
    return false;
}

static bool setVersion(ctx *c, replPeer *peer, slice value) {
    if (parseVersion(value, &peer->server_version)) return true;
    replyErrorFormat(c, "ERR Unrecognized version format: %.*s", (int)sizeMin(value.len, 128),
                     value.ptr);
    return false;
}

static bool parseSwitch(ctx *c, slice value, bool *on) {
    int64_t number;
    if (!numberParseInt(value, &number) || number < 0 || number > 1) {
        replyError(c, SLICE("ERR value is out of range, value must between 0 and 1"));
        return false;
    }
    *on = number;
    return true;
}

static bool setOnlyDataset(ctx *c, replPeer *peer, slice value) {
    return parseSwitch(c, value, &peer->only_dataset);
}

static bool setBackup(ctx *c, replPeer *peer, slice value) {
    return parseSwitch(c, value, &peer->is_backup);
}

static bool setDatasetChannel(ctx *c, replPeer *peer, slice value) {
    return parseSwitch(c, value, &peer->is_dataset_channel);
}

/* Sets which parts of the dataset the replica gets: those that `value` names. */
static bool setFilter(ctx *c, replPeer *peer, slice value) {
    str *words;
    int count;
    if (!strSplitWords(value, &words, &count)) {
        replyError(c, SLICE("ERR Missing rdb-filter-only values"));
        return false;
    }
    uint32_t filter = PEER_NO_KEYS | PEER_NO_FUNCTIONS;
    int unknown = -1;
    for (int i = 0; i < count && unknown < 0; i++) {
        if (sliceIs(strSlice(&words[i]), "functions")) {
            filter &= ~(uint32_t)PEER_NO_FUNCTIONS;
        } else {
            unknown = i;
        }
    }
    if (unknown >= 0) {
        replyErrorFormat(c, "ERR Unsupported rdb-filter-only option: %s", strText(&words[unknown]));
    } else {
        peer->filter = filter;
    }
    strFreeWords(words, count);
    return unknown < 0;
}

static bool setDatasetClient(ctx *c, replPeer *peer, slice value) {
    int64_t id;
    if (!numberParseInt(value, &id)) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return false;
    }
    if (!primaryHasDatasetChannel(replicasThis(), (uint64_t)id)) {
        replyErrorFormat(c, "ERR Unrecognized RDB client id %lld", (long long)id);
        return false;
    }
    peer->dataset_channel = (uint64_t)id;
    return true;
}

static bool setClusterNode(ctx *c, replPeer *peer, slice value) {
    if (!storeIsSlotted()) {
        replyError(c, SLICE("ERR This instance has cluster support disabled"));
        return false;
    }
    if (!roleKnowsNode(value)) {
        replyErrorFormat(c, "ERR Unknown node %.*s", (int)sizeMin(value.len, 128), value.ptr);
        return false;
    }
    strFree(&peer->node_id);
    peer->node_id = strNew(value);
    return true;
}

static bool setHold(ctx *c, replPeer *peer, slice value) {
    int64_t ms;
    (void)peer;
    if (storeIsSlotted() || !replicaIsOn()) {
        replyError(c, SLICE("ERR HOLD-ACKS is for replicas, and not allowed in cluster mode"));
        return false;
    }
    if (!numberParseInt(value, &ms) || ms < 0 || ms > ACK_HOLD_MAX_MS) {
        replyError(c, ERR_NOT_INTEGER_TEXT);
        return false;
    }
    reason why;
    if (ackHoldOrder(c->who, ms, &why) == OK) return true;
    replyErrorFormat(c, "ERR The order cannot be kept for a restart: %s", why.text);
    return false;
}

static const struct {
    const char *name;
    optionProc *set;
} options[] = {
    {"listening-port", setListeningPort},
    {"ip-address", setIpAddress},
    {"capa", setCapability},
    {"version", setVersion},
    {"rdb-only", setOnlyDataset},
    {"backup", setBackup},
    {"rdb-channel", setDatasetChannel},
    {"rdb-filter-only", setFilter},
    {"set-rdb-client-id", setDatasetClient},
    {"set-cluster-node-id", setClusterNode},
    {"hold-acks", setHold},
};

static void unknownOption(ctx *c, slice name) {
    replyErrorFormat(c, "ERR Unrecognized REPLCONF option: %.*s", (int)sizeMin(name.len, 128),
                     name.ptr);
}

static bool setOption(ctx *c, replPeer *peer, slice name, slice value) {
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        if (sliceIs(name, options[i].name)) return options[i].set(c, peer, value);
    }
    unknownOption(c, name);
    return false;
}

/* REPLCONF ACK offset [FACK fsynced]. Never replies. */
static void acknowledge(ctx *c, int at) {
    hotCheck(at > 0);
    hotCheck(at <= c->argc);
    hotCheck(at + 1 < c->argc);
    int64_t offset, fsynced = -1;
    if (!(c->who->flags & SESSION_REPLICA)) return;
    if (!numberParseInt(c->argv[at + 1], &offset)) return;
    if (at + 3 < c->argc && ctxArgIs(c, at + 2, "fack") &&
        !numberParseInt(c->argv[at + 3], &fsynced))
        return;
    replPeer *peer = replicasFind(c->who);
    if (peer) primaryAck(replicasThis(), peer, offset, fsynced, c->now_ms);
}

static void replyDone(ctx *c) {
    replPeer *peer = c->argc > 1 ? replicasPeer(c->who) : NULL;
    if (likely(!peer || !(peer->capabilities & PEER_ASKS_BIRTH))) {
        replyOk(c);
        return;
    }
    char text[BIRTH_TEXT_MAX];
    peer->capabilities &= ~(uint32_t)PEER_ASKS_BIRTH;
    replyStatus(c, sliceMake(text, birthPrint(&replThis()->birth, replThis()->process, text)));
}

/* REPLCONF [option value]... Reply: OK, except for ACK and GETACK. */
void replconfCommand(ctx *c) {
    if (c->argc % 2 == 0) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    for (int i = 1; i < c->argc; i += 2) {
        if (ctxArgIs(c, i, "ack")) {
            acknowledge(c, i);
            return;
        }
        if (ctxArgIs(c, i, "getack")) {
            if (ctxArgIs(c, i + 1, "turn")) {
                replicaAcknowledgeTurns(c, true);
            } else if (ctxArgIs(c, i + 1, "tick")) {
                replicaAcknowledgeTurns(c, false);
            }
            replicaAcknowledge(c, c->argv[i + 1]);
            return;
        }
        if (!setOption(c, replicasPeer(c->who), c->argv[i], c->argv[i + 1])) return;
    }
    replyDone(c);
}

/* ------------------------------------------------------------------ PSYNC, SYNC */

/* False: the session cannot become a replica now; the error was replied. */
static bool admits(ctx *c, const replPeer *peer) {
    const replPrimary *p = replicasThis();
    if (c->who->flags & SESSION_INTERNAL) {
        replyError(c, SLICE("ERR SYNC and PSYNC are only for clients with a connection"));
    } else if (p->is_failing_over) {
        replyError(c, SLICE("NOMASTERLINK Can't SYNC while failing over"));
    } else if (replicaIsOn() && !replicaIsConnected()) {
        replyError(c, SLICE("NOMASTERLINK Can't SYNC while not connected with my master"));
    } else if (outbufPending(c->out) || sessionOutputPending(c->who)) {
        replyError(c, SLICE("ERR SYNC and PSYNC are invalid with pending output"));
    } else if (peer->filter && !(peer->capabilities & PEER_CAN_READ_TO_MARK)) {
        replyError(c, SLICE("ERR Filtered replica requires EOF capability"));
    } else {
        return true;
    }
    return false;
}

/* `id`, `from`: what the replica asks for. */
static bool refusesSync(ctx *c, const replPeer *peer, slice id, int64_t from) {
    const replServer *s = replThis();
    if (quorumRefusesSync(peer, id, from)) {
        replyError(c, SLICE("NOMASTERLINK Can't SYNC: data that replicas have would be lost"));
        return true;
    }
    if (likely(!birthLosesKept(&s->birth, &s->history, strSlice(&peer->keeps), id, from)))
        return false;
    lostDataNote(peer);
    replyError(c, SLICE("EMPTYPRIMARY This server was started without the data of its replica"));
    return true;
}

static void enlist(session *s) {
    replicasEnlist(s);
    replicasThis()->settings.member_ttls = engineHot.member_ttls; /* not only at each tick */
    replicasThis()->settings.path_hashes = pathHashesExist();
    replicasThis()->settings.redis_peers = rdbOutgoingForm() == RDB_FORM_REDIS;
    replicasThis()->settings.file_codec = (peerCodec)syncFileCodec();
    if (replConf.repl_disable_tcp_nodelay) netSetDelay(s, true);
}

/* PSYNC id offset FAILOVER of the primary that wants to become a replica of this server. False: an
 * error was replied. */
static bool takeOver(ctx *c) {
    hotCheck(c->argc >= 3);
    const replHistory *h = &replThis()->history;
    if (!replicaIsOn()) {
        replyError(c, SLICE("ERR PSYNC FAILOVER can't be sent to a master."));
        return false;
    }
    if (!sliceIs(c->argv[1], h->id)) {
        replyError(c, SLICE("ERR PSYNC FAILOVER replid must match my replid."));
        return false;
    }
    str why = STR_EMPTY;
    bool forced = c->argc > 4 && ctxArgIs(c, 4, "force");
    if (!forced && replRefusesPromotion(&why)) {
        replyErrorFormat(c, "DIVERGED %s", strText(&why));
        logWarning("A failover to this replica was refused. %s", strText(&why));
        strFree(&why);
        return false;
    }
    logNotice("Failover request received for replid %s.", h->id);
    replPromote();
    str client = STR_EMPTY;
    (void)netDescribeForLog(c->who, &client); /* empty without a connection */
    logNotice("PRIMARY MODE enabled (failover request from '%s')", strText(&client));
    strFree(&client);
    return true;
}

/* PSYNC id offset [FAILOVER [FORCE]]: the replica has the stream `id` up to before `offset`. */
void psyncCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    if (c->who->flags & (SESSION_REPLICA | SESSION_MONITOR)) return;
    replPeer *peer = replicasPeer(c->who);
    int64_t from;
    bool takes_over = c->argc > 3 && ctxArgIs(c, 3, "failover");
    if (takes_over && !(c->who->flags & SESSION_INTERNAL) && !takeOver(c)) return;
    if (!admits(c, peer)) return;
    if (!ctxArgInt(c, 2, &from)) {
        primaryLogWrongOffset(replicasThis(), peer);
        return;
    }
    if (refusesSync(c, peer, c->argv[1], from)) return;
    lostDataEnd(peer);
    enlist(c->who);
    primaryPsync(replicasThis(), peer, c->argv[1], from, c->now_ms);
    replicasSettle(c->who);
}

/* SYNC: the whole dataset, then the stream. */
void syncCommand(ctx *c) {
    if (c->who->flags & (SESSION_REPLICA | SESSION_MONITOR)) return;
    replPeer *peer = replicasPeer(c->who);
    if (!admits(c, peer) || refusesSync(c, peer, SLICE("?"), -1)) return;
    enlist(c->who);
    primarySync(replicasThis(), peer, c->now_ms);
}

/* ------------------------------------------------------------------ ROLE */

static void replyText(ctx *c, int64_t number) {
    char digits[NUMBER_TEXT_MAX];
    replyBulk(c, sliceMake(digits, numberPrintInt(digits, number)));
}

typedef struct roleReply {
    ctx *c;
    int count;
} roleReply;

static bool replyPeer(const replPeerInfo *peer, void *arg) {
    roleReply *reply = arg;
    if (!peer->online) return true;
    replyArray(reply->c, 3);
    replyBulk(reply->c, peer->ip);
    replyText(reply->c, peer->port);
    replyText(reply->c, peer->offset);
    reply->count++;
    return true;
}

static void (*role_reply)(ctx *c);

void replSetRoleReply(void (*proc)(ctx *c)) { role_reply = proc; }

/* ROLE. Reply: the role and what belongs to it. */
void roleCommand(ctx *c) {
    if (role_reply) {
        role_reply(c);
        return;
    }
    if (replicaIsOn()) {
        replicaReplyRole(c);
        return;
    }
    replyArray(c, 3);
    replyBulkText(c, "master");
    replyInteger(c, replOffset());
    respDeferred replicas = respDeferBegin(c->out);
    roleReply reply = {.c = c};
    replPeersEach(replyPeer, &reply);
    respDeferEnd(c->out, replicas, '*', c->proto, reply.count);
}

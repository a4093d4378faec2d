/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the reply to INFO: the replicas of a primary, roles, links. Acts when an instance does not
 * have the role that it should have. */
#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "monitor/machine.h"

/* Facts that a reply to INFO states. */
typedef struct infoFacts {
    bool is_replica;
    bool has_failover, in_failover;
    int64_t link_down_ms;
} infoFacts;

static bool valueOf(slice line, const char *name, slice *value) {
    size_t len = strlen(name);
    if (line.len < len || memcmp(line.ptr, name, len)) return false;
    *value = sliceMake(line.ptr + len, line.len - len);
    return true;
}

static int64_t number(slice text, int64_t otherwise) {
    int64_t n;
    return numberParseInt(text, &n) ? n : otherwise;
}

/* ------------------------------------------------------------------ lines */

/* The part of `text` before the next `end`, which is skipped. */
static slice cut(slice *text, char end) {
    const char *at = text->len ? memchr(text->ptr, end, text->len) : NULL;
    slice part = {text->ptr, at ? (size_t)(at - text->ptr) : text->len};
    size_t skip = part.len + (at != NULL);
    *text = sliceMake(text->ptr + skip, text->len - skip);
    return part;
}

/* "slave0:ip=127.0.0.1,port=6380,..." or, of old servers, "slave0:127.0.0.1,6380,online". */
static void takeReplica(sentinelView *v, sentinelInstance *primary, slice line) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    sentinelInstance *replica;
    (void)cut(&line, ':');
    slice host = {"", 0}, port = {"", 0};
    if (line.len > 3 && !memcmp(line.ptr, "ip=", 3)) {
        while (line.len) {
            slice part = cut(&line, ',');
            (void)(valueOf(part, "ip=", &host) || valueOf(part, "port=", &port)); /* others */
        }
    } else {
        host = cut(&line, ',');
        port = cut(&line, ',');
    }
    int64_t at_port = number(port, 0);
    if (!host.len || at_port <= 0 || at_port > INT32_MAX) return;
    if (primary->replicas.count >= SENTINEL_TOLD_MAX) return;
    if (sentinelFindReplica(primary, host, (int)at_port)) return;
    if (sentinelAddReplica(v, primary, host, at_port, &replica) != OK) return;
    sentinelEvent(v, LOG_NOTICE, "+slave", replica, "%s", "");
    v->env->save_soon(v);
}

static void takeRunId(sentinelView *v, sentinelInstance *i, slice id) {
    if (id.len != SENTINEL_ID_LEN || sliceEqual(strSlice(&i->runid), id)) return;
    if (i->runid.len) {
        sentinelEvent(v, LOG_NOTICE, "+reboot", i, "%s", "");
        if (i->kind == INSTANCE_PRIMARY && i->reboot_down_after_ms > 0) {
            i->flags |= INSTANCE_REBOOTED;
            i->rebooted_since_ms = v->now_ms;
        }
        if (i->kind == INSTANCE_REPLICA) sentinelForgetPromotion(i);
    }
    strFree(&i->runid);
    i->runid = strNew(id);
}

static void takePrimaryHost(sentinelView *v, sentinelInstance *i, slice host) {
    if (sliceEqual(strSlice(&i->reported_host), host)) return;
    strFree(&i->reported_host);
    i->reported_host = strNew(host);
    i->replica_conf_ms = v->now_ms;
}

static void takePrimaryPort(sentinelView *v, sentinelInstance *i, int port) {
    if (i->reported_port == port) return;
    i->reported_port = port;
    i->replica_conf_ms = v->now_ms;
}

/* Lines that a replica alone has. */
static void takeReplicaLine(sentinelView *v, sentinelInstance *i, slice line) {
    slice value;
    if (valueOf(line, "master_host:", &value)) {
        takePrimaryHost(v, i, value);
    } else if (valueOf(line, "master_port:", &value)) {
        takePrimaryPort(v, i, (int)number(value, 0));
    } else if (valueOf(line, "master_link_status:", &value)) {
        i->link_up = sliceIs(value, "up");
    } else if (valueOf(line, "slave_priority:", &value)) {
        i->priority = (int)number(value, 100);
    } else if (valueOf(line, "slave_repl_offset:", &value)) {
        i->offset = (uint64_t)number(value, 0);
    } else if (valueOf(line, "replica_announced:", &value)) {
        i->is_announced = number(value, 1) != 0;
    } else if (valueOf(line, "replication_quorum_caught_up:", &value)) {
        i->sync.has_caught_up = number(value, 0) != 0;
    } else if (valueOf(line, "replication_quorum_acks_held_ms:", &value)) {
        i->sync.acks_held_ms = number(value, 0);
    }
}

/* Lines of servers with replication-quorum, of both roles. */
static bool takeQuorumLine(sentinelInstance *i, slice line) {
    enum { QUORUM_MAX = 1 << 20 };
    slice value;
    if (valueOf(line, "replication_quorum:", &value)) {
        i->sync.repl_quorum = number(value, 0);
        if (i->sync.repl_quorum < 0 || i->sync.repl_quorum > QUORUM_MAX) i->sync.repl_quorum = 0;
    } else if (valueOf(line, "replication_quorum_status:", &value)) {
        i->sync.is_behind = sliceIs(value, "behind");
    } else if (valueOf(line, "master_link_refused:", &value) ||
               valueOf(line, "replicas_keep_lost_data:", &value)) {
        i->sync.keeps_lost_data = number(value, 0) != 0;
    } else if (valueOf(line, "replication_quorum_read_lease:", &value)) {
        i->sync.repl_lease_ms = number(value, 0);
        if (i->sync.repl_lease_ms < 0 || i->sync.repl_lease_ms > SENTINEL_TIME_MAX_MS)
            i->sync.repl_lease_ms = 0;
    } else {
        return false;
    }
    return true;
}

/* Reads a line of INFO that describes the data of a server. False: it is another line. */
static bool takeDataLine(sentinelInstance *i, slice line, bool is_replica) {
    bool as_primary = i->kind == INSTANCE_PRIMARY && !is_replica;
    slice value;
    hotCheck(i->kind != INSTANCE_SENTINEL);
    if (valueOf(line, "loading:", &value)) {
        i->sync.is_loading = number(value, 0) != 0;
    } else if (valueOf(line, "db", &value) && value.len && value.ptr[0] >= '0' &&
               value.ptr[0] <= '9') {
        i->sync.has_keys = true; /* databases without keys are not listed */
    } else if ((is_replica || as_primary) && valueOf(line, "master_replid:", &value)) {
        i->sync.stream = hashBytes(value.ptr, value.len);
    } else if (as_primary && valueOf(line, "master_repl_offset:", &value)) {
        i->offset = (uint64_t)number(value, 0);
    } else {
        return false;
    }
    return true;
}

static void forgetQuorumLines(sentinelInstance *i) {
    hotCheck(i->kind != INSTANCE_SENTINEL);
    i->sync.repl_quorum = i->sync.repl_lease_ms = i->sync.acks_held_ms = 0;
    i->sync.has_caught_up = i->sync.is_behind = i->sync.keeps_lost_data = false;
    i->sync.has_keys = i->sync.is_loading = false;
    i->sync.stream = 0;
}

static void takeLine(sentinelView *v, sentinelInstance *i, slice line, infoFacts *facts) {
    slice value;
    if (valueOf(line, "run_id:", &value)) {
        takeRunId(v, i, value);
    } else if (i->kind == INSTANCE_PRIMARY && valueOf(line, "slave", &value) && value.len > 6 &&
               value.ptr[0] >= '0' && value.ptr[0] <= '9') {
        takeReplica(v, i, line);
    } else if (valueOf(line, "master_link_down_since_seconds:", &value)) {
        int64_t seconds = number(value, 0);
        facts->link_down_ms = seconds > 0 && seconds < INT64_MAX / 1000 ? seconds * 1000 : 0;
    } else if (valueOf(line, "role:", &value)) {
        facts->is_replica = !sliceIs(value, "master");
    } else if (valueOf(line, "master_failover_state:", &value)) {
        facts->has_failover = true;
        facts->in_failover = !sliceIs(value, "no-failover");
    } else if (takeQuorumLine(i, line)) {
        return;
    } else if (takeDataLine(i, line, facts->is_replica)) {
        return;
    } else if (facts->is_replica) {
        takeReplicaLine(v, i, line);
    }
}

/* ------------------------------------------------------------------ consequences */

static void noteRole(sentinelView *v, sentinelInstance *i, bool is_replica) {
    if (i->role_is_replica == is_replica) return;
    i->role_is_replica = is_replica;
    i->role_since_ms = v->now_ms;
    if (is_replica) i->replica_conf_ms = v->now_ms;
    i->is_unsure = false;
    if (!is_replica && i->kind == INSTANCE_REPLICA) sentinelNotePromotion(v, i);
    bool as_configured = is_replica == (i->kind == INSTANCE_REPLICA);
    sentinelEvent(v, LOG_VERBOSE, as_configured ? "+role-change" : "-role-change", i,
                  " new reported role is %s", is_replica ? "slave" : "master");
}

/* True if it has not been down for `ms`. */
static bool wasUpFor(const sentinelView *v, const sentinelInstance *i, int64_t ms) {
    int64_t down_ms = i->sdown_since_ms > i->odown_since_ms ? i->sdown_since_ms : i->odown_since_ms;
    return !down_ms || v->now_ms - down_ms > ms;
}

/* An instance that should be a replica says that it is a primary. */
static void checkPrimaryRole(sentinelView *v, sentinelInstance *i) {
    sentinelInstance *primary = i->primary;
    hotCheck(primary);
    if ((i->flags & INSTANCE_PROMOTED) && (primary->flags & INSTANCE_FAILOVER) &&
        primary->step == FAILOVER_WAIT_PROMOTION) {
        sentinelPromoted(v, i);
        return;
    }
    if ((i->flags & INSTANCE_PROMOTED) || sentinelIsUnfinished(v, i)) return;
    if (sentinelIsUnsure(v, i)) return;
    int64_t wait_ms = v->periods.publish * 4;
    if (!sentinelLooksSane(v, primary) || !wasUpFor(v, i, wait_ms)) return;
    if (v->now_ms - i->role_since_ms <= wait_ms) return;
    if (sentinelSendReplicaOf(v, i, &primary->addr))
        sentinelEvent(v, LOG_NOTICE, "+convert-to-slave", i, "%s", "");
}

/* A replica of another primary, or one that is stuck in a failover of its own. */
static void checkReplicaConfig(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->kind == INSTANCE_REPLICA);
    sentinelInstance *primary = i->primary;
    if (primary->step != FAILOVER_NONE || !sentinelLooksSane(v, primary)) return;
    int64_t wait_ms = primary->failover_timeout_ms;
    bool other = i->reported_host.len &&
                 !sentinelAddrIs(v, &primary->addr, strSlice(&i->reported_host), i->reported_port);
    other = other && v->now_ms - i->replica_conf_ms > wait_ms;
    bool stuck = i->in_failover && v->now_ms - i->in_failover_since_ms > wait_ms;
    if (!other && !stuck) return;
    if (!wasUpFor(v, i, wait_ms)) return;
    if (sentinelSendReplicaOf(v, i, &primary->addr))
        sentinelEvent(v, LOG_NOTICE, "+fix-slave-config", i, "%s", "");
}

/* A replica that was told to follow the promoted one. */
static void checkReconfiguration(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->kind == INSTANCE_REPLICA);
    const sentinelInstance *promoted = i->primary->promoted;
    if (!promoted) return;
    if ((i->flags & INSTANCE_RECONF_SENT) && i->reported_host.len &&
        sentinelAddrIs(v, &promoted->addr, strSlice(&i->reported_host), i->reported_port)) {
        i->flags &= ~(uint32_t)INSTANCE_RECONF_SENT;
        i->flags |= INSTANCE_RECONF_INPROG;
        sentinelEvent(v, LOG_NOTICE, "+slave-reconf-inprog", i, "%s", "");
    }
    if ((i->flags & INSTANCE_RECONF_INPROG) && i->link_up) {
        i->flags &= ~(uint32_t)INSTANCE_RECONF_INPROG;
        i->flags |= INSTANCE_RECONF_DONE;
        sentinelEvent(v, LOG_NOTICE, "+slave-reconf-done", i, "%s", "");
    }
}

static void noteLostData(sentinelView *v, sentinelInstance *i, bool before) {
    bool now = i->sync.keeps_lost_data;
    if (now != before)
        sentinelEvent(v, LOG_WARNING, now ? "+lost-data" : "-lost-data", i, "%s", "");
}

void sentinelInfo(sentinelView *v, sentinelInstance *i, slice text) {
    infoFacts facts = {.is_replica = i->kind == INSTANCE_REPLICA};
    check(i->kind != INSTANCE_SENTINEL);
    strFree(&i->info);
    i->info = strNew(text);
    i->info_ms = v->now_ms;
    bool told_role = false;
    bool kept = i->sync.keeps_lost_data;
    forgetQuorumLines(i);
    for (slice rest = text; rest.len;) {
        slice line = sliceTrim(cut(&rest, '\n')), role;
        told_role |= valueOf(line, "role:", &role);
        takeLine(v, i, line, &facts);
    }
    if (!told_role) facts.is_replica = true;
    sentinelNoteHold(v, i);
    i->link_down_ms = facts.link_down_ms;
    noteLostData(v, i, kept);
    i->knows_failover = facts.has_failover;
    if (facts.in_failover && !i->in_failover) i->in_failover_since_ms = v->now_ms;
    i->in_failover = facts.in_failover;
    noteRole(v, i, facts.is_replica);
    if (v->tilt || i->kind == INSTANCE_PRIMARY) return;
    if (!facts.is_replica) {
        checkPrimaryRole(v, i);
        return;
    }
    i->is_loaded = false;
    i->was_replica =
        i->was_replica ||
        sentinelAddrIs(v, &i->primary->addr, strSlice(&i->reported_host), i->reported_port);
    checkReplicaConfig(v, i);
    checkReconfiguration(v, i);
}

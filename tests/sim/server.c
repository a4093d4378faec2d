/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "server_priv.h"

simServer servers[SIM_SERVERS];
simCounts counts;
unsigned sim_faults;
bool sim_refuses_empty;

static const primarySettings settings = {.diskless_delay_s = 1,
                                         .ping_period_s = 2,
                                         .timeout_s = SIM_TIMEOUT_S,
                                         .backlog_limit = 16384,
                                         .backlog_ttl_s = 20,
                                         .dataset_grace_s = 5};

static const failoverEnv simFailoverEnv;

bool simServerIsPrimary(const simServer *s) { return s->running && s->link.state == LINK_NONE; }

/* ------------------------------------------------------------------ start and end */

void simServerStart(simServer *s) {
    static int starts;
    s->running = true;
    s->process = ++starts;
    s->is_fresh = !s->disk.saved;
    s->origin = s->disk.saved ? s->disk.origin : s->process;
    birthBegin(&s->state.birth);
    randomHex(s->state.process, REPL_ID_LEN);
    if (s->disk.saved) birthLoaded(&s->state.birth, sliceOf(s->disk.birth));
    s->followed = (simFollowed){0};
    networkSetUp(s->host, true);
    s->client_db = 0;
    s->stream_db = -1;
    s->dataset = DATASET_EMPTY;
    s->epoch++;
    historyInit(&s->state.history);
    primaryInit(&s->primary, &simPrimaryEnv, &s->state, s);
    s->primary.settings = settings;
    s->primary.settings.diskless = randomUniform(2);
    s->primary.settings.dual_channel = randomUniform(2);
    s->dual_channel = randomUniform(2);
    s->collected_max = 1 + randomUniform(8000);
    linkInit(&s->link, &s->state.history, &simLinkEnv, s);
    failoverInit(&s->failover, &simFailoverEnv, s);
    s->writes_paused_ms = 0;
    if (s->disk.saved) s->dataset = s->disk.dataset;
    bool restores = s->disk.saved && s->disk.has_position;
    slice id = sliceMake(s->disk.id, REPL_ID_LEN);
    if (s->follows) {
        if (s->disk.saved) s->followed = s->followed_on_disk;
        if (restores) {
            historyAdopt(&s->state.history, id, s->disk.offset);
            s->stream_db = s->disk.db;
        }
        linkSetContinuable(&s->link, restores);
        linkStart(&s->link, sim_now_ms);
        primarySetRole(&s->primary, true, false);
        return;
    }
    if (restores) {
        historyRestore(&s->state.history, id, s->disk.offset);
        s->stream_db = s->disk.db;
        primaryOpenBacklog(&s->primary);
    }
    simServerMoved(s);
}

void simServerStop(simServer *s) {
    for (wire *w = wireFirst(); w; w = w->next) {
        for (int side = 0; side < 2; side++) {
            if (w->ends[side] != s) continue;
            if (side == WIRE_ACCEPTOR) simForgetPeer(s, w);
            wireClose(w, (wireSide)side);
        }
    }
    linkClear(&s->link);
    failoverClear(&s->failover);
    primaryClear(&s->primary);
    strFree(&s->received);
    strFree(&s->pending);
    strFree(&s->collected);
    strFree(&s->save.stream);
    strFree(&s->save.file);
    s->save = (simSave){0};
    s->wire = s->second = NULL;
    s->transfers = s->streams = s->collects = s->in_multi = s->running = false;
    networkSetUp(s->host, false);
    s->loaded_ms = 0;
    s->epoch++;
}

void simServerDiscard(simServer *s) {
    s->disk.saved = false;
    if (s->link.state == LINK_NONE) {
        int64_t offset = s->state.history.offset;
        primaryTellDiscard(&s->primary);
        if (offset != s->state.history.offset) {
            s->discarded = s->process;
            counts.discards++;
            simServerMoved(s);
            primaryFeed(&s->primary);
        }
    }
    simServerStop(s);
}

void simServerSnapshot(simServer *s) {
    bool is_primary = s->link.state == LINK_NONE;
    if (!s->running || s->dataset == DATASET_NONE) return;
    s->disk.has_position = is_primary ? s->state.has_backlog : s->link.can_continue;
    memcpy(s->disk.id, historyKnownId(&s->state.history), sizeof(s->disk.id));
    s->disk.offset = s->state.history.offset;
    s->disk.dataset = s->dataset;
    s->disk.origin = s->origin;
    memcpy(s->disk.birth, s->state.birth.id, sizeof(s->disk.birth));
    s->disk.db = is_primary && s->primary.stream_db >= 0 ? s->primary.stream_db : s->stream_db;
    s->disk.saved = true;
}

/* ------------------------------------------------------------------ roles */

static void changeRole(simServer *s, simServer *primary) {
    bool was_primary = simServerIsPrimary(s);
    s->follows = primary;
    s->followed = s->followed_on_disk = (simFollowed){0};
    if (primary) {
        linkStop(&s->link);
        if (was_primary) {
            if (s->primary.stream_db >= 0) s->stream_db = s->primary.stream_db;
            linkSetContinuable(&s->link,
                               s->state.has_backlog); /* else its writes were not counted */
        }
        linkStart(&s->link, sim_now_ms);
        primarySetRole(&s->primary, true, false);
        return;
    }
    linkStop(&s->link);
    if (s->dataset == DATASET_NONE) s->dataset = DATASET_EMPTY; /* it was being replaced */
    if (!s->link.can_continue) {
        historyRenew(&s->state.history);
        primaryRestartStream(&s->primary);
    } else {
        historyBranch(&s->state.history);
        primaryDropAll(&s->primary);
        s->primary.stream_db = -1;
        primaryOpenBacklog(&s->primary);
    }
    linkSetContinuable(&s->link, false);
    primarySetRole(&s->primary, false, false);
    simServerMoved(s);
    counts.promotions++;
}

void simServerOrder(simServer *s) {
    if (s->follows && s->link.refuses && s->failover.state == FAILOVER_NONE)
        changeRole(s, s->follows);
}

void simServerFollow(simServer *s, simServer *primary) {
    if (s->follows == primary) return;
    /* A real server refuses REPLICAOF meanwhile; an operator begins with FAILOVER ABORT. */
    if (s->failover.state != FAILOVER_NONE)
        failoverAbort(&s->failover, "Failover manually aborted");
    if (s->follows != primary) changeRole(s, primary);
}

/* ------------------------------------------------------------------ failover */

/* The server behind a connection, if it may take over. */
static simServer *candidate(const simServer *s, const wire *w) {
    const peerSide *side = peerSideOf(w);
    if (w->ends[WIRE_ACCEPTOR] != s || !side || side->closing) return NULL;
    return side->peer->state == PEER_ONLINE ? w->ends[WIRE_CONNECTOR] : NULL;
}

static failoverTarget envFind(void *arg, str *host, int64_t *port) {
    const simServer *s = arg;
    failoverTarget found = FAILOVER_TARGET_GONE;
    for (wire *w = wireFirst(); w && found != FAILOVER_TARGET_SYNCED; w = w->next) {
        const simServer *replica = candidate(s, w);
        if (!replica || (host->len && replica->port != *port)) continue;
        bool synced = peerSideOf(w)->peer->acked == s->state.history.offset;
        found = synced ? FAILOVER_TARGET_SYNCED : FAILOVER_TARGET_BEHIND;
        if (!synced) continue;
        *port = replica->port;
        if (!host->len) strAppendFormat(host, "127.0.0.1");
    }
    return found;
}

static void envFollow(void *arg, slice host, int64_t port) {
    (void)host; /* all servers have the same */
    simServer *s = arg;
    changeRole(s, &servers[port - servers[0].port]);
    s->link.failover = true;
}

static void envPromote(void *arg) {
    simServer *s = arg;
    s->follows = NULL;
    changeRole(s, NULL);
}

static void envFailoverChanged(void *arg, failoverState state) {
    simServer *s = arg;
    s->primary.is_failing_over = s->primary.is_paused = state != FAILOVER_NONE;
}

static const failoverEnv simFailoverEnv = {
    .find = envFind, .follow = envFollow, .promote = envPromote, .changed = envFailoverChanged};

void simServerFailover(simServer *s) {
    if (!simServerIsPrimary(s) || s->failover.state != FAILOVER_NONE) return;
    failoverRequest r = {.limit_ms = SIM_TIMEOUT_S * 1000};
    str host = STR_EMPTY;
    if (envFind(s, &host, &r.port) != FAILOVER_TARGET_GONE) {
        counts.failovers++;
        /* In half of the cases it waits for this one, which is forced in some of these. */
        if (host.len && randomUniform(2)) r.host = strSlice(&host);
        r.force = r.host.len && randomUniform(4) == 0;
        if (r.force || randomUniform(2))
            r.deadline_ms = sim_now_ms + 1 + (int64_t)randomUniform(3000);
        failoverBegin(&s->failover, &r, sim_now_ms);
    }
    strFree(&host);
}

/* Both states are bounded by the limit, so writes are paused at most twice as long, and a turn. */
static void checkPause(simServer *s) {
    if (s->failover.state == FAILOVER_NONE) {
        s->writes_paused_ms = 0;
        return;
    }
    s->writes_paused_ms += SIM_STEP_MS;
    if (s->writes_paused_ms > 2 * SIM_TIMEOUT_S * 1000 + 200)
        simFail("%s: writes are paused for %lld ms by a failover in state %d", s->name,
                (long long)s->writes_paused_ms, s->failover.state);
}

/* ------------------------------------------------------------------ writes */

static void append(simServer *s, int argc, const slice *argv) {
    size_t len;
    char *encoded = respRequest(argc, argv, &len);
    slice span = sliceMake(encoded, len);
    primaryAppend(&s->primary, &span, 1);
    memFree(encoded);
}

static void writeOne(simServer *s) {
    char value[16 + 400];
    int len = snprintf(value, sizeof(value), "%llu%*s", (unsigned long long)randomNext() % 1000000,
                       (int)randomUniform(randomUniform(20) ? 10 : 400), "");
    slice argv[] = {SLICE("APPEND"), SLICE("key"), sliceMake(value, (size_t)len)};
    if (s->state.has_backlog) {
        primarySelect(&s->primary, s->client_db);
        append(s, 3, argv);
    }
    s->dataset = oracleApply(s->dataset, s->client_db, argv[2]);
}

void simServerWrite(simServer *s, int commands) {
    static const slice multi = {"MULTI", 5}, exec = {"EXEC", 4};
    if (!simServerIsPrimary(s) || s->failover.state != FAILOVER_NONE) return;
    if (randomUniform(10) == 0) s->client_db = (int)randomUniform(4);
    bool wrapped = commands > 1 && s->state.has_backlog;
    if (wrapped) append(s, 1, &multi);
    for (int i = 0; i < commands; i++) writeOne(s);
    if (wrapped) append(s, 1, &exec);
    counts.writes += (uint64_t)commands;
    simServerMoved(s);
}

/* The position in the stream has changed, or the dataset without a stream. */
void simServerMoved(simServer *s) {
    /* Without a backlog writes do not count, and the id is renewed before the stream begins. */
    if (s->state.has_backlog || !simServerIsPrimary(s))
        oracleAt(s->state.history.id, s->state.history.offset, s->dataset, s->name);
}

void simServerCheck(const simServer *s) {
    if (!s->running || s->dataset == DATASET_NONE) return;
    bool known = simServerIsPrimary(s) ? s->state.has_backlog : s->link.can_continue;
    if (known) oracleAt(s->state.history.id, s->state.history.offset, s->dataset, s->name);
    if (s->state.has_backlog && s->state.backlog.next != s->state.history.offset + 1)
        simFail("%s: the backlog ends at %lld, the stream at %lld", s->name,
                (long long)s->state.backlog.next, (long long)s->state.history.offset);
}

void simServerStep(simServer *s) {
    if (!s->running || networkIsPaused(s->host)) return;
    int64_t offset = s->state.history.offset;
    simPrimaryStep(s);
    simReplicaStep(s);
    if (sim_now_ms % 100 == 0) linkTick(&s->link, sim_now_ms);
    if (sim_now_ms % 100 == 0) failoverAdvance(&s->failover, sim_now_ms);
    checkPause(s);
    if (sim_now_ms % 1000 == 0) primaryTick(&s->primary, sim_now_ms);
    bool up = s->link.state == LINK_CONNECTED;
    if (up != s->primary.link_is_up) primarySetRole(&s->primary, s->link.state != LINK_NONE, up);
    primaryFeed(&s->primary);
    if (simServerIsPrimary(s) && offset != s->state.history.offset) simServerMoved(s);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scenario of Sentinel: a primary with three replicas, watched by three or five Sentinels, over
 * a network that separates, delays and cuts, with hosts that pause and restart, clocks that jump,
 * and files that cannot be written.
 *
 * No epoch has two leaders or two primaries; a Sentinel votes once in an epoch, over restarts as
 * well; its epoch is never less than the one in its file, and its configuration never older than
 * it was; nobody acts in a tilt; who is promoted is the best that may be; after healing there is,
 * within a bound, exactly one primary, which all Sentinels know and all replicas follow.
 *
 * In half of the runs servers have replication-quorum: who is promoted by choice has all that was
 * confirmed, an old primary confirms nothing more, and may not be read.
 *
 * In a part of the runs only the primary ends. Then the failover is over within a bound; if its
 * leader ends right after the promotion, the promoted replica is the primary in the end. In a part
 * an operator orders failovers, sets up Sentinels anew and sends REPLICAOF to servers. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "network.h"
#include "../c/sentinel/quiet_env.h"
#include "monitor/machine.h"
#include "sentinel/lines.h"
#include "sim.h"

enum {
    SERVERS = 4,
    SENTINELS_MAX = 5,
    HOSTS = SERVERS + SENTINELS_MAX,
    TICK_MS = 50,
    CALM_MS = 20 * 1000,
    FAULTS_MS = 90 * 1000,
    HEALED_MS = 240 * 1000,
    DOWN_AFTER_MS = 2000,
    TIMEOUT_MS = 10000,
    EPOCHS_MAX = 512,
    LINES_MAX = 64,
    FORGED_EPOCH = 100000,
    CASE_MS = 15 * 1000, /* down-after, the election, the order, and some chance */
    CASE_REFUSED_MS = 2500,
    ORDER_MS = 60 * 1000,
    CHOICE_MS = 500,     /* orders to replicas, and INFO after that */
    HOLD_MS = 20 * 1000, /* what Sentinels order: REPLCONF HOLD-ACKS */
};
static const char end_of_message = '\x02', end_of_word = '\x01';

/* A place in the tree of datasets: each promotion, and each restart of a primary, begins a new
 * branch. */
typedef struct position {
    uint64_t branch, offset;
} position;

/* The accepting end of a connection. */
typedef struct acceptor {
    str received; /* bytes of an incomplete request */
    bool ordered_hold;
} acceptor;

typedef struct simServer {
    bool is_replica;
    int primary;
    uint64_t branch, offset;
    int priority;
    bool link_up;
    char runid[SENTINEL_ID_LEN + 1];
    /* replication-quorum: of a primary */
    uint64_t acked[HOSTS]; /* 0: nothing */
    int64_t heard_ms;      /* a write of then was confirmed at once */
    /* of a replica */
    bool has_caught_up;
    const acceptor *hold_by; /* whose order is the last one; NULL: none */
    int64_t held_until_ms, others_until_ms, promotes_until_ms;
    uint64_t held_from;
} simServer;

typedef struct simSentinel {
    sentinelView view;
    int host;
    str file[LINES_MAX];
    int file_lines;
    uint64_t file_epoch, config_epoch;
    bool disk_fails, dies, is_fast;
    char id[SENTINEL_ID_LEN + 1];
    char votes[EPOCHS_MAX][SENTINEL_ID_LEN + 1];
    int64_t next_ms;
} simSentinel;

/* What a Sentinel keeps about a connection. */
typedef struct carrier {
    sentinelLink *link;
    bool pubsub, opened;
    str received;
    wire *wire;
} carrier;

static simServer servers[SERVERS];
static simSentinel sentinels[SENTINELS_MAX];
static int sentinel_count;
static bool is_quick;     /* all of them notice refused connections */
static bool has_password; /* Sentinels know each other by what they tell each other directly */
static char leaders[EPOCHS_MAX][SENTINEL_ID_LEN + 1];
static int primaries[EPOCHS_MAX];    /* of a configuration; 0: none yet, else the host + 1 */
static bool in_faults;               /* faults happen at random */
static bool is_case;                 /* only the primary, and perhaps the leader, end */
static bool leader_dies, dies_early; /* after its order, before it knows that it was obeyed */
static int promoted;                 /* in a case; -1: none yet */
static int64_t longest_ms;
/* replication-quorum, and its lease; 0: none. */
static int quorum;
static int64_t lease_ms;
static uint64_t branches;      /* that there are */
static position confirmed;     /* the greatest one */
static int64_t choice_ends_ms; /* until then no other branch than the last confirms anything */
static struct {
    int host;
    int64_t at_ms;
} chosen;               /* by a Sentinel */
static int choice_host; /* which was promoted so */
static bool is_late;    /* the one that was chosen gets its order late */
static struct {
    uint64_t elections, failovers, restarts, separations, pauses, jumps, votes, runs, cases;
    uint64_t orders, gifts, losses;           /* of an operator; roles given away; files */
    uint64_t confirmed, refused, waits, late; /* promotions; failovers that wait for replicas */
} counts;

static int hostOf(const char *ip) { return atoi(strrchr(ip, '.') + 1) - 1; }
static simSentinel *sentinelAt(int host) {
    return host >= SERVERS && host < SERVERS + sentinel_count ? &sentinels[host - SERVERS] : NULL;
}

/* ------------------------------------------------------------------ the environment */

static void closeCarrier(carrier *c) {
    if (c->pubsub) {
        c->link->pubsub_carrier = NULL;
    } else {
        c->link->command_carrier = NULL;
    }
    c->wire->state[WIRE_CONNECTOR] = NULL;
    wireClose(c->wire, WIRE_CONNECTOR);
    strFree(&c->received);
    memFree(c);
}

static void doConnect(sentinelView *v, sentinelInstance *i, bool pubsub) {
    simSentinel *s = v->arg;
    int host = hostOf(i->addr.ip);
    wire *w =
        wireOpen(s->host, s, host, host < SERVERS ? (void *)&servers[host] : sentinelAt(host));
    if (!w) {
        sentinelLinkClosed(v, i->link, pubsub, true);
        return;
    }
    carrier *c = memNew(carrier);
    *c = (carrier){.link = i->link, .pubsub = pubsub, .wire = w};
    w->state[WIRE_CONNECTOR] = c;
    if (pubsub) {
        i->link->pubsub_carrier = c;
    } else {
        i->link->command_carrier = c;
    }
}

static void doDisconnect(sentinelView *v, sentinelLink *l, bool pubsub) {
    (void)v;
    carrier *c = pubsub ? l->pubsub_carrier : l->command_carrier;
    if (c) closeCarrier(c);
}

static void doSend(sentinelView *v, sentinelLink *l, bool pubsub, int count, const slice *words) {
    str text = STR_EMPTY;
    carrier *c = pubsub ? l->pubsub_carrier : l->command_carrier;
    (void)v;
    for (int i = 0; i < count; i++) {
        if (i) strAppendByte(&text, end_of_word);
        strAppendSlice(&text, words[i]);
    }
    strAppendByte(&text, end_of_message);
    wireSend(c->wire, WIRE_CONNECTOR, strSlice(&text));
    strFree(&text);
}

static void noteVote(simSentinel *s, slice text) {
    uint64_t epoch = strtoull(text.ptr + SENTINEL_ID_LEN, NULL, 10);
    if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
    counts.votes++;
    if (s->disk_fails) simFail("Sentinel %d votes, and cannot save it", s->host);
    if (s->votes[epoch][0] && memcmp(s->votes[epoch], text.ptr, SENTINEL_ID_LEN))
        simFail("Sentinel %d votes twice in epoch %llu", s->host, (unsigned long long)epoch);
    memcpy(s->votes[epoch], text.ptr, SENTINEL_ID_LEN);
}

static void noteLeader(const simSentinel *s) {
    SENTINEL_EACH(primary, &s->view.primaries) {
        uint64_t epoch = primary->failover_epoch;
        if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
        if (leaders[epoch][0])
            simFail("epoch %llu has two leaders, or one twice", (unsigned long long)epoch);
        memcpy(leaders[epoch], s->id, sizeof(s->id));
    }
    counts.elections++;
}

/* Who is to be promoted must be alive as far as its Sentinel knows, must want it, and must have the
 * greatest offset. */
static void checkSelected(simSentinel *s, slice text) {
    SENTINEL_EACH(primary, &s->view.primaries) {
        const sentinelInstance *best = NULL;
        SENTINEL_EACH(i, &primary->replicas) {
            if (text.len > i->name.len + 6 && !memcmp(text.ptr + 6, i->name.ptr, i->name.len))
                best = i;
        }
        if (!best) simFail("an unknown replica is selected");
        if (best->flags & INSTANCE_SDOWN) simFail("a replica that is down is selected");
        if (servers[hostOf(best->addr.ip)].priority == 0)
            simFail("a replica with priority 0 is selected");
        chosen.host = hostOf(best->addr.ip);
        chosen.at_ms = sim_now_ms;
        if (primary->sync.is_confirmed) continue; /* see promote() */
        SENTINEL_EACH(i, &primary->replicas) {
            bool good = !(i->flags & INSTANCE_SDOWN) && i->link->command == LINK_OPEN &&
                        i->priority && s->view.now_ms - i->info_ms < 3000 &&
                        s->view.now_ms - i->link->ping_good_ms < 3000 && i->link_down_ms == 0;
            if (good && i->offset > best->offset && !best->promoted_in && !best->is_unsure)
                simFail("a replica with less data is selected");
        }
    }
}

static void checkSwitch(simSentinel *s, slice text) {
    SENTINEL_EACH(primary, &s->view.primaries) {
        str words = strNew(text);
        char *port = strrchr(words.ptr, ' ');
        *port = '\0';
        int host = hostOf(strrchr(words.ptr, ' ') + 1);
        uint64_t epoch = primary->config_epoch;
        if (epoch >= EPOCHS_MAX) simFail("epoch %llu", (unsigned long long)epoch);
        if (primaries[epoch] && primaries[epoch] != host + 1)
            simFail("epoch %llu has two primaries", (unsigned long long)epoch);
        primaries[epoch] = host + 1;
        strFree(&words);
    }
}

/* "+odown ... #quorum 2/2" */
static void checkQuorum(slice text) {
    str copy = strNew(text);
    int given = 0, needed = 0;
    const char *at = strstr(strText(&copy), "#quorum ");
    if (!at || sscanf(at, "#quorum %d/%d", &given, &needed) != 2 || given < needed)
        simFail("down without a quorum: %s", strText(&copy));
    strFree(&copy);
}

static void notePromotion(simSentinel *s, int host) {
    if (!is_case) return;
    if (promoted >= 0 && promoted != host) simFail("server %d is promoted, too", host);
    promoted = host;
    if (!leader_dies) return;
    s->dies = true;
    leader_dies = false;
}

/* Its leader ends, and the old primary can be reached. */
static void makeLate(simSentinel *s) {
    if (is_case || !quorum || !in_faults || !oneIn(2)) return;
    is_late = s->dies = true;
}

static const sentinelInstance *promotedOf(const sentinelView *v) {
    return CONTAINER_OF(listFirst(&v->primaries), sentinelInstance, node)->promoted;
}

static void onEvent(sentinelView *v, logLevel level, const char *name, slice text,
                    const sentinelInstance *notify) {
    simSentinel *s = v->arg;
    (void)level, (void)notify;
    logDebug("%lld sentinel %d: %s %.*s", (long long)sim_now_ms, s->host, name, (int)text.len,
             text.ptr);
    if (!strcmp(name, "+vote-for-leader")) noteVote(s, text);
    if (!strcmp(name, "+elected-leader")) noteLeader(s);
    if (!strcmp(name, "+failover-end")) counts.failovers++;
    if (!strcmp(name, "+failover-wait-quorum")) counts.waits++;
    if (!strcmp(name, "+selected-slave")) checkSelected(s, text);
    if (!strcmp(name, "+failover-state-wait-promotion")) makeLate(s);
    if (!strcmp(name, "+promoted-slave")) notePromotion(s, hostOf(promotedOf(v)->addr.ip));
    if (!strcmp(name, "+switch-master")) checkSwitch(s, text);
    if (!strcmp(name, "+odown")) checkQuorum(text);
    if (!strcmp(name, "+try-failover") && s->disk_fails)
        simFail("Sentinel %d begins an epoch, and cannot save it", s->host);
    bool acts =
        !strcmp(name, "+sdown") || !strcmp(name, "+odown") || !strcmp(name, "+try-failover");
    if (acts && v->tilt) simFail("%s in a tilt", name);
}

static void forgetFile(simSentinel *s) {
    for (int i = 0; i < s->file_lines; i++) strFree(&s->file[i]);
    s->file_lines = 0;
}

static void keepLine(void *arg, slice line, bool is_default) {
    if (is_default) return;
    simSentinel *s = arg;
    check(s->file_lines < LINES_MAX);
    s->file[s->file_lines++] = strNew(line);
}

static bool doSave(sentinelView *v) {
    simSentinel *s = v->arg;
    if (s->disk_fails) return false;
    forgetFile(s);
    sentinelLinesWrite(v, keepLine, s);
    if (v->current_epoch < s->file_epoch) simFail("the epoch of Sentinel %d goes back", s->host);
    s->file_epoch = v->current_epoch;
    return true;
}

static uint64_t drawRandom(sentinelView *v, uint64_t bound) {
    (void)v;
    return randomUniform(bound);
}
static bool doResolve(sentinelView *v, slice host, char ip[SENTINEL_IP_MAX]) {
    (void)v;
    if (host.len >= SENTINEL_IP_MAX) return false;
    memcpy(ip, host.ptr, host.len);
    ip[host.len] = '\0';
    return true;
}
static bool ownIp(sentinelView *v, const sentinelLink *l, char ip[SENTINEL_IP_MAX]) {
    (void)l;
    (void)snprintf(ip, SENTINEL_IP_MAX, "10.0.0.%d", ((simSentinel *)v->arg)->host + 1);
    return true;
}
static void noCrash(sentinelView *v) {
    simFail("Sentinel %d crashes", ((simSentinel *)v->arg)->host);
}

static bool needsPassword(sentinelView *v) {
    (void)v;
    return has_password;
}

static const sentinelEnv sim_env = {.connect = doConnect,
                                    .disconnect = doDisconnect,
                                    .send = doSend,
                                    .event = onEvent,
                                    .save = doSave,
                                    .save_soon = quietSaveSoon,
                                    .run_script = quietScript,
                                    .random = drawRandom,
                                    .resolve = doResolve,
                                    .own_ip = ownIp,
                                    .own_port = quietOwnPort,
                                    .crash = noCrash,
                                    .own_password = quietPassword,
                                    .needs_password = needsPassword};

static sentinelView *viewNow(simSentinel *s) {
    s->view.now_ms = networkClock(s->host);
    s->view.mono_ms = sim_now_ms;
    return &s->view;
}

/* ------------------------------------------------------------------ starting and ending */

static void startSentinel(simSentinel *s) {
    sentinelViewInit(&s->view, &sim_env, s);
    sentinelView *v = viewNow(s);
    for (int rank = 0; rank < SENTINEL_LINE_RANKS; rank++) {
        for (int i = 0; i < s->file_lines; i++) {
            str *words;
            slice slices[8];
            int count;
            reason why;
            if (!strSplitWords(strSlice(&s->file[i]), &words, &count)) simFail("a line: quotes");
            for (int at = 0; at < count; at++) slices[at] = strSlice(&words[at]);
            if (sentinelLineRank(slices, count) == rank &&
                sentinelLineTake(v, slices, count, &why) != OK)
                simFail("%s: %s", strText(&s->file[i]), why.text);
            strFreeWords(words, count);
        }
    }
    memcpy(v->id, s->id, sizeof(s->id));
    s->config_epoch = 0;
    if (v->current_epoch < s->file_epoch) simFail("the epoch of Sentinel %d is lost", s->host);
    s->next_ms = sim_now_ms;
    networkSetUp(s->host, true);
}

static void freeReceived(wire *w) {
    acceptor *a = w->state[WIRE_ACCEPTOR];
    if (!a) return;
    strFree(&a->received);
    for (int i = 0; i < SERVERS; i++)
        if (servers[i].hold_by == a) servers[i].hold_by = NULL;
    memFree(a);
    w->state[WIRE_ACCEPTOR] = NULL;
}

/* Closes what a host has; the carriers of a Sentinel go with its view. */
static void stopHost(int host) {
    simSentinel *s = sentinelAt(host);
    if (!networkIsUp(host)) return;
    if (s) sentinelViewClear(&s->view);
    for (wire *w = wireFirst(); w; w = w->next) {
        if (w->hosts[WIRE_ACCEPTOR] != host || !w->ends[WIRE_ACCEPTOR]) continue;
        freeReceived(w);
        wireClose(w, WIRE_ACCEPTOR);
    }
    networkSetUp(host, false);
}

/* ------------------------------------------------------------------ servers */

static void replyTo(wire *w, char kind, const char *text) {
    str message = STR_EMPTY;
    strAppendByte(&message, kind);
    strAppendText(&message, text);
    strAppendByte(&message, end_of_message);
    wireSend(w, WIRE_ACCEPTOR, strSlice(&message));
    strFree(&message);
}

static void replyInfo(wire *w, int host) {
    const simServer *n = &servers[host];
    str text = STR_EMPTY;
    int count = 0;
    strAppendFormat(&text, "run_id:%s\r\nrole:%s\r\n", n->runid,
                    n->is_replica ? "slave" : "master");
    if (n->is_replica) {
        strAppendFormat(&text,
                        "master_host:10.0.0.%d\r\nmaster_port:6379\r\nmaster_link_status:%s\r\n"
                        "slave_repl_offset:%llu\r\nslave_priority:%d\r\n"
                        "master_replid:%040llx\r\n",
                        n->primary + 1, n->link_up ? "up" : "down", (unsigned long long)n->offset,
                        n->priority, (unsigned long long)n->branch);
    }
    for (int i = 0; i < SERVERS; i++) {
        if (i == host || !servers[i].is_replica || servers[i].primary != host) continue;
        if (!servers[i].link_up) continue;
        strAppendFormat(&text, "slave%d:ip=10.0.0.%d,port=6379,state=online\r\n", count++, i + 1);
    }
    strAppendText(&text, "master_failover_state:no-failover\r\n");
    if (quorum) {
        int64_t held_ms = n->held_until_ms - sim_now_ms;
        strAppendFormat(&text,
                        "replication_quorum:%d\r\nreplication_quorum_read_lease:%lld\r\n"
                        "replication_quorum_caught_up:%d\r\n"
                        "replication_quorum_acks_held_ms:%lld\r\n",
                        quorum, (long long)lease_ms, n->has_caught_up,
                        held_ms > 0 ? (long long)held_ms : 0);
    }
    replyTo(w, '$', strText(&text));
    strFree(&text);
}

/* A Sentinel that has subscribed has a text there that is not empty. */
static void publish(int host, slice message) {
    for (wire *w = wireFirst(); w; w = w->next) {
        carrier *c = w->state[WIRE_CONNECTOR];
        if (w->hosts[WIRE_ACCEPTOR] != host || !w->ends[WIRE_ACCEPTOR] || !c || !c->pubsub)
            continue;
        str copy = strNew(message);
        replyTo(w, 'm', strText(&copy));
        strFree(&copy);
    }
}

static void killClients(int host, const wire *but) {
    for (wire *w = wireFirst(); w; w = w->next)
        if (w != but && w->hosts[WIRE_ACCEPTOR] == host) wireCut(w);
}

static int splitRequest(slice request, slice *words, int max) {
    int count = 0;
    while (count < max) {
        const char *end = memchr(request.ptr, end_of_word, request.len);
        size_t len = end ? (size_t)(end - request.ptr) : request.len;
        words[count++] = sliceMake(request.ptr, len);
        if (!end) break;
        request = sliceMake(end + 1, request.len - len - 1);
    }
    return count;
}

/* ------------------------------------------------------------------ replication-quorum */

static void endHold(simServer *n) {
    n->hold_by = NULL;
    n->held_until_ms = n->others_until_ms = n->promotes_until_ms = 0;
}

static void becomePrimary(simServer *n) {
    n->is_replica = false;
    n->branch = ++branches;
    n->heard_ms = 0;
    memset(n->acked, 0, sizeof(n->acked));
    endHold(n);
}

static void becomeReplica(simServer *n, int of) {
    if (n->is_replica && n->primary == of) return;
    n->is_replica = true;
    n->primary = of;
    n->link_up = n->has_caught_up = false;
    endHold(n);
}

/* As src/repl/ack_hold.c has it. */
static void orderHold(simServer *n, acceptor *by, int64_t ms) {
    by->ordered_hold = ms > 0;
    if (!ms) {
        if (n->hold_by != by) return;
        n->hold_by = NULL;
        n->held_until_ms = n->others_until_ms;
        return;
    }
    if (n->held_until_ms <= sim_now_ms) n->held_from = n->offset;
    if (n->hold_by != by) n->others_until_ms = n->held_until_ms;
    n->hold_by = by;
    if (n->held_until_ms < sim_now_ms + ms) n->held_until_ms = sim_now_ms + ms;
    n->promotes_until_ms = sim_now_ms + ms / 2;
}

/* By choice of a Sentinel that has ordered to hold acknowledgements. */
static void promoteConfirmed(int host) {
    simServer *n = &servers[host];
    if (n->branch < confirmed.branch ||
        (n->branch == confirmed.branch && n->offset < confirmed.offset))
        simFail("server %d is promoted, and lacks what was confirmed", host);
    for (int i = 0; i < SERVERS; i++) {
        const simServer *old = &servers[i];
        if (i == host || old->is_replica || !networkIsUp(i) || !lease_ms) continue;
        if (old->heard_ms && sim_now_ms - old->heard_ms < lease_ms)
            simFail("server %d is promoted while %d may be read", host, i);
    }
    counts.confirmed++;
    if (chosen.host == host) choice_ends_ms = chosen.at_ms + HOLD_MS / 2;
    choice_host = host;
}

/* False: it is refused. */
static bool promote(int host, const acceptor *by) {
    simServer *n = &servers[host];
    if (!n->is_replica) return true;
    bool in_time = n->hold_by == by && sim_now_ms < n->promotes_until_ms;
    if (by->ordered_hold && !in_time) {
        counts.refused++;
        return false;
    }
    if (by->ordered_hold) promoteConfirmed(host);
    becomePrimary(n);
    return true;
}

static void acknowledge(int host) {
    simServer *n = &servers[host], *primary = &servers[n->primary];
    uint64_t offset = n->offset;
    if (n->held_until_ms > sim_now_ms && offset > n->held_from) offset = n->held_from;
    if (n->branch == primary->branch && offset > primary->acked[host])
        primary->acked[host] = offset;
}

/* The greatest offset that enough replicas of a primary have acknowledged. */
static void confirm(int host) {
    simServer *n = &servers[host];
    uint64_t best = 0;
    for (int i = 0; i < SERVERS; i++) {
        int count = 0;
        for (int other = 0; other < SERVERS; other++)
            count += n->acked[other] && n->acked[other] >= n->acked[i];
        if (count >= quorum && n->acked[i] > best) best = n->acked[i];
    }
    if (best == n->offset) n->heard_ms = sim_now_ms;
    bool is_new =
        n->branch > confirmed.branch || (n->branch == confirmed.branch && best > confirmed.offset);
    if (best && is_new) confirmed = (position){n->branch, best};
    bool is_turned_back = servers[choice_host].is_replica;
    if (best == n->offset && n->branch < servers[choice_host].branch && !is_turned_back &&
        sim_now_ms < choice_ends_ms)
        simFail("server %d confirms writes, and is replaced", host);
}

/* FAILOVER TO: the primary waits for the replica, and changes places with it. */
static void giveRoleAway(int host, int target) {
    simServer *old = &servers[host], *new = &servers[target];
    bool works = !old->is_replica && new->is_replica &&new->primary == host &&new->link_up;
    if (!works) return;
    new->offset = old->offset;
    becomePrimary(new);
    becomeReplica(old, target);
    counts.gifts++;
}

static void serveServer(wire *w, int host, const slice *words, int count) {
    simServer *n = &servers[host];
    if (sliceIs(words[0], "PING")) {
        replyTo(w, '+', "PONG");
    } else if (sliceIs(words[0], "INFO")) {
        replyInfo(w, host);
    } else if (sliceIs(words[0], "PUBLISH") && count == 3) {
        publish(host, words[2]);
        replyTo(w, ':', "1");
    } else if (sliceIs(words[0], "SLAVEOF") && count == 3) {
        if (sliceIs(words[1], "NO")) {
            if (!promote(host, w->state[WIRE_ACCEPTOR])) {
                replyTo(w, '+', "ERR too late");
                return;
            }
            if (dies_early) notePromotion(sentinelAt(w->hosts[WIRE_CONNECTOR]), host);
        } else {
            const acceptor *by = w->state[WIRE_ACCEPTOR];
            if (by->ordered_hold && n->held_until_ms > sim_now_ms && n->hold_by != by) {
                replyTo(w, '+', "ERR another one relies on it");
                return;
            }
            str ip = strNew(words[1]);
            becomeReplica(n, hostOf(strText(&ip)));
            if (is_case && servers[n->primary].is_replica)
                simFail("server %d is to follow a replica", host);
            strFree(&ip);
        }
        replyTo(w, '+', "OK");
    } else if (sliceIs(words[0], "FAILOVER") && count == 6) {
        str ip = strNew(words[2]);
        giveRoleAway(host, hostOf(strText(&ip)));
        strFree(&ip);
        replyTo(w, '+', "OK");
    } else if (sliceIs(words[0], "REPLCONF") && count == 3) {
        if (n->is_replica)
            orderHold(n, w->state[WIRE_ACCEPTOR], (int64_t)sentinelReadNumber(words[2]));
        replyTo(w, '+', "OK");
    } else if (sliceIs(words[0], "CLIENT") && sliceIs(words[1], "KILL")) {
        replyTo(w, '+', "OK");
        killClients(host, w);
    } else {
        replyTo(w, '+', "OK");
    }
}

static void replyVote(wire *w, simSentinel *s, const slice *words) {
    sentinelView *v = viewNow(s);
    sentinelInstance *primary = sentinelFindPrimaryAt(v, words[2], 6379);
    bool down = primary && !v->tilt && (primary->flags & INSTANCE_SDOWN);
    bool tells = primary && !sliceIs(words[5], "*");
    if (tells) sentinelVote(v, primary, (uint64_t)sentinelReadNumber(words[4]), words[5]);
    str text = STR_EMPTY;
    strAppendFormat(&text, "%d %s %llu", down,
                    tells && primary->leader.len ? strText(&primary->leader) : "*",
                    tells ? (unsigned long long)primary->leader_epoch : 0ULL);
    replyTo(w, '*', strText(&text));
    strFree(&text);
}

static void serveSentinel(wire *w, simSentinel *s, const slice *words, int count) {
    if (sliceIs(words[0], "SENTINEL") && count == 6) {
        replyVote(w, s, words);
    } else if (sliceIs(words[0], "PUBLISH") && count == 3) {
        sentinelHello(viewNow(s), words[2], true);
        replyTo(w, ':', "1");
    } else {
        replyTo(w, '+', sliceIs(words[0], "PING") ? "PONG" : "OK");
    }
}

/* The accepting end of a connection. */
static void stepAcceptor(wire *w) {
    int host = w->hosts[WIRE_ACCEPTOR];
    if (!w->ends[WIRE_ACCEPTOR] || networkIsPaused(host) || !wireIsEstablished(w)) return;
    if (!w->state[WIRE_ACCEPTOR]) w->state[WIRE_ACCEPTOR] = memNew(acceptor);
    str *in = &((acceptor *)w->state[WIRE_ACCEPTOR])->received;
    str got = wireReceive(w, WIRE_ACCEPTOR);
    strAppendSlice(in, strSlice(&got));
    strFree(&got);
    for (char *end; in->len && (end = memchr(in->ptr, end_of_message, in->len)) != NULL;) {
        slice words[8] = {{0}}; /* LTO does not see that they are set */
        str request = strNew(sliceMake(in->ptr, (size_t)(end - in->ptr)));
        size_t used = request.len + 1;
        memmove(in->ptr, in->ptr + used, in->len - used);
        strCut(in, in->len - used);
        int count = splitRequest(strSlice(&request), words, COUNT_OF(words));
        if (host < SERVERS) {
            serveServer(w, host, words, count);
        } else {
            serveSentinel(w, sentinelAt(host), words, count);
        }
        strFree(&request);
    }
    if (!wireIsEnded(w, WIRE_ACCEPTOR)) return;
    freeReceived(w);
    wireClose(w, WIRE_ACCEPTOR);
}

/* ------------------------------------------------------------------ the connecting end */

/* False: the link has ended. */
static bool takeReply(simSentinel *s, carrier *c, str *message) {
    sentinelReply r = {.text = sliceMake(message->ptr + 1, message->len - 1)};
    if (message->ptr[0] == 'm') {
        wire *w = c->wire;
        sentinelHeard(viewNow(s), c->link);
        sentinelHello(viewNow(s), r.text, false);
        return w->state[WIRE_CONNECTOR] == c;
    }
    if (c->pubsub) return true;
    wire *w = c->wire;
    char leader[64];
    long long down, epoch;
    switch (message->ptr[0]) {
    case '+': r.kind = REPLY_STATUS; break;
    case '$': r.kind = REPLY_BULK; break;
    case ':': r.kind = REPLY_INTEGER; break;
    default:
        r.kind = REPLY_ARRAY;
        r.count = 3;
        if (sscanf(message->ptr + 1, "%lld %63s %lld", &down, leader, &epoch) != 3)
            simFail("a reply: %s", message->ptr);
        r.items[0].kind = r.items[2].kind = REPLY_INTEGER;
        r.items[1].kind = REPLY_BULK;
        r.items[0].integer = down;
        r.items[1].text = sliceOf(leader);
        r.items[2].integer = epoch;
    }
    if (!sentinelReplied(viewNow(s), c->link, &r)) simFail("a reply that was not asked for");
    return w->state[WIRE_CONNECTOR] == c;
}

static void stepConnector(wire *w) {
    carrier *c = w->state[WIRE_CONNECTOR];
    simSentinel *s = sentinelAt(w->hosts[WIRE_CONNECTOR]);
    if (!w->ends[WIRE_CONNECTOR] || !c || networkIsPaused(s->host)) return;
    if (wireIsEstablished(w)) {
        if (!c->opened) {
            c->opened = true;
            sentinelLinkOpened(viewNow(s), sentinelLinkUser(&s->view, c->link), c->pubsub);
        }
        str got = wireReceive(w, WIRE_CONNECTOR);
        strAppendSlice(&c->received, strSlice(&got));
        strFree(&got);
        for (char *end; c->received.len &&
                        (end = memchr(c->received.ptr, end_of_message, c->received.len)) != NULL;) {
            str message = strNew(sliceMake(c->received.ptr, (size_t)(end - c->received.ptr)));
            size_t used = message.len + 1;
            memmove(c->received.ptr, c->received.ptr + used, c->received.len - used);
            strCut(&c->received, c->received.len - used);
            bool alive = takeReply(s, c, &message);
            strFree(&message);
            if (!alive) return;
        }
    }
    if (!wireIsEnded(w, WIRE_CONNECTOR)) return;
    sentinelLink *l = c->link;
    bool pubsub = c->pubsub, refused = !c->opened;
    closeCarrier(c);
    sentinelLinkClosed(viewNow(s), l, pubsub, refused);
}

/* ------------------------------------------------------------------ time */

/* A replica has what its primary has, as long as it reaches it. */
static void stepServer(int host) {
    simServer *n = &servers[host];
    if (!networkIsUp(host) || networkIsPaused(host)) return;
    if (!n->is_replica) {
        if (quorum) confirm(host);
        n->offset++;
        return;
    }
    bool was_up = n->link_up;
    simServer *primary = &servers[n->primary];
    n->link_up = n->primary != host && networkIsUp(n->primary) && !networkIsPaused(n->primary) &&
                 !networkIsBlocked(n->primary, host) && !networkIsBlocked(host, n->primary) &&
                 !primary->is_replica;
    if (n->link_up != was_up) primary->acked[host] = 0;
    if (!n->link_up) return;
    if (n->branch != primary->branch) n->held_from = 0; /* src/psync/link.c */
    n->branch = primary->branch;
    n->offset = primary->offset;
    n->has_caught_up = true;
    acknowledge(host);
}

/* Nothing is on its way, and nothing has ended. */
static bool isQuiet(const wire *w) {
    const carrier *c = w->state[WIRE_CONNECTOR];
    return w->established && !w->cut && w->ends[WIRE_CONNECTOR] && w->ends[WIRE_ACCEPTOR] && c &&
           c->opened && !w->sent[WIRE_CONNECTOR].len && !w->sent[WIRE_ACCEPTOR].len;
}

/* The configuration of a process never gets older, and no forged message is in it. */
static void checkConfig(simSentinel *s) {
    SENTINEL_EACH(primary, &s->view.primaries) {
        if (primary->config_epoch < s->config_epoch)
            simFail("the configuration of Sentinel %d gets older", s->host);
        s->config_epoch = primary->config_epoch;
        if (s->view.current_epoch >= FORGED_EPOCH)
            simFail("Sentinel %d believes a client", s->host);
    }
}

static void step(void) {
    sim_now_ms += 10;
    for (int i = 0; i < SERVERS; i++) stepServer(i);
    for (wire *w = wireFirst(); w; w = w->next) {
        if (isQuiet(w)) continue;
        stepAcceptor(w);
        stepConnector(w);
    }
    wiresSweep();
    for (int i = 0; i < sentinel_count; i++) {
        simSentinel *s = &sentinels[i];
        checkConfig(s);
        if (s->dies) {
            s->dies = false;
            stopHost(s->host);
        }
        if (!networkIsUp(s->host) || networkIsPaused(s->host) || sim_now_ms < s->next_ms) continue;
        s->next_ms = sim_now_ms + TICK_MS + (int64_t)randomUniform(TICK_MS);
        sentinelTick(viewNow(s));
    }
}

/* ------------------------------------------------------------------ faults */

/* A replica that restarts has older data, perhaps. */
static void forgetSome(simServer *n) {
    if (!quorum || !n->is_replica) return;
    n->has_caught_up = n->link_up = false;
    endHold(n);
    if (oneIn(2)) n->offset -= randomUniform(n->offset);
}

/* A primary that restarts has all of its data, and begins a new stream. Not one that was replaced:
 * the order of branches tells which is the newest. */
static void beginStream(simServer *n) {
    bool is_newest = !n->is_replica && n->branch == branches;
    if (!quorum || !is_newest || sim_now_ms < choice_ends_ms) return;
    n->branch = ++branches;
    n->offset = 1;
    n->heard_ms = 0;
    memset(n->acked, 0, sizeof(n->acked));
}

static void restart(int host) {
    simSentinel *s = sentinelAt(host);
    /* It would acknowledge again, too early: see docs/durability.md. */
    if (!s && servers[host].held_until_ms > sim_now_ms) return;
    counts.restarts++;
    if (networkIsUp(host)) {
        stopHost(host);
        if (oneIn(2)) return; /* later */
    }
    if (s) {
        startSentinel(s);
    } else {
        randomHex(servers[host].runid, SENTINEL_ID_LEN);
        forgetSome(&servers[host]);
        beginStream(&servers[host]);
        networkSetUp(host, true);
    }
}

/* A client that may publish on a server says that it is a Sentinel that all know. */
static void forgeHello(void) {
    str text = STR_EMPTY;
    if (!has_password) return;
    strAppendFormat(&text, "10.0.0.%d,26379,%s,%d,mym,10.0.0.%d,6379,%d",
                    SERVERS + 1 + (int)randomUniform(2), sentinels[randomUniform(3)].id,
                    FORGED_EPOCH, 1 + (int)randomUniform(SERVERS), FORGED_EPOCH);
    publish((int)randomUniform(SERVERS), strSlice(&text));
    strFree(&text);
}

static void someFault(void) {
    int host = (int)randomUniform((uint64_t)(SERVERS + sentinel_count));
    switch (randomUniform(9)) {
    case 0:
        networkPartition((uint32_t)randomUniform(1u << (SERVERS + sentinel_count)));
        counts.separations++;
        break;
    case 1: networkPartition(0); break;
    case 2:
        networkPause(host, sim_now_ms + (int64_t)randomUniform(15000));
        counts.pauses++;
        break;
    case 3:
    case 4: restart(host); break;
    case 5:
        if (wireAny()) wireStall(wireAny(), 5000);
        if (wireAny()) wireCut(wireAny());
        if (wireAny()) wireSilence(wireAny());
        break;
    case 6:
        if (host < SERVERS) break;
        networkSetClock(host, (int64_t)randomUniform(20000) - 10000, 0);
        counts.jumps++;
        break;
    case 7: forgeHello(); break;
    default:
        if (sentinelAt(host)) sentinelAt(host)->disk_fails = oneIn(2);
        break;
    }
}

static void startHost(int host) {
    if (networkIsUp(host)) return;
    if (sentinelAt(host)) {
        startSentinel(sentinelAt(host));
    } else {
        networkSetUp(host, true);
    }
}

static void heal(void) {
    networkHeal();
    for (int i = 0; i < SERVERS + sentinel_count; i++) {
        if (sentinelAt(i)) sentinelAt(i)->disk_fails = false;
        startHost(i);
    }
}

/* The order to be promoted is executed when others may acknowledge again. */
static void promoteLate(void) {
    is_late = false;
    counts.late++;
    heal();
    networkPause(chosen.host, sim_now_ms + 5000 + (int64_t)randomUniform(25000));
}

/* ------------------------------------------------------------------ a run */

/* The one primary; -1: there is none, or more than one. */
static int onlyPrimary(void) {
    int found = -1, count = 0;
    for (int i = 0; i < SERVERS; i++) {
        if (servers[i].is_replica) continue;
        found = i;
        count++;
    }
    return count == 1 ? found : -1;
}

static bool isCalm(void) {
    int primary = onlyPrimary();
    if (primary < 0) return false;
    for (int i = 0; i < SERVERS; i++) {
        if (i != primary && (servers[i].primary != primary || !servers[i].link_up)) return false;
    }
    for (int i = 0; i < sentinel_count; i++) {
        SENTINEL_EACH(watched, &sentinels[i].view.primaries) {
            if (watched->flags || hostOf(watched->addr.ip) != primary) return false;
            if ((int)watched->sentinels.count != sentinel_count - 1) return false;
            if (watched->replicas.count != SERVERS - 1) return false;
        }
    }
    return true;
}

static void showAll(void) {
    for (int i = 0; i < SERVERS; i++)
        printf("server %d: %s of %d, link %d\n", i, servers[i].is_replica ? "replica" : "primary",
               servers[i].primary, servers[i].link_up);
    for (int i = 0; i < sentinel_count; i++) {
        SENTINEL_EACH(watched, &sentinels[i].view.primaries)
        printf("sentinel %d: flags %x, primary %s, config epoch %llu, %d sentinels, %d replicas, "
               "tilt %d\n",
               SERVERS + i, watched->flags, watched->addr.ip,
               (unsigned long long)watched->config_epoch, (int)watched->sentinels.count,
               (int)watched->replicas.count, sentinels[i].view.tilt);
    }
}

/* The file of an operator. */
static void writeFile(simSentinel *s, int primary) {
    str monitor = STR_EMPTY;
    strAppendFormat(&monitor, "monitor mym 10.0.0.%d 6379 %d", primary + 1, sentinel_count / 2 + 1);
    forgetFile(s);
    keepLine(s, strSlice(&monitor), false);
    keepLine(s, SLICE("down-after-milliseconds mym 2000"), false);
    keepLine(s, SLICE("failover-timeout mym 10000"), false);
    if (s->is_fast) keepLine(s, SLICE("refused-after-milliseconds mym 200"), false);
    strFree(&monitor);
}

static void begin(void) {
    sentinel_count = oneIn(2) ? 3 : 5;
    has_password = oneIn(3);
    is_quick = true;
    sim_now_ms = 1000000;
    networkReset(HOSTS, 0, 1 + (int64_t)randomUniform(100));
    memset(leaders, 0, sizeof(leaders));
    memset(primaries, 0, sizeof(primaries));
    is_case = leader_dies = dies_early = false;
    promoted = -1;
    quorum = oneIn(2) ? 1 + (int)randomUniform(SERVERS - 1) : 0;
    lease_ms = oneIn(2) ? 200 + (int64_t)randomUniform(3000) : 0;
    branches = 0;
    confirmed = (position){0};
    choice_ends_ms = 0;
    is_late = in_faults = false;
    bool is_fast = oneIn(2); /* refused connections are noticed */
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = (simServer){.is_replica = i > 0, .priority = 100, .offset = 1};
        /* One with the most data would be waited for. */
        if (i == SERVERS - 1 && !quorum && oneIn(2)) servers[i].priority = 0;
        randomHex(servers[i].runid, SENTINEL_ID_LEN);
        networkSetUp(i, true);
    }
    for (int i = 0; i < sentinel_count; i++) {
        simSentinel *s = &sentinels[i];
        *s = (simSentinel){.host = SERVERS + i};
        randomHex(s->id, SENTINEL_ID_LEN);
        s->is_fast = is_fast && (i < 3 || oneIn(2));
        is_quick = is_quick && s->is_fast;
        writeFile(s, 0);
        startSentinel(s);
    }
}

/* The live Sentinels that know the primary of now. */
static bool isKnown(int primary) {
    for (int i = 0; i < sentinel_count; i++) {
        if (!networkIsUp(sentinels[i].host)) continue;
        SENTINEL_EACH(watched, &sentinels[i].view.primaries)
        if (hostOf(sentinelCurrentAddr(watched)->ip) != primary) return false;
    }
    return true;
}

static void stepUntil(int64_t until_ms, bool (*condition)(void), const char *what) {
    while (!condition()) {
        if (sim_now_ms > until_ms) {
            showAll();
            simFail("%s not in time", what);
        }
        step();
    }
}

/* Those that are up follow it. */
static bool allFollow(void) {
    for (int i = 1; i < SERVERS; i++) {
        if (i != promoted && (!servers[i].is_replica || servers[i].primary != promoted))
            return false;
    }
    return true;
}

static bool isPromoted(void) { return promoted >= 0; }
static bool isReplaced(void) { return promoted >= 0 && isKnown(promoted); }

/* Others are restarted, with what is in their files. */
static void restartVoters(void) {
    for (int i = 0; i < sentinel_count; i++) {
        if (!networkIsUp(sentinels[i].host) || sentinels[i].dies || oneIn(2)) continue;
        stopHost(sentinels[i].host);
        startSentinel(&sentinels[i]);
    }
}

static void startSentinels(void) {
    for (int i = 0; i < sentinel_count; i++) startHost(sentinels[i].host);
}

/* Without the leader that has promoted, and for a time without a majority, the primary comes back.
 * What was promoted stays so: the others end the failover. */
static void endWithoutLeader(void) {
    bool has_majority = oneIn(2), alone = has_majority && oneIn(2);
    int stopped = has_majority ? 0 : sentinel_count / 2;
    for (int i = 0; i < sentinel_count && stopped; i++) {
        if (!networkIsUp(sentinels[i].host) || sentinels[i].dies) continue;
        stopHost(sentinels[i].host);
        stopped--;
    }
    step(); /* the leader ends */
    if (oneIn(2)) restartVoters();
    if (oneIn(4)) startSentinels();
    for (int64_t until = sim_now_ms + 1000 + (int64_t)randomUniform(5000); sim_now_ms < until;)
        step();
    startHost(0);
    if (oneIn(4)) restartVoters();
    for (int64_t until = sim_now_ms + 9000; sim_now_ms < until;) step();
    if (oneIn(2)) restartVoters();
    if (!alone) startSentinels();
    stepUntil(sim_now_ms + CASE_MS, isReplaced, "the end of a failover whose leader has died:");
    startSentinels();
}

/* Only the primary ends, and perhaps the leader. */
static void runCase(void) {
    int64_t began_ms = sim_now_ms, most_ms = is_quick ? CASE_REFUSED_MS : CASE_MS;
    if (quorum) most_ms += lease_ms + lease_ms / 10 + CHOICE_MS;
    bool dies = oneIn(2);
    is_case = true;
    leader_dies = dies;
    dies_early = dies && oneIn(2);
    stopHost(0);
    if (dies) {
        stepUntil(began_ms + most_ms, isPromoted, "a promotion:");
        endWithoutLeader();
    } else {
        stepUntil(began_ms + most_ms, isReplaced, "a failover:");
        if (is_quick && sim_now_ms - began_ms > longest_ms) longest_ms = sim_now_ms - began_ms;
        stepUntil(sim_now_ms + TIMEOUT_MS / 2, allFollow, "other replicas:");
    }
    counts.cases++;
    is_case = false;
    startHost(0);
    stepUntil(sim_now_ms + HEALED_MS, isCalm, "agreement after the end of the primary:");
    if (onlyPrimary() != promoted) simFail("the promoted replica was turned back");
}

/* ------------------------------------------------------------------ an operator */

static int former; /* the primary before an order */
static bool hasMoved(void) { return isCalm() && onlyPrimary() != former; }

/* SENTINEL FAILOVER, of both kinds. */
static void orderFailover(simSentinel *s) {
    bool coordinated = oneIn(2);
    uint64_t gifts = counts.gifts, before = servers[former].offset;
    SENTINEL_EACH(primary, &s->view.primaries) {
        if (sentinelOrderFailover(viewNow(s), primary, coordinated) != OK)
            simFail("Sentinel %d refuses a failover", s->host);
    }
    stepUntil(sim_now_ms + ORDER_MS, hasMoved, "a failover by order:");
    if (!coordinated) return;
    if (counts.gifts != gifts + 1) simFail("a coordinated failover without FAILOVER");
    if (servers[onlyPrimary()].offset < before) simFail("a coordinated failover loses writes");
}

/* A Sentinel is set up anew, with the primary that its operator knows. */
static void loseFile(simSentinel *s) {
    counts.losses++;
    stopHost(s->host);
    writeFile(s, oneIn(2) ? former : 0);
    randomHex(s->id, SENTINEL_ID_LEN);
    memset(s->votes, 0, sizeof(s->votes));
    s->file_epoch = 0;
    startSentinel(s);
    stepUntil(sim_now_ms + HEALED_MS, isCalm, "agreement after the loss of a file:");
    if (onlyPrimary() != former) simFail("the loss of a file moves the primary");
}

/* REPLICAOF by hand: a replica is made a primary, to which the old one may be attached. */
static void moveByHand(void) {
    int host = (former + 1 + (int)randomUniform(SERVERS - 1)) % SERVERS;
    bool alone = oneIn(2);
    becomePrimary(&servers[host]);
    if (!alone) becomeReplica(&servers[former], host);
    for (int64_t until = sim_now_ms + 5000; sim_now_ms < until;) step();
    stepUntil(sim_now_ms + HEALED_MS, isCalm, "agreement after REPLICAOF:");
    if (alone && onlyPrimary() != former) simFail("a replica becomes the primary by REPLICAOF");
}

static void runOperator(void) {
    for (int i = 0; i < 3; i++) {
        simSentinel *s = &sentinels[randomUniform((uint64_t)sentinel_count)];
        /* All INFO is new, and no vote is open. */
        for (int64_t until = sim_now_ms + 2 * TIMEOUT_MS + CALM_MS; sim_now_ms < until;) step();
        former = onlyPrimary();
        counts.orders++;
        switch (randomUniform(3)) {
        case 0: orderFailover(s); break;
        case 1: loseFile(s); break;
        default: moveByHand(); break;
        }
    }
}

static void runOnce(void) {
    counts.runs++;
    begin();
    for (int64_t until = sim_now_ms + CALM_MS; sim_now_ms < until;) step();
    if (!isCalm()) simFail("no Sentinel knows all in time");
    if (servers[0].is_replica) simFail("a failover without a fault");
    if (oneIn(2)) runCase();
    in_faults = true;
    for (int64_t until = sim_now_ms + FAULTS_MS; sim_now_ms < until;) {
        if (oneIn(200)) someFault();
        if (is_late) promoteLate();
        step();
    }
    in_faults = false;
    heal();
    for (int64_t until = sim_now_ms + HEALED_MS; !isCalm();) {
        if (sim_now_ms > until) {
            showAll();
            simFail("no agreement after healing");
        }
        step();
    }
    if (oneIn(4)) runOperator();
    for (int i = 0; i < SERVERS + sentinel_count; i++) stopHost(i);
    for (int i = 0; i < sentinel_count; i++) forgetFile(&sentinels[i]);
    wiresSweep();
}

static void report(void) {
    printf(
        "%llu runs, %llu elections, %llu failovers, %llu votes; %llu restarts, %llu "
        "separations, %llu pauses, %llu jumps of clocks; %llu orders, %llu coordinated, %llu lost "
        "files; with a quorum %llu promotions, %llu refused, %llu late, %llu waits; %llu times only the primary ends, replaced after at most %lld ms if refused "
        "connections count\n",
        (unsigned long long)counts.runs, (unsigned long long)counts.elections,
        (unsigned long long)counts.failovers, (unsigned long long)counts.votes,
        (unsigned long long)counts.restarts, (unsigned long long)counts.separations,
        (unsigned long long)counts.pauses, (unsigned long long)counts.jumps,
        (unsigned long long)counts.orders, (unsigned long long)counts.gifts,
        (unsigned long long)counts.losses, (unsigned long long)counts.confirmed,
        (unsigned long long)counts.refused, (unsigned long long)counts.late,
        (unsigned long long)counts.waits, (unsigned long long)counts.cases, (long long)longest_ms);
}

const simScenario sentinelScenario = {.name = "sentinel", .run = runOnce, .report = report};

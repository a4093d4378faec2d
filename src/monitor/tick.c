/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The periodic work of a Sentinel on each instance: it connects, sends PING, INFO and hello
 * messages, and checks whether the instance is down. Also handles replies and the loss of links. */
#include <stdio.h>

#include "base/base.h"
#include "monitor/machine.h"

enum {
    RETRY_FAST_MS = 50,
    STRANGER_PERIODS = 15, /* so long is it remembered */
};

/* ------------------------------------------------------------------ sending */

/* Its name on the instance. Sentinels have their commands under the usual names. */
static slice commandOn(sentinelInstance *i, slice command) {
    if (i->kind == INSTANCE_SENTINEL) return command;
    const sentinelInstance *primary = sentinelPrimaryOf(i);
    for (int at = 0; at < primary->renamed_count; at++) {
        if (sliceEqualFold(strSlice(&primary->renamed[at].from), command))
            return strSlice(&primary->renamed[at].to);
    }
    return command;
}

static void notePending(sentinelLink *l, pendingKind kind, sentinelInstance *of) {
    hotCheck(l->pending_count <= l->pending_cap);
    if (l->pending_count == l->pending_cap) {
        l->pending_cap = l->pending_cap ? l->pending_cap * 2 : 8;
        l->pending = memRealloc(l->pending, sizeof(*l->pending) * (size_t)l->pending_cap);
    }
    l->pending[l->pending_count++] = (pendingCommand){.kind = kind, .of = of};
}

bool sentinelSend(sentinelView *v, sentinelInstance *i, pendingKind kind, const char *command,
                  int count, const slice *words) {
    slice all[16];
    check(count < (int)COUNT_OF(all));
    if (!sentinelCanSend(i)) return false;
    all[0] = commandOn(i, sliceOf(command));
    for (int at = 0; at < count; at++) all[at + 1] = words[at];
    notePending(i->link, kind, i);
    v->env->send(v, i->link, false, count + 1, all);
    return true;
}

static void sendPing(sentinelView *v, sentinelInstance *i) {
    sentinelLink *l = i->link;
    if (!sentinelSend(v, i, PENDING_PING, "PING", 0, NULL)) return;
    l->ping_sent_ms = v->now_ms;
    if (!l->ping_since_ms) l->ping_since_ms = v->now_ms;
}

void sentinelSendInfo(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->kind != INSTANCE_SENTINEL);
    if (i->info_pending) return;
    i->info_pending = sentinelSend(v, i, PENDING_INFO, "INFO", 0, NULL);
    if (!i->info_pending) return;
    i->sync.info_sent_ms = v->mono_ms;
    i->sync.info_after_hold = true;
}

static void sendHello(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->link);
    str text = STR_EMPTY;
    if (sentinelHelloText(v, i, &text)) {
        slice words[] = {SLICE("__sentinel__:hello"), strSlice(&text)};
        if (sentinelSend(v, i, PENDING_HELLO, "PUBLISH", 2, words)) i->hello_sent_ms = v->now_ms;
    }
    strFree(&text);
}

/* ------------------------------------------------------------------ connecting */

static void sendAuth(sentinelView *v, sentinelInstance *i, bool pubsub) {
    hotCheck(i->link->users > 0);
    const sentinelInstance *primary = sentinelPrimaryOf(i);
    slice words[3] = {commandOn(i, SLICE("AUTH"))};
    slice user = strSlice(&primary->auth_user), pass = strSlice(&primary->auth_pass);
    int count = 1;
    if (i->kind == INSTANCE_SENTINEL) {
        user = strSlice(&v->user);
        pass = strSlice(&v->pass);
        if (!pass.len) {
            user = SLICE("");
            pass = v->env->own_password(v);
        }
    }
    if (!pass.len) return;
    if (user.len) words[count++] = user;
    words[count++] = pass;
    if (!pubsub) notePending(i->link, PENDING_OTHER, NULL);
    v->env->send(v, i->link, pubsub, count, words);
}

static void sendName(sentinelView *v, sentinelInstance *i, bool pubsub) {
    char name[32];
    (void)snprintf(name, sizeof(name), "sentinel-%.8s-%s", v->id, pubsub ? "pubsub" : "cmd");
    slice words[] = {commandOn(i, SLICE("CLIENT")), SLICE("SETNAME"), sliceOf(name)};
    if (!pubsub) notePending(i->link, PENDING_OTHER, NULL);
    v->env->send(v, i->link, pubsub, COUNT_OF(words), words);
}

void sentinelLinkOpened(sentinelView *v, sentinelInstance *i, bool pubsub) {
    sentinelLink *l = i->link;
    check((pubsub ? l->pubsub : l->command) == LINK_OPENING);
    if (pubsub) {
        l->pubsub = LINK_OPEN;
        l->pubsub_since_ms = l->pubsub_heard_ms = v->now_ms;
    } else {
        l->command = LINK_OPEN;
        l->command_since_ms = v->now_ms;
        l->refused_since_ms = 0;
    }
    sendAuth(v, i, pubsub);
    sendName(v, i, pubsub);
    if (pubsub) {
        slice words[] = {commandOn(i, SLICE("SUBSCRIBE")), SLICE("__sentinel__:hello")};
        v->env->send(v, l, true, COUNT_OF(words), words);
    } else {
        sendPing(v, i);
    }
}

void sentinelLinkClosed(sentinelView *v, sentinelLink *l, bool pubsub, bool refused) {
    hotCheck(l->users > 0);
    if (pubsub) {
        l->pubsub = LINK_CLOSED;
        return;
    }
    for (int at = 0; at < l->pending_count; at++) {
        sentinelInstance *of = l->pending[at].of;
        if (of && l->pending[at].kind == PENDING_INFO) of->info_pending = false;
        if (of && l->pending[at].kind == PENDING_HELLO) of->hello_sent_ms = 0;
    }
    l->pending_count = 0;
    l->command = LINK_CLOSED;
    if (!refused) {
        l->refused_since_ms = 0;
    } else if (!l->refused_since_ms) {
        l->refused_since_ms = v->now_ms;
    }
}

void sentinelHeard(sentinelView *v, sentinelLink *l) {
    hotCheck(l->users > 0);
    l->pubsub_heard_ms = v->now_ms;
}

static int64_t retryMs(const sentinelView *v, sentinelInstance *i) {
    bool fast = sentinelPrimaryOf(i)->refused_after_ms > 0 && !i->link->refusals;
    return fast && v->periods.ping > RETRY_FAST_MS ? RETRY_FAST_MS : v->periods.ping;
}

static void connectInstance(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->link->users > 0);
    sentinelLink *l = i->link;
    bool wants_pubsub = i->kind != INSTANCE_SENTINEL;
    if (l->command != LINK_CLOSED && (!wants_pubsub || l->pubsub != LINK_CLOSED)) return;
    if (i->addr.port == 0) return;
    if (v->now_ms - l->tried_ms < retryMs(v, i)) return;
    l->tried_ms = v->now_ms;
    if (i->addr.host.len && v->resolve_hostnames) {
        char ip[SENTINEL_IP_MAX];
        if (v->env->resolve(v, strSlice(&i->addr.host), ip) && ip[0])
            memcpy(i->addr.ip, ip, sizeof(ip));
    }
    if (!i->addr.ip[0]) return;
    if (l->command == LINK_CLOSED) {
        l->command = LINK_OPENING;
        v->env->connect(v, i, false);
    }
    if (wants_pubsub && l->pubsub == LINK_CLOSED) {
        l->pubsub = LINK_OPENING;
        v->env->connect(v, i, true);
    }
}

/* ------------------------------------------------------------------ polling */

static int64_t infoPeriod(const sentinelView *v, sentinelInstance *i) {
    hotCheck(i->kind != INSTANCE_SENTINEL);
    const sentinelInstance *primary = sentinelPrimaryOf(i);
    bool is_watched = (primary->flags & (INSTANCE_ODOWN | INSTANCE_FAILOVER)) || i->link_down_ms;
    if (i->kind != INSTANCE_REPLICA || !is_watched) return v->periods.info;
    int64_t period_ms = v->periods.info < 1000 ? v->periods.info : 1000;
    bool is_awaited = primary->promoted == i && primary->step == FAILOVER_WAIT_PROMOTION;
    if (is_awaited && primary->flags & INSTANCE_COORDINATED) return SENTINEL_HURRY_MS / 2;
    return is_awaited && primary->refused_after_ms > 0 ? RETRY_FAST_MS : period_ms;
}

static bool mayHello(const sentinelInstance *i) {
    bool coordinated = i->kind == INSTANCE_PRIMARY && (i->flags & INSTANCE_COORDINATED) &&
                       i->step < FAILOVER_RECONF_REPLICAS;
    return !coordinated && !i->in_failover;
}

static void poll(sentinelView *v, sentinelInstance *i) {
    const sentinelLink *l = i->link;
    if (!sentinelCanSend(i)) return;
    if (l->pending_count >= SENTINEL_PENDING_MAX * l->users) return;
    int64_t ping_ms = sentinelPrimaryOf(i)->down_after_ms;
    if (ping_ms > v->periods.ping) ping_ms = v->periods.ping;
    if (i->kind != INSTANCE_SENTINEL && !i->info_pending &&
        (!i->info_ms || v->now_ms - i->info_ms > infoPeriod(v, i)))
        sentinelSendInfo(v, i);
    if (v->now_ms - l->ping_reply_ms > ping_ms && v->now_ms - l->ping_sent_ms > ping_ms / 2)
        sendPing(v, i);
    if (v->now_ms - i->hello_sent_ms > v->periods.publish && mayHello(i)) sendHello(v, i);
}

/* ------------------------------------------------------------------ replies */

static bool startsWith(slice text, const char *word) {
    size_t len = strlen(word);
    return text.len >= len && !memcmp(text.ptr, word, len);
}

static void pingReplied(sentinelView *v, sentinelInstance *i, sentinelLink *l,
                        const sentinelReply *r) {
    bool is_line = r->kind == REPLY_STATUS || r->kind == REPLY_ERROR;
    l->ping_reply_ms = v->now_ms;
    if (!is_line) return;
    if (startsWith(r->text, "PONG") || startsWith(r->text, "LOADING") ||
        startsWith(r->text, "MASTERDOWN")) {
        l->ping_good_ms = v->now_ms;
        l->ping_since_ms = 0;
        if (i && startsWith(r->text, "PONG")) i->flags &= ~(uint32_t)INSTANCE_REBOOTED;
    } else if (i && startsWith(r->text, "BUSY") && (i->flags & INSTANCE_SDOWN) &&
               !(i->flags & INSTANCE_SCRIPT_KILL_SENT)) {
        slice words[] = {SLICE("KILL")};
        (void)sentinelSend(v, i, PENDING_OTHER, "SCRIPT", 1, words); /* it is open */
        i->flags |= INSTANCE_SCRIPT_KILL_SENT;
    }
}

bool sentinelReplied(sentinelView *v, sentinelLink *l, const sentinelReply *r) {
    if (l->pending_count == 0) return false;
    pendingCommand p = l->pending[0];
    memmove(l->pending, l->pending + 1, sizeof(p) * (size_t)--l->pending_count);
    if (p.kind == PENDING_PING) pingReplied(v, p.of, l, r);
    if (!p.of) return true;
    if (p.kind == PENDING_INFO) {
        p.of->info_pending = false;
        if (r->kind == REPLY_BULK || r->kind == REPLY_VERBATIM) { sentinelInfo(v, p.of, r->text); }
    } else if (p.kind == PENDING_HELLO && r->kind == REPLY_ERROR) {
        /* Again, but not at each tick. */
        p.of->hello_sent_ms = v->now_ms - v->periods.publish + v->periods.publish / 4;
    } else if (p.kind == PENDING_ASK) {
        sentinelAskReplied(v, p.of, r, false);
    } else if (p.kind == PENDING_VOTE) {
        sentinelAskReplied(v, p.of, r, true);
    }
    return true;
}

/* ------------------------------------------------------------------ the tick */

static void handle(sentinelView *v, sentinelInstance *i) {
    connectInstance(v, i);
    poll(v, i);
    if (v->tilt) return;
    sentinelCheckSdown(v, i);
    if (i->kind != INSTANCE_PRIMARY) return;
    sentinelCheckOdown(v, i);
    if (sentinelMaybeStartFailover(v, i)) sentinelAsk(v, i, true);
    sentinelFailoverStep(v, i);
    sentinelAsk(v, i, false);
}

/* A clock that jumps, or a process that was stopped, must not be taken for the failure of all
 * others. */
static void checkTilt(sentinelView *v) {
    hotCheck(v->periods.tilt_trigger > 0);
    int64_t gap_ms = v->ticked_ms ? v->now_ms - v->ticked_ms : 0;
    v->ticked_ms = v->now_ms;
    if (gap_ms < 0 || gap_ms > v->periods.tilt_trigger) {
        v->tilt = true;
        v->tilt_count++;
        v->tilt_since_ms = v->now_ms;
        sentinelEventText(v, LOG_WARNING, "+tilt", NULL, "#tilt mode entered");
    } else if (v->tilt && v->now_ms - v->tilt_since_ms >= v->periods.tilt_period) {
        v->tilt = false;
        sentinelEventText(v, LOG_WARNING, "-tilt", NULL, "#tilt mode exited");
    }
}

/* One that has fallen silent is forgotten; a message names it again if it comes back. */
static void handleStranger(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->is_stranger);
    if (v->now_ms - i->hello_seen_ms > STRANGER_PERIODS * v->periods.publish) {
        sentinelRemove(v, i);
        return;
    }
    connectInstance(v, i);
    poll(v, i);
}

void sentinelTick(sentinelView *v) {
    hotCheck(v->env);
    checkTilt(v);
    SENTINEL_EACH(primary, &v->primaries) {
        handle(v, primary);
        SENTINEL_EACH(replica, &primary->replicas) handle(v, replica);
        SENTINEL_EACH(peer, &primary->sentinels) handle(v, peer);
        SENTINEL_EACH(stranger, &primary->strangers) handleStranger(v, stranger);
        if (primary->step == FAILOVER_UPDATE_CONFIG) sentinelFailoverFinish(v, primary);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides which instances are down: subjectively (SDOWN), as this Sentinel alone sees it, and
 * objectively (ODOWN), when as many Sentinels agree as the quorum of the primary asks for. */
#include "base/base.h"
#include "monitor/machine.h"

static int64_t downAfter(sentinelInstance *i) { return sentinelPrimaryOf(i)->down_after_ms; }

/* No good reply for too long. */
static bool isSilent(const sentinelView *v, sentinelInstance *i) {
    const sentinelLink *l = i->link;
    int64_t since_ms = 0;
    if (l->ping_since_ms) {
        since_ms = l->ping_since_ms;
    } else if (!sentinelIsConnected(i)) {
        since_ms = l->ping_good_ms;
    }
    return since_ms && v->now_ms - since_ms > downAfter(i);
}

/* Nobody listens at its address any more: the process has ended. */
static bool isRefused(const sentinelView *v, sentinelInstance *i) {
    int64_t after_ms = sentinelPrimaryOf(i)->refused_after_ms;
    const sentinelLink *l = i->link;
    return after_ms > 0 && l->refused_since_ms && l->command != LINK_OPEN &&
           v->now_ms - l->refused_since_ms >= after_ms;
}

/* Why it is down; NULL: it is not. */
static const char *whyDown(const sentinelView *v, sentinelInstance *i) {
    hotCheck(i->link);
    if (isRefused(v, i)) return "connections are refused";
    if (isSilent(v, i)) return "no valid reply to PING";
    if (i->kind != INSTANCE_PRIMARY) return NULL;
    if (i->role_is_replica && v->now_ms - i->role_since_ms > i->down_after_ms + 2 * v->periods.info)
        return "it is a replica";
    if (i->sync.is_behind) return "it was started without data that its replicas have confirmed";
    bool rebooted = (i->flags & INSTANCE_REBOOTED) &&
                    v->now_ms - i->rebooted_since_ms > i->reboot_down_after_ms;
    return rebooted ? "it was restarted" : NULL;
}

/* The kernel tries to connect for minutes, with longer and longer pauses. */
static void dropOpening(sentinelView *v, sentinelInstance *i) {
    sentinelLink *l = i->link;
    int64_t most_ms = downAfter(i) / 2;
    if (most_ms > v->periods.reconnect) most_ms = v->periods.reconnect;
    if (most_ms < v->periods.ping) most_ms = v->periods.ping;
    hotCheck(l->users > 0);
    if (v->now_ms - l->tried_ms <= most_ms) return;
    for (int pubsub = 0; pubsub < 2; pubsub++) {
        if ((pubsub ? l->pubsub : l->command) != LINK_OPENING) continue;
        v->env->disconnect(v, l, pubsub);
        sentinelLinkClosed(v, l, pubsub, false);
    }
}

/* A link that is open but does not work is closed, so that another one is tried. */
static void dropStuckLinks(sentinelView *v, sentinelInstance *i) {
    sentinelLink *l = i->link;
    dropOpening(v, i);
    bool stuck = l->command == LINK_OPEN && l->ping_since_ms &&
                 v->now_ms - l->command_since_ms > v->periods.reconnect &&
                 v->now_ms - l->ping_since_ms > downAfter(i) / 2 &&
                 v->now_ms - l->ping_reply_ms > downAfter(i) / 2;
    if (stuck) sentinelDisconnect(v, i);
    if (l->pubsub == LINK_OPEN && v->now_ms - l->pubsub_since_ms > v->periods.reconnect &&
        v->now_ms - l->pubsub_heard_ms > 3 * v->periods.publish) {
        v->env->disconnect(v, l, true);
        l->pubsub = LINK_CLOSED;
    }
}

void sentinelCheckSdown(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->link);
    dropStuckLinks(v, i);
    const char *why = whyDown(v, i);
    bool down = why != NULL;
    if (down && !(i->flags & INSTANCE_SDOWN)) {
        i->flags |= INSTANCE_SDOWN;
        i->down_why = why;
        i->sdown_since_ms = v->now_ms;
        sentinelEvent(v, LOG_WARNING, "+sdown", i, "%s", "");
    } else if (!down && (i->flags & INSTANCE_SDOWN)) {
        i->flags &= ~(uint32_t)(INSTANCE_SDOWN | INSTANCE_SCRIPT_KILL_SENT);
        sentinelEvent(v, LOG_WARNING, "-sdown", i, "%s", "");
    }
}

void sentinelCheckOdown(sentinelView *v, sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    int64_t votes = 1;
    SENTINEL_EACH(peer, &primary->sentinels) votes += (peer->flags & INSTANCE_PRIMARY_DOWN) != 0;
    bool down = (primary->flags & INSTANCE_SDOWN) && votes >= primary->quorum;
    if (down && !(primary->flags & INSTANCE_ODOWN)) {
        primary->flags |= INSTANCE_ODOWN;
        primary->odown_since_ms = v->now_ms;
        sentinelEvent(v, LOG_WARNING, "+odown", primary, " #quorum %lld/%lld", (long long)votes,
                      (long long)primary->quorum);
    } else if (!down && (primary->flags & INSTANCE_ODOWN)) {
        primary->flags &= ~(uint32_t)INSTANCE_ODOWN;
        sentinelEvent(v, LOG_WARNING, "-odown", primary, "%s", "");
    }
}

bool sentinelLooksSane(const sentinelView *v, const sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    return !primary->role_is_replica && !(primary->flags & (INSTANCE_SDOWN | INSTANCE_ODOWN)) &&
           v->now_ms - primary->info_ms < 2 * v->periods.info;
}

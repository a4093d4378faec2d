/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hello messages. With them Sentinels find each other and announce the newest configuration of a
 * primary: ip,port,id,current_epoch,name,primary_ip,primary_port,config_epoch */
#include "base/base.h"
#include "base/number.h"
#include "monitor/machine.h"

typedef struct hello {
    slice host, id, name, primary_host;
    int64_t port, primary_port;
    uint64_t current_epoch, config_epoch;
} hello;

/* Splits at commas; false unless there are exactly eight fields that are valid. */
static bool parse(slice text, hello *h) {
    slice fields[SENTINEL_HELLO_FIELDS];
    int count = 0;
    for (;;) {
        const char *comma = text.len ? memchr(text.ptr, ',', text.len) : NULL;
        size_t len = comma ? (size_t)(comma - text.ptr) : text.len;
        if (count == SENTINEL_HELLO_FIELDS) return false;
        fields[count++] = sliceMake(text.ptr, len);
        if (!comma) break;
        text = sliceMake(comma + 1, text.len - len - 1);
    }
    if (count != SENTINEL_HELLO_FIELDS) return false;
    *h = (hello){.host = fields[0], .id = fields[2], .name = fields[4], .primary_host = fields[5]};
    return numberParseInt(fields[1], &h->port) && numberParseUint(fields[3], &h->current_epoch) &&
           numberParseInt(fields[6], &h->primary_port) &&
           numberParseUint(fields[7], &h->config_epoch) && sliceIsHex(h->id, SENTINEL_ID_LEN) &&
           h->current_epoch <= SENTINEL_EPOCH_MAX && h->config_epoch <= SENTINEL_EPOCH_MAX;
}

/* An entry of another id at the address of the sender is out of date: it is removed everywhere. */
static void removeInvalid(sentinelView *v, slice id, slice host, int port) {
    SENTINEL_EACH(primary, &v->primaries) {
        sentinelInstance *at = sentinelFindPeerAt(primary, host, port);
        if (!at || sliceEqual(strSlice(&at->runid), id)) continue;
        sentinelEvent(v, LOG_NOTICE, "+sentinel-invalid-addr", at, "%s", "");
        sentinelRemove(v, at);
    }
}

/* The sender has another address than it had. */
static void movePeer(sentinelView *v, sentinelInstance *peer, const hello *h,
                     const sentinelAddr *addr) {
    hotCheck(peer->kind == INSTANCE_SENTINEL);
    sentinelEvent(v, LOG_NOTICE, "+sentinel-address-switch", peer, " ip %.*s port %lld for %.*s",
                  (int)h->host.len, h->host.ptr, (long long)h->port, (int)h->id.len, h->id.ptr);
    int moved = sentinelMovePeer(v, h->id, addr);
    if (moved > 1)
        sentinelEvent(v, LOG_NOTICE, "+sentinel-address-update", peer,
                      " %d additional matching instances", moved - 1);
    sentinelEvent(v, LOG_NOTICE, "+sentinel", peer, "%s", "");
    v->env->save_soon(v);
}

/* The entry of the sender; NULL: its address is not valid. */
static sentinelInstance *senderOf(sentinelView *v, sentinelInstance *primary, const hello *h) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    sentinelAddr addr;
    sentinelInstance *peer = sentinelFindPeer(primary, h->id);
    if (peer && peer->addr.port == h->port &&
        (sliceIs(h->host, peer->addr.ip) || sliceIs(h->host, strText(&peer->addr.host))))
        return peer;
    if (h->port == 0 || sentinelAddrMake(v, h->host, h->port, &addr) != OK) return NULL;
    removeInvalid(v, h->id, h->host, (int)h->port);
    if (peer) {
        if (!sentinelAddrEqual(&peer->addr, &addr)) movePeer(v, peer, h, &addr);
    } else if (primary->sentinels.count < SENTINEL_TOLD_MAX &&
               sentinelAddPeer(v, primary, h->host, h->port, h->id, &peer) == OK) {
        sentinelEvent(v, LOG_NOTICE, "+sentinel", peer, "%s", "");
        v->env->save_soon(v);
    }
    sentinelAddrFree(&addr);
    return peer;
}

/* A failover of an epoch before that of the configuration could only lead to one that all others
 * ignore. */
static void endOutdated(sentinelView *v, sentinelInstance *primary) {
    bool is_outdated = (primary->flags & INSTANCE_FAILOVER) &&
                       primary->step <= FAILOVER_WAIT_PROMOTION &&
                       primary->failover_epoch < primary->config_epoch;
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    if (!is_outdated) return;
    sentinelEventText(v, LOG_NOTICE, "", NULL,
                      "Failover of %s in epoch %llu given up: the configuration is newer",
                      strText(&primary->name), (unsigned long long)primary->failover_epoch);
    sentinelAbortFailover(v, primary);
}

static void takeConfig(sentinelView *v, sentinelInstance *primary, sentinelInstance *sender,
                       const hello *h) {
    check(sender->kind == INSTANCE_SENTINEL);
    if (primary->config_epoch >= h->config_epoch) return;
    const sentinelAddr *current = sentinelCurrentAddr(primary);
    if (sentinelAddrIs(v, current, h->primary_host, (int)h->primary_port)) {
        primary->config_epoch = h->config_epoch;
        endOutdated(v, primary);
        return;
    }
    sentinelAddr addr;
    /* Nothing changes if the new address is unknown. */
    if (sentinelAddrMake(v, h->primary_host, h->primary_port, &addr) != OK) return;
    primary->config_epoch = h->config_epoch;
    slice old = sentinelAddrText(v, current), new = sentinelAddrText(v, &addr);
    sentinelEvent(v, LOG_WARNING, "+config-update-from", sender, "%s", "");
    sentinelEventText(v, LOG_WARNING, "+switch-master", primary, "%s %.*s %d %.*s %d",
                      strText(&primary->name), (int)old.len, old.ptr, current->port, (int)new.len,
                      new.ptr, addr.port);
    sentinelRunReconfig(v, primary, "observer", current, &addr);
    primary->switch_why = "another Sentinel";
    sentinelSwitchPrimary(v, primary, &addr);
}

/* A leader that lives has told of its promotion, or has nothing to do with it. But the votes of
 * others may have elected another one, which is dead, or this one was restarted after its order. */
static void endSuspicion(const sentinelView *v, sentinelInstance *primary,
                         const sentinelInstance *sender, uint64_t config_epoch) {
    hotCheck(sender->primary == primary);
    SENTINEL_EACH(i, &primary->replicas) {
        if (!i->promoted_in || config_epoch >= i->promoted_in) continue;
        if (v->now_ms - i->role_since_ms <= v->periods.publish) continue;
        if (!sliceEqual(strSlice(&i->promoter), strSlice(&sender->runid))) continue;
        i->promoted_in = 0;
        i->is_unsure = true;
    }
}

/* The address of this Sentinel as the other end of `l` sees it; empty: unknown. */
static slice ownHost(sentinelView *v, const sentinelLink *l, char ip[SENTINEL_IP_MAX]) {
    hotCheck(l);
    if (v->announce_ip.len) return strSlice(&v->announce_ip);
    return v->env->own_ip(v, l, ip) ? sliceOf(ip) : SLICE("");
}

static int ownPort(sentinelView *v) {
    hotCheck(v->env);
    return v->announce_port ? v->announce_port : v->env->own_port(v);
}

/* A message of the one that was at the own address before, with another id: its file was lost. As a
 * peer it would get the questions of this one, and have a second vote. */
static bool isFormerSelf(sentinelView *v, const sentinelInstance *primary, const hello *h) {
    char ip[SENTINEL_IP_MAX];
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    slice host = ownHost(v, primary->link, ip);
    return host.len && h->port == ownPort(v) && sliceEqual(h->host, host);
}

void sentinelHello(sentinelView *v, slice text, bool direct) {
    hello h;
    if (!parse(text, &h) || sliceIs(h.id, v->id)) return;
    sentinelInstance *primary = sentinelFindPrimary(v, h.name);
    if (!primary || isFormerSelf(v, primary, &h)) return;
    if (!direct && v->env->needs_password(v)) {
        /* Any client that may publish on a server could have sent it. */
        if (!sentinelFindPeer(primary, h.id) && h.port)
            sentinelMeetStranger(v, primary, h.host, h.port, h.id);
        return;
    }
    sentinelInstance *sender = senderOf(v, primary, &h);
    sentinelSawEpoch(v, primary, h.current_epoch);
    if (!sender) return;
    sender->hello_seen_ms = v->now_ms;
    endSuspicion(v, primary, sender, h.config_epoch);
    takeConfig(v, primary, sender, &h);
}

bool sentinelHelloText(sentinelView *v, const sentinelInstance *to, str *out) {
    char ip[SENTINEL_IP_MAX];
    const sentinelInstance *primary = to->primary ? to->primary : to;
    const sentinelAddr *addr = sentinelCurrentAddr(primary);
    slice host = sentinelAddrText(v, addr);
    slice own = ownHost(v, to->link, ip);
    if (!own.len) return false;
    strAppendFormat(out, "%.*s,%d,%s,%llu,%s,%.*s,%d,%llu", (int)own.len, own.ptr, ownPort(v),
                    v->id, (unsigned long long)v->current_epoch, strText(&primary->name),
                    (int)host.len, host.ptr, addr->port, (unsigned long long)primary->config_epoch);
    return true;
}

void sentinelForceHello(sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    primary->hello_sent_ms = 0;
    SENTINEL_EACH(replica, &primary->replicas) replica->hello_sent_ms = 0;
    SENTINEL_EACH(peer, &primary->sentinels) peer->hello_sent_ms = 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adds, finds and removes primaries, replicas, Sentinels and their links.
 *
 * Invariant: each instance has a link, and Sentinels with the same id share one (view.h). */
#include "monitor/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "monitor/machine.h"

static const sentinelPeriods usual_periods = {.info = 10000,
                                              .ping = 1000,
                                              .ask = 1000,
                                              .publish = 2000,
                                              .down_after = 30000,
                                              .failover_timeout = 180000,
                                              .tilt_trigger = 2000,
                                              .tilt_period = 30000,
                                              .reconf_timeout = 10000,
                                              .reconnect = 15000,
                                              .election = 10000,
                                              .script_runtime = 60000,
                                              .script_retry = 30000};

void sentinelViewInit(sentinelView *v, const sentinelEnv *env, void *arg) {
    *v = (sentinelView){.env = env, .arg = arg, .periods = usual_periods, .deny_scripts = true};
    listInit(&v->primaries);
}

void sentinelViewClear(sentinelView *v) {
    SENTINEL_EACH(primary, &v->primaries) sentinelRemove(v, primary);
    check(listIsEmpty(&v->primaries));
    strFree(&v->announce_ip);
    strFree(&v->refused_names);
    strFree(&v->user);
    strFree(&v->pass);
}

const char *sentinelKindName(instanceKind kind) {
    hotCheck(kind <= INSTANCE_SENTINEL);
    static const char *const names[] = {"master", "slave", "sentinel"};
    return names[kind];
}

const char *sentinelStepName(failoverStep step) {
    hotCheck(step <= FAILOVER_UPDATE_CONFIG);
    static const char *const names[] = {
        "none",           "wait_start",    "select_slave", "send_slaveof_noone",
        "wait_promotion", "reconf_slaves", "update_config"};
    return names[step];
}

/* ------------------------------------------------------------------ addresses */

status sentinelAddrMake(sentinelView *v, slice host, int64_t port, sentinelAddr *out) {
    char ip[SENTINEL_IP_MAX] = "";
    if (port < 0 || port > 65535) return ERR_RANGE;
    for (size_t i = 0; i < host.len; i++) {
        uint8_t byte = (uint8_t)host.ptr[i]; /* a line of the file is split at blanks */
        if (byte <= ' ' || byte >= 0x7f || strchr("\"',#", byte)) return ERR_NOT_FOUND;
    }
    if (host.len == 0 || host.len > 255) return ERR_NOT_FOUND;
    if (!v->env->resolve(v, host, ip) && !v->resolve_hostnames) return ERR_NOT_FOUND;
    *out = (sentinelAddr){.host = strNew(host), .port = (int)port};
    memcpy(out->ip, ip, sizeof(ip));
    return OK;
}

static sentinelAddr copyAddr(const sentinelAddr *a) {
    hotCheck(a->host.len > 0);
    sentinelAddr copy = {.host = strNew(strSlice(&a->host)), .port = a->port};
    memcpy(copy.ip, a->ip, sizeof(copy.ip));
    return copy;
}

void sentinelAddrFree(sentinelAddr *a) { strFree(&a->host); }

static const char *comparable(const sentinelAddr *a) {
    return a->ip[0] ? a->ip : strText(&a->host);
}

bool sentinelAddrEqual(const sentinelAddr *a, const sentinelAddr *b) {
    return a->port == b->port && !strcmp(comparable(a), comparable(b));
}

/* A name without an address is shown as a name: an empty word could not be read back. */
slice sentinelAddrText(const sentinelView *v, const sentinelAddr *a) {
    hotCheck(a->host.len > 0);
    return v->announce_hostnames || !a->ip[0] ? strSlice(&a->host) : sliceOf(a->ip);
}

bool sentinelAddrIs(sentinelView *v, const sentinelAddr *a, slice host, int port) {
    char ip[SENTINEL_IP_MAX] = "";
    if (a->port != port) return false;
    if (sliceIs(host, strText(&a->host)) || sliceIs(host, a->ip)) return true;
    return v->env->resolve(v, host, ip) && ip[0] && !strcmp(ip, a->ip);
}

/* ------------------------------------------------------------------ lookup */

sentinelInstance *sentinelFindPrimary(const sentinelView *v, slice name) {
    hotCheck(v->env);
    SENTINEL_EACH(i, &v->primaries) {
        if (sliceEqual(strSlice(&i->name), name)) return i;
    }
    return NULL;
}

static bool isAt(const sentinelAddr *a, slice host, int port) {
    return a->port == port &&
           (sliceEqual(sliceOf(a->ip), host) || sliceEqualFold(strSlice(&a->host), host));
}

sentinelInstance *sentinelFindPrimaryAt(const sentinelView *v, slice host, int port) {
    hotCheck(v->env);
    SENTINEL_EACH(i, &v->primaries) {
        if (isAt(&i->addr, host, port)) return i;
    }
    return NULL;
}

sentinelInstance *sentinelFindReplica(const sentinelInstance *primary, slice host, int port) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->replicas) {
        if (isAt(&i->addr, host, port)) return i;
    }
    return NULL;
}

sentinelInstance *sentinelFindPeer(const sentinelInstance *primary, slice id) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->sentinels) {
        if (sliceEqual(strSlice(&i->runid), id)) return i;
    }
    return NULL;
}

sentinelInstance *sentinelFindPeerAt(const sentinelInstance *primary, slice ip, int port) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(i, &primary->sentinels) {
        if (isAt(&i->addr, ip, port)) return i;
    }
    return NULL;
}

static bool areAtHost(const list *instances, slice host) {
    SENTINEL_EACH(i, instances) {
        if (sliceEqual(strSlice(&i->addr.host), host)) return true;
    }
    return false;
}

bool sentinelUsesHost(const sentinelView *v, slice host) {
    hotCheck(v->env);
    SENTINEL_EACH(primary, &v->primaries) {
        if (areAtHost(&primary->replicas, host) || areAtHost(&primary->sentinels, host))
            return true;
    }
    return areAtHost(&v->primaries, host);
}

sentinelInstance *sentinelLinkUser(const sentinelView *v, const sentinelLink *l) {
    hotCheck(l->users > 0);
    SENTINEL_EACH(primary, &v->primaries) {
        const list *lists[] = {&primary->replicas, &primary->sentinels, &primary->strangers};
        if (primary->link == l) return primary;
        for (size_t at = 0; at < COUNT_OF(lists); at++) {
            SENTINEL_EACH(i, lists[at]) {
                if (i->link == l) return i;
            }
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------ life of an instance */

/* A comma would end the field of a hello message. */
bool sentinelNameIsValid(slice name) {
    for (size_t i = 0; i < name.len; i++) {
        uint8_t byte = (uint8_t)name.ptr[i];
        if (byte < ' ' || byte == 0x7f || byte == ',') return false;
    }
    return name.len > 0 && name.len <= 1024;
}

static sentinelLink *newLink(const sentinelView *v) {
    sentinelLink *l = memNew(sentinelLink);
    l->users = 1;
    /* As if it had just worked: there is time to connect before it is down. */
    l->ping_since_ms = l->ping_good_ms = l->ping_reply_ms = v->now_ms;
    return l;
}

static sentinelInstance *newInstance(sentinelView *v, instanceKind kind, sentinelAddr *take) {
    sentinelInstance *i = memNew(sentinelInstance);
    i->kind = kind;
    i->addr = *take;
    *take = (sentinelAddr){0};
    i->hello_sent_ms = i->hello_seen_ms = i->role_since_ms = i->replica_conf_ms = v->now_ms;
    i->role_is_replica = kind == INSTANCE_REPLICA;
    i->link_down_ms = 0;
    i->is_announced = true;
    i->priority = 100;
    i->voted_ms = v->now_ms;
    listInit(&i->replicas);
    listInit(&i->sentinels);
    listInit(&i->strangers);
    return i;
}

status sentinelAddPrimary(sentinelView *v, slice name, slice host, int64_t port, int64_t quorum,
                          sentinelInstance **out) {
    sentinelAddr addr;
    check(sentinelNameIsValid(name));
    status st = sentinelAddrMake(v, host, port, &addr);
    if (st != OK) return st;
    if (sentinelFindPrimary(v, name)) {
        sentinelAddrFree(&addr);
        return ERR_EXISTS;
    }
    sentinelInstance *i = newInstance(v, INSTANCE_PRIMARY, &addr);
    i->name = strNew(name);
    i->quorum = quorum;
    i->parallel_syncs = 1;
    i->down_after_ms = v->periods.down_after;
    i->failover_timeout_ms = v->periods.failover_timeout;
    i->link = newLink(v);
    listAppend(&v->primaries, &i->node);
    *out = i;
    return OK;
}

static void nameReplica(const sentinelView *v, sentinelInstance *i) {
    check(i->kind == INSTANCE_REPLICA);
    slice host = sentinelAddrText(v, &i->addr);
    bool is_ip6 = memchr(host.ptr, ':', host.len) != NULL;
    strClear(&i->name);
    strAppendFormat(&i->name, is_ip6 ? "[%.*s]:%d" : "%.*s:%d", (int)host.len, host.ptr,
                    i->addr.port);
}

/* Takes the address. */
static status addReplicaAt(sentinelView *v, sentinelInstance *primary, sentinelAddr *take,
                           sentinelInstance **out) {
    check(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(other, &primary->replicas) {
        if (!sentinelAddrEqual(&other->addr, take)) continue;
        sentinelAddrFree(take);
        return ERR_EXISTS;
    }
    sentinelInstance *i = newInstance(v, INSTANCE_REPLICA, take);
    i->primary = primary;
    i->link = newLink(v);
    nameReplica(v, i);
    listAppend(&primary->replicas, &i->node);
    *out = i;
    return OK;
}

status sentinelAddReplica(sentinelView *v, sentinelInstance *primary, slice host, int64_t port,
                          sentinelInstance **out) {
    sentinelAddr addr;
    status st = sentinelAddrMake(v, host, port, &addr);
    return st == OK ? addReplicaAt(v, primary, &addr, out) : st;
}

/* The link that the Sentinel has already, because it watches another primary, too. */
static sentinelLink *sharedLink(const sentinelView *v, const sentinelInstance *but, slice id) {
    SENTINEL_EACH(primary, &v->primaries) {
        sentinelInstance *same = primary == but ? NULL : sentinelFindPeer(primary, id);
        if (!same) continue;
        check(same->link->users > 0);
        same->link->users++;
        return same->link;
    }
    return newLink(v);
}

status sentinelAddPeer(sentinelView *v, sentinelInstance *primary, slice host, int64_t port,
                       slice id, sentinelInstance **out) {
    sentinelAddr addr;
    if (sentinelFindPeer(primary, id)) return ERR_EXISTS;
    status st = sentinelAddrMake(v, host, port, &addr);
    if (st != OK) return st;
    sentinelInstance *i = newInstance(v, INSTANCE_SENTINEL, &addr);
    i->primary = primary;
    i->name = strNew(id);
    i->runid = strNew(id);
    i->link = sharedLink(v, primary, id);
    listAppend(&primary->sentinels, &i->node);
    SENTINEL_EACH(stranger, &primary->strangers) {
        if (sliceEqual(strSlice(&stranger->runid), id)) sentinelRemove(v, stranger);
    }
    *out = i;
    return OK;
}

void sentinelMeetStranger(sentinelView *v, sentinelInstance *primary, slice host, int64_t port,
                          slice id) {
    sentinelAddr addr;
    check(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(known, &primary->strangers) {
        if (!sliceEqual(strSlice(&known->runid), id)) continue;
        known->hello_seen_ms = v->now_ms;
        return;
    }
    if (sentinelAddrMake(v, host, port, &addr) != OK) return;
    sentinelInstance *i = newInstance(v, INSTANCE_SENTINEL, &addr);
    i->primary = primary;
    i->is_stranger = true;
    i->name = strNew(id);
    i->runid = strNew(id);
    i->link = newLink(v);
    i->hello_sent_ms = 0;
    listAppend(&primary->strangers, &i->node);
    if (primary->strangers.count <= SENTINEL_STRANGERS_MAX) return;
    sentinelRemove(v, CONTAINER_OF(listFirst(&primary->strangers), sentinelInstance, node));
}

static void closeBoth(sentinelView *v, sentinelLink *l) {
    if (l->command != LINK_CLOSED) v->env->disconnect(v, l, false);
    if (l->pubsub != LINK_CLOSED) v->env->disconnect(v, l, true);
    l->command = l->pubsub = LINK_CLOSED;
    l->pending_count = 0;
    hotCheck(!l->command_carrier);
    hotCheck(!l->pubsub_carrier);
}

static void releaseLink(sentinelView *v, sentinelInstance *i) {
    sentinelLink *l = i->link;
    check(l->users > 0);
    for (int at = 0; at < l->pending_count; at++) {
        if (l->pending[at].of == i) l->pending[at].of = NULL;
    }
    if (--l->users > 0) return;
    closeBoth(v, l);
    memFree(l->pending);
    memFree(l);
}

static void freeInstance(sentinelView *v, sentinelInstance *i) {
    check(!listHas(&i->node));
    releaseLink(v, i);
    sentinelAddrFree(&i->addr);
    str *const texts[] = {&i->name,          &i->runid,     &i->info,   &i->notification_script,
                          &i->auth_user,     &i->auth_pass, &i->leader, &i->reconfig_script,
                          &i->reported_host, &i->promoter};
    for (size_t at = 0; at < COUNT_OF(texts); at++) strFree(texts[at]);
    for (int at = 0; at < i->renamed_count; at++) {
        strFree(&i->renamed[at].from);
        strFree(&i->renamed[at].to);
    }
    memFree(i->renamed);
    memFree(i);
}

void sentinelRemove(sentinelView *v, sentinelInstance *i) {
    list *of = &v->primaries;
    if (i->kind == INSTANCE_REPLICA) of = &i->primary->replicas;
    if (i->kind == INSTANCE_SENTINEL)
        of = i->is_stranger ? &i->primary->strangers : &i->primary->sentinels;
    if (i->primary && i->primary->promoted == i) i->primary->promoted = NULL;
    SENTINEL_EACH(replica, &i->replicas) sentinelRemove(v, replica);
    SENTINEL_EACH(peer, &i->sentinels) sentinelRemove(v, peer);
    SENTINEL_EACH(stranger, &i->strangers) sentinelRemove(v, stranger);
    check(listIsEmpty(&i->sentinels));
    listRemove(of, &i->node);
    freeInstance(v, i);
}

void sentinelDisconnect(sentinelView *v, sentinelInstance *i) {
    hotCheck(i->link);
    closeBoth(v, i->link);
    SENTINEL_EACH(primary, &v->primaries) {
        primary->info_pending &= primary->link != i->link;
        SENTINEL_EACH(replica, &primary->replicas)
        replica->info_pending &= replica->link != i->link;
    }
}

void sentinelResetPrimary(sentinelView *v, sentinelInstance *primary, bool peers) {
    check(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(replica, &primary->replicas) sentinelRemove(v, replica);
    if (peers) {
        SENTINEL_EACH(peer, &primary->sentinels) sentinelRemove(v, peer);
        SENTINEL_EACH(stranger, &primary->strangers) sentinelRemove(v, stranger);
    }
    sentinelDisconnect(v, primary);
    releaseLink(v, primary);
    primary->link = newLink(v);
    primary->flags = 0;
    strFree(&primary->leader);
    primary->step = FAILOVER_NONE;
    primary->failover_changed_ms = primary->failover_start_ms = primary->retry_ms = 0;
    primary->retries = 0;
    primary->is_takeover = false;
    primary->promoted = NULL;
    primary->info_pending = primary->role_is_replica = primary->in_failover = false;
    strFree(&primary->runid);
    strFree(&primary->info);
    primary->sdown_since_ms = primary->odown_since_ms = primary->info_ms = 0;
    primary->role_since_ms = v->now_ms;
    primary->hello_sent_ms = 0;
}

/* ------------------------------------------------------------------ other addresses */

static void forgetName(const sentinelView *v, sentinelInstance *i) {
    check(i->addr.ip[0]);
    strFree(&i->addr.host);
    i->addr.host = strNew(sliceOf(i->addr.ip));
    if (i->kind == INSTANCE_REPLICA) nameReplica(v, i);
}

void sentinelForgetNames(sentinelView *v) {
    hotCheck(v->env);
    SENTINEL_EACH(primary, &v->primaries) {
        forgetName(v, primary);
        SENTINEL_EACH(replica, &primary->replicas) forgetName(v, replica);
        SENTINEL_EACH(peer, &primary->sentinels) forgetName(v, peer);
    }
}

void sentinelSwitchPrimary(sentinelView *v, sentinelInstance *primary, sentinelAddr *take) {
    sentinelAddr *addrs = memNewArray(sentinelAddr, primary->replicas.count + 1);
    int count = 0;
    check(primary->kind == INSTANCE_PRIMARY);
    SENTINEL_EACH(replica, &primary->replicas) {
        if (!sentinelAddrEqual(&replica->addr, take)) addrs[count++] = copyAddr(&replica->addr);
    }
    if (!sentinelAddrEqual(&primary->addr, take)) addrs[count++] = copyAddr(&primary->addr);
    sentinelResetPrimary(v, primary, false);
    primary->switched_ms = v->now_ms;
    sentinelAddrFree(&primary->addr);
    primary->addr = *take;
    *take = (sentinelAddr){0};
    for (int i = 0; i < count; i++) {
        sentinelInstance *replica;
        if (addReplicaAt(v, primary, &addrs[i], &replica) == OK)
            sentinelEvent(v, LOG_NOTICE, "+slave", replica, "%s", "");
    }
    memFree(addrs);
    v->env->save_soon(v); /* the switch has happened */
}

int sentinelMovePeer(sentinelView *v, slice id, const sentinelAddr *addr) {
    int moved = 0;
    hotCheck(id.len > 0);
    SENTINEL_EACH(primary, &v->primaries) {
        sentinelInstance *peer = sentinelFindPeer(primary, id);
        if (!peer) continue;
        sentinelDisconnect(v, peer);
        sentinelAddrFree(&peer->addr);
        peer->addr = copyAddr(addr);
        moved++;
    }
    return moved;
}

const sentinelAddr *sentinelCurrentAddr(const sentinelInstance *primary) {
    check(primary->kind == INSTANCE_PRIMARY);
    bool has_new = (primary->flags & INSTANCE_FAILOVER) && primary->promoted &&
                   primary->step >= FAILOVER_RECONF_REPLICAS;
    return has_new ? &primary->promoted->addr : &primary->addr;
}

/* ------------------------------------------------------------------ events */

static void appendInstance(const sentinelView *v, const sentinelInstance *i, str *out) {
    hotCheck(i->name.len > 0);
    slice host = sentinelAddrText(v, &i->addr);
    strAppendFormat(out, "%s %s %.*s %d", sentinelKindName(i->kind), strText(&i->name),
                    (int)host.len, host.ptr, i->addr.port);
    if (!i->primary) return;
    host = sentinelAddrText(v, &i->primary->addr);
    strAppendFormat(out, " @ %s %.*s %d", strText(&i->primary->name), (int)host.len, host.ptr,
                    i->primary->addr.port);
}

static void emit(sentinelView *v, logLevel level, const char *name, sentinelInstance *i,
                 str *text) {
    hotCheck(name);
    const sentinelInstance *notify = i && level == LOG_WARNING ? sentinelPrimaryOf(i) : NULL;
    v->env->event(v, level, name, strSlice(text), notify);
    strFree(text);
}

void sentinelEvent(sentinelView *v, logLevel level, const char *name, sentinelInstance *i,
                   const char *format, ...) {
    str text = STR_EMPTY;
    va_list args;
    check(i);
    appendInstance(v, i, &text);
    va_start(args, format);
    strAppendFormatV(&text, format, args);
    va_end(args);
    emit(v, level, name, i, &text);
}

void sentinelEventText(sentinelView *v, logLevel level, const char *name, sentinelInstance *i,
                       const char *format, ...) {
    str text = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&text, format, args);
    va_end(args);
    emit(v, level, name, i, &text);
}

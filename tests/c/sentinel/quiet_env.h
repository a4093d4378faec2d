/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of an environment of Sentinel (sentinelEnv) in which nothing goes wrong and nothing is
 * kept: links open at once, files are saved, literal addresses are known. For the C tests, the
 * simulation and the fuzzers. */
#ifndef TESTS_C_SENTINEL_QUIET_ENV_H
#define TESTS_C_SENTINEL_QUIET_ENV_H

#include <string.h>

#include "base/base.h"
#include "io/net_addr.h"
#include "monitor/machine.h"

static inline void quietConnect(sentinelView *v, sentinelInstance *i, bool pubsub) {
    sentinelLinkOpened(v, i, pubsub);
}
static inline void quietDisconnect(sentinelView *v, sentinelLink *l, bool pubsub) {
    (void)v, (void)l, (void)pubsub;
}
static inline void quietSend(sentinelView *v, sentinelLink *l, bool pubsub, int count,
                             const slice *words) {
    (void)v, (void)l, (void)pubsub, (void)count, (void)words;
}
static inline void quietEvent(sentinelView *v, logLevel level, const char *name, slice text,
                              const sentinelInstance *notify) {
    (void)v, (void)level, (void)name, (void)text, (void)notify;
}
static inline bool quietSave(sentinelView *v) {
    (void)v;
    return true;
}
static inline void quietSaveSoon(sentinelView *v) { (void)v->env->save(v); }
static inline void quietScript(sentinelView *v, slice path, int count, const slice *args) {
    (void)v, (void)path, (void)count, (void)args;
}
static inline uint64_t quietRandom(sentinelView *v, uint64_t bound) {
    (void)v;
    return bound / 2;
}
static inline bool quietResolve(sentinelView *v, slice host, char ip[SENTINEL_IP_MAX]) {
    (void)v;
    if (host.len >= SENTINEL_IP_MAX) return false;
    char text[SENTINEL_IP_MAX] = "";
    memcpy(text, host.ptr, host.len);
    if (strlen(text) != host.len || !netAddrIsValid(text)) return false;
    memcpy(ip, text, sizeof(text));
    return true;
}
static inline bool quietOwnIp(sentinelView *v, const sentinelLink *l, char ip[SENTINEL_IP_MAX]) {
    (void)v, (void)l;
    memcpy(ip, "10.0.0.1", 9);
    return true;
}
static inline int quietOwnPort(sentinelView *v) {
    (void)v;
    return 26379;
}
static inline void quietCrash(sentinelView *v) { (void)v; }
static inline slice quietPassword(sentinelView *v) {
    (void)v;
    return SLICE("");
}
static inline bool quietNeedsPassword(sentinelView *v) {
    (void)v;
    return false;
}

/* All of them. Users replace those that they watch. */
static inline sentinelEnv quietEnv(void) {
    return (sentinelEnv){.connect = quietConnect,
                         .disconnect = quietDisconnect,
                         .send = quietSend,
                         .event = quietEvent,
                         .save = quietSave,
                         .save_soon = quietSaveSoon,
                         .run_script = quietScript,
                         .random = quietRandom,
                         .resolve = quietResolve,
                         .own_ip = quietOwnIp,
                         .own_port = quietOwnPort,
                         .crash = quietCrash,
                         .own_password = quietPassword,
                         .needs_password = quietNeedsPassword};
}

#endif

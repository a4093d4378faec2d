/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private declarations of this folder; the directives, which only the registry writes. */
#ifndef PUBSUB_PUBSUB_PRIV_H
#define PUBSUB_PUBSUB_PRIV_H

#include <stdint.h>

#include "config/config.h"
#include "engine/hooks.h"

/* Bits of notify-keyspace-events. */
enum notifyFlag {
    NOTIFY_GENERIC = 1 << 0,    /* g */
    NOTIFY_STRING = 1 << 1,     /* $ */
    NOTIFY_LIST = 1 << 2,       /* l */
    NOTIFY_SET = 1 << 3,        /* s */
    NOTIFY_HASH = 1 << 4,       /* h */
    NOTIFY_ZSET = 1 << 5,       /* z */
    NOTIFY_EXPIRED = 1 << 6,    /* x */
    NOTIFY_EVICTED = 1 << 7,    /* e */
    NOTIFY_STREAM = 1 << 8,     /* t */
    NOTIFY_MODULE = 1 << 9,     /* d */
    NOTIFY_ALL = (1 << 10) - 1, /* A */
    NOTIFY_NEW = 1 << 10,       /* n */
    NOTIFY_KEYSPACE = 1 << 11,  /* K */
    NOTIFY_KEYEVENT = 1 << 12,  /* E */
    NOTIFY_KEY_MISS = 1 << 13,  /* m */
};

typedef struct pubsubConfig {
    uint32_t
        notify_keyspace_events; /* notifyFlag bits; without a channel (K or E) nothing is published */
    int64_t tracking_table_max_keys; /* 0: no limit */
} pubsubConfig;

extern pubsubConfig pubsubConf;
extern const configOption pubsubOptions[];

/* Small in the hostile build, so that tests reach the limits. */
#ifdef HOSTILE_BUILD
#define PUBSUB_CHOOSE(normal, hostile) (hostile)
#else
#define PUBSUB_CHOOSE(normal, hostile) (normal)
#endif

/* monitor.c */
void monitorOnSession(session *s, sessionEvent e);

/* feature.c: calls the functions ...Work() in the following turns of the loop, until they have nothing to do. */
void pubsubWorkLater(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes and bits that the messages of the cluster bus, the map of the cluster and its file share.
 * Header only. */
#ifndef BUS_PROTOCOL_H
#define BUS_PROTOCOL_H

#include <stdint.h>

#include "base/hash.h"

enum {
    NODE_ID_LEN = 40,                /* hex digits without a NUL, as is a shard id */
    NODE_IP_MAX = 46,                /* with its NUL */
    NODE_HOSTNAME_MAX = 256,         /* with its NUL */
    SLOT_WORDS = SLOT_COUNT / 64,    /* of a set of slots in memory */
    SLOT_BYTES = SLOT_COUNT / 8,     /* of the same in messages: byte n / 8, bit n % 8 */
    CLUSTER_BUS_PORT_OFFSET = 10000, /* of the bus port, unless it is configured */
};

/* Flags of a node, with the bits that they have in messages. */
enum nodeFlag {
    NODE_PRIMARY = 1u << 0,
    NODE_REPLICA = 1u << 1,
    NODE_MAYBE_FAILED = 1u << 2, /* this node cannot reach it */
    NODE_FAILED = 1u << 3,       /* the majority cannot */
    NODE_MYSELF = 1u << 4,
    NODE_HANDSHAKE = 1u << 5,  /* its id is not known yet, the present one is random */
    NODE_NO_ADDRESS = 1u << 6, /* its address belongs to another node now */
    NODE_MEET = 1u << 7,       /* the first message to it is MEET */
    NODE_MIGRATE_TO = 1u << 8, /* a primary that replicas may join by themselves */
    NODE_NO_FAILOVER = 1u << 9,
    /* What it supports: extensions of messages, light headers for messages of clients, and for
     * those of modules (such a node also understands MEET from a node that it knows). */
    NODE_HAS_EXTENSIONS = 1u << 10,
    NODE_HAS_LIGHT_PUBLISH = 1u << 11,
    NODE_HAS_LIGHT_MODULE = 1u << 12,
    NODE_PRIMARY_FAILED = 1u << 13, /* a replica that regards its primary as failed */
    NODE_TAKES_NACK = 1u << 14,     /* it understands refused votes (Valkey 9.2) */
};

/* Whether another node shares users and functions, as heard from it since this one has started. */
typedef enum nodeSharing {
    SHARING_UNKNOWN, /* nothing was heard from it */
    SHARING_NONE,    /* it does not share any */
    SHARING_BEGUN,
    SHARING_DONE /* this node has got all that it had at some time */
} nodeSharing;

/* Which nodes vote (voters.h). */
typedef enum voterRule {
    VOTERS_OWNERS, /* primaries with slots, as in Valkey */
    VOTERS_BOTH,   /* those and the members of the set: a majority of each is needed */
    VOTERS_ALL,    /* the members of the set */
    VOTER_RULES
} voterRule;

/* The age of a set of voters: greater terms are later, and in one term greater versions. */
typedef struct voterStamp {
    uint64_t term; /* the epoch of the election of the node that has made it; 0: no set was made */
    uint32_t version;
} voterStamp;

typedef struct voterSet {
    voterStamp stamp;
    voterRule rule;
    char (*ids)[NODE_ID_LEN]; /* its members, in the order of their ids */
    int count;
} voterSet;

#endif

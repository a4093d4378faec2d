/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What nodes tell each other with every PING and PONG: the sender's part of the map, a few other
 * nodes, and texts about the sender. Pure: a map in, bytes out; a message in, a changed map out. */
#ifndef BUS_GOSSIP_H
#define BUS_GOSSIP_H

#include "bus/failure.h"
#include "bus/map.h"
#include "bus/message.h"

/* What a node tells that is not in its map. */
typedef struct gossipRules {
    bool tls;           /* tls-cluster: the first port is that of TLS */
    bool cluster_ok;    /* the state of the cluster */
    bool announces_ip;  /* else receivers use the address of the connection */
    uint8_t flags;      /* enum messageFlag */
    uint16_t own_flags; /* enum messageOwnFlag */
    uint16_t supported; /* enum nodeFlag: NODE_HAS_... */
    int percent;        /* of the nodes in each message */
    int64_t now_ms;
    int64_t moved_since_ms; /* nodes whose address is known since then are told to all */
    /* Whether the address that others tell about the node may be newer than the known one.
     * `is_lost`: the node is marked as failing, or has no address. */
    bool (*mayMove)(void *arg, const clusterNode *n, bool is_lost);
    /* Others reach the node, which this one does not, at another address. */
    void (*moved)(void *arg, clusterNode *n);
    void *arg;
} gossipRules;

/* The header of a message of this node. It refers to the map. */
messageHeader gossipHeader(const clusterMap *m, const gossipRules *rules);
/* Appends a PING, PONG or MEET to `to`; NULL: to an unknown node. `is_short`: in the short form.
 * It also tells which nodes were forgotten and for how long that lasts, as the receiver may have
 * been away then. */
void gossipWrite(str *out, const clusterMap *m, const gossipRules *rules, messageType type,
                 const clusterNode *to, bool is_short);
/* Takes the gossip of a message of a known node: reports of failures, and nodes that are not known
 * yet. */
void gossipRead(clusterMap *m, clusterNode *from, const message *msg, const failureRules *failure,
                const gossipRules *rules, int64_t now_ms);
/* The same for a MEET of an unknown node: only nodes that are not known are taken, and none while
 * 1,000 nodes of the map have never replied, as anybody can send a MEET. */
void gossipReadMeet(clusterMap *m, const message *msg, const gossipRules *rules, int64_t now_ms);
/* Takes what the sender tells about itself, and which nodes it was told to forget. Texts that could
 * not be in the configuration file are ignored. */
void gossipReadExtensions(clusterMap *m, clusterNode *from, const message *msg,
                          const failureRules *failure, int64_t now_ms);
/* Takes the flags that a node tells about itself. */
void gossipReadFlags(clusterMap *m, clusterNode *from, const messageHeader *h);
/* Takes the ports of the header. True if the address has changed. */
bool gossipReadAddress(clusterMap *m, clusterNode *from, const messageHeader *h, slice peer_ip,
                       bool tls);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of bus.c and bus_*.c that other files of the bus call. */
#ifndef BUS_BUS_PRIV_H
#define BUS_BUS_PRIV_H

#include "bus/bus.h"
#include "bus/failure.h"
#include "bus/gossip.h"
#include "bus/orphans.h"
#include "bus/topology.h"

/* ---- bus.c ---- */

gossipRules busGossipRules(clusterBus *b);
failureRules busFailureRules(clusterBus *b);
/* Updates the offset of this node in the map. */
void busTakeOffset(clusterBus *b);
/* The same if it is in the stream of the present primary, else -1: for manual failovers. */
int64_t busStreamOffset(const clusterBus *b);
/* Does what follows from a changed topology. */
void busApplyTopology(clusterBus *b, const topologyActs *acts);
void busActOnElection(clusterBus *b, electionActs acts);
void busActOnManual(clusterBus *b, const manualActs *acts);
void busActOnVoters(clusterBus *b, votersActs acts);
/* The node has failed: tells all. */
void busTellFailed(void *arg, clusterNode *failed);

/* ---- bus_clock.c ---- */

/* The time of a call; it must not be before that of the last one. */
void busSetNow(clusterBus *b, int64_t now_ms);

/* ---- bus_links.c ---- */

/* The links of a node; created with the first call. */
nodeLinks *busLinksOf(clusterNode *n);
/* Ends a link; it is freed at the end of the call. */
void busEndLink(clusterBus *b, busLink *l);
/* Frees ended links. */
void busSweep(clusterBus *b);
/* For so long a handshake may take. */
int64_t busHandshakeMs(const clusterBus *b);
/* clusterMap.on_remove: ends the links of the node. */
void busNodeRemoved(void *arg, clusterNode *n);
/* An inbound link is that of `n` from now on. False: it is not believed, and ended. */
bool busBindLink(clusterBus *b, busLink *l, clusterNode *n, const messageHeader *h);
/* For each tick: opens missing links, ends silent ones, removes nodes whose handshake failed. */
void busKeepLinks(clusterBus *b);
/* The address of a node has changed: its link is opened again. */
void busMoved(clusterBus *b, clusterNode *n);
/* Connects to an address, for a node, or for NULL to ask who listens there. */
void busConnectTo(clusterBus *b, clusterNode *n, slice ip, int port);
/* An outbound link to that address, of a node or only of those without; NULL: none. */
busLink *busLinkTo(clusterBus *b, const char *ip, int port, bool without_node);

/* ---- bus_seek.c ---- */

/* True if the node has been out of reach for some time and does not connect to this one, either:
 * its address may have changed. */
bool busIsLost(const clusterBus *b, const clusterNode *n);
/* Looks for lost nodes at the seeds, and at their host names. */
void busSeek(clusterBus *b);
/* Another server listens at the address of the node, which therefore has none. */
void busLoseAddress(clusterBus *b, clusterNode *n);
/* A link that busProbe() has opened: it is established; a PONG. */
void busProbeOpened(clusterBus *b, busLink *l);
void busTakeProbed(clusterBus *b, busLink *l, clusterNode *sender, const message *m);

/* ---- bus_hold.c ---- */

/* Decides in each step, before anything is sent, whether this replica acknowledges. Its report that
 * its primary has failed may count for an election until `hold_ms` later. */
void busHoldAcks(clusterBus *b, int64_t hold_ms);
/* This node was elected: from now on, before it is a primary for others, it confirms nothing. */
void busHoldConfirmations(clusterBus *b);

/* ---- bus_send.c ---- */

void busSend(clusterBus *b, busLink *l, messageType type, const str *bytes);
/* To a node, over the outbound link; nothing if it is not open. */
void busSendTo(clusterBus *b, const clusterNode *to, messageType type, const str *bytes);
messageHeader busHeader(clusterBus *b);
void busPing(clusterBus *b, clusterNode *to);
/* The other voters learn at once whom this node suspects. */
void busTellVoters(clusterBus *b);
/* To all nodes that are connected. */
void busPingAll(clusterBus *b);
void busMeetAgain(clusterBus *b, clusterNode *to);
/* On that link; `to` NULL: the sender is not known. */
void busPong(clusterBus *b, busLink *l, const clusterNode *to);
/* Over the outbound link. */
void busPongTo(clusterBus *b, const clusterNode *to);
void busUpdate(clusterBus *b, const clusterNode *to, const clusterNode *about);
/* A header alone; `to` NULL: to all nodes. */
void busSendEmpty(clusterBus *b, const clusterNode *to, messageType type, uint8_t flags);
/* Sends an AUTH_NACK: the request for votes in `epoch` is refused. */
void busSendNack(clusterBus *b, const clusterNode *to, uint64_t epoch, enum nackReason why);
/* To all nodes: this node changes the set of voters, and wants votes. */
void busAskAboutVoters(clusterBus *b);

/* ---- bus_receive.c ---- */

/* Takes a whole message. The link may be ended by it. */
void busTake(clusterBus *b, busLink *l, const message *m);

#endif

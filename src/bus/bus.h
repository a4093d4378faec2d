/* SPDX-License-Identifier: BSD-3-Clause
 *
 * clusterBus: the bus of one node as a state machine without sockets, clock, files and directives:
 * bytes, connections and the time in; bytes, connections and changes of the role out, through
 * busProcs. The server (server_bus.c) and the simulation (tests/sim) run the same code.
 *
 * What a node sends to another one goes over its own connection to it, except PONG, which answers
 * on the connection of the PING. A node so has two links with each other node:
 *
 *   outbound link
 *     none        every 100 ms                               connecting
 *     connecting  established                                open: MEET if the node was asked to
 *                                                            meet it, else PING
 *     connecting  refused, no success                        none; a PING counts as sent
 *     open        PONG with the id of the node               open
 *     open        PONG with another id, node in handshake    the node has that id now; if it was
 *                                                            known: none, the new node is removed
 *     open        PONG with an unknown id, known node        none; the node has failed and has no
 *                                                            address
 *     open        PONG with the id of another known node     none; that one has the address now,
 *                                                            and the node is lost
 *     open        a PING is pending and nothing arrives from
 *                 the node for half a timeout, or nothing
 *                 on this link for a whole one               none
 *     any         in handshake for a timeout                 the node is removed
 *   inbound link
 *     unknown     a message of a known id                    of that node; its older one is closed
 *     unknown     MEET                                       the sender is added, in handshake
 *     of a node   a message of another id                    unknown
 *
 * An unknown sender gets a PONG to its PING and nothing else. A link with an id that another live
 * connection uses from another address is closed: two servers have the same configuration file.
 *
 * The times that are passed in must never go back. One thread at a time. */
#ifndef BUS_BUS_H
#define BUS_BUS_H

#include "bus/cluster_state.h"
#include "bus/election.h"
#include "bus/manual_failover.h"
#include "bus/map.h"
#include "bus/message.h"
#include "bus/rules.h"
#include "bus/seeds.h"
#include "bus/set_slot.h"
#include "bus/voters_change.h"
#include "ds/list.h"

enum {
    BUS_IP_MAX = 64,
    BUS_TICK_MS = 100,
    BUS_COMPLAINT_MS = 10000, /* between two warnings about the same */
};

/* Instead of a type: no message is ignored, or all are. */
enum { BUS_DROP_NONE = -1, BUS_DROP_ALL = -2 };

/* A connection. Its owner sees the fields before `input`. */
typedef struct busLink {
    /* NULL: inbound, and its node is not known yet; or outbound to an address at which a lost node
     * may be */
    clusterNode *node;
    bool is_inbound;
    bool is_open;
    void *carrier; /* what the owner keeps about it */
    int64_t created_ms;
    char peer_ip[BUS_IP_MAX]; /* of the other end; outbound: where to connect to */
    int peer_port;
    char own_ip[BUS_IP_MAX];  /* inbound: of this end */
    size_t unsent, allocated; /* of the owner's output buffer, in bytes; kept by the owner */
    /* The other end has proven that it is a node (cluster-bus-secret, or tls-cluster); kept by the
     * owner. */
    bool is_proven;
    /* Private. */
    str input;      /* the beginning of a message */
    size_t held;    /* bytes of it that count in clusterBus.held: its sender is not known */
    int64_t met_ms; /* when a MEET on it began a handshake; 0: none has */
    listNode all;
    int64_t heard_ms;             /* when bytes have arrived on it */
    bool is_closed;               /* freed at the end of the call */
    bool is_greeted;              /* a full message has arrived: light ones may be used */
    char greeted_by[NODE_ID_LEN]; /* inbound, without `node`: the sender of the last full message */
    bool takes_short;             /* the other end understands the short form */
    /* The last full PING or PONG that was sent: the hash of its slots. */
    bool has_told;
    uint64_t told_hash;
    /* Outbound: numbers of nodeLinks.pings. The last PING before this link was opened; the last one
     * that was answered on it, or an earlier one if a PONG was dropped. */
    uint64_t first_ping, answered_ping;
} busLink;

/* The links of a node, and how they are opened. */
typedef struct nodeLinks {
    busLink *to, *from;
    int64_t tried_ms;       /* last attempt to connect */
    int64_t unreachable_ms; /* since when there is no inbound link; 0: there is one */
    int meets;              /* MEETs that were sent for that */
    bool is_confirmed;      /* it has connected to this node since it was met */
    bool tells_other;       /* its last PONG told another address than the known one */
    int64_t complained_ms;  /* when its second server was last told of */
    seekTimer seek;         /* while it is lost: when its host name is looked up */
    /* The short form of messages: this node needs the full one, for which it last asked then; the
     * other one does, until then. */
    bool wants_full;
    int64_t asked_full_ms, full_until_ms;
    uint64_t pings; /* number of those sent to it; the answers on a link are in their order */
    /* The last one that it has answered; its current epoch and set of voters in the answer that
     * counts, and whether it claimed slots. */
    uint64_t answered, answered_epoch;
    voterStamp answered_voters;
    bool answered_as_owner;
    uint64_t asked; /* of answers to later ones the first counts: bus_hold.c */
} nodeLinks;

/* With a quorum: when this node acknowledges again (bus_hold.c). */
typedef struct busHold {
    int64_t until_ms; /* elections that count what it has told are over by then; 0: not known */
    int64_t asked_ms; /* others were asked what has come of them; 0: not so far */
    int64_t complained_ms;
} busHold;

/* State of the owner's server, which the owner sets; each field can change at any time between two
 * calls. */
typedef struct busServer {
    bool tls, announces_ip;
    bool forbids_failover;                            /* for another reason than the directive */
    bool shares_acl, shares_functions, shares_config; /* it tells that it does */
    bool is_silent;             /* sends nothing, so that others mark it as failed and replace it */
    bool lost_data;             /* as is_silent; also serves no requests */
    int64_t repl_ping_ms;       /* repl-ping-replica-period */
    int quorum;                 /* replication-quorum */
    int64_t read_lease_ms;      /* replication-read-lease */
    struct clusterSeeds *seeds; /* cluster-seeds; NULL: none */
} busServer;

typedef enum busConnect { BUS_CONNECTING, BUS_REFUSED, BUS_IMPOSSIBLE } busConnect;

/* What the owner does. Links are given back to the bus by busOpened(), busReceived() and
 * busClosed(), never from inside of these functions. */
typedef struct busProcs {
    /* Begins to connect the link to its `peer_ip` and `peer_port`. */
    busConnect (*connect)(void *arg, busLink *l);
    /* Looks up the address of a host, and calls busProbe() with it, if there is one, at once or
     * later. False: it cannot now; the bus tries again. */
    bool (*lookUp)(void *arg, slice host, int bus_port);
    void (*send)(void *arg, busLink *l, const str *bytes);
    /* The link is freed after the call. */
    void (*close)(void *arg, busLink *l);
    /* Position in the stream of replication, and ms since the dataset was that of the primary; -1:
     * it never was. */
    int64_t (*offset)(void *arg);
    int64_t (*dataAge)(void *arg);
    /* With a quorum: a number for the stream of that position. */
    uint64_t (*stream)(void *arg);
    /* With a quorum: from now on, before any message says that its primary has failed, this replica
     * acknowledges nothing more to it; or it does again. The same of this primary and clients: what
     * is not confirmed so far is not. NULL: it never acknowledges. */
    void (*holdAcks)(void *arg, bool on);
    /* True if this replica, since it began to follow its primary and since its start, has received
     * all data that the primary had when the link was opened. With replication-quorum a replica
     * without that is not elected: its data may be of another stream, or older than what the
     * replica had acknowledged before a restart. NULL: always true. */
    bool (*hasCaughtUp)(void *arg);
    /* This replica is receiving the stream of its present primary: its offset is in that stream,
     * and not in the one of an earlier primary or of its own. */
    bool (*isLinked)(void *arg);
    /* This node is now a replica of that one, or its address has changed. */
    void (*follow)(void *arg, clusterNode *primary);
    void (*promoted)(void *arg);
    /* Other nodes have got slots of this one: its keys of slots of others are to be deleted. */
    void (*slotsLost)(void *arg);
    /* A manual failover: until then, or until it is called with 0, writes wait. */
    void (*pauseWrites)(void *arg, int64_t until_ms);
    void (*publish)(void *arg, bool shard, slice channel, slice text);
    /* `l` is the link on which it came. */
    void (*module)(void *arg, const busLink *l, clusterNode *from, const message *m);
} busProcs;

typedef struct busCounts {
    uint64_t sent[MESSAGE_TYPES], received[MESSAGE_TYPES];
    uint64_t bytes_received;
    uint64_t pubsub_sent, pubsub_received, module_sent, module_received; /* bytes */
} busCounts;

typedef struct clusterBus {
    clusterMap *map;
    clusterState *state;
    busRules rules;
    busServer server;
    const busProcs *procs;
    void *arg;
    election election;
    manualFailover manual;
    votersChange voters_change;
    busCounts counts;
    /* For tests: messages of this type, or by BUS_DROP_..., are ignored; and end their link. */
    int dropped_type;
    bool drop_closes;
    bool never_reconnects, never_pings_random;
    bool as_older; /* it knows neither the short form of messages, nor AUTH_NACK, nor priorities */
    /* Private. */
    list links;  /* busLink.all */
    size_t held; /* bytes of unfinished messages whose senders are not known */
    int64_t now_ms, started_ms, ticked_ms, pinged_ms;
    busHold hold;
    bool has_begun;             /* it has stepped since its start */
    int64_t self_complained_ms; /* when another server with the id of this one was last told of */
    int64_t meets_complained_ms, held_complained_ms; /* or that there is too much of something */
    list closed;
} clusterBus;

/* ---- the bus ---- */

/* `map` and `state` are borrowed. The rules must be set before anything else is called. */
void busInit(clusterBus *b, clusterMap *map, clusterState *state, const busProcs *procs, void *arg,
             int64_t now_ms);
/* Closes all links. */
void busClear(clusterBus *b);
/* Every BUS_TICK_MS, at least. */
void busTick(clusterBus *b, int64_t now_ms);
/* After each turn in which something has happened: what follows from changes of the map. Updates
 * the state of the cluster, and proceeds with elections. */
void busStep(clusterBus *b, int64_t now_ms);

/* ---- connections ---- */

/* Somebody has connected. The link is the bus's. */
busLink *busAccepted(clusterBus *b, void *carrier, int64_t now_ms);
/* The connection of an outbound link is established. */
void busOpened(clusterBus *b, busLink *l, int64_t now_ms);
/* Bytes have arrived. The link may be freed by the call. */
void busReceived(clusterBus *b, busLink *l, slice bytes, int64_t now_ms);
/* The connection has ended, or could not be established; the link is freed. `refused`: nobody
 * listens there. */
void busClosed(clusterBus *b, busLink *l, bool refused, int64_t now_ms);
/* The owner wants a link to end, which is reported to it by `close`. */
void busDrop(clusterBus *b, busLink *l);
/* The same for all links that `is_unwanted` is true for. */
typedef bool busLinkTest(clusterBus *b, const busLink *l);
/* NULL: all. */
void busDropIf(clusterBus *b, busLinkTest *is_unwanted);

/* ---- lost nodes ---- */

/* An address at which a lost node may be. The server that listens there is asked for its id: if it
 * is that of a lost node, the node has this address now; else nothing changes, as this is no MEET.
 * Nothing is done for addresses of known nodes. */
void busProbe(clusterBus *b, slice ip, int bus_port, int64_t now_ms);

/* ---- what commands do ---- */

/* Begins a handshake. False: there is one with that address. */
bool busMeet(clusterBus *b, slice ip, int port, int bus_port, int64_t now_ms);
/* Forgets a node, not this one and not its primary, and tells the others to do so. */
void busForget(clusterBus *b, clusterNode *n, int64_t now_ms);
/* CLUSTER RESET; what the owner does with the dataset comes before. */
void busReset(clusterBus *b, bool hard);
/* CLUSTER REPLICATE: this node, which must have no slots, becomes a replica. */
void busFollow(clusterBus *b, clusterNode *primary, int64_t now_ms);
/* CLUSTER SETSLOT, which is not refused; `has_keys`: there are keys of the slot here. */
void busSetSlot(clusterBus *b, const setSlotOrder *order, bool has_keys, int64_t now_ms);
/* CLUSTER FAILOVER, also from the stream of replication. Returns the error with which it is refused
 * or NULL; `who` has ordered it, as in logs. */
const char *busFailover(clusterBus *b, manualOrder order, slice who, int64_t now_ms);
/* True while busStep() is to be called whenever the offset of this replica has changed. */
static inline bool busAwaitsOffset(const clusterBus *b) {
    return manualFailoverAwaitsOffset(&b->manual);
}
/* Tells all nodes what has changed about this one, without waiting for the next PING. */
void busTellAll(clusterBus *b, int64_t now_ms);
/* To all nodes, or to those of this node's shard. */
void busPublish(clusterBus *b, bool shard, slice channel, slice text);
/* A message of a module; NULL: to all nodes. False: the node has no open link. */
bool busSendModule(clusterBus *b, const clusterNode *to, uint64_t module_id, uint8_t type,
                   slice payload);

/* ---- reports ---- */

/* Calls `visit` for all links. */
void busEachLink(clusterBus *b, void (*visit)(void *arg, const busLink *l), void *arg);
int busCountReports(clusterBus *b, clusterNode *n, int64_t now_ms);

#endif

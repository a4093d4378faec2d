/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What one Sentinel knows: primaries, their replicas and the other Sentinels that watch them, and
 * the links to them. An instance without sockets, clock or files: the environment (sentinelEnv)
 * does what has to be done, and sets `now_ms` and `mono_ms` before each call. Main thread only.
 *
 * Invariant: every instance has a link; other Sentinels with the same id share one. A pending
 * command refers to an instance that exists, or to none. Strangers are Sentinels that a message has
 * named, but that have not shown that they know the password: they are told of this one, and
 * nothing else; they do not vote, and are neither counted, shown nor saved. */
#ifndef MONITOR_VIEW_H
#define MONITOR_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/str.h"
#include "ds/list.h"
#include "monitor/sync_state.h"

enum {
    SENTINEL_ID_LEN = 40,
    SENTINEL_IP_MAX = 46,
    SENTINEL_PENDING_MAX = 100, /* commands per user of a link that wait for a reply */
    SENTINEL_HELLO_FIELDS = 8,
    SENTINEL_STRANGERS_MAX = 16, /* of a primary */
    SENTINEL_TOLD_MAX = 1000, /* replicas, and Sentinels, that are added as others tell of them */
};
/* So that sums and small multiples of times do not overflow. */
#define SENTINEL_TIME_MAX_MS (INT64_MAX / 1000)
/* Epochs beyond are refused: nobody can count up to them, and no failover could follow. */
#define SENTINEL_EPOCH_MAX ((uint64_t)1 << 62)

typedef enum instanceKind { INSTANCE_PRIMARY, INSTANCE_REPLICA, INSTANCE_SENTINEL } instanceKind;

/* In the order in which they are shown. DISCONNECTED is not stored. */
enum instanceFlag {
    INSTANCE_SDOWN = 1 << 0,
    INSTANCE_ODOWN = 1 << 1,
    INSTANCE_PRIMARY_DOWN = 1 << 2, /* another Sentinel says that the primary is down */
    INSTANCE_FAILOVER = 1 << 3,
    INSTANCE_PROMOTED = 1 << 4,
    INSTANCE_RECONF_SENT = 1 << 5,
    INSTANCE_RECONF_INPROG = 1 << 6,
    INSTANCE_RECONF_DONE = 1 << 7,
    INSTANCE_FORCED = 1 << 8,
    INSTANCE_COORDINATED = 1 << 9,
    INSTANCE_SCRIPT_KILL_SENT = 1 << 10,
    INSTANCE_REBOOTED = 1 << 11,
};

typedef enum failoverStep {
    FAILOVER_NONE,
    FAILOVER_WAIT_START,
    FAILOVER_SELECT_REPLICA,
    FAILOVER_SEND_PROMOTION,
    FAILOVER_WAIT_PROMOTION,
    FAILOVER_RECONF_REPLICAS,
    FAILOVER_UPDATE_CONFIG,
} failoverStep;

typedef struct sentinelAddr {
    str host;                 /* as configured or announced: a name or an address */
    char ip[SENTINEL_IP_MAX]; /* empty: the name has no address */
    int port;
} sentinelAddr;

struct sentinelInstance;

typedef enum pendingKind {
    PENDING_PING,
    PENDING_INFO,
    PENDING_HELLO,
    PENDING_ASK,  /* whether the primary is down, and for a vote */
    PENDING_VOTE, /* for the last vote alone */
    PENDING_OTHER,
} pendingKind;
typedef struct pendingCommand {
    pendingKind kind;
    struct sentinelInstance *of; /* NULL: it is gone */
} pendingCommand;

typedef enum linkState { LINK_CLOSED, LINK_OPENING, LINK_OPEN } linkState;

/* The connections with one process. */
typedef struct sentinelLink {
    int users, refusals; /* the second: errors in a row that SUBSCRIBE got, as for a password */
    linkState command, pubsub;
    void *command_carrier, *pubsub_carrier; /* the environment's */
    pendingCommand *pending;
    int pending_count, pending_cap;
    int64_t command_since_ms, pubsub_since_ms, pubsub_heard_ms;
    int64_t tried_ms;      /* the last attempt to connect */
    int64_t ping_since_ms; /* the oldest PING without a good reply; 0: none */
    int64_t ping_sent_ms, ping_good_ms, ping_reply_ms;
    int64_t refused_since_ms; /* connections are refused; 0: they are not */
} sentinelLink;

typedef struct renamedCommand {
    str from, to;
} renamedCommand;

typedef struct sentinelInstance {
    listNode node;
    instanceKind kind;
    uint32_t flags;
    str name;  /* of a primary: as configured; of a replica: its address; of a Sentinel: its id */
    str runid; /* empty: unknown */
    uint64_t config_epoch;
    sentinelAddr addr;
    sentinelLink *link;
    struct sentinelInstance *primary; /* of replicas and Sentinels */
    int64_t hello_sent_ms, hello_seen_ms, sdown_since_ms, odown_since_ms;
    int64_t info_ms; /* the last INFO; 0: none */
    str info;
    bool info_pending, role_is_replica;
    syncState sync;
    int64_t role_since_ms, in_failover_since_ms;
    int64_t replica_conf_ms;          /* when a replica has reported another primary */
    bool knows_failover, in_failover; /* INFO has master_failover_state; not "no-failover" */

    /* of primaries */
    list replicas, sentinels, strangers;
    int64_t quorum;
    int64_t down_after_ms, failover_timeout_ms, reboot_down_after_ms, refused_after_ms;
    int64_t parallel_syncs, rebooted_since_ms;
    str notification_script, reconfig_script, auth_user, auth_pass;
    renamedCommand *renamed;
    int renamed_count, retries; /* the second: of the election, see retry_ms */
    failoverStep step;
    uint64_t failover_epoch;
    int64_t failover_start_ms, failover_changed_ms, failover_told_ms;
    int64_t retry_ms; /* nobody has won the election: it is repeated then; 0: that is not so */
    int64_t epoch_heard_ms; /* another Sentinel has begun one, perhaps for this primary */
    bool is_included;       /* its "monitor" line is in an included file */
    bool is_takeover;       /* another leader has promoted the replica, and has died */
    struct sentinelInstance *promoted;
    int64_t switched_ms;                              /* the last switch; 0: none since the start */
    const char *down_why, *failover_why, *switch_why; /* for operators; constants, or NULL */

    /* of replicas */
    int64_t link_down_ms; /* how long its link to the primary is down */
    bool link_up, is_announced;
    bool was_replica;     /* this process has said that it follows the primary */
    bool is_loaded;       /* known from the file alone: it has not said yet whom it follows */
    bool is_unsure;       /* a leader may have promoted it: others are asked for their votes */
    uint64_t promoted_in; /* the epoch in which `promoter` seems to have promoted it; 0: none */
    str promoter, reported_host;
    int priority, reported_port;
    uint64_t offset;
    int64_t reconf_sent_ms;

    /* the vote: of primaries the own one, of other Sentinels what they have told */
    str leader; /* empty: none */
    uint64_t leader_epoch;
    uint64_t led_epoch; /* in which this Sentinel was elected */
    int64_t voted_ms;   /* the own vote; after a restart, as in the file, else the start */
    int64_t asked_reply_ms;
    int64_t vote_told_ms;     /* when another Sentinel was asked for its last vote, */
    uint64_t vote_told_epoch; /* and its epoch; that of a restarted one, too */
    bool is_stranger;
} sentinelInstance;

/* SENTINEL DEBUG */
typedef struct sentinelPeriods {
    int64_t info, ping, ask, publish, down_after, failover_timeout, tilt_trigger, tilt_period,
        reconf_timeout, reconnect, election, script_runtime, script_retry;
} sentinelPeriods;

typedef struct sentinelView sentinelView;

/* What the state machines do to the world. */
typedef struct sentinelEnv {
    /* Begins to connect `l` to `i`; sentinelLinkOpened() or sentinelLinkClosed() follows, later. */
    void (*connect)(sentinelView *v, sentinelInstance *i, bool pubsub);
    void (*disconnect)(sentinelView *v, sentinelLink *l, bool pubsub);
    void (*send)(sentinelView *v, sentinelLink *l, bool pubsub, int count, const slice *words);
    /* An empty name: only the text is logged. `notify`: the primary whose notification script is
     * told, or NULL. */
    void (*event)(sentinelView *v, logLevel level, const char *name, slice text,
                  const sentinelInstance *notify);
    bool (*save)(sentinelView *v);      /* writes the configuration file */
    void (*save_soon)(sentinelView *v); /* at the end of the turn: what promises nothing */
    void (*run_script)(sentinelView *v, slice path, int count, const slice *args);
    uint64_t (*random)(sentinelView *v, uint64_t bound);
    /* False: the host has no address. A literal address is its own. */
    bool (*resolve)(sentinelView *v, slice host, char ip[SENTINEL_IP_MAX]);
    /* The own end of a link, and the own port. */
    bool (*own_ip)(sentinelView *v, const sentinelLink *l, char ip[SENTINEL_IP_MAX]);
    int (*own_port)(sentinelView *v);
    /* Ends the process: SENTINEL SIMULATE-FAILURE. */
    void (*crash)(sentinelView *v);
    /* The password and user for other Sentinels if none is configured. */
    slice (*own_password)(sentinelView *v);
    /* True if who sends commands to this Sentinel has shown that it knows a password. */
    bool (*needs_password)(sentinelView *v);
} sentinelEnv;

enum { SIMULATE_ELECTION_CRASH = 1, SIMULATE_PROMOTION_CRASH = 2 };

struct sentinelView {
    const sentinelEnv *env;
    void *arg;
    int64_t now_ms, mono_ms; /* the wall clock; one that never jumps */
    char id[SENTINEL_ID_LEN + 1];
    uint64_t current_epoch;
    list primaries;
    bool tilt;
    int64_t tilt_since_ms, ticked_ms;
    uint64_t tilt_count;
    unsigned simulated;
    sentinelPeriods periods;
    str announce_ip, user, pass, refused_names; /* refused: primaries whose lines had errors */
    int announce_port;
    bool resolve_hostnames, announce_hostnames, deny_scripts;
};

void sentinelViewInit(sentinelView *v, const sentinelEnv *env, void *arg);
void sentinelViewClear(sentinelView *v);

/* Walks a list of instances; the current one may be removed. */
#define SENTINEL_EACH(i, of) \
    for (listNode *at_##i = listFirst(of), *next_##i; \
         at_##i && (next_##i = listNext(of, at_##i), true); at_##i = next_##i) \
        for (sentinelInstance *i = CONTAINER_OF(at_##i, sentinelInstance, node); i; i = NULL)

sentinelInstance *sentinelFindPrimary(const sentinelView *v, slice name);
/* The primary with that address. */
sentinelInstance *sentinelFindPrimaryAt(const sentinelView *v, slice host, int port);
sentinelInstance *sentinelFindReplica(const sentinelInstance *primary, slice host, int port);
sentinelInstance *sentinelFindPeer(const sentinelInstance *primary, slice id);
sentinelInstance *sentinelFindPeerAt(const sentinelInstance *primary, slice ip, int port);
bool sentinelUsesHost(const sentinelView *v, slice host); /* has an instance that is no stranger */
/* An instance that uses the link, which has one. */
sentinelInstance *sentinelLinkUser(const sentinelView *v, const sentinelLink *l);

/* Validates host and port. ERR_RANGE: the port; ERR_NOT_FOUND: the host has no address, and names
 * need one. The caller frees the address. */
status sentinelAddrMake(sentinelView *v, slice host, int64_t port, sentinelAddr *out) MUST_USE;
void sentinelAddrFree(sentinelAddr *a);
bool sentinelAddrEqual(const sentinelAddr *a, const sentinelAddr *b);
/* All addresses are known by their numbers alone from now on: names are not resolved any more. None
 * may be a name without an address. */
void sentinelForgetNames(sentinelView *v);
/* The address as it is shown and announced. */
slice sentinelAddrText(const sentinelView *v, const sentinelAddr *a);
/* True if the reported text is this address. */
bool sentinelAddrIs(sentinelView *v, const sentinelAddr *a, slice host, int port);

/* Add an instance. ERR_EXISTS: there is one with that name, address or id. Whether the name of a
 * primary can be written is for the caller to check: sentinelNameIsValid(). */
bool sentinelNameIsValid(slice name);
status sentinelAddPrimary(sentinelView *v, slice name, slice host, int64_t port, int64_t quorum,
                          sentinelInstance **out) MUST_USE;
status sentinelAddReplica(sentinelView *v, sentinelInstance *primary, slice host, int64_t port,
                          sentinelInstance **out) MUST_USE;
status sentinelAddPeer(sentinelView *v, sentinelInstance *primary, slice host, int64_t port,
                       slice id, sentinelInstance **out) MUST_USE;
/* A Sentinel that has yet to show that it knows the password. The oldest one is removed if there
 * are too many. */
void sentinelMeetStranger(sentinelView *v, sentinelInstance *primary, slice host, int64_t port,
                          slice id);
/* Removes an instance with all that belongs to it from its list. */
void sentinelRemove(sentinelView *v, sentinelInstance *i);
/* Forgets replicas, failover, flags and run id, and with `peers` other Sentinels, of a primary. */
void sentinelResetPrimary(sentinelView *v, sentinelInstance *primary, bool peers);
/* The primary has another address now, which is taken: the old one becomes that of a replica. */
void sentinelSwitchPrimary(sentinelView *v, sentinelInstance *primary, sentinelAddr *take);
/* A peer is at another address now, in all primaries; returns the number of other entries. */
int sentinelMovePeer(sentinelView *v, slice id, const sentinelAddr *addr);
/* Disconnects an instance; it is connected again by the next tick. */
void sentinelDisconnect(sentinelView *v, sentinelInstance *i);
static inline bool sentinelIsConnected(const sentinelInstance *i) {
    return i->link->command == LINK_OPEN &&
           (i->kind == INSTANCE_SENTINEL || i->link->pubsub == LINK_OPEN);
}
static inline bool sentinelCanSend(const sentinelInstance *i) {
    return i->link->command == LINK_OPEN;
}
static inline sentinelInstance *sentinelPrimaryOf(sentinelInstance *i) {
    return i->primary ? i->primary : i;
}
/* The address of the primary: during a failover after the promotion, that of the new one. */
const sentinelAddr *sentinelCurrentAddr(const sentinelInstance *primary);
const char *sentinelKindName(instanceKind kind);
const char *sentinelStepName(failoverStep step);

/* Events. The text begins with that of the instance. */
void sentinelEvent(sentinelView *v, logLevel level, const char *name, sentinelInstance *i,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The text is the format alone; `i`, if any, is whose script is told. */
void sentinelEventText(sentinelView *v, logLevel level, const char *name, sentinelInstance *i,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif

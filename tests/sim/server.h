/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated server: the state machines of src/repl with everything around them replaced:
 * connections (network.h), the dataset (a number of oracle.h), the clock, the child that saves, the
 * disk. */
#ifndef TESTS_SIM_SERVER_H
#define TESTS_SIM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "network.h"
#include "oracle.h"
#include "psync/failover_state.h"
#include "psync/link.h"
#include "psync/primary.h"
#include "psync/stream_state.h"
#include "resp/resp.h"
#include "sim.h"

typedef struct simServer simServer;

/* What a primary keeps about a connection. Replicas are the connectors. */
typedef struct peerSide {
    replPeer *peer;
    str input; /* an incomplete command */
    bool close_when_sent, closing;
} peerSide;

/* The child, and the bytes that it writes to a pipe. */
typedef struct simSave {
    bool running, fails;
    int64_t ends_ms; /* of a file */
    str stream;      /* of a pipe: what has not been sent yet */
    str file;        /* the last one saved */
} simSave;

/* What a restart finds on the disk. */
typedef struct simDisk {
    bool saved;
    bool has_position; /* in a stream */
    char id[REPL_ID_LEN + 1];
    int64_t offset;
    int dataset, db;
    int origin;
    char birth[REPL_ID_LEN + 1];
} simDisk;

/* The primary that a replica has followed, without an order since. */
typedef struct simFollowed {
    bool is_set;
    int process;
    char birth[REPL_ID_LEN + 1];
} simFollowed;

struct simServer {
    char name[16];
    int host; /* its index in `servers` */
    int port;
    bool running;
    replServer state;
    replPrimary primary;
    replLink link;
    replFailover failover;
    /* For how long the running server has refused writes because of its failover. */
    int64_t writes_paused_ms;
    int dataset;
    int process;   /* number of its start */
    int origin;    /* of the start without a file from which the dataset comes */
    bool is_fresh; /* no process has loaded the dataset from its disk since */
    bool had_data; /* when the transfer began */
    simFollowed followed;
    int epoch; /* changes when the dataset is lost or replaced */
    int client_db;
    simSave save;
    simDisk disk;
    simFollowed followed_on_disk; /* as replica-followed-PORT.conf */
    int discarded;                /* the last process that was ended by order and saved nothing */
    /* As a replica. */
    simServer *follows;
    wire *wire;
    wire *second;      /* of a dual-channel synchronisation */
    bool dual_channel; /* announces it */
    bool collects;     /* `wire` has the stream, which is stored in `collected` */
    size_t collected_max;
    str collected;
    bool transfers, streams, flushes_first;
    linkTransfer coming;
    str received;      /* of the transfer; or an incomplete command of the stream */
    int64_t loaded_ms; /* the transfer is complete, and loaded then; 0: not yet */
    int stream_db;     /* selected in the stream; -1: none */
    bool in_multi;
    int multi_dataset, multi_db; /* in a transaction, which counts as a whole */
    str pending;                 /* bytes since MULTI */
};

enum {
    SIM_SERVERS = 4,
    SIM_STEP_MS = 10,
    SIM_TIMEOUT_S = 6, /* repl-timeout */
};
extern simServer servers[SIM_SERVERS];

void simServerStart(simServer *s);
/* Everything that is not on the disk is lost. */
void simServerStop(simServer *s);
/* Stops by order, and discards the data: the replicas are told, if the network allows it. */
void simServerDiscard(simServer *s);
/* Writes the dataset and its position to the disk. */
void simServerSnapshot(simServer *s);
/* NULL: becomes a primary. */
void simServerFollow(simServer *s, simServer *primary);
/* A command of a client, or a transaction of several. */
void simServerWrite(simServer *s, int commands);
/* FAILOVER to one of the replicas, or to any. */
void simServerFailover(simServer *s);
/* One step of the clock. */
void simServerStep(simServer *s);
/* Fails the simulation if the dataset is not the one of its position in the stream. */
void simServerCheck(const simServer *s);
bool simServerIsPrimary(const simServer *s);
/* What the primary keeps about a connection; NULL: it does not know it. */
static inline peerSide *peerSideOf(const wire *w) { return w->state[WIRE_ACCEPTOR]; }

typedef struct simCounts {
    uint64_t full_syncs, partial_syncs, dual_syncs, writes, cuts, restarts, promotions,
        failed_transfers, waits, failovers, failovers_done, refusals, discards, obeyed;
} simCounts;
extern simCounts counts;

/* Probability of a fault in a transfer, one in so many; 0: none. */
extern unsigned sim_faults;
/* replica-refuse-empty-primary */
extern bool sim_refuses_empty;
/* An order to follow the primary again. */
void simServerOrder(simServer *s);

#endif

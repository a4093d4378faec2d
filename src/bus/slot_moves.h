/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The jobs of one node that move slots, with all that decides when slots change their owner: pure,
 * as the bus is (bus.h). It knows no sockets, clock, keys or directives: the owner passes the time
 * and the rules, tells what has happened, and does what is asked for by slotMovesProcs. The states
 * are those of slot_job.h. slot_source.h is a node as a source, slot_target.h as a target.
 *
 * What nobody may do, whatever fails in which order:
 *
 * - The target takes the slots only if the source has granted them, it has applied everything that
 *   precedes the grant, and its replicas have it, too; slow ones are not waited for if there are
 *   enough others for replication-quorum.
 * - From the grant on the source accepts no write until it knows who owns the slots. A grant ends
 *   SLOT_LEASE_MS after the target has asked for it. So the source, which measures that from a
 *   later moment, knows that slots that have not been taken until then never will be.
 * - A granted slot is not claimed by the source any more. The target waits until it has been told
 *   so: then its epoch is greater than each with which the source has claimed it, and whatever the
 *   epoch of the source becomes meanwhile does not matter.
 * - A target that has not taken the slots deletes what it has received, on its replicas, too.
 *
 * One thread at a time. */
#ifndef BUS_SLOT_MOVES_H
#define BUS_SLOT_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "bus/map.h"
#include "bus/slot_job.h"

enum {
    /* So long after its request a target may take the slots; at most half of the node timeout, so
     * that no replica of a source that has failed meanwhile is elected before. */
    SLOT_LEASE_MS = 2000,
    SLOT_LEASE_MIN_MS = 200,
    SLOT_LEASE_MARGIN_MS = 500, /* the source waits so much longer */
};

typedef struct slotMovesRules {
    int64_t pause_ms;          /* slot-migration-pause-ms */
    int64_t manual_timeout_ms; /* cluster-manual-failover-timeout */
    int64_t node_timeout_ms;   /* cluster-node-timeout */
    int64_t silence_ms;        /* repl-timeout */
    int64_t unsent_max;        /* slot-migration-max-failover-repl-bytes; -1: any */
    bool has_auth;             /* there is a password to log in with */
    bool is_saving;            /* changes of the map are not saved so far */
    /* For tests: jobs wait before the pause of writes, or before slots are taken. */
    bool hold_pause, hold_takeover;
} slotMovesRules;

/* What the owner does. None of it calls back, but for what is said to. */
typedef struct slotMovesProcs {
    /* Both sides. Sends the words of these acts (slot_job.h); nothing if the link is lost. In a
     * handshake: slotSourceOn(JOB_SENT) or slotSourceFail() follow, at once or later. */
    void (*send)(void *arg, slotJob *job, uint32_t acts);
    /* The connection of the job ends, if there is one. Nothing is said of it any more. */
    void (*close)(void *arg, slotJob *job);
    /* When something was received last, or something that has been received waits for its
     * execution; -1: there is no link. */
    int64_t (*heardMs)(void *arg, const slotJob *job);
    /* The job has ended: frees what its owner has in `work`. */
    void (*ended)(void *arg, slotJob *job);

    /* Source. Begins to connect: slotSourceOn(JOB_OPENED) or slotSourceFail() follow, at once or
     * later. */
    void (*connect)(void *arg, slotJob *job);
    /* The keys can be sent now. */
    bool (*canStream)(void *arg, const slotJob *job);
    /* The moment of the snapshot is now: sends the keys, then slotSourceOn(JOB_SNAPSHOT_SENT). From
     * now on slotSourceTakes() says what becomes of changes. */
    void (*beginStream)(void *arg, slotJob *job);
    /* No keys and changes are sent any more. */
    void (*endStream)(void *arg, slotJob *job);
    /* Bytes of keys and changes that were not sent so far; those of them that take memory here. */
    size_t (*unsent)(void *arg, const slotJob *job);
    size_t (*queued)(void *arg, const slotJob *job);
    /* Bytes of keys that were sent; UINT64_MAX: all. */
    uint64_t (*sentKeys)(void *arg, const slotJob *job);
    /* When something was sent last. */
    int64_t (*sentMs)(void *arg, const slotJob *job);
    /* Which writes wait has changed: slotSourcePaused(). */
    void (*pause)(void *arg);

    /* Target. Hides the slots, but shows those of this node; or shows all of them again. */
    void (*hide)(void *arg, const slotJob *job, bool on);
    /* Deletes keys that were received, here and on replicas, but not of slots of this node, and
     * some at a time. True: there are none left. */
    bool (*clean)(void *arg, slotJob *job);
    /* The job has ended: replicas and files are told. */
    void (*finish)(void *arg, const slotJob *job);
    /* All nodes are told at once which slots this node claims. */
    void (*tellAll)(void *arg);
    /* The stream of replication must not get longer now. */
    bool (*isStill)(void *arg);
    /* Notes the end of the stream of replication, in the job; and whether some replica that takes
     * part has not confirmed it so far. */
    void (*markStream)(void *arg, slotJob *job);
    bool (*isBehind)(void *arg, const slotJob *job);
    /* With replication-quorum: too few replicas have confirmed up to that mark. */
    bool (*lacksQuorum)(void *arg, const slotJob *job);
    /* Keys of the slot here. */
    uint64_t (*keys)(void *arg, int slot);
    /* Keys of slots of others are being deleted. */
    bool (*deletes)(void *arg);
} slotMovesProcs;

typedef struct slotMoves {
    slotLog log;
    clusterMap *map;
    const slotMovesProcs *procs;
    void *arg;
    /* The owner keeps these up to date before it calls anything. */
    slotMovesRules rules;
    int64_t now_ms, now_s; /* monotonic; Unix time */
    bool tells;            /* private: all nodes have to be told */
} slotMoves;

/* `map` is borrowed. */
void slotMovesInit(slotMoves *m, clusterMap *map, const slotMovesProcs *procs, void *arg);
/* In each turn, before the map is saved: what follows from what has happened. */
void slotMovesStep(slotMoves *m);
/* Every 100 ms or so. */
void slotMovesTick(slotMoves *m);
/* All keys are going to be deleted. */
void slotMovesFlushed(slotMoves *m);
/* Another dataset is going to be loaded: all jobs end, and the log is empty. */
void slotMovesForget(slotMoves *m);

/* ---- for the files of both sides ---- */

/* How a job is named in logs. */
typedef struct slotJobLabel {
    char text[1024];
} slotJobLabel;
slotJobLabel slotJobLabelOf(const slotMoves *m, const slotJob *job);
/* Changes the state, and logs it. */
void slotMovesSet(slotMoves *m, slotJob *job, slotJobState state);
/* Ends a job; `message` may be NULL. */
void slotMovesEnd(slotMoves *m, slotJob *job, slotJobState state, const char *message);
/* How long a grant is good, in ms. */
int64_t slotMovesLease(const slotMoves *m);
/* The other side of a job in the map; NULL: it is not known any more. */
clusterNode *slotMovesPeer(const slotMoves *m, const slotJob *job);

#endif

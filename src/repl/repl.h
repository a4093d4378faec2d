/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replication: what the server's startup, shutdown and INFO need of it. Main thread only. */
#ifndef REPL_REPL_H
#define REPL_REPL_H

#include "engine/hooks.h"

extern const feature replFeature;
extern const gate aofOutputGate, heldOutputGate, minReplicasGate, quorumGate, replicaKeyspaceGate;
extern const gate replicaRedirectGate, replicaReadOnlyGate, replicaStaleGate, replicaStreamGate;
extern const gate replicaDiskGate;

/* After the dataset was loaded at the start: its file may tell where in a stream it belongs. */
void replAfterLoad(void);
/* The process is about to end: sends replicas what is missing of the stream, as far as their
 * connections take it without much delay. `discards`: it ends by order and saves nothing. */
void replSendLast(bool discards);
/* The process ends: closes the link to the primary and removes an unfinished download. */
void replStop(void);

/* Memory of the replication stream in bytes. */
typedef struct replMemory {
    size_t buffers;  /* all of it */
    size_t backlog;  /* up to repl-backlog-size */
    size_t replicas; /* the rest, kept for replicas that lag */
    /* What a dual-channel synchronisation has collected of the primary's stream. */
    size_t collected;
} replMemory;
void replMeasure(replMemory *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The servers under test: connections to them, the nodes of a cluster, their configuration. */
#ifndef TOOLS_BENCHMARK_TARGET_H
#define TOOLS_BENCHMARK_TARGET_H

#include <stdint.h>

#include <valkey/valkey.h>

#include "tools/benchmark/options.h"

/* A server. */
typedef struct targetNode {
    endpoint at;
    char id[64]; /* of a node of a cluster */
    bool replica;
    char *save, *appendonly; /* configuration; NULL if it could not be read */
    uint16_t *slots;
    int slot_count;
} targetNode;

typedef struct target {
    const benchOptions *options;
    targetNode *nodes;
    int count;
} target;

/* Finds the nodes and reads their configuration. Ends the program if they cannot be used. */
void targetInit(target *t, const benchOptions *o, endpoint server);
void targetFree(target *t);
/* The slots of all nodes are read again, after a MOVED. False if that failed. */
bool targetRefreshSlots(const target *t, target *fresh);

/* "host:port", or the path of a socket; into a buffer of the calling thread. */
const char *targetName(const endpoint *at);
/* A blocking connection that has authenticated and selected the database. Ends the program on
 * failure. */
valkeyContext *targetConnect(const benchOptions *o, const endpoint *at);
/* Begins a connection that does not block. Ends the program on failure. */
valkeyContext *targetBegin(const benchOptions *o, const endpoint *at);
/* The next step when its socket is ready: true if data can be sent. */
bool targetEstablish(const benchOptions *o, const endpoint *at, valkeyContext *c, bool *secured);
/* The commands at the begin of each connection, encoded, and how many; the caller frees them with
 * memFree(). */
char *targetPrefix(const benchOptions *o, const targetNode *node, size_t *len, int *commands);
/* Sends a command to every node; for preparations. Ends the program if it fails. */
void targetCommand(const target *t, int argc, const char **argv);
/* Bytes of memory used by the data of all nodes and the number of keys. */
void targetMemory(const target *t, double *bytes, double *keys);

/* Three characters whose hash slot is `slot`. */
const char *targetTag(int slot);

#endif

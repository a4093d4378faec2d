/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keyspace: a set of databases with the memory of their objects. The server serves one, the main keyspace; others
 * can be built beside it (a replica that loads while it still serves, a file that is checked) and swapped in or
 * dropped. Keyspaces share nothing but process-wide settings: the clock, the access policy, lazy freeing, and
 * whether keys have slots, which is part of their hashes.
 *
 * New objects and elements are allocated in the memory of the keyspace in use, which is the main one except
 * between keyspaceUse() and its counterpart; blocks are freed wherever they came from. Main thread only. */
#ifndef STORE_KEYSPACE_H
#define STORE_KEYSPACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct db db;
typedef struct keyspace keyspace;

/* The keyspace that the server serves; made by storeInit(). */
keyspace *keyspaceMain(void);
/* An empty keyspace with as many databases as the main one. No listener is told of its expired keys. Free with
 * keyspaceFree(). */
keyspace *keyspaceNew(void);
/* Frees a keyspace, not the main one nor the one in use, with all it holds and without touching the memory of any
 * other; `later`: in the background, if there is one. NULL is fine. */
void keyspaceFree(keyspace *k, bool later);
/* Changes of the databases of `k` follow: their objects are allocated in its memory. Returns the keyspace used
 * before, for the call that ends this. Costs some 50 ns. */
keyspace *keyspaceUse(keyspace *k);
/* Exchanges what two keyspaces hold, memory included. Databases keep their addresses and numbers, keyspaces their
 * listeners, expiry modes and statistics. */
void keyspaceSwap(keyspace *a, keyspace *b);
int keyspaceDbCount(const keyspace *k);
db *keyspaceDb(const keyspace *k, int id);
keyspace *dbKeyspace(const db *d);
/* Bytes of objects and elements, free space in their slabs not counted. */
uint64_t keyspaceLiveBytes(const keyspace *k);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keyspace: a set of databases with the memory of their objects. The server serves one, the main
 * keyspace; others can be built in addition (for a replica that serves old data while it loads, or
 * to check a file) and then be exchanged with it or freed. Keyspaces share only process-wide
 * settings: the clock, the access policy, lazy freeing, and whether keys have slots, which affects
 * their hashes.
 *
 * New objects and elements are allocated in the memory of the keyspace in use, which is the main
 * one except between keyspaceUse() and its counterpart; a block can be freed whichever keyspace is
 * in use. Main thread only. */
#ifndef STORE_KEYSPACE_H
#define STORE_KEYSPACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct db db;
typedef struct keyspace keyspace;

/* The keyspace that the server serves; created by storeInit(). */
keyspace *keyspaceMain(void);
/* Creates an empty keyspace with as many databases as the main one. Listeners are not called for
 * its expired keys. Free with keyspaceFree(). */
keyspace *keyspaceNew(void);
/* Frees a keyspace with all its contents; neither the main one nor the one in use. `later`: in the
 * background, if that is available. NULL is allowed. */
void keyspaceFree(keyspace *k, bool later);
/* Whether values of more than 10,000 elements are freed in the background whatever `later` says;
 * true at first. */
void keyspaceFreeHugeLater(bool on);
/* Selects `k` for allocations, before its databases are changed. Returns the previous keyspace, to
 * be restored by another call. Costs about 50 ns. */
keyspace *keyspaceUse(keyspace *k);
/* Exchanges the contents and the memory of two keyspaces. Databases keep their addresses and
 * numbers; keyspaces keep their listeners, expiry modes and statistics. */
void keyspaceSwap(keyspace *a, keyspace *b);
/* Sets whether changes of keys of the main keyspace are errors, which builds with checks detect at
 * each change. Returns the previous value. */
bool keyspaceForbidChanges(bool on);
db *keyspaceDb(const keyspace *k, int id);
/* Number of keys in all its databases. */
uint64_t keyspaceKeyCount(const keyspace *k);
keyspace *dbKeyspace(const db *d);
/* Memory of objects and elements in bytes, without the free space in their slabs. */
uint64_t keyspaceLiveBytes(const keyspace *k);

#endif

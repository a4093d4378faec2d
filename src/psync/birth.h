/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The birth of a dataset: an id of its origin, so that an empty primary never replaces the data of
 * its replicas. A server that starts without a dataset to load begins a new one, with a new id,
 * which its replicas take over with the data. Example: a primary with birth A, followed by a
 * replica, is restarted without its files: its birth is B, and new. The replica connects again and
 * tells that it keeps data with birth A. The primary has lost these: it refuses to synchronise the
 * replica.
 *
 *   REPLCONF capa birth        asks for the birth; the reply is "+OK <id or -> <0|1> <process>", 1:
 *                              new; the process is a random id of each start
 *   REPLCONF capa keeps:<id>   this replica has followed the primary at this address and keeps its
 *                              data, with this birth; "?": unknown. ",<id>" may follow: the birth
 *                              that was refused before, which the files of a primary keep
 *   -EMPTYPRIMARY ...          reply to PSYNC: the dataset here is a new one, and not that of the
 *                              replica
 *
 * If a user shuts down a primary whose configuration saves nothing, this discards its data by
 * order. Its stream then ends with
 *
 *   REPLCONF GETACK discards:<process>
 *
 * A replica that has received the same process id in its handshake does not announce `keeps` the
 * next time. Other servers ignore this word: replicas of the replica, and replicas that receive it
 * later from a backlog.
 *
 * Released servers ignore these capabilities and reply "+OK"; they take the word for "*". A plain
 * struct; one thread at a time. */
#ifndef PSYNC_BIRTH_H
#define PSYNC_BIRTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "psync/history.h"

enum { BIRTH_TEXT_MAX = 2 * REPL_ID_LEN + 16, BIRTH_KEPT_MAX = 2 * REPL_ID_LEN + 1 };

#define DISCARDS_PREFIX "discards:"

typedef struct replBirth {
    char id[REPL_ID_LEN + 1]; /* empty: unknown */
    /* The server whose dataset it is was started without one, whatever was written since. */
    bool is_new;
} replBirth;

/* At the start, before anything is loaded. */
void birthBegin(replBirth *b);
/* There is a file to load, if only without keys; `id`: what it says of its birth, may be empty. */
void birthLoaded(replBirth *b, slice id);
/* The dataset is that of a primary, whose birth is `of`; NULL: it has told none, as released
 * servers do. `has_keys`: there are some. `had_keys`: it has replaced some, by order of a user, so
 * that own replicas follow. */
void birthAdopt(replBirth *b, const replBirth *of, bool had_keys, bool has_keys);
/* Writes the reply to "capa birth" without its line end; `process`: the process id of this server.
 * Returns the length. */
size_t birthPrint(const replBirth *b, const char *process, char out[BIRTH_TEXT_MAX]);
/* False: it is the reply of another kind of server. */
bool birthParse(slice reply, replBirth *out, char process[REPL_ID_LEN + 1]);
/* True if a replica that keeps data (`kept`: after "keeps:") would lose them by a synchronisation
 * with this dataset, whose stream is `h`; it asks to continue the stream `id` at `from`. */
bool birthLosesKept(const replBirth *b, const replHistory *h, slice kept, slice id, int64_t from);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The identity of a replication stream: its id, how many bytes it has, and the id it had before a
 * promotion. A server that has the same history up to an offset can continue from there (PSYNC). A
 * plain struct; one thread at a time. */
#ifndef PSYNC_HISTORY_H
#define PSYNC_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum { REPL_ID_LEN = 40 };
/* The greatest offset that is believed if another server or a file tells it. No stream gets that
 * far, and sums with it do not overflow. */
#define REPL_OFFSET_MAX (INT64_MAX / 2)

typedef struct replHistory {
    char id[REPL_ID_LEN + 1];  /* master_replid */
    char id2[REPL_ID_LEN + 1]; /* the id before; zeros: none */
    int64_t offset; /* bytes of the stream so far: produced by a primary, applied by a replica */
    uint32_t id_number;    /* of this content of `id` and `id2`: counts their changes */
    int64_t second_offset; /* the first byte that is not part of the history of id2; -1: no id2 */
    /* Another server knows `id`: it comes from a primary, or a replica has it. */
    bool is_shared;
} replHistory;

/* True if another server or a file may have such an id, and such an offset: printable characters
 * without blanks, and a number that is not beyond REPL_OFFSET_MAX. */
bool historyIsId(slice id);
bool historyIsOffset(int64_t offset);

/* A new random id at offset 0, no id before. */
void historyInit(replHistory *h);
/* A new id that shares nothing with the old one; the offset is kept. */
void historyRenew(replHistory *h);
/* Promotion: a new id, and the old one up to here, so that other replicas of the old primary can
 * continue with us. */
void historyBranch(replHistory *h);
/* A full synchronisation with a primary: its id (REPL_ID_LEN characters) and offset, nothing
 * before. */
void historyAdopt(replHistory *h, slice id, int64_t offset);
/* The primary continues the stream under another id. No effect if it is the current one. */
void historyContinueAs(replHistory *h, slice id);
/* After a restart with the id and offset of a saved file: a new id; the saved one is the id
 * before. */
void historyRestore(replHistory *h, slice id, int64_t offset);
/* `id` is sent to a replica. */
void historyShare(replHistory *h);
/* The id under which another server may know the position `h->offset`: `id`, or, as long as only
 * this server knows `id` and nothing was added under it, the id before. Borrowed. */
const char *historyKnownId(const replHistory *h);
/* True if the byte at `from` (the first has number 1) and all after it follow the history that a
 * replica knows as `id`. Upper and lower case are equal. */
bool historyCovers(const replHistory *h, slice id, int64_t from);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cursors of CLUSTERSCAN: "fingerprint-{tag}-number". The tag is a short text of the slot, by which
 * clients route the cursor like a key. The fingerprint names the order in which a shard scans; one
 * that is not its own restarts the slot. The number is a cursor of dbScan(). "0" is the start, and
 * the end.
 *
 * While a slot is moved key by key, elements are on two nodes, and only from the source to the
 * target they move. So the source is scanned to its end, then the target:
 *
 *   node                  cursor                     does
 *   source                of its own                 scans on; at the end: "done", of its own
 *   source                "done" of its own, or      sends the client to the target with ASK
 *                         one of the target's
 *   target                of its own while           scans on; cursors are those of an import
 *                         importing, or any other    begins; the same
 *   owner, none moves     of its own                 scans on
 *   any                   any other                  begins
 *
 * Pure. ANY_THREAD. */
#ifndef CLUSTER_SCAN_CURSOR_H
#define CLUSTER_SCAN_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { SCAN_PRINT_LEN = 6, SCAN_TAG_MAX = 4 };

typedef enum scanStage {
    SCAN_BEGIN,     /* at the start of the slot, or unknown here */
    SCAN_OWNED,     /* of a node that owned the slot */
    SCAN_IMPORTING, /* of a node that imported it */
    SCAN_DONE,      /* of a source that has scanned all that it has */
} scanStage;

typedef struct scanCursor {
    int slot;
    scanStage stage;
    bool is_own;       /* its fingerprint is that of this shard */
    uint64_t position; /* of dbScan(); only for cursors of its own */
} scanCursor;

/* The fingerprint of a shard. */
typedef struct scanPrint {
    char text[SCAN_PRINT_LEN];
} scanPrint;
/* It depends on the hash key of the process, and so on the order of its tables. */
scanPrint scanPrintOf(slice shard_id);

/* A text that is not "0". False: it is no cursor. */
bool scanCursorParse(slice text, const scanPrint *own, scanCursor *out);
/* Appends the cursor; one that is not its own is the start of the slot. */
void scanCursorPrint(const scanCursor *c, const scanPrint *own, str *out);
/* A text of at most SCAN_TAG_MAX - 1 bytes whose slot this is; borrowed for ever. */
slice scanTag(int slot);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cursors of SCAN at the gateway: numbers, as clients of a standalone server expect them, for the
 * texts of CLUSTERSCAN, "print-{tag}-number" (cluster/scan_cursor.h). A number has
 *
 *   bits 0 to 13   the slot
 *   bits 14, 15    the stage: at the beginning, or which mark the print has
 *   bits 16 to 23  a hash of the print; 1 at the beginning, so that no cursor is 0
 *   bits 24 to 62  the number of the text without its low bits, which are the slot
 *
 * The last print that was seen for a slot is remembered, one of an import beside it. If it is
 * another one, by its hash, or none, as at another node or after a restart, the slot is scanned
 * again: elements may come twice. An element could be missed if a slot moves in the middle of its
 * scan, another client scans it at the new node through this one, and the hashes of both prints
 * are equal (1 of 254). Pure. */
#ifndef GATEWAY_SCAN_H
#define GATEWAY_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"

enum { SCAN_PRINT_BYTES = 6, SCAN_SLOTS = 16384 };

/* All bytes are 0 at first. */
typedef struct scanPrints {
    char texts[2][SCAN_SLOTS][SCAN_PRINT_BYTES]; /* of imports: the second ones */
} scanPrints;

/* The slot of a cursor, and the text for its owner, without the tag: `before` it and `after` it.
 * False: it is no cursor. */
bool scanCursorRead(const scanPrints *p, slice number, int *slot, str *before, str *after);
/* The reply of CLUSTERSCAN as that of SCAN; `slotOf` gives the slot of the tag. Errors are left as
 * they are. */
void scanReplyTranslate(scanPrints *p, slice reply, int (*slotOf)(slice key), str *out);

#endif

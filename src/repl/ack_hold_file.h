/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order to acknowledge nothing (ack_hold.h) in a file, so that it holds after a restart. Main
 * thread only.
 *
 * Invariants: the file is on disk before the order is answered, and remains until its time is over.
 * A process that finds it holds its acknowledgements for the whole time again, as nobody knows how
 * long the former process has run: unless it follows the primary that is named as an exception. */
#ifndef REPL_ACK_HOLD_FILE_H
#define REPL_ACK_HOLD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

/* An order of `ms` from now on: only if this is OK the order may be answered. */
status ackHoldFileKeep(int64_t ms, reason *why) MUST_USE;
/* The orders do not apply to the primary that this server follows now, if any. */
void ackHoldFileExcept(void);
/* All orders have been ended by who gave them. */
void ackHoldFileRemove(void);
/* At the start: how long this process acknowledges nothing; 0: there is no such order. */
int64_t ackHoldFileRead(void);
bool ackHoldFileIsThere(void);
/* Removes the file when its time is over. */
void ackHoldFileTick(void);

#endif

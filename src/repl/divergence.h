/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a replica knows of differences between its data and its primary's: commands of the stream
 * that have failed here (engine/stream_fault.h), since its last full synchronisation. The knowledge
 * is kept in a file, so a restart does not lose it. With `propagation-error-behavior stop` the link
 * is closed by the first failure, until a user orders to go on. Main thread only. */
#ifndef REPL_DIVERGENCE_H
#define REPL_DIVERGENCE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

/* A command of the stream has failed: counts it, logs it, and ends the process if the directive
 * says so. True if the link is to be closed, and not to be opened again. `command` is empty if the
 * protocol of the stream is wrong: then there is nothing to count. */
bool divergenceNote(slice command, slice error);
/* After the dataset was loaded at the start. True if an earlier process has stopped the link to
 * this primary, and that still holds. */
bool divergenceAfterStart(void);
/* The dataset was received from the primary as a whole, or is this server's own from now on. */
void divergenceForget(void);
/* A user has ordered to open the link again. */
void divergenceGoOn(void);
/* True if the link was stopped by a failed command. */
bool divergenceStops(void);
/* True if a command has failed since the last full synchronisation. */
bool divergenceIsKnown(void);
/* Appends the reason for which a promotion by hand is refused. */
void divergenceAppendReason(str *out);
/* Fields of INFO replication of a replica. */
void divergencePrintInfo(str *out);

#endif

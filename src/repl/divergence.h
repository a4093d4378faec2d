/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Known differences between the data of a replica and those of its primary: commands of the stream
 * that have failed on the replica (engine/stream_fault.h) since its last full synchronisation. They
 * are recorded in a file, so a restart does not lose them. With `propagation-error-behavior stop`
 * the first failure closes the link until a user orders to continue. Main thread only. */
#ifndef REPL_DIVERGENCE_H
#define REPL_DIVERGENCE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

/* Called after a command of the stream has failed: counts and logs the failure, and ends the
 * process with `propagation-error-behavior panic` or `panic-on-replicas`. True if the caller must
 * close the link and not open it again. `command` is empty if the stream violates the protocol;
 * such a failure is logged and not counted. */
bool divergenceNote(slice command, slice error);
/* Reads the file after the dataset was loaded at the start. True if an earlier process has stopped
 * the link to this primary, and the directive is still `stop`. */
bool divergenceAfterStart(void);
/* Forgets all differences. Called when the whole dataset was received from the primary, or when
 * this server becomes a primary. */
void divergenceForget(void);
/* Called when a user has ordered to open the link again; the difference is still known. */
void divergenceGoOn(void);
/* True if the link was stopped by a failed command. */
bool divergenceStops(void);
/* True if a command has failed since the last full synchronisation. */
bool divergenceIsKnown(void);
/* Appends the reason why a promotion of this replica by order of a user is refused. */
void divergenceAppendReason(str *out);
/* Fields of INFO replication of a replica. */
void divergencePrintInfo(str *out);

#endif

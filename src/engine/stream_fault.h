/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of others that have failed here although they succeeded where they come from: in the
 * stream of the primary, and in an append only file. Each one means that the dataset may differ.
 * What is done about them is decided by the folders that run such commands. Main thread only. */
#ifndef ENGINE_STREAM_FAULT_H
#define ENGINE_STREAM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"

typedef enum faultSource { FAULT_OF_PRIMARY, FAULT_OF_FILE, FAULT_SOURCES } faultSource;

/* Counts a failed command, and keeps it as the last one. True if it is time for a line in the log:
 * at once for the first one, then at most once a minute. *unlogged is the number of faults that
 * were counted since the last line, without this one. */
bool streamFaultNote(faultSource source, slice command, slice error, uint64_t *unlogged);
/* Continues to count from what an earlier process knew: at least one fault, described by `last`. */
void streamFaultRestore(faultSource source, slice last);
/* The dataset was replaced: its differences are gone. */
void streamFaultForget(faultSource source);
/* Number of faults since the dataset was replaced. */
uint64_t streamFaultCount(faultSource source);
/* The last one, as "command: error" in one line; empty if there is none. Borrowed. */
slice streamFaultLast(faultSource source);

#endif

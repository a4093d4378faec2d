/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Failed commands of the primary's stream and of append only files. They had succeeded on the
 * server that wrote them, so each failure means that the dataset may differ. The folders that run
 * such commands decide how to react. Main thread only. */
#ifndef ENGINE_STREAM_FAULT_H
#define ENGINE_STREAM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"

typedef enum faultSource { FAULT_OF_PRIMARY, FAULT_OF_FILE, FAULT_SOURCES } faultSource;

/* Counts a failed command, and stores it as the last one. True if the caller should log it: the
 * first one at once, then at most one a minute. *unlogged is the number of faults that were counted
 * and not logged since the last line, without this one. */
bool streamFaultNote(faultSource source, slice command, slice error, uint64_t *unlogged);
/* Restores what an earlier process has stored: that there was a fault, which `last` describes. */
void streamFaultRestore(faultSource source, slice last);
/* Resets the count. Called when the dataset was replaced, and with it its differences. */
void streamFaultForget(faultSource source);
/* Number of faults since the dataset was replaced. */
uint64_t streamFaultCount(faultSource source);
/* The last fault, as "command: error" in one line; empty if there is none. Borrowed. */
slice streamFaultLast(faultSource source);

#endif

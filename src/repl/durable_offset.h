/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Up to which offset of the replication stream the append only file of this server is on disk.
 * Main thread only. */
#ifndef REPL_DURABLE_OFFSET_H
#define REPL_DURABLE_OFFSET_H

#include <stdint.h>

/* The offset up to which the stream is on disk; -1 without append only file. O(marks), at most
 * 32. */
int64_t durableOffset(void);
/* Notes the present offset: to be called each 100 ms while durableOffset() is of interest. Without
 * it only a file that is on disk as a whole counts. */
void durableOffsetMark(void);
/* The stream is another one. */
void durableOffsetForget(void);

#endif

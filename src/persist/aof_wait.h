/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What waits for a slow disk: replies, and, if too much is not written, requests that write. Main
 * thread only. */
#ifndef PERSIST_AOF_WAIT_H
#define PERSIST_AOF_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Output that tells of a change whose number is above `safe` is held while `on`; off: all leaves.
 * The number only grows while it is on. */
void aofWaitHoldOutput(bool on, uint64_t safe);
/* True if nothing may leave before it is written, however long that takes (replication-quorum). */
bool aofWaitIsStrict(void);
/* A flush begins that covers all changes so far; more is known to be on disk. */
void aofWaitFlushBegins(void);
void aofWaitFlushed(void);
/* Requests that write wait while `on`, because `bytes` of changes that are `ms` old at most are not
 * written. True if that is new. */
bool aofWaitHoldWriters(bool on, size_t bytes, int64_t ms);
/* How long they have waited; 0: they do not. */
int64_t aofWaitWritersMs(int64_t now_ms);

/* The disk holds up a write for so long that replies do not wait for it any more; or it writes
 * again without delays. */
void aofWaitNoteStall(bool begins);

#endif

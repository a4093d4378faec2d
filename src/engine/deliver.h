/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unsolicited output: the only way to write to a session outside of its own reply (MONITOR,
 * pub/sub, invalidations, redirects of blocked clients). While the session executes a command, its
 * reply is being built; and while an I/O thread writes its output, nothing may be added to it.
 * In both cases the bytes wait and are appended after the reply, in order. Main thread only. */
#ifndef ENGINE_DELIVER_H
#define ENGINE_DELIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/blob.h"
#include "engine/ctx.h"
#include "engine/session.h"

typedef enum deliverKind {
    DELIVER_PUSH, /* messages: sent regardless of CLIENT REPLY */
    DELIVER_MANY, /* the same to so many receivers that it may take several turns */
    DELIVER_LINE, /* lines of MONITOR: not sent if replies are off */
} deliverKind;

/* `bytes` are complete items in the session's protocol; they are copied. No effect for a session
 * that is closing. The session may be closing afterwards, because its output limits are applied. */
void sessionDeliver(session *s, deliverKind kind, slice bytes);
/* Like sessionDeliver() for a part of a block that many sessions receive, by reference. More may be
 * appended to the block later; a delivery that continues the previous one costs no memory. */
void sessionDeliverShared(session *s, deliverKind kind, blob *bytes, size_t offset, size_t len);

/* Appends the waiting output of the command's session now, before what the command will reply;
 * between complete items of its reply. No effect within EXEC, whose reply is one item, and if the
 * reply goes elsewhere. */
void sessionDeliverBeforeReply(const ctx *c);

/* The wait of the session is over (blockFinish()): what is delivered to it from now on follows its
 * reply. */
void deliverAfterWait(session *s);

/* True while the session's reply is being built, even if a nested turn of the loop has interrupted
 * its command. */
bool sessionIsExecuting(const session *s);
/* Memory of the output in bytes, including waiting output and shared blocks: what output limits are
 * compared with. */
size_t sessionOutputMemory(const session *s);

/* A session has got much output for a request that came earlier: applies its output limits, so it
 * may be closing afterwards. */
void sessionCheckOutput(session *s);
/* Takes the reply that an internal session has got after its wait: a block with a NUL at its end,
 * for memFree(). */
char *sessionTakeReply(session *s, size_t *len);

/* Discards the output after its first `keep` bytes, and ends it with an error reply; signals
 * SESSION_OUTPUT_REPLACED. The session neither executes a command nor is lent, and is to be closed
 * afterwards. */
void sessionReplaceOutput(session *s, size_t keep, slice error);
/* Bytes of the output that were not sent yet. */
size_t sessionOutputPending(const session *s);
/* The end of the output, counted as session.bytes_out is. */
uint64_t sessionOutputEnd(const session *s);
/* Moves the output beyond that position, which was not sent yet, to the end of `out`. Not while the
 * session is lent. */
void sessionCutOutput(session *s, uint64_t position, str *out);
/* Adds replies to requests that came earlier, and applies the output limits: the session may be
 * closing afterwards. It neither executes a command nor is lent. */
void sessionAddReply(session *s, slice bytes);

/* While on, sessions that receive output are noted. */
void deliverNoteReceivers(bool on);
/* Called for each session that receives output; NULL: nothing is. */
typedef void deliverObserverProc(session *s);
void deliverSetObserver(deliverObserverProc *proc);
/* Memory of the output of noted sessions, in bytes, while it is on its way: it is sent at the end
 * of this turn or by an I/O thread. Forgets sessions whose output was sent, or waits because its
 * receiver does not read. */
size_t deliverOnItsWay(void);

/* True if output waits for the end of a command or for the return of a session. */
bool deliverHasWaiting(void);

/* An I/O thread writes the output of the session, or has done so: then output that has waited is
 * appended. */
void sessionLend(session *s);
void sessionReturn(session *s);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unsolicited output: the one way to write to a session outside of its own reply (MONITOR, pub/sub, invalidations,
 * redirects of waiting clients). While the session executes a command its reply is being built, and while an I/O thread
 * owns it nobody else may touch its output: then the bytes wait and follow the reply, in order. Main thread only. */
#ifndef ENGINE_DELIVER_H
#define ENGINE_DELIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/blob.h"
#include "engine/session.h"

typedef enum deliverKind {
    DELIVER_PUSH, /* messages: sent whatever CLIENT REPLY says */
    DELIVER_LINE, /* lines of MONITOR: not sent where replies are off */
} deliverKind;

/* `bytes` are whole items in the session's protocol; copied. Nothing for a session that is closing. It may be closing
 * afterwards: its output limits are applied. */
void sessionDeliver(session *s, deliverKind kind, slice bytes);
/* The same for a block that many sessions get: by reference where it is long (RESP_BORROW_MIN). */
void sessionDeliverShared(session *s, deliverKind kind, blob *bytes);

/* True while the session's reply is being built, also by a command that a nested turn of the loop has interrupted. */
bool sessionIsExecuting(const session *s);
/* Bytes of memory of the output, that which waits with it. */
size_t sessionOutputMemory(const session *s);

/* An I/O thread takes the session over, or gives it back: what waited meanwhile is appended to its output. */
void sessionLend(session *s);
void sessionReturn(session *s);

#endif

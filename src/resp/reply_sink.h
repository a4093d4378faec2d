/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies as events: an outbuf with a sink passes each item to a function instead of writing bytes,
 * so a script or a module runs any command and gets values. The calls of the writer functions of
 * resp.h are what a client of that protocol would read: in RESP2 a double comes as a bulk, a map as
 * an array.
 *
 * The fast path of the writers has no test for it: an outbuf with a sink never has free space. */
#ifndef RESP_REPLY_SINK_H
#define RESP_REPLY_SINK_H

#include "resp/resp.h"

/* Takes one item; an aggregate's items follow it. `depth` and `complete` of the event are not set:
 * counting is up to the receiver. Bytes are borrowed for the call. */
typedef void replySinkProc(void *state, const replyEvent *event);

typedef struct replySink {
    replySinkProc *take; /* NULL: everything is dropped */
    void *state;
    bool collecting; /* set by resp: bytes wait in blocks for outbufSinkFlush() */
} replySink;

/* An outbuf for `sink`, which the caller keeps for as long as the outbuf. */
void outbufInitSink(outbuf *o, replySink *sink);
/* At the end of each reply: hands over what had to wait as text because its beginning was not known
 * yet (aggregates of deferred length, replies that may be cut). executeInner() calls it. */
void outbufSinkFlush(outbuf *o);

#endif

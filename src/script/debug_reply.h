/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies as text for people, in the debugger. Main thread only. */
#ifndef SCRIPT_DEBUG_REPLY_H
#define SCRIPT_DEBUG_REPLY_H

#include "base/str.h"
#include "resp/reply_sink.h"

/* A sink that appends what it takes to `text` and passes it on. */
typedef struct debugReply {
    replySink sink, *next;
    str text, error; /* `error`: the error, if the whole reply is one */
    uint8_t proto;
    int depth;
    struct {
        replyKind kind;
        int64_t left; /* items to come */
        bool at_value;
    } open[REPLY_DEPTH_MAX];
} debugReply;

/* `proto`: protocol of the reply. */
void debugReplyInit(debugReply *r, replySink *next, uint8_t proto);
void debugReplyClear(debugReply *r);

#endif

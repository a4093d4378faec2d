/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Private to resp: one block of output. The borrowed part of a blob, if any, is sent before the
 * block's own bytes. `start` and `used` are valid only while the block is not the open block of its
 * outbuf. */
#ifndef RESP_OUTBLOCK_H
#define RESP_OUTBLOCK_H

#include "resp/reply_sink.h"

struct outblock {
    outblock *next;
    blob *lent;       /* one reference, held until outbufReap(); NULL if nothing is borrowed */
    size_t lent_at;   /* offset of the next byte to send */
    size_t lent_left; /* bytes still to send */
    size_t lent_len;  /* bytes borrowed originally, as counted in `memory`; 0 if shared */
    uint32_t size;    /* of the whole block, including this header */
    uint32_t start;   /* own bytes already sent */
    uint32_t used;    /* end of the own bytes */
    char bytes[];
};

/* Items for the sink of an outbuf that does not collect. */
void sinkTake(const outbuf *o, const replyEvent *event);
void sinkTakeText(const outbuf *o, replyKind kind, slice text);
void sinkTakeLine(const outbuf *o, replyKind kind, slice text); /* line breaks become blanks */
void sinkTakeHead(const outbuf *o, char kind, uint64_t n);
/* Bytes that are complete items. True: they were consumed or discarded; otherwise those from *taken
 * on must be kept. */
bool sinkTakeBytes(outbuf *o, const void *bytes, size_t len, size_t *taken);
/* From now on bytes are collected in blocks, if they are needed. */
static inline void sinkCollect(const outbuf *o) {
    if (o->sink->take) o->sink->collecting = true;
}
static inline bool sinkDrops(const outbuf *o) { return o->sink && !o->sink->take; }

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Freeing large outputs in parts: 500 MB that a closed client has not read are 30,000 blocks, which
 * would take 50 ms. Main thread only. */
#ifndef RESP_OUTBUF_DROP_H
#define RESP_OUTBUF_DROP_H

#include "resp/resp.h"

/* Like outbufClear(); but if there is much, its blocks are freed by outbufFreeDropped(). */
void outbufDrop(outbuf *o);
/* Frees some `bytes` of what was dropped. True if there is more. */
bool outbufFreeDropped(size_t bytes);

#endif

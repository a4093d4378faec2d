/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of link.c that link_dual.c calls, and of link_dual.c that link.c calls. */
#ifndef PSYNC_LINK_PRIV_H
#define PSYNC_LINK_PRIV_H

#include "psync/link.h"

enum {
    LINK_LINE_MAX = 1024
}; /* bytes of a line of the primary; without end they would use memory without bound */

void linkEnter(replLink *link, linkState state, int64_t now_ms);
/* A full synchronisation has failed (LINK_CUT, LINK_FAILED): connects again. */
void linkRetryTransfer(replLink *link, linkResult result, int64_t now_ms);
/* Stores "capa" and "lz4", ...: up to 4 words. Returns their number. */
int linkAddCodecs(const linkSettings *s, slice *words);
void linkSendWords(replLink *link, int count, const slice *words);
bool linkStartsWith(slice line, const char *text);
/* The next line of `from` at *at, without its end; `rest` is what follows it. Without pointer: it
 * is incomplete. */
slice linkNextLine(const str *from, size_t *at, slice *rest);
/* Removes the first `at` bytes, unless all were removed. */
void linkDropLines(str *from, size_t at);
/* "$<size>" or "$EOF:<mark>" */
void linkOnAnnouncement(replLink *link, slice line, slice rest, int64_t now_ms);

/* The stream is applied from now on; `received` are its first bytes. */
void linkFollowStream(replLink *link, slice received, bool from_start, int64_t now_ms);

/* link_dual.c: +DUALCHANNELSYNC; lines of the first connection while the second one is used. */
void linkBeginDual(replLink *link, int64_t now_ms);
void linkOnDualLine(replLink *link, slice line, slice rest, int64_t now_ms);
/* The dataset of the second connection was loaded. */
void linkOnDualLoaded(replLink *link, int64_t now_ms);

#endif

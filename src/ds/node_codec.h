/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coded nodes of long lists and streams: a codec compresses their content while it is not used.
 *
 * The caller finds them by visiting the nodes of a value again and again (quicklistCodeNodes(),
 * streamCodeNodes()). A node has a mark. In a node that is not coded it says that nobody has used
 * the node since the last visit; the next visit codes it then. In a coded node it says that the
 * node was read since the last visit. How texts are compressed, and with which dictionary, is known
 * to the codec alone.
 *
 * A coded text begins with a number of 32 bits: NODE_CODED, its length and its dictionary. */
#ifndef DS_NODE_CODEC_H
#define DS_NODE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"

/* Longer texts are not coded, as expanding one must not take longer than a slow command. */
enum { NODE_TEXT_MAX = 128 * 1024 };

/* How the codec wants a coded or marked node to be treated that is read. */
typedef enum nodeRead {
    NODE_STAYS,   /* nothing */
    NODE_NOTED,   /* its mark tells of the read */
    NODE_EXPANDS, /* as NODE_NOTED, and a coded node is stored as it was */
} nodeRead;

typedef struct nodeCodec {
    /* Writes the text of `len` bytes of which `coded` was made. ANY_THREAD. */
    void (*expand)(unsigned dictionary, slice coded, void *out, size_t len);
    /* There is one coded node more, or (`more` false) less. `len`: of its text; `coded_len`: of
     * what replaces it. ANY_THREAD. */
    void (*count)(unsigned dictionary, size_t len, size_t coded_len, bool more);
    /* `again`: a coded node was read before, since the last visit. ANY_THREAD. */
    nodeRead (*read)(bool again);
} nodeCodec;
/* Must be called before the first node is coded. */
void nodeCodecSet(const nodeCodec *codec);

/* A visit to the nodes of a value. */
typedef struct nodeVisit {
    size_t min;          /* bytes of texts that are coded, at least */
    unsigned dictionary; /* with which they are: 1 to 255 */
    bool idle;           /* no node is in use, whatever its mark says */
    bool whole; /* tries nodes again that gained nothing, and those with another dictionary */
    /* Codes a text in at most `most` bytes, which are borrowed until the next call; empty: it does
     * not fit. */
    slice (*code)(void *arg, slice text, size_t most);
    /* True ends the visit. Called after each text that was tried, and now and then. */
    bool (*is_over)(void *arg);
    void *arg;
} nodeVisit;

/* Receives the text of a node that was chosen as a sample. */
typedef void nodeTextProc(void *arg, slice text);

/* ---- for the files of lists and streams ---- */

enum {
    CODED_HEAD = 4,        /* bytes of the number before a coded text */
    CODED_VISITS = 64,     /* nodes between two calls of is_over() */
    CODED_SAVED_MIN = 16,  /* bytes of memory that a coded node saves at least, */
    CODED_SAVED_SHARE = 8, /* and one in so many */
    CODED_DICTIONARY = 0xff,
    CODED_LENGTH_SHIFT = 8,
};
#define NODE_CODED ((uint32_t)1 << 31)

static inline size_t codedLength(const void *head) {
    return (loadU32(head) & ~NODE_CODED) >> CODED_LENGTH_SHIFT;
}
static inline unsigned codedDictionary(const void *head) {
    return loadU32(head) & CODED_DICTIONARY;
}
/* Expands the coded text whose number is at `head`. */
void codedExpand(const void *head, void *out, size_t len);
/* Counts it, or one less. */
void codedCount(const void *head, size_t len, bool more);
nodeRead codedRead(bool again);
/* Visits a node with a text of `len` bytes: changes its mark, and tells whether the text is to be
 * coded. `dictionary`: that it is coded with; 0: none. */
bool codedVisit(const nodeVisit *v, size_t len, unsigned dictionary, bool futile, bool *mark);
/* The memory that a node of `memory` bytes may take once it is coded; 0: it would save too
 * little. */
size_t codedMemoryMost(size_t memory);
/* Writes number and coded text to a block of CODED_HEAD and coded.len bytes, and counts them. */
void codedWrite(void *head, unsigned dictionary, slice coded, size_t len);

#endif

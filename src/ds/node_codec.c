/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coded nodes (node_codec.h): the codec, and the bytes of a coded text. The codec is set once, at
 * startup; all else is ANY_THREAD. */
#include "ds/node_codec.h"

#include "base/base.h"

_Static_assert((NODE_TEXT_MAX << CODED_LENGTH_SHIFT) < INT32_MAX, "a length beside NODE_CODED");

static const nodeCodec *codec;

void nodeCodecSet(const nodeCodec *c) {
    check(c != NULL);
    codec = c;
}

static slice textAt(const void *head) {
    hotCheck(loadU32(head) & NODE_CODED);
    return sliceMake((const char *)head + CODED_HEAD, codedLength(head));
}

void codedExpand(const void *head, void *out, size_t len) {
    hotCheck(len <= NODE_TEXT_MAX);
    codec->expand(codedDictionary(head), textAt(head), out, len);
}

void codedCount(const void *head, size_t len, bool more) {
    hotCheck(len <= NODE_TEXT_MAX);
    codec->count(codedDictionary(head), len, textAt(head).len + CODED_HEAD, more);
}

nodeRead codedRead(bool again) { return codec->read(again); }

bool codedVisit(const nodeVisit *v, size_t len, unsigned dictionary, bool futile, bool *mark) {
    hotCheck(dictionary <= CODED_DICTIONARY);
    if (dictionary) {
        *mark = false;
        return v->whole && dictionary != v->dictionary;
    }
    if (len < v->min || len > NODE_TEXT_MAX || (futile && !v->whole)) return false;
    if (*mark || v->idle) return true;
    *mark = true;
    return false;
}

size_t codedMemoryMost(size_t memory) {
    size_t saved = sizeMax(CODED_SAVED_MIN, memory / CODED_SAVED_SHARE);
    return memory > saved + CODED_HEAD ? memory - saved : 0;
}

void codedWrite(void *head, unsigned dictionary, slice coded, size_t len) {
    check(dictionary > 0);
    check(dictionary <= CODED_DICTIONARY);
    check(coded.len < NODE_TEXT_MAX);
    storeU32(head, NODE_CODED | (uint32_t)coded.len << CODED_LENGTH_SHIFT | dictionary);
    memcpy((char *)head + CODED_HEAD, coded.ptr, coded.len);
    codedCount(head, len, true);
}

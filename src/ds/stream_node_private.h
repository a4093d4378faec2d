/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Encoding of the bytes of ds/stream_node.h; private to its files. */
#ifndef DS_STREAM_NODE_PRIVATE_H
#define DS_STREAM_NODE_PRIVATE_H

#include "base/base.h"
#include "ds/stream_node.h"

enum {
    ENTRY_DELETED = 1,
    ENTRY_SAME_FIELDS = 2,
    MS_SHIFT = 2,
    SEQ_SHIFT = 5,
    SIZE_CODES = 7, /* mask */
    ENTRY_HEAD_MAX = 5 + 1 + 8 + 8,
    VARINT_MAX = 5,
};

/* ------------------------------------------------------------------ numbers of 1 to 5 bytes */

static inline size_t streamVarintSize(uint64_t v) {
    return v < 1 << 7 ? 1 : v < 1 << 14 ? 2 : v < 1 << 21 ? 3 : v < 1 << 28 ? 4 : 5;
}

static inline uint8_t *streamVarintWrite(uint8_t *at, uint64_t v) {
    for (; v >= 128; v >>= 7) *at++ = (uint8_t)(v | 128);
    *at++ = (uint8_t)v;
    return at;
}

static inline const uint8_t *streamVarintRead(const uint8_t *at, uint32_t *out) {
    uint32_t v = *at++;
    if (unlikely(v >= 128)) {
        v &= 127;
        for (unsigned shift = 7;; shift += 7) {
            uint8_t byte = *at++;
            v |= (uint32_t)(byte & 127) << shift;
            if (byte < 128) break;
        }
    }
    *out = v;
    return at;
}

/* ------------------------------------------------------------------ numbers of 0 to 8 bytes */

/* Number of bytes for a size code. */
static inline unsigned streamCodeBytes(unsigned code) { return code == 7 ? 8 : code; }

static inline unsigned streamCodeOf(uint64_t v) {
    if (v == 0) return 0;
    unsigned bytes = (71 - (unsigned)__builtin_clzll(v)) / 8;
    return bytes <= 6 ? bytes : 7;
}

static inline uint64_t streamLoadCoded(const uint8_t *at, unsigned code) {
    switch (code) {
    case 0: return 0;
    case 1: return at[0];
    case 2: return loadU16(at);
    case 3: return loadU16(at) | (uint64_t)at[2] << 16;
    case 4: return loadU32(at);
    case 5: return loadU32(at) | (uint64_t)at[4] << 32;
    case 6: return loadU32(at) | (uint64_t)loadU16(at + 4) << 32;
    default: return loadU64(at);
    }
}

/* ------------------------------------------------------------------ ids and sizes */

/* Differences between an id and the node's first id, as stored. */
static inline void streamIdParts(streamId key, streamId id, uint64_t *ms, uint64_t *seq) {
    *ms = id.ms - key.ms;
    *seq = *ms == 0 ? id.seq - key.seq : id.seq;
}

/* Writes flags and id; up to 8 bytes after the returned end are overwritten. */
static inline uint8_t *streamWriteId(uint8_t *at, unsigned flags, uint64_t ms, uint64_t seq) {
    unsigned ms_code = streamCodeOf(ms), seq_code = streamCodeOf(seq);
    *at++ = (uint8_t)(flags | ms_code << MS_SHIFT | seq_code << SEQ_SHIFT);
    storeU64(at, ms);
    at += streamCodeBytes(ms_code);
    storeU64(at, seq);
    return at + streamCodeBytes(seq_code);
}

/* Size as a listpack of an entry with this body. */
static inline size_t streamPackedSize(size_t body) { return body + listpackBackSize(body); }

static inline size_t streamPackedInt(uint64_t v) {
    listpackItem item = listpackItemInt((int64_t)v);
    return listpackItemSize(&item);
}

/* Returns the node with space for `more` bytes; it may have moved. */
streamNode *streamNodeReserve(streamNode *n, size_t more);
/* Creates a node without names or entries. */
streamNode *streamNodeAlloc(size_t cap);

#endif

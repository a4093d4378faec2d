/* SPDX-License-Identifier: BSD-3-Clause
 *
 * streamId: the 128-bit id of a stream entry, a time in ms and a sequence number, ordered by both.
 * ANY_THREAD. */
#ifndef DS_STREAM_ID_H
#define DS_STREAM_ID_H

#include <stdbool.h>
#include <stdint.h>

typedef struct streamId {
    uint64_t ms, seq;
} streamId;

#define STREAM_ID_MIN ((streamId){0, 0})
#define STREAM_ID_MAX ((streamId){UINT64_MAX, UINT64_MAX})

static inline int streamIdCompare(streamId a, streamId b) {
    if (a.ms != b.ms) return a.ms < b.ms ? -1 : 1;
    return a.seq == b.seq ? 0 : a.seq < b.seq ? -1 : 1;
}
static inline bool streamIdEqual(streamId a, streamId b) { return a.ms == b.ms && a.seq == b.seq; }
static inline bool streamIdLess(streamId a, streamId b) {
    return a.ms != b.ms ? a.ms < b.ms : a.seq < b.seq;
}
static inline bool streamIdIsZero(streamId id) { return id.ms == 0 && id.seq == 0; }
/* The following id, in *id. False if there is none; *id is then unchanged. */
static inline bool streamIdNext(streamId *id) {
    if (id->seq == UINT64_MAX && id->ms == UINT64_MAX) return false;
    if (++id->seq == 0) id->ms++;
    return true;
}
/* The id of an entry that is appended at this time, in the same way. */
static inline bool streamIdNextAt(streamId *id, uint64_t now_ms) {
    if (now_ms <= id->ms) return streamIdNext(id);
    *id = (streamId){now_ms, 0};
    return true;
}
/* The preceding id, in the same way. */
static inline bool streamIdPrev(streamId *id) {
    if (id->seq == 0 && id->ms == 0) return false;
    if (id->seq-- == 0) id->ms--;
    return true;
}

#endif

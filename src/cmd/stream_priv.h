/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of stream commands. */
#ifndef CMD_STREAM_PRIV_H
#define CMD_STREAM_PRIV_H

#include "base/bytes.h"
#include "cmd/collection.h"
#include "engine/job.h"
#include "store/type_stream.h"

/* ---- ids ---- */

/* Ids, and words such as `*` in their place, end at the first zero byte. */
slice streamBeforeZero(slice text);
/* True if the text is that one character. */
bool streamIsWord(slice text, char word);
/* Parses "ms-seq", or "ms", which means ms-`missing_seq`. Blanks and a sign before a number are
 * accepted. False: `text` is not an id. */
bool streamParseId(slice text, uint64_t missing_seq, streamId *out);
/* Parses argument `i` as such an id. False: the error was replied. */
bool streamArgId(ctx *c, int i, uint64_t missing_seq, streamId *out);
/* The same, with `-` and `+` as the lowest and the highest id. */
bool streamArgIdOrEnd(ctx *c, int i, uint64_t missing_seq, streamId *out);
/* Parses "IDS numids id..." whose first word is argument *i: sets the argument of the first id and
 * the number of ids, which are not parsed, and *i to the last id. False: the error was replied. */
bool streamArgIdCount(ctx *c, int *i, int *first, int *count);
/* Parses an end of a range, as streamArgIdOrEnd() does; "(" before an id excludes it. */
bool streamArgRangeStart(ctx *c, int i, streamId *out);
bool streamArgRangeEnd(ctx *c, int i, streamId *out);
void streamReplyInvalidId(ctx *c);

enum { STREAM_ID_TEXT_MAX = 48 };
/* Formats as "ms-seq" into `text`, of STREAM_ID_TEXT_MAX bytes. */
slice streamIdText(streamId id, char *text);

/* ---- streams ---- */

/* Looks up the stream of the key at argument `arg_index`; NULL if the key does not exist. False:
 * WRONGTYPE was replied. */
bool streamFindRead(ctx *c, int arg_index, stream **out);
bool streamFindWrite(ctx *c, int arg_index, stream **out);

/* ---- references: groups that have an entry pending, or have not read it ---- */

/* Effect of removing entries on their references in groups (KEEPREF, DELREF, ACKED). */
typedef enum streamRefs {
    REFS_KEEP,   /* nothing */
    REFS_DELETE, /* pending entries are removed, too */
    REFS_ACKED,  /* an entry with references is not removed */
} streamRefs;
/* Parses argument `i` as one of these words; false: it is none. */
bool streamArgRefs(const ctx *c, int i, streamRefs *out);

/* Ids that something happened to. All zero: none. */
typedef struct streamIds {
    streamId *list;
    size_t count, cap;
} streamIds;
void streamIdsClear(streamIds *ids);
/* streamTrim() of a stream in this way, exactly but for max_removed. REFS_DELETE: adds the removed
 * entries with references to `ids`, for streamDropRefs(). REFS_ACKED: adds all removed entries, for
 * streamPropagateIds(). */
uint64_t streamTrimRefs(ctx *c, stream *s, const streamTrimRule *rule, streamRefs refs,
                        streamIds *ids);
/* Removes these entries from the pending entries of all groups, and propagates that as XACK.
 * Returns the number of pending entries removed. */
uint64_t streamDropRefs(ctx *c, slice key, stream *s, const streamIds *ids);
/* Propagates XDEL, or XACK of a group, with these ids; nothing if there are none. */
void streamPropagateIds(ctx *c, slice key, const streamGroup *acked_by, const streamIds *ids);

/* ---- ids of producers ---- */

/* Result of parsing an option of XADD: another option, this option, or an error that was
 * replied. */
typedef enum streamWord { STREAM_WORD_OTHER, STREAM_WORD_TAKEN, STREAM_WORD_WRONG } streamWord;
/* IDMP producer iid, or IDMPAUTO producer; all zero: not given. */
typedef struct streamProduced {
    int arg, words; /* index and number of its arguments */
    slice producer, iid;
    char hash[16]; /* the iid of IDMPAUTO */
} streamProduced;
/* Parses IDMP or IDMPAUTO at argument *i; *i is set to its last word. */
streamWord streamArgProducer(ctx *c, int *i, streamProduced *out);
/* Sets the iid of IDMPAUTO to a hash of the fields and values, whose order does not matter. */
void streamProducedHash(streamProduced *p, const slice *fields, int count);
/* True if the entry is a duplicate: it is counted, and the reply is the id of the entry that was
 * added before. `is_known`: the primary has propagated it as a duplicate. `s` is NULL if there is
 * no stream. */
bool streamIsDuplicate(ctx *c, stream *s, const streamProduced *p, bool is_known);
/* Records the id of an entry that was added, and propagates it. */
void streamRecordProduced(ctx *c, stream *s, const streamProduced *p, streamId id);
/* Called for XACK of a group that does not exist. Applies the command if it is a record of ids of
 * producers (AOF_PRODUCERS) in a file or in the stream of a primary. False: it is no such
 * record. */
bool streamApplyProducers(ctx *c, stream *s);
/* The number of fields that streamReplyProducers() adds to XINFO STREAM: 0 if the stream has no
 * table of producers. */
int streamProducersInfoFields(const stream *s);
void streamReplyProducers(ctx *c, const stream *s);

/* ---- replies ---- */

void streamReplyId(ctx *c, streamId id);
/* [id, [field, value, ...]] */
void streamReplyEntry(ctx *c, streamId id, streamFields fields);
/* The two elements of it, without the head of the array. */
void streamReplyEntryParts(ctx *c, streamId id, streamFields fields);
/* Replies the entries from start to end, or in reverse, as an array; `count` 0: no limit. Returns
 * their number. */
int64_t streamReplyRange(ctx *c, const stream *s, streamId start, streamId end, bool backwards,
                         uint64_t count);
/* For jobStart(): the most that it replies if `count` was given; 0 or less: no limit. */
static inline uint64_t streamReplyMost(const stream *s, int64_t count) {
    return count > 0 ? sizeMin((uint64_t)count, streamLength(s)) : streamLength(s);
}
/* Replies the entry with this id; false if there is none, and nothing was replied. */
bool streamReplyOne(ctx *c, const stream *s, streamId id);

/* ---- groups ---- */

/* Signals a change of groups or ids that does not affect WATCH and client caches: it is counted,
 * propagated and notified as `event`. */
void streamGroupChanged(ctx *c, slice key, const keyEvent *event);
/* Returns the consumer of that name; creates it with an event if missing. Its seen time is set to
 * now. */
streamConsumer *streamConsumerFor(ctx *c, slice key, streamGroup *g, slice name, bool *created);
/* Propagates the creation of a consumer that no XCLAIM of streamPropagateClaim() creates. */
void streamPropagateConsumer(ctx *c, slice key, const streamGroup *g, slice name);
/* Propagates a command that makes a replica's pending entry equal to `p`. */
void streamPropagateClaim(ctx *c, slice key, const streamGroup *g, const streamPending *p);
/* Propagates the group's last id and entries-read. */
void streamPropagateGroup(ctx *c, slice key, const streamGroup *g);

#endif

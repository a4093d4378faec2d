/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values that are compressed with a dictionary (dictionary.h): strings, packed collections, and the
 * nodes of long lists and streams, which are compressed one by one within their value.
 *
 * A compressed object differs from a plain one in its header (object.h) and in the bytes of its
 * embedded value:
 *
 *   [dictionary: 1 byte] [length of the text * 2, plus 1 if it is "raw"] [count] [packed bytes]
 *
 * Length and count are length fields; only a collection has a count. The text of a collection is
 * its packed bytes without what the count tells: the entries of a listpack, the integers of an
 * intset, the values of a record, whose count is the number of its shape. A set or hash is "raw" if
 * its plain form is FORM_PACKED_INTS or FORM_SHAPED. Key, type, expiry time and access are where
 * they always are. Compressing or expanding a value is no change of the key: nothing is propagated
 * or notified, WATCH does not see it, and the new object inherits the mark of a snapshot. Values
 * are users of their dictionary, and records of their shape, from compressedMake() to
 * compressedForget(). Main thread only, except where said otherwise. */
#ifndef STORE_COMPRESSED_H
#define STORE_COMPRESSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "ds/node_codec.h"
#include "ds/stream_id.h"
#include "store/dictionary.h"
#include "store/keyspace.h"
#include "store/object.h"

/* Longer texts are not compressed: expanding one must not take longer than a slow command. */
enum { COMPRESSED_TEXT_MAX = NODE_TEXT_MAX };

typedef struct compressedValue {
    uint32_t dictionary;
    bool raw;     /* a string is reported as "raw" whatever its length; of others see above */
    size_t len;   /* of the text */
    size_t count; /* of a collection */
    slice packed; /* borrowed from the object */
} compressedValue;
/* ANY_THREAD that owns the object. */
compressedValue compressedRead(const robj *o);
/* Writes the text, of compressedRead(o).len bytes, to `out`. Main thread or a forked child. */
void compressedExpand(const robj *o, char *out);
/* Number of entries of a collection, as its type counts them. */
size_t compressedLength(const robj *o);
/* The number of the shape that a compressed hash uses, 0: none. ANY_THREAD that owns the object. */
unsigned compressedShape(const robj *o);

/* A plain object like this one, which is in no table: for visitors of many values, who return it by
 * compressedClose(). It uses neither dictionary nor shape. Main thread or a forked child. */
robj *compressedOpen(const robj *o) MUST_USE;
void compressedClose(robj *plain);
/* The text, valid until the end of the command; outside of commands until the next one. */
slice compressedText(const robj *o);
/* The same of a plain value, borrowed from it: what compressedMake() compresses. Empty if a value
 * of this type and form is never compressed. */
slice compressedTextOf(const robj *o);
/* A plain object like this one, which is in no table, and valid as long as compressedText(). */
robj *compressedShow(const robj *o);
/* `serial` changes at the end of each command. Until it is set nothing is freed by commands. */
void compressedSetSerial(const uint64_t *serial);
/* While on, texts and shown objects stay: others interrupt the command that uses them. Nests. */
void compressedKeep(bool on);
/* Frees texts and shown objects; no command may be running. Called once per turn. */
void compressedReclaim(void);
/* Texts and shown objects that outlast their command. */
typedef struct compressedParts compressedParts;
/* Until the next call, texts and shown objects are added to *own, and stay until they are freed by
 * compressedFreeParts(); NULL: no more. Cannot be nested. */
void compressedUseParts(compressedParts **own);
void compressedFreeParts(compressedParts *parts);
/* Between the two calls of a command, texts and shown objects live until the second one: for
 * commands that read many values one after the other. Nothing in between may run other commands. */
typedef struct compressedMark {
    size_t used;
    const compressedParts *parts;
} compressedMark;
compressedMark compressedSetMark(void);
void compressedFreeSince(compressedMark mark);

/* True if the value has a text of `min` to COMPRESSED_TEXT_MAX bytes that can be compressed, or is
 * compressed with another dictionary than that of its key. */
bool compressedMayGain(const robj *o, int db_id, size_t min);
/* A compressed object like this one, for which compressedMayGain() is true; both exist then. NULL:
 * it would not take less memory. */
robj *compressedMake(const robj *o, int db_id) MUST_USE;
/* A plain object in place of this one, which is freed. */
robj *compressedPlain(robj *o) MUST_USE;
/* The same value with another key, expiry time and access; both objects exist then. */
robj *compressedCopy(const robj *o, slice key, int64_t expire_ms, uint32_t access) MUST_USE;
/* Another expiry time; the old object is freed. A time that needs 8 bytes makes the value plain. */
robj *compressedSetExpire(robj *o, int64_t expire_ms) MUST_USE;
/* The object is going to be freed. */
void compressedForget(const robj *o);

/* ---- which values are compressed ---- */

/* The same for the values of a hash that is a table, in one piece: those of its fields that are
 * long enough. Returns whether one is compressed. For tests. */
bool storeCompressFields(db *d, robj *o, size_t min);
/* The number of the dictionary of one of its compressed values; 0: it has none. For tests. */
uint32_t hashDictionary(const robj *o);
/* Stores values of fields plain that lookups have found compressed, for the second time since their
 * hash was idle. No command may be running. */
void storePlainFields(void);
/* A compressed value that is read for the second time within so many seconds is stored plain; -1:
 * never. */
void storeSetPlainIdle(int64_t idle_s);
/* Compresses the value of an existing key, or moves it to the current dictionary, if that gains
 * something; returns whether. `min`: bytes of text. Nothing while a forked child lives. */
bool storeCompressKey(db *d, const robj *o, size_t min);
/* The value of an existing key, stored plain; not while nothing may change, or while somebody is
 * told that the key is about to be removed: then as compressedShow(). No access, no change. */
robj *storePlainKey(db *d, slice key, uint64_t hash);
/* storeCompressKey(), or a slice of storeCompressFields(), for values of the main keyspace that
 * were not used for `idle_s` seconds, in a walk over all keys that continues with each call, for
 * at most `budget_us`. Passes after the first one try only what has become idle since the previous
 * one, unless there are new dictionaries, or `min` or `idle_s` are others; a pass begins when
 * `pause_s` seconds have passed since the last one began. True: the walk is in the midst of a
 * pass. */
typedef struct compressPlan {
    size_t min;
    int64_t idle_s, pause_s, budget_us;
} compressPlan;
bool storeCompressTurn(const compressPlan *plan);

/* ---- nodes of long lists and streams ---- */

/* Sets the codec of ds/node_codec.h. Called once, at startup. */
void compressedNodesInit(void);
/* True if the value is a stream or a long list. */
bool compressedHasNodes(const robj *o);
/* A visit to the nodes of a value, which may take several calls. */
typedef struct nodesVisit {
    size_t min;
    bool idle, whole;    /* as in nodeVisit */
    int64_t deadline_us; /* INT64_MAX: none */
    bool continues;      /* the visit has begun */
    streamId from;       /* private */
} nodesVisit;
/* How many nodes of the value are compressed. */
uint64_t compressedNodesOf(const robj *o);
/* Visits nodes of the value of an existing key; true: some remain. */
bool storeCompressNodes(db *d, const robj *o, nodesVisit *visit);
/* The nodes of a value that can be compressed, wherever they are used; 0: it has none. */
uint64_t compressedNodesToSample(const robj *o);
/* Passes on the texts of `most` of them that a random number chooses; there is one at least. */
void compressedSampleNodes(const robj *o, uint64_t random, size_t most, nodeTextProc *visit,
                           void *arg);
/* Packs a text to at most `most` bytes, valid until the next call; empty: it does not fit. */
slice compressedPack(const valueDictionary *d, slice text, size_t most);

/* ---- freeing ---- */

/* Objects that another thread frees. All zero at first. */
typedef struct compressedDrops {
    uint64_t *users; /* by number of the dictionary; NULL: none */
    uint64_t values, text_bytes, packed_bytes;
} compressedDrops;
/* Notes one. ANY_THREAD that owns it. */
void compressedDropsAdd(compressedDrops *drops, const robj *o);
/* Does for all of them what compressedForget() does for one, and frees `drops`. */
void compressedDropsSettle(compressedDrops *drops);

/* The values of all keyspaces that are compressed now: bytes of their texts, and of the embedded
 * values that replace them. */
typedef struct compressedReport {
    uint64_t values, text_bytes, packed_bytes;
    /* Since the start: values compressed, those that gained nothing, values expanded for a reply,
     * values stored plain again; time of the first two and of the others. */
    uint64_t made, futile, shown, restored;
    uint64_t make_us, expand_us;
    size_t scratch; /* bytes of compressedText() and compressedShow() */
} compressedReport;
void compressedGetReport(compressedReport *out);
/* The same of nodes, in place of values. */
void compressedGetNodesReport(compressedReport *out);
/* Sets the counters of both reports to 0; the second function those of nodes alone. */
void compressedResetStats(void);
void compressedResetNodesStats(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bitmaps: bit operations on strings. Bit 0 is the most significant bit of the first byte. Main
 * thread only. */
#include "base/base.h"
#include "base/bits.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/key_walk.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/job.h"
#include "engine/options.h"
#include "store/type_string.h"

/* Parses argument `i` as a bit offset within the maximum string length. False: the error was
 * replied. */
static bool parseBitOffset(ctx *c, int i, uint64_t *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    int64_t offset;
    if (!numberParseInt(c->argv[i], &offset) || offset < 0 || offset / 8 >= engineBulkMax()) {
        replyError(c, SLICE("ERR bit offset is not an integer or out of range"));
        return false;
    }
    *out = (uint64_t)offset;
    return true;
}

/* GETBIT key offset. Reply: the bit; 0 beyond the end. */
void getbitCommand(ctx *c) {
    hotCheck(c->argc == 3);
    uint64_t offset;
    if (!parseBitOffset(c, 2, &offset)) return;
    const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    if (!stringIsType(c, o)) return;
    replyInteger(c, o ? stringBit(o, offset) : 0);
}

/* SETBIT key offset value. Reply: the previous bit. */
void setbitCommand(ctx *c) {
    hotCheck(c->argc == 4);
    uint64_t offset;
    int64_t bit;
    if (!parseBitOffset(c, 2, &offset)) return;
    if (!ctxArgIntIn(c, 3, 0, 1, &bit, "ERR bit is not an integer or out of range")) return;
    robj *o = dbFind(c->db, c->argv[1], c->key_hash, c->look, &c->at);
    if (!stringIsType(c, o)) return;
    bool was = o && stringBit(o, offset);
    size_t len = offset / 8 + 1;
    bool changes = was != (bool)bit || !o || stringLen(o) < len;
    char *text;
    status st = o ? stringStretch(&o, len, &text) : stringNewRaw(c->argv[1], len, &o, &text);
    if (st != OK) {
        stringReplyNoMemory(c);
        return;
    }
    unsigned mask = 0x80u >> offset % 8;
    text[offset / 8] = (char)(bit ? text[offset / 8] | (int)mask : text[offset / 8] & (int)~mask);
    dbPlace(c->db, &c->at, o); /* stays a raw string even if no bit changes */
    if (changes) ctxKeyChanged(c, c->argv[1], &eventSetbit);
    replyInteger(c, was);
}

/* ------------------------------------------------------------------ BITCOUNT, BITPOS */

typedef struct bitRange {
    int64_t start, end; /* negative: counted from the end */
    bool in_bits, has_end;
} bitRange;

/* Parses [start [end [BYTE|BIT]]] from argument `arg_index` on. False: the error was replied. */
static bool parseRange(ctx *c, int arg_index, bitRange *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *out = (bitRange){.end = -1};
    if (c->argc > arg_index + 3) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (c->argc > arg_index && !ctxArgInt(c, arg_index, &out->start)) return false;
    if (c->argc > arg_index + 2) {
        out->in_bits = ctxArgIs(c, arg_index + 2, "bit");
        if (!out->in_bits && !ctxArgIs(c, arg_index + 2, "byte")) {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    out->has_end = c->argc > arg_index + 1;
    return !out->has_end || ctxArgInt(c, arg_index + 1, &out->end);
}

/* Converts the range to bits [from, end) of a string of `len` bytes. False if it is empty. */
static bool clampRange(const bitRange *r, size_t len, uint64_t *from, uint64_t *end) {
    int64_t size = (int64_t)len * (r->in_bits ? 8 : 1), start = r->start, last = r->end;
    if (start < 0) start = start < -size ? 0 : start + size;
    if (last < 0) last = last < -size ? 0 : last + size;
    if (last >= size) last = size - 1;
    if (start > last) return false;
    uint64_t bits = r->in_bits ? 1 : 8;
    *from = (uint64_t)start * bits;
    *end = ((uint64_t)last + 1) * bits;
    return true;
}

/* The end of the part of the bits [from, end) that is visited before the next jobPoint(). */
enum { PART_BYTES = 32 * 1024 };
static uint64_t partEnd(const ctx *c, uint64_t from, uint64_t end) {
    const uint64_t part = PART_BYTES * 8;
    hotCheck(from < end);
    if (likely(!(c->flags & CTX_SLICED)) || end - from <= part) return end;
    return (from / part + 1) * part;
}

static bool partPoint(const ctx *c) { return jobPoint(c, PART_BYTES / STRING_ELEMENT_BYTES); }

static uint64_t countBits(const ctx *c, slice text, uint64_t from, uint64_t end) {
    uint64_t count = 0;
    for (uint64_t to; from < end && !partPoint(c); from = to) {
        to = partEnd(c, from, end);
        count += bitsCountRange(text.ptr, from, to);
    }
    return count;
}

static uint64_t findBit(const ctx *c, slice text, uint64_t from, uint64_t end, bool bit) {
    uint64_t found = BITS_NONE;
    for (uint64_t to; found == BITS_NONE && from < end && !partPoint(c); from = to) {
        to = partEnd(c, from, end);
        found = bitsFind(text.ptr, from, to, bit);
    }
    return found;
}

/* BITCOUNT key [start [end [BYTE|BIT]]]. Reply: number of bits set. */
void bitcountCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    bitRange range;
    if (!parseRange(c, 2, &range)) return;
    const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    if (!stringIsType(c, o)) return;
    char digits[NUMBER_TEXT_MAX];
    slice text = o ? objectText(o, digits) : SLICE("");
    uint64_t from, end;
    bool is_empty = range.start < 0 && range.end < 0 && range.start > range.end;
    bool any = !is_empty && clampRange(&range, text.len, &from, &end);
    if (any && stringJobStart(c, (end - from) / 8)) return;
    replyInteger(c, any ? (int64_t)countBits(c, text, from, end) : 0);
}

/* BITPOS key bit [start [end [BYTE|BIT]]]. Reply: position of the first such bit, -1 if there is
 * none. The string is considered to be followed by zeros, unless an end is given. */
void bitposCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    int64_t bit;
    bitRange range;
    if (!ctxArgInt(c, 2, &bit)) return;
    if (bit != 0 && bit != 1) {
        replyError(c, SLICE("ERR The bit argument must be 1 or 0."));
        return;
    }
    if (!parseRange(c, 3, &range)) return;
    const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    if (!stringIsType(c, o)) return;
    if (!o) {
        replyInteger(c, bit ? -1 : 0);
        return;
    }
    char digits[NUMBER_TEXT_MAX];
    slice text = objectText(o, digits);
    uint64_t from, end;
    if (!clampRange(&range, text.len, &from, &end)) {
        replyInteger(c, -1);
        return;
    }
    if (stringJobStart(c, (end - from) / 8)) return;
    uint64_t found = findBit(c, text, from, end, bit);
    if (found == BITS_NONE && !bit && !range.has_end) found = (uint64_t)text.len * 8;
    replyInteger(c, found == BITS_NONE ? -1 : (int64_t)found);
}

/* ------------------------------------------------------------------ BITOP */

/* Those from BITOP_DIFF on are not Valkey's. */
typedef enum bitOperation {
    BITOP_AND,
    BITOP_OR,
    BITOP_XOR,
    BITOP_NOT,
    BITOP_DIFF,  /* bits of the first source that no other has */
    BITOP_DIFF1, /* bits of the others that the first does not have */
    BITOP_ANDOR, /* bits of the first source that another has, too */
    BITOP_ONE,   /* bits that exactly one source has */
} bitOperation;

static const char *const operation_names[] = {"and",  "or",    "xor",   "not",
                                              "diff", "diff1", "andor", "one"};

enum {
    BITOP_CHUNK = 8192,
    CHUNK_POINTS = 16, /* a chunk of one source takes as long as so many elements */
};

/* The source strings. */
typedef struct bitSources {
    slice *texts; /* empty for missing keys */
    char (*digits)[NUMBER_TEXT_MAX];
    blob **kept;       /* of a job: the texts, which a command only borrows; NULL: no job */
    size_t count, len; /* `len` is that of the longest */
} bitSources;

static bool parseOperation(const ctx *c, slice word, bitOperation *out) {
    for (size_t i = 0; i < COUNT_OF(operation_names); i++) {
        if (!sliceIs(word, operation_names[i])) continue;
        *out = (bitOperation)i;
        return *out < BITOP_DIFF || ctxHasExtensions(c);
    }
    return false;
}

static void sourcesClear(bitSources *s) {
    for (size_t i = 0; s->kept && i < s->count; i++) blobRelease(s->kept[i]);
    memFree(s->kept);
    memFree(s->texts);
    memFree(s->digits);
}

/* Keeps the text that was found last, which is that of `o`, for a job. */
static void keepSource(bitSources *s, const robj *o) {
    slice *text = &s->texts[s->count - 1];
    blob *b;
    if (o && objectForm(o) == FORM_POINTER) {
        b = blobRetain(objectPointer(o));
    } else {
        b = blobNew(text->len);
        memcpy(b->bytes, text->ptr, text->len);
        b->len = text->len;
        text->ptr = b->bytes;
    }
    s->kept[s->count - 1] = b;
}

/* Looks up the strings at arguments 3 and following. False: the error was replied, and nothing is
 * allocated. */
static bool findSources(ctx *c, bitSources *out) {
    hotCheck(c->argc > 3);
    size_t count = (size_t)c->argc - 3;
    *out = (bitSources){.texts = memNewArray(slice, count),
                        .digits = memAlloc(count * sizeof(*out->digits))};
    if (c->flags & CTX_SLICED) out->kept = memNewArray(blob *, count);
    keyWalk w;
    keyWalkInit(&w, c, 3, c->argc, 1);
    while (keyWalkNext(&w)) {
        const robj *o = dbFindRead(c->db, w.key, w.hash, c->look);
        if (!stringIsType(c, o)) {
            sourcesClear(out);
            return false;
        }
        slice text = o ? objectText(o, out->digits[out->count]) : SLICE("");
        out->texts[out->count++] = text;
        out->len = sizeMax(out->len, text.len);
        if (out->kept) keepSource(out, o);
    }
    return true;
}

/* Number of bytes that the string has in [from, end). */
static size_t bytesWithin(slice text, size_t from, size_t end) {
    size_t len = sizeMin(text.len, end);
    return len > from ? len - from : 0;
}

/* DIFF, DIFF1 and ANDOR, like combineChunk(): compares the first source with all bits that the
 * others have. */
static void combineWithOthers(bitOperation op, const bitSources *s, char *to, size_t from,
                              size_t end) {
    hotCheck(from < end);
    hotCheck(s->count > 1);
    size_t size = end - from;
    memset(to, 0, size);
    for (size_t i = 1; i < s->count; i++) {
        slice text = s->texts[i];
        bitsOr(to, to, text.ptr + from, bytesWithin(text, from, end));
    }
    slice first = s->texts[0];
    size_t len = bytesWithin(first, from, end);
    for (size_t i = 0; i < len; i++) {
        int own = first.ptr[from + i], others = to[i];
        int result = op == BITOP_DIFF    ? own & ~others
                     : op == BITOP_DIFF1 ? others & ~own
                                         : own & others;
        to[i] = (char)result;
    }
    if (op != BITOP_DIFF1) memset(to + len, 0, size - len); /* the first source ends there */
}

/* ONE, like combineChunk(). */
static void combineOnce(const bitSources *s, char *to, size_t from, size_t end) {
    hotCheck(from < end);
    hotCheck(end - from <= BITOP_CHUNK);
    char again[BITOP_CHUNK] = {0}, both[BITOP_CHUNK]; /* bits that two sources have */
    size_t size = end - from;
    memset(to, 0, size);
    for (size_t i = 0; i < s->count; i++) {
        const char *bytes = s->texts[i].ptr + from;
        size_t len = bytesWithin(s->texts[i], from, end);
        bitsAnd(both, to, bytes, len);
        bitsOr(again, again, both, len);
        bitsOr(to, to, bytes, len);
    }
    for (size_t i = 0; i < size; i++) to[i] = (char)(to[i] & ~again[i]);
}

/* Computes bytes [from, end) of the result of AND, OR, XOR and NOT, in chunks of all sources small
 * enough for the cache. */
static void combineChunk(bitOperation op, const bitSources *s, char *to, size_t from, size_t end) {
    hotCheck(from < end);
    hotCheck(op <= BITOP_NOT);
    slice first = s->texts[0];
    if (op == BITOP_NOT) { /* of one source, the longest */
        bitsNot(to, first.ptr + from, end - from);
        return;
    }
    /* The first source is read where it is, if it is long enough; otherwise it is copied and
     * extended. */
    const char *so_far = first.ptr + from;
    if (first.len < end || s->count == 1) {
        size_t len = bytesWithin(first, from, end);
        if (len) memcpy(to, so_far, len);
        memset(to + len, 0, end - from - len);
        so_far = to;
    }
    for (size_t i = 1; i < s->count; i++) {
        slice text = s->texts[i];
        size_t len = bytesWithin(text, from, end);
        const char *bytes = text.ptr + from;
        if (op == BITOP_AND) {
            bitsAnd(to, so_far, bytes, len);
            memset(to + len, 0, end - from - len);
        } else {
            (op == BITOP_OR ? bitsOr : bitsXor)(to, so_far, bytes, len);
            if (so_far != to) memcpy(to + len, so_far + len, end - from - len);
        }
        so_far = to;
    }
}

/* Computes the result; NULL if memory is exhausted. */
static blob *combine(const ctx *c, bitOperation op, const bitSources *s) {
    hotCheck(s->len > 0);
    blob *result = blobTryNew(s->len);
    if (!result) return NULL;
    for (size_t at = 0; at < s->len; at += BITOP_CHUNK) {
        char *to = result->bytes + at;
        size_t end = sizeMin(s->len, at + BITOP_CHUNK);
        if (op < BITOP_DIFF) {
            combineChunk(op, s, to, at, end);
        } else if (op == BITOP_ONE) {
            combineOnce(s, to, at, end);
        } else {
            combineWithOthers(op, s, to, at, end);
        }
        if (jobPoint(c, CHUNK_POINTS * (unsigned)s->count)) break;
    }
    result->len = s->len;
    return result;
}

/* Stores the result at the key in argument 2. */
static void storeResult(ctx *c, blob *result) {
    slice key = c->argv[2];
    uint64_t hash = collectionHash(c, 2);
    bool existed = dbDeleteReplaced(c->db, key, hash, c->look);
    check(dbFind(c->db, key, hash, c->look, &c->at) == NULL);
    robj *o;
    if (result->len > OBJECT_EMBED_MAX) {
        o = objectNewStringTake(key, result, OBJECT_NO_EXPIRE, 0);
    } else {
        slice text = sliceMake(result->bytes, result->len);
        o = objectNewString(key, text, OBJECT_NO_EXPIRE, 0, KEEP_RAW);
        blobRelease(result);
    }
    (existed ? dbPlaceReplacing : dbPlace)(c->db, &c->at, o);
    ctxKeyChanged(c, key, &eventSet);
}

/* Parses the operation, and checks the number of sources. False: the error was replied. */
static bool argOperation(ctx *c, bitOperation *out) {
    hotCheck(c->argc >= 4);
    static const char *const upper[] = {"DIFF", "DIFF1", "ANDOR"};
    if (!parseOperation(c, c->argv[1], out)) {
        replyError(c, ERR_SYNTAX_TEXT);
        return false;
    }
    if (*out == BITOP_NOT && c->argc != 4) {
        replyError(c, SLICE("ERR BITOP NOT must be called with a single source key."));
        return false;
    }
    if (*out >= BITOP_DIFF && *out != BITOP_ONE && c->argc == 4) {
        replyErrorFormat(c, "ERR BITOP %s must be called with at least two source keys.",
                         upper[*out - BITOP_DIFF]);
        return false;
    }
    return true;
}

/* An operation that Valkey does not know is propagated as its result; `len` 0: there is none. */
static void propagateResult(ctx *c, bitOperation op, const char *bytes, size_t len) {
    slice words[3] = {len ? SLICE("SET") : SLICE("DEL"), c->argv[2], sliceMake(bytes, len)};
    if (op >= BITOP_DIFF) ctxPropagateAs(c, len ? 3 : 2, words);
}

/* BITOP AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE destination key [key ...]. Reply: length of the result
 * in bytes, which is that of the longest string; shorter ones are padded with zero bytes. */
void bitopCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    bitOperation op;
    bitSources s;
    if (!argOperation(c, &op) || !findSources(c, &s)) return;
    if (jobStartStore(c, (s.len / BITOP_CHUNK) * CHUNK_POINTS * s.count)) {
        sourcesClear(&s);
        return;
    }
    blob *result = s.len > 0 ? combine(c, op, &s) : NULL;
    sourcesClear(&s);
    if (!jobMayStore(c)) {
        blobRelease(result);
        return;
    }
    if (result) {
        propagateResult(c, op, result->bytes, result->len);
        storeResult(c, result);
    } else if (s.len > 0) {
        stringReplyNoMemory(c);
        return;
    } else if (dbDelete(c->db, c->argv[2], collectionHash(c, 2), c->look)) {
        propagateResult(c, op, NULL, 0);
        ctxKeyChanged(c, c->argv[2], &eventDel);
    }
    replyInteger(c, (int64_t)s.len);
}

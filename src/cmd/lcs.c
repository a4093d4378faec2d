/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LCS: the longest common subsequence of two strings.
 *
 * The usual table of lengths L[i][j] is stored as one bit per cell (Hyyrö, "Bit-parallel LCS-length
 * computation revisited", 2004): bit j-1 of row i is clear where L[i][j] = L[i][j-1] + 1. A row is
 * computed from the previous one, 64 cells at a time. These bits suffice to trace back the
 * subsequence: where two bytes differ, go up if the bit is clear, else left.
 *
 * Cost: la * lb / 64 steps and la * lb / 8 bytes (LEN: one row), 1/32 of what the limit assumes.
 * Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "engine/job.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "store/compressed.h"
#include "store/store.h"

enum { WORDS_OF_ELEMENT = 2 }; /* words of a row that are computed in the time of an element */

typedef struct lcsRequest {
    bool len, idx, with_match_len;
    int64_t match_len_min;
    slice a, b;
    char digits[2][NUMBER_TEXT_MAX]; /* texts of integer-encoded values */
    char *copies[2];                 /* of a job */
} lcsRequest;

typedef struct lcsTable {
    slice a, b;
    size_t words;   /* words per row */
    uint64_t *rows; /* of all bytes of `a`, or only the last one */
    bool whole;
    size_t len; /* of the subsequence */
} lcsTable;

/* ------------------------------------------------------------------ the table */

/* Bit k is set if byte k equals `ch`; at most 64 bytes. */
static uint64_t equalBytes(const char *bytes, size_t count, char ch) {
    const uint64_t low = 0x7f7f7f7f7f7f7f7full, pattern = 0x0101010101010101ull * (uint8_t)ch;
    uint64_t mask = 0;
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t x = loadU64(bytes + i) ^ pattern;
        uint64_t zero = ~(((x & low) + low) | x | low); /* bit 7 of every byte that is 0 */
        mask |= ((zero >> 7) * 0x0102040810204080ull >> 56) << i;
    }
    for (; i < count; i++) mask |= (uint64_t)(bytes[i] == ch) << i;
    return mask;
}

/* Computes the row for a byte of `a` from the previous row `from` (initially all ones). `to` may be
 * the same. False: nobody wants it. */
static bool nextRow(const ctx *c, const lcsTable *t, char ch, const uint64_t *from, uint64_t *to) {
    hotCheck(t->words > 0);
    enum { PART = 512 }; /* words between two points of a job */
    bool carry = false;
    for (size_t w = 0; w < t->words; w++) {
        if (w % PART == PART - 1 && jobPoint(c, PART / WORDS_OF_ELEMENT)) return false;
        uint64_t match = equalBytes(t->b.ptr + w * 64, sizeMin(t->b.len - w * 64, 64), ch);
        uint64_t row = from ? from[w] : UINT64_MAX, sum;
        bool carry_1 = __builtin_add_overflow(row, row & match, &sum);
        bool carry_2 = __builtin_add_overflow(sum, (uint64_t)carry, &sum);
        carry = carry_1 || carry_2;
        to[w] = sum | (row & ~match);
    }
    return !jobPoint(c, 1 + (unsigned)(t->words % PART) / WORDS_OF_ELEMENT);
}

static bool lengthIsOneMore(const lcsTable *t, size_t i, size_t j) {
    hotCheck(i > 0);
    hotCheck(j > 0);
    const uint64_t *row = t->rows + (i - 1) * t->words;
    return !(row[(j - 1) / 64] >> (j - 1) % 64 & 1);
}

/* On ERR_NO_MEMORY nothing has to be freed. The table of a job that nobody wants is an empty
 * one. */
static status tableBuild(const ctx *c, lcsTable *t) {
    t->words = (t->b.len + 63) / 64;
    t->len = 0;
    t->rows = NULL;
    if (t->a.len == 0 || t->words == 0) return OK;
    size_t count = t->whole ? t->a.len : 1;
    t->rows = memTryAlloc(count * t->words * sizeof(uint64_t));
    if (!t->rows) return ERR_NO_MEMORY;
    uint64_t *from = NULL, *to = t->rows;
    for (size_t i = 0; i < t->a.len; i++) {
        if (!nextRow(c, t, t->a.ptr[i], from, to)) return OK;
        from = to;
        if (t->whole) to += t->words;
    }
    for (size_t w = 0; w < t->words; w++) t->len += (size_t)__builtin_popcountll(~from[w]);
    return OK;
}

/* ------------------------------------------------------------------ replies */

/* jobPoint() of a loop in which `at` becomes less in steps of one or two. */
static bool tracePoint(const ctx *c, size_t at) {
    enum { STEPS = 512, POINTS = 32 };
    return unlikely(at % STEPS < 2) && jobPoint(c, POINTS);
}

static void replyRange(ctx *c, size_t from, size_t count) {
    hotCheck(count > 0);
    replyArray(c, 2);
    replyInteger(c, (int64_t)from);
    replyInteger(c, (int64_t)(from + count - 1));
}

static bool replyMatch(ctx *c, const lcsRequest *r, size_t a, size_t b, size_t count) {
    if (count == 0 || (int64_t)count < r->match_len_min) return false;
    replyArray(c, r->with_match_len ? 3 : 2);
    replyRange(c, a, count);
    replyRange(c, b, count);
    if (r->with_match_len) replyInteger(c, (int64_t)count);
    return true;
}

/* Replies the matching ranges, from the end to the start. */
static void replyIndexes(ctx *c, const lcsRequest *r, const lcsTable *t) {
    replyMap(c, 2);
    replyBulk(c, SLICE("matches"));
    respDeferred matches = respDeferBegin(c->out);
    int64_t match_count = 0;
    size_t i = t->a.len, j = t->b.len, run = 0; /* bytes matched from (i, j) on */
    for (size_t left = t->len; left > 0 && !tracePoint(c, i + j);) {
        if (t->a.ptr[i - 1] == t->b.ptr[j - 1]) {
            i--, j--, run++, left--;
            continue;
        }
        match_count += replyMatch(c, r, i, j, run);
        run = 0;
        if (lengthIsOneMore(t, i, j)) {
            i--;
        } else {
            j--;
        }
    }
    match_count += replyMatch(c, r, i, j, run);
    respDeferEnd(c->out, matches, '*', c->proto, match_count);
    replyBulk(c, SLICE("len"));
    replyInteger(c, (int64_t)t->len);
}

static status replySubsequence(ctx *c, const lcsTable *t) {
    blob *text = blobTryNew(t->len);
    if (!text) return ERR_NO_MEMORY;
    text->len = t->len;
    size_t i = t->a.len, j = t->b.len;
    for (size_t left = t->len; left > 0 && !tracePoint(c, i + j);) {
        if (t->a.ptr[i - 1] == t->b.ptr[j - 1]) {
            i--, j--;
            text->bytes[--left] = t->a.ptr[i];
        } else if (lengthIsOneMore(t, i, j)) {
            i--;
        } else {
            j--;
        }
    }
    respBulkBlob(c->out, text, 0, text->len);
    blobRelease(text);
    return OK;
}

/* ------------------------------------------------------------------ the command */

/* Looks up the texts of both keys. False: the error was replied. */
static bool findTexts(ctx *c, lcsRequest *r) {
    uint64_t hash[2] = {c->key_hash, storeHash(c->argv[2])};
    bool are_strings = true;
    for (int i = 0; i < 2; i++) {
        const robj *o = dbFindRead(c->db, c->argv[1 + i], hash[i], c->look);
        if (o && objectType(o) != TYPE_STRING) are_strings = false;
    }
    if (!are_strings) {
        replyError(c, SLICE("ERR The specified keys must contain string values"));
        return false;
    }
    /* The second lookup may delete the first key if it has expired, so the texts are read after
     * both lookups. */
    const robj *a = dbPeek(c->db, c->argv[1], hash[0]), *b = dbPeek(c->db, c->argv[2], hash[1]);
    r->a = a ? objectText(a, r->digits[0]) : SLICE("");
    r->b = b ? objectText(b, r->digits[1]) : SLICE("");
    return true;
}

/* Others may compress and expand the values while a job is suspended, unless they are too long. */
static void copyTexts(lcsRequest *r) {
    slice *texts[2] = {&r->a, &r->b};
    hotCheck(!r->copies[0]);
    for (int i = 0; i < 2; i++) {
        if (texts[i]->len > COMPRESSED_TEXT_MAX) continue;
        r->copies[i] = memDup(texts[i]->ptr, texts[i]->len);
        texts[i]->ptr = r->copies[i];
    }
}

/* False: the error was replied. */
static bool parseOptions(ctx *c, lcsRequest *r) {
    for (int i = 3; i < c->argc; i++) {
        if (ctxArgIs(c, i, "len")) {
            r->len = true;
        } else if (ctxArgIs(c, i, "idx")) {
            r->idx = true;
        } else if (ctxArgIs(c, i, "withmatchlen")) {
            r->with_match_len = true;
        } else if (ctxArgIs(c, i, "minmatchlen") && i + 1 < c->argc) {
            if (!ctxArgInt(c, ++i, &r->match_len_min)) return false;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    if (!r->len || !r->idx) return true;
    replyError(c, SLICE("ERR If you want both the length and indexes, please just use IDX."));
    return false;
}

/* Valkey's limit: the size of its table of 32-bit lengths. */
static bool isTooLarge(const lcsRequest *r) {
    size_t cells, bytes;
    return __builtin_mul_overflow(r->a.len + 1, r->b.len + 1, &cells) ||
           __builtin_mul_overflow(cells, sizeof(uint32_t), &bytes) ||
           bytes > (uint64_t)engineBulkMax();
}

static void replyLcs(ctx *c, const lcsRequest *r) {
    lcsTable t = {.a = r->a, .b = r->b, .whole = !r->len};
    status st = tableBuild(c, &t);
    if (st == OK && r->idx) {
        replyIndexes(c, r, &t);
    } else if (st == OK && r->len) {
        replyInteger(c, (int64_t)t.len);
    } else if (st == OK) {
        st = replySubsequence(c, &t);
    }
    if (st != OK)
        replyError(c, SLICE("ERR Insufficient memory, failed allocating transient memory for LCS"));
    memFree(t.rows);
}

/* LCS key key [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]. Reply: the subsequence; with LEN its
 * length; with IDX the matching ranges in both strings and the length. */
void lcsCommand(ctx *c) {
    lcsRequest r = {0};
    if (!findTexts(c, &r)) return;
    if (!parseOptions(c, &r)) return;
    if (isTooLarge(&r)) {
        replyError(c, SLICE("ERR Insufficient memory, transient memory for LCS exceeds "
                            "proto-max-bulk-len"));
        return;
    }
    if (jobStart(c, r.a.len * ((r.b.len + 63) / 64 + 1) / WORDS_OF_ELEMENT)) return;
    if (unlikely(c->flags & CTX_SLICED)) copyTexts(&r);
    replyLcs(c, &r);
    for (int i = 0; i < 2; i++) memFree(r.copies[i]);
}

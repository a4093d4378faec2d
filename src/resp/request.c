/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses requests that are RESP arrays from the caller's buffer, whole batches at a time, without
 * copying.
 *
 * There are two parsers. The fast one reads an array that is complete, small and in canonical form,
 * eight bytes at a time. It reports no errors: whatever it does not recognise it leaves to the slow
 * one, which can stop and resume at any byte and is the only one that detects protocol errors.
 *
 * Invariant: the state of the slow parser always belongs to the request at *pos, and no earlier
 * request of the same session is still to be executed; so a batch can be abandoned at any request
 * (requestPutBack). Cost: linear in the bytes, however they are split: an incomplete request that
 * is parsed again has at most REQUEST_KEEP_ARGS arguments and REQUEST_KEEP_LINE bytes of an
 * incomplete line. */
#include "resp/resp.h"

#include "base/bytes.h"
#include "base/number.h"
#include "resp/request_partial.h"

/* "*?\r\n$?\r\n": how most requests begin. */
#define HEAD_BYTES UINT64_C(0x0a0d00240a0d002a)
#define HEAD_MASK UINT64_C(0xffff00ffffff00ff)

/* Limit of an argument of a trusted sender, greater than any string. */
#define TRUSTED_BULK_MAX (INT64_C(1) << 40)

enum {
    UNAUTHENTICATED_ARGS_MAX = 10,
    UNAUTHENTICATED_BULK_MAX = 16384,
    CRLF = 0x0a0d, /* as read by loadU16() */
};

/* The fast parser reads 9 bytes starting at most 17 bytes after the end of the contents. */
_Static_assert(REQUEST_READ_SLACK >= 32, "the fast reader runs ahead");

/* ------------------------------------------------------------------ batches */

void requestBatchInit(requestBatch *b) {
    b->count = 0;
    b->pool_used = 0;
    b->owning = 0;
}

static bool poolHolds(const requestBatch *b, const slice *argv) {
    return argv >= b->pool && argv < b->pool + REQUEST_POOL_SLICES;
}

static void requestRelease(requestBatch *b, request *r) {
    for (int i = 0; i < r->large_count; i++) blobRelease(r->large[i].bytes);
    memFree(r->large);
    if (!poolHolds(b, r->argv)) memFree(r->argv);
}

void requestBatchClear(requestBatch *b) {
    if (unlikely(b->owning > 0)) {
        for (int i = 0; i < b->count; i++) requestRelease(b, &b->items[i]);
    }
    requestBatchInit(b);
}

size_t requestBatchMemory(const requestBatch *b) {
    hotCheck(b->owning <= b->count);
    size_t sum = 0;
    if (likely(b->owning == 0)) return 0;
    for (const request *r = b->items; r < b->items + b->count; r++) {
        for (int i = 0; i < r->large_count; i++) {
            const blob *bytes = r->large[i].bytes;
            if (bytes && !blobIsShared(bytes)) sum += blobMemory(bytes);
        }
    }
    return sum;
}

/* ------------------------------------------------------------------ the fast parser */

/* Parses three to six decimal digits in bytes 1..6 of `line`, followed by CR. Returns the number <<
 * 8 plus the place of the CR; 0 if there is anything else. */
NO_INLINE static uint64_t mediumLength(uint64_t line) {
    uint64_t x = line ^ 0x0d0d0d0d0d0d0d0dULL;
    uint64_t cr = (x - 0x0101010101010101ULL) & ~x & 0x8080808080808080ULL;
    unsigned place = cr ? (unsigned)__builtin_ctzll(cr) / 8 : 0;
    if (place < 4) return 0;
    if ((line >> 8 & 0xff) == '0') return 0;
    /* Shifts the digits to the upper end, so that the last digit is in the last place, with zeros
     * before them. */
    unsigned empty = 8 * (9 - place);
    uint64_t d = (line >> 8) << empty;
    d |= 0x3030303030303030ULL & (((uint64_t)1 << empty) - 1);
    uint64_t above = (d & 0xf0f0f0f0f0f0f0f0ULL) ^ 0x3030303030303030ULL;
    above |= ((d + 0x0606060606060606ULL) & 0xf0f0f0f0f0f0f0f0ULL) ^ 0x3030303030303030ULL;
    if (above) return 0;
    d = (d & 0x0f0f0f0f0f0f0f0fULL) * (10 * 256 + 1) >> 8;
    d = (d & 0x00ff00ff00ff00ffULL) * (100 * 65536 + 1) >> 16;
    d = (d & 0x0000ffff0000ffffULL) * (10000 * 4294967296ULL + 1) >> 32;
    return d << 8 | place;
}

/* Parses "<lead>digits\r\n" with one to six digits in canonical form; NULL for anything else, and
 * for three digits or more above `max`. One and two digits, by far the most frequent, cost one
 * comparison each. */
ALWAYS_INLINE const char *fastLength(const char *at, unsigned char lead, uint32_t max,
                                     uint32_t *value) {
    uint64_t line = loadU64(at);
    uint32_t ones = (uint32_t)(line >> 8 & 0xff) - '0';
    if ((line & 0xffff00ff) == (0x0a0d0000u | lead)) {
        *value = ones;
        return ones <= 9 ? at + 4 : NULL;
    }
    if ((line & 0xffff0000ffULL) == (0x0a0d000000ULL | lead)) {
        uint32_t tens = ones;
        ones = (uint32_t)(line >> 16 & 0xff) - '0';
        *value = tens * 10 + ones;
        if (tens - 1 > 8) return NULL;
        return ones <= 9 ? at + 5 : NULL;
    }
    if ((line & 0xff) != lead) return NULL;
    uint64_t found = mediumLength(line);
    if (found == 0 || found >> 8 > max) return NULL;
    *value = (uint32_t)(found >> 8);
    at += (found & 0xff) + 1;
    return *at == '\n' ? at + 1 : NULL;
}

/* Limits of the fast parser; they are at least FAST_LIMIT_MIN, so that numbers of one or two digits
 * need no check. */
enum { FAST_LIMIT_MIN = 99 };
typedef struct fastLimits {
    uint32_t args, bulk;
    const slice *pool_end; /* where the arguments must end */
} fastLimits;

/* Parses one array that is complete before `end`. Returns the address after it, NULL if the slow
 * parser has to try. */
ALWAYS_INLINE const char *fastRequest(const char *at, const char *end, slice *argv,
                                      const fastLimits *limits, uint32_t *argc) {
    uint32_t count, size;
    uint64_t head = loadU64(at);
    if (likely((head & HEAD_MASK) == HEAD_BYTES)) {
        count = (uint32_t)(head >> 8 & 0xff) - '0';
        size = (uint32_t)(head >> 40 & 0xff) - '0';
        if (unlikely(count - 1 > 8) || unlikely(size > 9)) return NULL;
        at += 8;
    } else {
        at = fastLength(at, '*', limits->args, &count);
        if (at == NULL || count == 0) return NULL;
        at = fastLength(at, '$', limits->bulk, &size);
        if (at == NULL) return NULL;
    }
    if (unlikely(argv + count > limits->pool_end)) return NULL;
    *argc = count;
    for (slice *arg = argv, *last = argv + count - 1;; arg++) {
        *arg = (slice){at, size};
        at += (size_t)size + 2;
        if (unlikely((uintptr_t)at > (uintptr_t)end)) return NULL;
        if (unlikely(loadU16(at - 2) != CRLF)) return NULL;
        if (arg == last) return at;
        at = fastLength(at, '$', limits->bulk, &size);
        if (at == NULL) return NULL;
    }
}

/* ------------------------------------------------------------------ the slow parser: arrays */

requestStep requestRefuse(requestInput *in, const char *text) {
    static const char before[] = "ERR Protocol error: ";
    size_t len = strlen(text);
    check(sizeof(before) - 1 + len < sizeof(in->error->text));
    memcpy(in->error->text, before, sizeof(before) - 1);
    memcpy(in->error->text + sizeof(before) - 1, text, len + 1);
    in->error->len = sizeof(before) - 1 + len;
    in->error->tls_hello = false;
    return STEP_BAD;
}

/* `got` may be any byte; one that would end the line is shown as a blank. */
static requestStep refuseByte(requestInput *in, char got) {
    requestRefuse(in, "expected '$', got '?'");
    bool ends_line = got == '\r' || got == '\n';
    in->error->text[in->error->len - 2] = ends_line ? ' ' : got;
    return STEP_BAD;
}

bool requestArgReserve(requestPartial *s) {
    hotCheck(s->arg_count <= s->arg_cap);
    if (s->arg_count < s->arg_cap) return true;
    int available = s->arg_cap < 32 ? 64 : s->arg_cap * 2;
    size_t size = (size_t)available * sizeof(slice);
    slice *args = s->args_owned ? memTryRealloc(s->args, size) : memTryAlloc(size);
    if (args == NULL) {
        s->failed = true;
        return false;
    }
    if (!s->args_owned) memcpy(args, s->args, (size_t)s->arg_count * sizeof(slice));
    s->args = args;
    s->arg_cap = available;
    s->args_owned = true;
    return true;
}

/* Finds the length line at `next`. STEP_DONE: the line ends at the CR at *cr, and the byte after it
 * has arrived. */
static requestStep findLine(requestInput *in, const char *too_big, size_t *cr) {
    requestPartial *s = in->state;
    size_t from = s->next + s->scanned;
    const char *found = memchr(in->start + from, '\r', in->len - from);
    if (found == NULL) {
        s->scanned = in->len - s->next;
        if (s->scanned > REQUEST_INLINE_MAX) return requestRefuse(in, too_big);
        return STEP_WAIT;
    }
    *cr = (size_t)(found - in->start);
    s->scanned = *cr - s->next;
    return *cr + 1 < in->len ? STEP_DONE : STEP_WAIT;
}

/* Moves past the line that ends at `cr` and parses its number, which must be in canonical form,
 * after the lead byte. */
static requestStep takeLine(requestInput *in, size_t cr, const char *bad_number, int64_t *value) {
    requestPartial *s = in->state;
    if (in->start[cr + 1] != '\n') return requestRefuse(in, "invalid CRLF in request");
    slice digits = sliceMake(in->start + s->next + 1, cr - s->next - 1);
    if (!numberParseInt(digits, value)) return requestRefuse(in, bad_number);
    return STEP_DONE;
}

static void skipLine(requestPartial *s, size_t cr) {
    hotCheck(cr >= s->next);
    s->next = cr + 2;
    s->scanned = 0;
}

static requestStep readHead(requestInput *in) {
    static const char bad[] = "invalid multibulk length";
    requestPartial *s = in->state;
    int64_t count = 0;
    size_t cr = 0;
    requestStep step = findLine(in, "too big mbulk count string", &cr);
    if (step != STEP_DONE) return step;
    step = takeLine(in, cr, bad, &count);
    if (step != STEP_DONE) return step;
    if (count > in->limits->multibulk_max) return requestRefuse(in, bad);
    if (count > UNAUTHENTICATED_ARGS_MAX && !in->limits->authenticated) {
        return requestRefuse(in, "unauthenticated multibulk length");
    }
    if (count > s->arg_cap && !s->args_owned && in->batch->count > 0) return STEP_FULL;
    skipLine(s, cr);
    if (count <= 0) return STEP_EMPTY;
    s->expected = (int32_t)count;
    return STEP_DONE;
}

static requestStep readLength(requestInput *in) {
    static const char bad[] = "invalid bulk length";
    requestPartial *s = in->state;
    int64_t size = 0;
    size_t cr = 0;
    requestStep step = findLine(in, "too big bulk count string", &cr);
    if (step != STEP_DONE) return step;
    if (in->start[s->next] != '$') return refuseByte(in, in->start[s->next]);
    step = takeLine(in, cr, bad, &size);
    if (step != STEP_DONE) return step;
    int64_t most = in->limits->trusted ? TRUSTED_BULK_MAX : in->limits->bulk_max;
    if (size < 0) return requestRefuse(in, bad);
    if (size > most) return requestRefuse(in, bad);
    if (size > UNAUTHENTICATED_BULK_MAX && !in->limits->authenticated) {
        return requestRefuse(in, "unauthenticated bulk length");
    }
    skipLine(s, cr);
    s->bulk = size;
    return STEP_DONE;
}

static void countFull(requestPartial *s, const requestLarge *l) {
    s->large_memory += blobMemory(l->bytes);
    s->large_bytes += l->bytes->len;
}

/* Reads an argument of known length: from the buffer, or from a block with only its CRLF in the
 * buffer. */
static requestStep readPayload(requestInput *in) {
    requestPartial *s = in->state;
    size_t inside = (size_t)s->bulk; /* bytes of it in the buffer */
    if (s->filling) {
        const blob *block = s->large[s->large_count - 1].bytes;
        if (block == NULL) return STEP_WAIT;
        if (block->len < inside) return STEP_WAIT;
        inside = 0;
    }
    if (in->len - s->next < inside + 2) return STEP_WAIT;
    if (loadU16(in->start + s->next + inside) != CRLF) {
        return requestRefuse(in, "invalid CRLF in request");
    }
    if (!requestArgReserve(s)) return STEP_WAIT;
    s->args[s->arg_count++] = (slice){(const char *)(uintptr_t)s->next, (size_t)s->bulk};
    s->next += inside + 2;
    s->bulk = -1;
    if (s->filling) countFull(s, &s->large[s->large_count - 1]);
    s->filling = false;
    return STEP_DONE;
}

static requestStep readArray(requestInput *in) {
    requestPartial *s = in->state;
    if (s->expected == 0) {
        requestStep step = readHead(in);
        if (step != STEP_DONE) return step;
    }
    while (s->arg_count < s->expected) {
        if (s->bulk < 0) {
            requestStep step = readLength(in);
            if (step != STEP_DONE) return step;
        }
        requestStep step = readPayload(in);
        if (step != STEP_DONE) return step;
    }
    return STEP_DONE;
}

/* ------------------------------------------------------------------ large arguments */

/* Overhead of a blob. The block sizes including header are powers of two, because the allocator
 * serves those without waste. */
enum { BLOB_OVERHEAD = offsetof(blob, bytes) + 1, LARGE_GROWTH = 8, LARGE_FAST = 128 * 1024 };
_Static_assert(REQUEST_LARGE_ARG > BLOB_OVERHEAD, "a block must have room");

/* Makes space for at least one more byte, after `arrived` bytes. A block has at most the announced
 * length: to announce a length costs little, and an argument is copied seldom while its block
 * grows. The first blocks have LARGE_GROWTH times what has arrived, those beyond LARGE_FAST twice.
 * An argument that two of the smallest blocks would hold gets one block from the start. */
static bool largeReserve(requestPartial *s, requestLarge *l, size_t arrived) {
    size_t announced = (size_t)s->bulk;
    blob *block = l->bytes;
    if (block == NULL && announced <= 2 * REQUEST_LARGE_ARG - BLOB_OVERHEAD) {
        block = blobTryNew(announced);
    } else if (block == NULL || block->len == block->cap) {
        size_t most = sizePowerOfTwo(arrived);
        most *= most < LARGE_FAST ? LARGE_GROWTH : 2;
        size_t room = sizeMin(announced, sizeMax(most, REQUEST_LARGE_ARG) - BLOB_OVERHEAD);
        block = block ? blobTryReserve(block, room) : blobTryNew(room);
    }
    if (block == NULL) {
        s->failed = true;
        return false;
    }
    l->bytes = block;
    return true;
}

static void largeFilled(requestPartial *s, blob *block, size_t n) {
    block->len += n;
    check(block->len <= (size_t)s->bulk);
    if (block->len == (size_t)s->bulk) block->bytes[block->len] = 0;
}

/* Starts a block for the argument at `next` and moves its bytes from the buffer into it. The block
 * is allocated with the first byte, so that announcing a length costs nothing. */
static NO_INLINE void openLarge(requestInput *in, size_t *len) {
    requestPartial *s = in->state;
    int n = s->large_count;
    if ((n & (n - 1)) == 0) { /* a power of two: the array is full */
        requestLarge *list = memTryRealloc(s->large, (n ? (size_t)n * 2 : 1) * sizeof(*list));
        if (list == NULL) {
            s->failed = true;
            return;
        }
        s->large = list;
    }
    requestLarge *l = &s->large[n];
    *l = (requestLarge){.arg = s->arg_count, .gap_at = s->next, .bytes = NULL};
    s->large_count++;
    s->filling = true;
    char *from = in->start + s->next;
    size_t there = in->len - s->next, moved = 0;
    size_t wanted = sizeMin(there, (size_t)s->bulk);
    /* NULL: what fits is tried instead */
    if (in->limits->trusted && s->bulk <= in->limits->bulk_max)
        l->bytes = blobTryNew((size_t)s->bulk);
    while (moved < wanted && largeReserve(s, l, wanted)) {
        size_t step = sizeMin(wanted - moved, l->bytes->cap - l->bytes->len);
        memcpy(l->bytes->bytes + l->bytes->len, from + moved, step);
        largeFilled(s, l->bytes, step);
        moved += step;
    }
    memmove(from, from + moved, there - moved); /* at most the CR, unless an allocation failed */
    *len -= moved;
}

char *requestParserTail(requestParser *p, size_t *cap) {
    requestPartial *s = p->partial;
    *cap = 0;
    if (requestParserMissing(p) == 0) return NULL;
    requestLarge *l = &s->large[s->large_count - 1];
    if (!largeReserve(s, l, l->bytes ? l->bytes->len : 0)) return NULL;
    *cap = sizeMin(l->bytes->cap - l->bytes->len, (size_t)s->bulk - l->bytes->len);
    return l->bytes->bytes + l->bytes->len;
}

size_t requestParserMissing(const requestParser *p) {
    const requestPartial *s = p->partial;
    if (s == NULL) return 0;
    if (s->failed) return 0;
    if (!s->filling) return 0;
    const blob *block = s->large[s->large_count - 1].bytes;
    return (size_t)s->bulk - (block ? block->len : 0);
}

void requestParserCommit(requestParser *p, size_t n) {
    check(n <= requestParserMissing(p));
    if (n == 0) return;
    requestPartial *s = p->partial;
    blob *block = s->large[s->large_count - 1].bytes;
    check(n <= block->cap - block->len);
    largeFilled(s, block, n);
}

/* ------------------------------------------------------------------ kept state */

size_t requestParserMemory(const requestParser *p) {
    const requestPartial *s = p->partial;
    if (s == NULL) return 0;
    size_t sum = memSizeOf(s) + s->large_memory;
    if (s->args_owned) sum += memSizeOf(s->args);
    if (s->large) sum += memSizeOf(s->large);
    if (s->filling && s->large[s->large_count - 1].bytes) {
        sum += blobMemory(s->large[s->large_count - 1].bytes);
    }
    return sum;
}

size_t requestParserRounding(const requestParser *p) {
    const requestPartial *s = p->partial;
    if (s == NULL) return 0;
    size_t sum = s->large_memory - s->large_bytes;
    const blob *open = s->filling ? s->large[s->large_count - 1].bytes : NULL;
    return sum + (open ? blobMemory(open) - open->cap : 0);
}

size_t requestParserBytes(const requestParser *p) {
    const requestPartial *s = p->partial;
    if (s == NULL) return 0;
    const blob *open = s->filling ? s->large[s->large_count - 1].bytes : NULL;
    return s->large_bytes + (open ? open->len : 0);
}

static void partialDrop(requestPartial *s) {
    for (int i = 0; i < s->large_count; i++) blobRelease(s->large[i].bytes);
    memFree(s->large);
    if (s->args_owned) memFree(s->args);
}

void requestParserClear(requestParser *p) {
    if (p->partial == NULL) return;
    partialDrop(p->partial);
    memFree(p->partial);
    p->partial = NULL;
}

/* True if parsing this request again from its start would cost too much, or is no longer
 * possible. */
static bool worthKeeping(const requestPartial *s, requestStep step) {
    if (s->failed) return true;
    if (step != STEP_WAIT) return false;
    if (s->filling) return true;
    return s->arg_count > REQUEST_KEEP_ARGS || s->scanned > REQUEST_KEEP_LINE;
}

/* Moves a parse state from the stack, whose arguments may be in the batch's pool, to a block of its
 * own. */
static void partialKeep(requestParser *p, const requestPartial *s) {
    hotCheck(!p->partial);
    requestPartial *kept = memNew(requestPartial);
    *kept = *s;
    if (!s->args_owned) {
        kept->args = NULL;
        kept->arg_cap = s->arg_count;
        kept->args_owned = true;
        if (s->arg_count > 0) {
            size_t size = (size_t)s->arg_count * sizeof(slice);
            kept->args = memAlloc(size); /* only arguments that have arrived, bounded by the pool */
            memcpy(kept->args, s->args, size);
        }
    }
    p->partial = kept;
}

void requestPutBack(requestParser *p, request *r) {
    if (r->large_count == 0) return;
    check(p->partial == NULL);
    requestPartial *s = memNew(requestPartial);
    *s = (requestPartial){.next = r->raw.len,
                          .args = r->argv,
                          .arg_count = r->argc,
                          .arg_cap = r->argc,
                          .args_owned = true,
                          .expected = r->argc,
                          .bulk = -1,
                          .large = r->large,
                          .large_count = r->large_count};
    for (int i = 0; i < r->argc; i++) {
        s->args[i].ptr = (const char *)((uintptr_t)s->args[i].ptr - (uintptr_t)r->raw.ptr);
    }
    for (int i = 0; i < r->large_count; i++) countFull(s, &r->large[i]);
    p->partial = s;
    r->argv = NULL;
    r->argc = 0;
    r->large = NULL;
    r->large_count = 0;
}

/* ------------------------------------------------------------------ parsing a batch */

/* Adds the complete request to the batch, which takes ownership of its arrays. */
static void finish(requestPartial *s, requestBatch *b, char *start) {
    for (int i = 0; i < s->arg_count; i++) {
        s->args[i].ptr = (const char *)((uintptr_t)start + (uintptr_t)s->args[i].ptr);
    }
    for (int i = 0; i < s->large_count; i++) {
        s->args[s->large[i].arg].ptr = s->large[i].bytes->bytes;
    }
    request *r = &b->items[b->count++];
    r->argv = s->args;
    r->argc = s->arg_count;
    r->large_count = s->large_count;
    r->large = s->large;
    r->raw = sliceMake(start, s->expected ? s->next : 0);
    if (s->args_owned) {
        b->owning++;
    } else {
        b->pool_used += s->arg_count;
    }
}

/* Parses the request at *pos as far as possible. `fresh`: this call has not added a request yet. */
static requestStep slowRequest(requestParser *p, char *buf, size_t *len, size_t *pos,
                               const requestLimits *limits, requestBatch *batch, bool fresh,
                               requestError *error) {
    requestPartial local, *s = p->partial;
    if (s == NULL) {
        s = &local;
        *s = (requestPartial){.args = batch->pool + batch->pool_used,
                              .arg_cap = REQUEST_POOL_SLICES - batch->pool_used,
                              .bulk = -1};
    }
    requestInput in = {s, buf + *pos, *len - *pos, limits, batch, error};
    requestStep step = STEP_WAIT;
    if (!s->failed) step = *in.start == '*' ? readArray(&in) : requestReadInline(&in);
    if (step == STEP_WAIT && fresh && !s->filling && s->bulk >= REQUEST_LARGE_ARG) {
        openLarge(&in, len);
    }
    if (s->failed) step = requestRefuse(&in, "out of memory");
    if (step == STEP_DONE || step == STEP_EMPTY) {
        if (step == STEP_DONE) finish(s, batch, in.start);
        *pos += s->next;
        if (step == STEP_DONE) batch->items[batch->count - 1].raw_end = *pos;
        if (step == STEP_EMPTY) partialDrop(s);
        if (s != &local) memFree(s);
        p->partial = NULL;
    } else if (s == &local) {
        if (fresh && worthKeeping(s, step)) {
            partialKeep(p, s);
        } else {
            partialDrop(s);
        }
    }
    return step;
}

/* Parses requests from offset `pos` with the fast parser, until it does not recognise one or the
 * batch has `max`. Returns the offset after them. */
static size_t parseUsual(requestBatch *batch, const char *buf, size_t pos, size_t len,
                         const fastLimits *limits, int max) {
    hotCheck(pos <= len);
    hotCheck(max >= batch->count);
    const char *at = buf + pos, *end = buf + len;
    slice *argv = batch->pool + batch->pool_used;
    request *r = &batch->items[batch->count], *last = &batch->items[max];
    for (; at < end && r < last; r++) {
        uint32_t argc;
        const char *next = fastRequest(at, end, argv, limits, &argc);
        if (unlikely(next == NULL)) break;
        r->argv = argv;
        r->argc = (int)argc;
        r->large_count = 0;
        r->large = NULL;
        r->raw = (slice){at, (size_t)(next - at)};
        r->raw_end = (size_t)(next - buf);
        argv += argc;
        at = next;
    }
    batch->count = (int)(r - batch->items);
    batch->pool_used = (int)(argv - batch->pool);
    return (size_t)(at - buf);
}

requestStatus requestParse(requestParser *p, char *buf, size_t *len, size_t *pos,
                           const requestLimits *limits, requestBatch *batch, int max,
                           requestError *error) {
    check(max <= REQUEST_BATCH_MAX);
    const int before = batch->count;
    const fastLimits fast = {
        .args = (uint32_t)sizeMin((size_t)limits->multibulk_max, REQUEST_POOL_SLICES),
        .bulk = (uint32_t)sizeMin((size_t)limits->bulk_max, UINT32_MAX),
        .pool_end = batch->pool + REQUEST_POOL_SLICES};
    bool may_be_fast =
        limits->authenticated && fast.args >= FAST_LIMIT_MIN && fast.bulk >= FAST_LIMIT_MIN;
    while (*pos < *len) {
        if (likely(p->partial == NULL) && likely(may_be_fast)) {
            *pos = parseUsual(batch, buf, *pos, *len, &fast, max);
            if (*pos >= *len) break;
        }
        if (batch->count >= max) return REQUEST_BATCH_FULL;
        bool fresh = batch->count == before;
        switch (slowRequest(p, buf, len, pos, limits, batch, fresh, error)) {
        case STEP_WAIT: return REQUEST_NEED_MORE;
        case STEP_FULL: return REQUEST_BATCH_FULL;
        case STEP_BAD: return REQUEST_BAD;
        default: break;
        }
    }
    return REQUEST_NEED_MORE;
}

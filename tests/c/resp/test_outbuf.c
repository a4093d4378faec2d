/* SPDX-License-Identifier: BSD-3-Clause
 *
 * outbuf against a model: one flat run of bytes, whatever the blocks do; and the truth about
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "resp/outblock.h"
#include "resp/outbuf_drop.h"

enum { MODEL_MAX = 4 * 1024 * 1024 };

/* What should be pending. */
typedef struct model {
    char *bytes;
    size_t at, end;
} model;

static uint64_t random_state;
static size_t randomBelow(size_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % n);
}

static void modelAppend(model *m, const char *bytes, size_t len) {
    assert_true(m->end + len <= MODEL_MAX);
    memcpy(m->bytes + m->end, bytes, len);
    m->end += len;
}

/* The chain itself says what it takes and holds. */
static void checkChain(const outbuf *o, size_t pending) {
    size_t memory = 0, blocks = 0;
    for (const outblock *b = o->first; b; b = b->next) {
        memory += b->size + b->lent_len;
        blocks++;
    }
    for (const outblock *b = o->spent; b; b = b->next) memory += b->size + b->lent_len;
    assert_int_equal(outbufMemory(o), memory);
    assert_int_equal(outbufBlocks(o), blocks);
    assert_int_equal(outbufPending(o), pending);
    if (pending == 0) {
        assert_null(o->first);
        assert_null(o->last);
        assert_null(o->at);
    }
}

static void checkModel(const outbuf *o, const model *m) {
    size_t pending = m->end - m->at, len;
    checkChain(o, pending);
    char *copy = outbufCopy(o, &len);
    assert_int_equal(len, pending);
    assert_memory_equal(copy, m->bytes + m->at, len);
    assert_int_equal(copy[len], 0);
    memFree(copy);
}

/* What a writev would send, in at most `max` pieces; returns how much that is. */
static size_t checkIovecs(const outbuf *o, const model *m, int max) {
    struct iovec iov[64];
    int count = outbufIovecs(o, iov, max);
    assert_in_range(count, 0, max);
    size_t sent = 0;
    for (int i = 0; i < count; i++) {
        assert_true(iov[i].iov_len > 0);
        assert_true(sent + iov[i].iov_len <= m->end - m->at);
        assert_memory_equal(iov[i].iov_base, m->bytes + m->at + sent, iov[i].iov_len);
        sent += iov[i].iov_len;
    }
    if (count < max) assert_int_equal(sent, m->end - m->at);
    return sent;
}

static void appendRandom(outbuf *o, model *m, const char *source) {
    static const size_t usual[] = {1, 5, 20, 100, 1000, OUTBLOCK_SIZE, 3 * OUTBLOCK_SIZE + 7};
    size_t len = randomBelow(usual[randomBelow(7)] + 1);
    const char *from = source + randomBelow(1000);
    if (randomBelow(3) == 0 && outbufReserve(o, 24)) {
        memcpy(o->at, from, 24);
        o->at += 24;
        modelAppend(m, from, 24);
    }
    outbufAppend(o, from, len);
    modelAppend(m, from, len);
}

static void appendRandomBlob(outbuf *o, model *m, const char *source) {
    blob *b = blobNew(2000);
    memcpy(b->bytes, source, 2000);
    b->len = 2000;
    size_t offset = randomBelow(2001), len = randomBelow(2001 - offset);
    outbufAppendBlob(o, b, offset, len);
    assert_int_equal(b->refs, len > 0 ? 2 : 1);
    modelAppend(m, b->bytes + offset, len);
    blobRelease(b);
}

/* Parts of a shared blob, most of them continuing the previous one; the blob is replaced when it is
 * full. */
static blob *shared_blob;
static void appendRandomShared(outbuf *o, model *m, const char *source) {
    size_t len = randomBelow(randomBelow(4) ? 60 : 500) + 1;
    if (!shared_blob || shared_blob->cap - shared_blob->len < len) {
        blobRelease(shared_blob);
        shared_blob = blobNew(1000);
    }
    size_t at = shared_blob->len;
    memcpy(shared_blob->bytes + at, source + randomBelow(1000), len);
    shared_blob->len += len;
    if (randomBelow(5) == 0) return; /* not for this output */
    outbufAppendShared(o, shared_blob, at, len);
    modelAppend(m, shared_blob->bytes + at, len);
}

static void consumeRandom(outbuf *o, model *m) {
    size_t sent = checkIovecs(o, m, (int)randomBelow(64) + 1);
    size_t n = randomBelow(3) ? randomBelow(sent + 1) : sent;
    outbufConsume(o, n);
    m->at += n;
    if (randomBelow(2)) outbufReap(o);
}

/* An answer that turned into another. */
static void takeBack(outbuf *o, model *m, const char *source) {
    outmark mark = outbufMark(o);
    size_t end = m->end;
    for (size_t i = randomBelow(4); i > 0; i--) {
        appendRandom(o, m, source);
        if (randomBelow(2)) appendRandomBlob(o, m, source);
    }
    outbufCutTo(o, mark);
    m->end = end;
}

static void moveRandom(outbuf *o, model *m, const char *source) {
    outbuf other;
    model more = {m->bytes + m->end, 0, 0};
    outbufInit(&other);
    for (size_t i = randomBelow(4); i > 0; i--) {
        appendRandom(&other, &more, source);
        if (randomBelow(3) == 0) appendRandomBlob(&other, &more, source);
    }
    if (randomBelow(2)) {
        size_t n = randomBelow(more.end + 1);
        outbufConsume(&other, n);
        memmove(more.bytes, more.bytes + n, more.end - n);
        more.end -= n;
    }
    outbufMoveAll(o, &other);
    m->end += more.end;
    outbufReap(&other);
    checkChain(&other, 0);
    assert_int_equal(outbufMemory(&other), 0);
    outbufClear(&other);
}

static void beDeaf(outbuf *o, const char *source) {
    outbuf other;
    outbufInit(&other);
    outbufAppend(&other, source, randomBelow(2000));
    outmark mark = outbufMark(o);
    outbufSetNullSink(o, true);
    size_t memory = outbufMemory(o);
    blob *b = blobNew(10);
    b->len = 10;
    outbufAppend(o, source, randomBelow(1000));
    outbufAppendBlob(o, b, 0, 10);
    assert_int_equal(b->refs, 1);
    assert_false(outbufReserve(o, 10));
    outbufMoveAll(o, &other);
    assert_int_equal(outbufMemory(&other), 0);
    outbufCutTo(o, mark);
    assert_int_equal(outbufPending(o), mark.at);
    assert_int_equal(outbufMemory(o), memory);
    outbufSetNullSink(o, false);
    blobRelease(b);
}

static void all_operations_keep_the_bytes_in_order(void **state) {
    char *source = malloc(200000);
    for (size_t i = 0; i < 200000; i++) source[i] = (char)(i * 7 + i / 251);
    random_state = (uint64_t)time(NULL) | 1;
    print_message("seed %llu\n", (unsigned long long)random_state);
    size_t used = memUsed();
    model m = {malloc(MODEL_MAX), 0, 0};
    for (int round = 0; round < 300; round++) {
        outbuf o;
        outbufInit(&o);
        m.at = m.end = 0;
        for (int i = 0; i < 60; i++) {
            switch (randomBelow(9)) {
            case 0:
            case 1:
            case 2: appendRandom(&o, &m, source); break;
            case 3:
                if (randomBelow(2)) {
                    appendRandomBlob(&o, &m, source);
                } else {
                    for (size_t k = randomBelow(6); k > 0; k--) appendRandomShared(&o, &m, source);
                }
                break;
            case 4: takeBack(&o, &m, source); break;
            case 5: moveRandom(&o, &m, source); break;
            case 6: beDeaf(&o, source); break;
            default: consumeRandom(&o, &m); break;
            }
            checkModel(&o, &m);
        }
        if (randomBelow(2)) {
            while (outbufPending(&o) > 0) consumeRandom(&o, &m);
            outbufReap(&o);
            assert_int_equal(outbufMemory(&o), 0);
        }
        outbufClear(&o);
        checkChain(&o, 0);
    }
    blobRelease(shared_blob);
    shared_blob = NULL;
    outbufPoolTrim();
    assert_int_equal(memUsed(), used);
    free(m.bytes);
    free(source);
}

static void an_idle_outbuf_owns_nothing(void **state) {
    outbuf o;
    outbufInit(&o);
    assert_int_equal(outbufMemory(&o), 0);
    assert_int_equal(outbufBlocks(&o), 0);
    outbufAppend(&o, "", 0);
    assert_int_equal(outbufMemory(&o), 0);
    outbufAppend(&o, "abc", 3);
    assert_int_equal(outbufMemory(&o), OUTBLOCK_SIZE);
    outbufConsume(&o, 2);
    assert_int_equal(outbufMemory(&o), OUTBLOCK_SIZE);
    outbufConsume(&o, 1);
    checkChain(&o, 0);
    assert_int_equal(outbufMemory(&o), 0);
    outbufConsume(&o, 0);
    outbufClear(&o);
    outbufPoolTrim();
}

static void memory_is_what_the_allocator_gave(void **state) {
    static char bytes[100000];
    outbufPoolTrim();
    size_t used = memUsed();
    outbuf o;
    outbufInit(&o);
    outbufAppend(&o, bytes, sizeof(bytes));
    size_t took = memUsed() - used;
    assert_in_range(took, outbufMemory(&o), outbufMemory(&o) + outbufBlocks(&o) * 64);
    outbufConsume(&o, sizeof(bytes) / 2);
    outbufPoolTrim();
    took = memUsed() - used;
    assert_in_range(took, outbufMemory(&o), outbufMemory(&o) + outbufBlocks(&o) * 64);
    outbufClear(&o);
    outbufPoolTrim();
    assert_int_equal(memUsed(), used);
}

static void a_borrowed_blob_lives_until_it_is_reaped(void **state) {
    blob *b = blobNew(1000);
    b->len = 1000;
    memset(b->bytes, 'b', 1000);
    outbuf o;
    struct iovec iov[8];
    outbufInit(&o);
    outbufAppend(&o, "<", 1);
    outbufAppendBlob(&o, b, 100, 800);
    outbufAppend(&o, ">", 1);
    assert_int_equal(b->refs, 2);
    assert_int_equal(outbufPending(&o), 802);
    assert_int_equal(outbufMemory(&o), OUTBLOCK_SIZE + OUTBLOCK_SMALL_SIZE + 800);
    assert_int_equal(outbufIovecs(&o, iov, 8), 3);
    assert_ptr_equal(iov[1].iov_base, b->bytes + 100);
    assert_int_equal(iov[1].iov_len, 800);
    assert_int_equal(outbufIovecs(&o, iov, 2), 2);
    outbufConsume(&o, 401);
    assert_int_equal(outbufIovecs(&o, iov, 8), 2);
    assert_ptr_equal(iov[0].iov_base, b->bytes + 500);
    assert_int_equal(iov[0].iov_len, 400);
    outbufConsume(&o, 401);
    checkChain(&o, 0);
    assert_int_equal(b->refs, 2); /* a thread that only writes leaves the count alone */
    assert_int_equal(outbufMemory(&o), OUTBLOCK_SMALL_SIZE + 800);
    outbufReap(&o);
    assert_int_equal(b->refs, 1);
    assert_int_equal(outbufMemory(&o), 0);
    outbufAppendBlob(&o, b, 0, 10);
    outbufClear(&o);
    assert_int_equal(b->refs, 1);
    blobRelease(b);
    outbufPoolTrim();
}

static void shared_parts_that_continue_need_one_block_and_count_no_bytes(void **state) {
    blob *b = blobNew(10000);
    outbuf first, second;
    struct iovec iov[8];
    outbufInit(&first);
    outbufInit(&second);
    for (int i = 0; i < 10; i++) {
        memset(b->bytes + b->len, 'a' + i, 900);
        b->len += 900;
        outbufAppendShared(&first, b, b->len - 900, 900);
        if (i % 2) outbufAppendShared(&second, b, b->len - 900, 900);
    }
    assert_int_equal(b->refs, 1 + 1 + 5);
    assert_int_equal(outbufPending(&first), 9000);
    assert_int_equal(outbufMemory(&first), OUTBLOCK_SHARED_SIZE);
    assert_int_equal(outbufIovecs(&first, iov, 8), 1);
    assert_int_equal(iov[0].iov_len, 9000);
    assert_int_equal(outbufIovecs(&second, iov, 8), 5);
    assert_int_equal(outbufMemory(&second), 5 * OUTBLOCK_SHARED_SIZE);
    outbufConsume(&first, 5000);
    outbufAppendShared(&first, b, 0, 100); /* does not continue */
    assert_int_equal(outbufIovecs(&first, iov, 8), 2);
    assert_int_equal(outbufPending(&first), 4100);
    outbufClear(&first);
    outbufClear(&second);
    assert_int_equal(b->refs, 1);
    blobRelease(b);
    outbufPoolTrim();
}

static void a_dropped_output_is_freed_in_parts(void **state) {
    (void)state;
    enum { LENT = 10, BLOB_BYTES = 300 * 1024 };
    static char bytes[4 * 1024 * 1024];
    blob *b = blobNew(BLOB_BYTES);
    b->len = BLOB_BYTES;
    memset(b->bytes, 'b', BLOB_BYTES);
    outbuf o, small;
    outbufInit(&o);
    outbufInit(&small);
    outbufAppend(&small, bytes, 1000);
    outbufDrop(&small);
    assert_int_equal(small.memory, 0);
    assert_false(outbufFreeDropped(1)); /* it was freed at once */
    size_t start = memUsed();
    outbufAppend(&o, bytes, sizeof(bytes));
    for (int i = 0; i < LENT; i++) outbufAppendBlob(&o, b, 0, BLOB_BYTES);
    outbufConsume(&o, 1000);
    outbufDrop(&o);
    assert_int_equal(outbufPending(&o), 0);
    assert_int_equal(o.memory, 0);
    assert_null(o.first);
    assert_int_equal(b->refs, 1 + LENT);
    int parts = 0;
    for (size_t used = memUsed(); outbufFreeDropped(1024 * 1024); parts++, used = memUsed())
        assert_in_range(used - memUsed(), 0, 1100 * 1024);
    assert_in_range(parts, 5, 12); /* in the hostile build blocks are small, and more of them */
    assert_int_equal(b->refs, 1);
    (void)outbufPoolTrim();
    assert_true(memUsed() <= start);
    outbufAppend(&o, bytes, 10); /* as new */
    outbufClear(&o);
    (void)outbufPoolTrim();
    blobRelease(b);
}

static void the_pool_is_bounded_and_ages(void **state) {
    static char bytes[OUTBLOCK_SIZE * 100];
    outbuf o;
    outbufPoolTrim();
    outbufInit(&o);
    outbufAppend(&o, bytes, sizeof(bytes));
    outbufClear(&o);
    assert_int_equal(outbufPoolAge(), 0); /* all were in use since the last time */
    outbufAppend(&o, bytes, 1);
    outbufClear(&o);
    size_t all = (size_t)OUTBLOCK_POOL_MAX * OUTBLOCK_SIZE,
           one = OUTBLOCK_POOL_MAX ? OUTBLOCK_SIZE : 0;
    assert_int_equal(outbufPoolAge(), all - one);
    assert_int_equal(outbufPoolTrim(), one);
    assert_int_equal(outbufPoolTrim(), 0);
}

int test_outbuf(void);
int test_outbuf(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_operations_keep_the_bytes_in_order),
        cmocka_unit_test(an_idle_outbuf_owns_nothing),
        cmocka_unit_test(memory_is_what_the_allocator_gave),
        cmocka_unit_test(a_dropped_output_is_freed_in_parts),
        cmocka_unit_test(a_borrowed_blob_lives_until_it_is_reaped),
        cmocka_unit_test(shared_parts_that_continue_need_one_block_and_count_no_bytes),
        cmocka_unit_test(the_pool_is_bounded_and_ages),
    };
    return cmocka_run_group_tests_name("outbuf", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The backlog against a model: byte number n of the stream is a function of n. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"
#include "psync/backlog.h"

static char byteAt(int64_t number) { return (char)((uint64_t)number * 0x9e3779b97f4a7c15u >> 56); }

static void append(replBacklog *b, size_t len) {
    char *bytes = memAlloc(len + 1);
    for (size_t i = 0; i < len; i++) bytes[i] = byteAt(b->next + (int64_t)i);
    size_t half = len / 2;
    const slice spans[] = {sliceMake(bytes, half), sliceMake(bytes + half, len - half)};
    backlogAppend(b, spans, 2);
    memFree(bytes);
}

/* Reads and compares at most `most` bytes; returns their number. */
static size_t readSome(replBacklog *b, backlogPosition *p, size_t most) {
    blob *bytes;
    size_t at;
    int64_t from = p->next;
    size_t n = backlogRead(b, p, most, &bytes, &at);
    assert_true(n <= most);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(bytes->bytes[at + i], byteAt(from + (int64_t)i));
    assert_int_equal(p->next, from + (int64_t)n);
    return n;
}

static void only_the_limit_is_kept(void **state) {
    (void)state;
    replBacklog b;
    backlogInit(&b, 1, 100000);
    assert_true(backlogHas(&b, 1));
    assert_false(backlogHas(&b, 2));
    assert_int_equal(backlogLength(&b), 0);
    for (int i = 0; i < 1000; i++) append(&b, 997);
    assert_int_equal(b.next, 997001);
    assert_in_range(backlogLength(&b), 100000, 100000 + 32 * 1024);
    assert_false(backlogHas(&b, b.first - 1));
    assert_in_range(b.memory, 100000, 140000);
    backlogSetLimit(&b, 20000);
    assert_in_range(backlogLength(&b), 20000, 20000 + 16 * 1024);
    backlogClear(&b);
}

static void a_position_keeps_what_it_needs(void **state) {
    (void)state;
    replBacklog b;
    backlogPosition slow = {0};
    backlogInit(&b, 5000, 16384);
    backlogOpen(&b, &slow, 5000);
    for (int i = 0; i < 1000; i++) append(&b, 1000);
    int64_t blocks;
    assert_int_equal(backlogHeld(&b, &slow, &blocks), 1000000);
    assert_int_equal(blocks, (int64_t)b.blocks.count);
    while (slow.next < b.next) assert_true(readSome(&b, &slow, 60000) > 0);
    assert_int_equal(readSome(&b, &slow, 60000), 0);
    assert_in_range(backlogLength(&b), 16384, 16384 + 64 * 1024);
    append(&b, 5);
    assert_int_equal(readSome(&b, &slow, 100), 5);
    backlogClose(&b, &slow);
    backlogClear(&b);
}

/* What an output has retained uses memory until it was sent, though no position is in its block any
 * more. */
static void blocks_that_outputs_refer_to_count(void **state) {
    (void)state;
    replBacklog b;
    backlogPosition reader = {0};
    blob *sent[64];
    size_t count = 0, at;
    backlogInit(&b, 1, 16384);
    backlogOpen(&b, &reader, 1);
    for (int i = 0; i < 500; i++) append(&b, 1000);
    while (reader.next < b.next) {
        assert_true(backlogRead(&b, &reader, 60000, &sent[count], &at) > 0);
        blobRetain(sent[count++]);
    }
    assert_in_range(backlogLength(&b), 16384, 16384 + 64 * 1024);
    assert_in_range(b.memory, 500000, 600000);
    for (size_t i = 0; i + 1 < count; i++) blobRelease(sent[i]);
    backlogReclaim(&b);
    assert_in_range(b.memory, 16384, 16384 + 80 * 1024);
    backlogClose(&b, &reader);
    backlogClear(&b);
    assert_int_equal(b.memory, 0);
    assert_false(blobIsShared(sent[count - 1])); /* it outlives the backlog */
    blobRelease(sent[count - 1]);
}

static void the_tail_can_be_copied(void **state) {
    (void)state;
    replBacklog b;
    backlogInit(&b, 1, 100000);
    char tail[40000];
    assert_int_equal(backlogTail(&b, tail, sizeof(tail)), 0);
    append(&b, 100);
    assert_int_equal(backlogTail(&b, tail, sizeof(tail)), 100);
    append(&b, 60000);
    assert_int_equal(backlogTail(&b, tail, sizeof(tail)), sizeof(tail));
    for (size_t i = 0; i < sizeof(tail); i++)
        assert_int_equal(tail[i], byteAt(b.next - (int64_t)sizeof(tail) + (int64_t)i));
    backlogClear(&b);
}

enum { READERS = 4 };

static void moveReader(replBacklog *b, backlogPosition *p) {
    if (!p->block) {
        backlogOpen(b, p, b->first + (int64_t)randomUniform((uint64_t)backlogLength(b) + 1));
    } else if (randomUniform(8) == 0) {
        backlogClose(b, p);
    } else {
        (void)readSome(b, p, randomUniform(20000));
    }
}

static void random_readers_see_every_byte_once(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        replBacklog b;
        backlogPosition readers[READERS] = {0};
        backlogInit(&b, (int64_t)randomUniform(1000), 16384 << randomUniform(4));
        for (int step = 0; step < 200; step++) {
            append(&b, randomUniform(randomUniform(10) ? 300 : 50000));
            moveReader(&b, &readers[randomUniform(READERS)]);
            if (randomUniform(50) == 0) backlogSetLimit(&b, 16384 << randomUniform(4));
            for (int i = 0; i < READERS; i++)
                if (readers[i].block) assert_true(backlogHas(&b, readers[i].next));
        }
        for (int i = 0; i < READERS; i++) backlogClose(&b, &readers[i]);
        backlogClear(&b);
    }
}

int test_backlog(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_limit_is_kept),
        cmocka_unit_test(a_position_keeps_what_it_needs),
        cmocka_unit_test(blocks_that_outputs_refer_to_count),
        cmocka_unit_test(the_tail_can_be_copied),
        cmocka_unit_test(random_readers_see_every_byte_once),
    };
    return cmocka_run_group_tests_name("backlog", tests, NULL, NULL);
}

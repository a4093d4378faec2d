/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of a snapshot with a disk that fails or is slow, receivers that stop, and
 * cancellation. */
#define _GNU_SOURCE
#include "persist_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/sys.h"

/* ------------------------------------------------------------------ a disk */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool holds;    /* write() waits */
    int waiting;   /* calls that do */
    int countdown; /* calls of any kind until one fails; -1: none does */
    int calls;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .countdown = -1};

/* True if this call fails. */
static bool fails(void) {
    pthread_mutex_lock(&disk.lock);
    disk.waiting++;
    while (disk.holds) pthread_cond_wait(&disk.changed, &disk.lock);
    disk.waiting--;
    disk.calls++;
    bool fail = disk.countdown == 0;
    if (disk.countdown >= 0) disk.countdown--;
    pthread_mutex_unlock(&disk.lock);
    if (fail) errno = ENOSPC;
    return fail;
}

static void hold(bool on) {
    pthread_mutex_lock(&disk.lock);
    disk.holds = on;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static ssize_t diskWrite(int fd, const void *src, size_t len) {
    return fails() ? -1 : write(fd, src, len);
}
static int diskSync(int fd) { return fails() ? -1 : fsync(fd); }
static int diskRename(const char *from, const char *to) { return fails() ? -1 : rename(from, to); }

static int useDisk(void **state) {
    static const sysCalls calls = {.write = diskWrite, .fsync = diskSync, .rename = diskRename};
    sysCallsSet(&calls);
    disk.countdown = -1;
    return testEnter(state);
}

static int leaveDisk(void **state) {
    sysCallsSet(NULL);
    return testLeave(state);
}

/* ------------------------------------------------------------------ */

static void writeRecords(snapshotStream *s, int count) {
    char record[1000];
    for (int i = 0; i < count; i++) {
        for (size_t at = 0; at < sizeof(record); at += 8) {
            uint64_t r = randomNext();
            memcpy(record + at, &r, 8);
        }
        rdbWriteString(snapshotStreamWriter(s), sliceMake(record, sizeof(record)));
    }
}

static snapshotStream *start(const snapshotStreamOptions *options) {
    snapshotStream *s;
    reason why;
    assert_int_equal(snapshotStreamNew(options, &s, &why), OK);
    return s;
}

static snapshotStreamState saveThousandRecords(reason *why) {
    snapshotStreamOptions options = testOptions();
    options.sync_bytes = 200000;
    snapshotStream *s = start(&options);
    writeRecords(s, 1000);
    snapshotStreamEnd(s);
    snapshotStreamState state = testAwaitEnd(s, why);
    snapshotStreamFree(s);
    assert_false(testFileExists("temp.rdb"));
    return state;
}

static void every_failing_call_ends_the_stream_and_removes_the_file(void **state) {
    (void)state;
    reason why;
    disk.calls = 0;
    assert_int_equal(saveThousandRecords(&why), SNAPSHOT_STREAM_DONE);
    int calls = disk.calls;
    assert_true(calls > 15);
    unlink("out.rdb");
    for (int i = 0; i < calls; i++) {
        disk.countdown = i;
        assert_int_equal(saveThousandRecords(&why), SNAPSHOT_STREAM_FAILED);
        assert_non_null(strstr(why.text, "No space left on device"));
        /* The last call flushes the folder, with the file in it. */
        assert_int_equal(testFileExists("out.rdb"), i == calls - 1);
        unlink("out.rdb");
    }
    disk.countdown = -1;
}

static void a_folder_that_does_not_exist_is_a_failure(void **state) {
    (void)state;
    reason why;
    snapshotStreamOptions options = testOptions();
    options.temporary = "missing/temp.rdb";
    snapshotStream *s = start(&options);
    assert_int_equal(testAwaitEnd(s, &why), SNAPSHOT_STREAM_FAILED);
    assert_non_null(strstr(why.text, "missing/temp.rdb"));
    snapshotStreamFree(s);
}

static void the_writer_fails_after_the_worker_has_failed(void **state) {
    (void)state;
    reason why;
    snapshotStreamOptions options = testOptions();
    disk.countdown = 0;
    snapshotStream *s = start(&options);
    writeRecords(s, 200);
    assert_int_equal(testAwaitEnd(s, &why), SNAPSHOT_STREAM_FAILED);
    disk.countdown = -1;
    blob *b = blobNew(100 * 1024);
    b->len = b->cap;
    rdbWriter *w = snapshotStreamWriter(s);
    char bytes[1000] = {0};
    for (int i = 0; i < 1000; i++) {
        rdbWriteBytes(w, bytes, sizeof(bytes));
        writeRecords(s, 1);
        rdbWriteShared(w, b);
    }
    assert_int_equal(rdbWriterStatus(w), ERR_IO);
    assert_string_equal(w->why.text, why.text);
    assert_true(snapshotStreamCount(s).memory < 6 * 1024 * 1024);
    snapshotStreamFree(s);
    assert_false(blobIsShared(b));
    blobRelease(b);
}

/* Of records of 1000 bytes: what the fixed memory may be exceeded by, and by how much a thousand
 * more exceed it. */
#ifdef HOSTILE_BUILD
/* They are copied as long strings, two for each block: six copies when the three blocks are full,
 * then 500 blocks, less what the worker encodes before its first write. */
enum { FULL_EXCESS_MAX = 6 * 1000, MORE_EXCESS_MIN = 30000 * 1000, MORE_EXCESS_MAX = 35000 * 1000 };
#else
enum { FULL_EXCESS_MAX = 0, MORE_EXCESS_MIN = 900 * 1000, MORE_EXCESS_MAX = 2000 * 1000 };
#endif

static void a_disk_that_stands_still_stops_the_producer_within_the_bound(void **state) {
    (void)state;
    reason why;
    snapshotStreamOptions options = testOptions();
    hold(true);
    snapshotStream *s = start(&options);
    size_t bytes = 0;
    for (; snapshotStreamRoom(s) > 0; bytes += 1000) writeRecords(s, 1);
    assert_in_range(snapshotStreamExcess(s), 0, FULL_EXCESS_MAX);
    assert_true(snapshotStreamCount(s).memory <= 4 * 1024 * 1024);
    /* What must be written at once is written, and counted. */
    writeRecords(s, 1000);
    bytes += 1000 * 1000;
    size_t excess = snapshotStreamExcess(s);
    assert_in_range(excess, MORE_EXCESS_MIN, MORE_EXCESS_MAX);
    assert_int_equal(snapshotStreamRoom(s), 0);
    hold(false);
    while (snapshotStreamRoom(s) == 0) testSleep();
    snapshotStreamEnd(s);
    assert_int_equal(testAwaitEnd(s, &why), SNAPSHOT_STREAM_DONE);
    assert_int_equal(snapshotStreamPoll(s, NULL), SNAPSHOT_STREAM_DONE);
    assert_int_equal(snapshotStreamExcess(s), 0);
    assert_true(snapshotStreamCount(s).written > bytes);
    snapshotStreamFree(s);
    unlink("out.rdb");
}

static void a_long_string_by_reference_uses_up_the_room(void **state) {
    (void)state;
    reason why;
    snapshotStreamOptions options = testOptions();
    options.compress = randomUniform(2);
    hold(true);
    snapshotStream *s = start(&options);
    blob *b = blobNew(8 * 1024 * 1024);
    b->len = b->cap;
    memset(b->bytes, 'x', b->len);
    rdbWriteShared(snapshotStreamWriter(s), b);
    assert_int_equal(snapshotStreamRoom(s), 0);
    assert_int_equal(snapshotStreamExcess(s), 0);
    hold(false);
    while (snapshotStreamRoom(s) == 0) testSleep();
    /* In the side writer it waits for the first one, which must be able to go on. */
    rdbWriteShared(snapshotStreamSide(s), b);
    assert_true(snapshotStreamRoom(s) > 0);
    snapshotStreamEnd(s);
    assert_int_equal(testAwaitEnd(s, &why), SNAPSHOT_STREAM_DONE);
    snapshotStreamFree(s);
    assert_false(blobIsShared(b));
    blobRelease(b);
    unlink("out.rdb");
}

static void receivers_that_stop_hold_a_bounded_amount(void **state) {
    (void)state;
    reason why;
    snapshotStreamOptions options = testOptions();
    options.name = NULL;
    options.relays = true;
    snapshotStream *s = start(&options);
    for (int i = 0; i < 20000 && snapshotStreamRoom(s) > 0; i++) writeRecords(s, 1);
    assert_int_equal(snapshotStreamRoom(s), 0); /* of 20 MB, about 5 were accepted */
    assert_true(snapshotStreamCount(s).memory <= 5 * 1024 * 1024 + 512 * 1024);
    snapshotStreamDropRelay(s); /* the last receiver is gone */
    assert_null(snapshotStreamTake(s));
    while (snapshotStreamRoom(s) == 0) testSleep();
    snapshotStreamEnd(s);
    assert_int_equal(testAwaitEnd(s, &why), SNAPSHOT_STREAM_DONE);
    assert_null(snapshotStreamTake(s));
    snapshotStreamFree(s);
}

static void a_stream_is_cancelled_at_any_time(void **state) {
    (void)state;
    reason why;
    testSeed(__func__);
    for (int round = 0; round < 200; round++) {
        snapshotStreamOptions options = testOptions();
        options.relays = randomUniform(2);
        if (options.relays && randomUniform(2)) options.name = NULL;
        hold(randomUniform(4) == 0);
        snapshotStream *s = start(&options);
        writeRecords(s, (int)randomUniform(3000));
        if (randomUniform(2)) rdbWriteByte(snapshotStreamSide(s), 'x');
        if (randomUniform(3) == 0) snapshotStreamEnd(s);
        if (randomUniform(2)) (void)snapshotStreamPoll(s, NULL);
        snapshotStreamCancel(s);
        hold(false);
        snapshotStreamState end = testAwaitEnd(s, &why);
        assert_true(end == SNAPSHOT_STREAM_CANCELLED || end == SNAPSHOT_STREAM_DONE);
        snapshotStreamFree(s);
        assert_false(testFileExists("temp.rdb"));
        if (end == SNAPSHOT_STREAM_CANCELLED) assert_false(testFileExists("out.rdb"));
        unlink("out.rdb");
    }
}

int test_snapshot_stream_failures(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_call_ends_the_stream_and_removes_the_file),
        cmocka_unit_test(a_folder_that_does_not_exist_is_a_failure),
        cmocka_unit_test(the_writer_fails_after_the_worker_has_failed),
        cmocka_unit_test(a_disk_that_stands_still_stops_the_producer_within_the_bound),
        cmocka_unit_test(a_long_string_by_reference_uses_up_the_room),
        cmocka_unit_test(receivers_that_stop_hold_a_bounded_amount),
        cmocka_unit_test(a_stream_is_cancelled_at_any_time),
    };
    return cmocka_run_group_tests_name("snapshot stream, failures", tests, useDisk, leaveDisk);
}

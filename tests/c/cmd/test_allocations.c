/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How often a request asks for memory, from its bytes to those of the reply. Only builds with
 * checks count (base/alloc.h), so the release build has nothing to test; the hostile build is made
 * to ask more often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "cmd/procs.h"
#include "config/config.h"
#include "engine/engine.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "resp/resp.h"
#include "store/store.h"

#if defined(HOT_CHECKS) && !defined(HOSTILE_BUILD)
#define SPEC(name_, proc_, arity_, key_, flags_) \
    { \
        .name = (name_), .proc = (proc_), .arity = (arity_), .first_key = (key_), \
        .last_key = (key_), .key_step = (key_), .flags = (flags_), .group = "t", .summary = "", \
        .since = "1" \
    }

static const commandSpec specs[] = {
    SPEC("ping", pingCommand, -1, 0, CMD_FAST | CMD_QUICK),
    SPEC("get", getCommand, 2, 1, CMD_FAST | CMD_QUICK | CMD_READONLY),
    SPEC("exists", existsCommand, -2, 1, CMD_FAST | CMD_QUICK | CMD_READONLY),
    SPEC("set", setCommand, -3, 1, CMD_QUICK | CMD_WRITE),
    SPEC("incr", incrCommand, 2, 1, CMD_FAST | CMD_QUICK | CMD_WRITE),
};

enum { KEYS = 500, ROUNDS = 100 };

static session asker;
static requestBatch batch;

/* Runs one request, words parted by blanks; returns how often it asked for memory. */
static uint64_t requestsOf(const char *text, char reply_begins) {
    static char input[4096 + REQUEST_READ_SLACK];
    requestParser parser = {0};
    requestLimits limits = {
        .bulk_max = 512 << 20, .multibulk_max = INT32_MAX, .authenticated = true};
    requestError error;
    size_t pos = 0, len = 0;
    int words = 0;
    for (const char *at = text; *at; at += strspn(at, " ")) {
        words++;
        at += strcspn(at, " ");
    }
    len = (size_t)sprintf(input, "*%d\r\n", words);
    for (const char *at = text; *at; at += strspn(at, " ")) {
        int size = (int)strcspn(at, " ");
        len += (size_t)sprintf(input + len, "$%d\r\n%.*s\r\n", size, size, at);
        at += size;
    }
    uint64_t before = memAllocationCount();
    (void)requestParse(&parser, input, &len, &pos, &limits, &batch, REQUEST_BATCH_MAX, &error);
    assert_int_equal(batch.count, 1);
    executeResolve(&batch.items[0]);
    executePart part = {&asker, batch.items, 1};
    executePrefetch(&part, 1);
    assert_int_equal(executeRun(&asker, batch.items, 1), 1);
    requestBatchClear(&batch);
    uint64_t asked = memAllocationCount() - before;
    struct iovec iov[4];
    assert_true(outbufIovecs(&asker.out, iov, 4) > 0);
    assert_int_equal(*(char *)iov[0].iov_base, reply_begins);
    outbufConsume(&asker.out, outbufPending(&asker.out));
    outbufReap(&asker.out);
    return asked;
}

static void run(const char *text, int number) {
    char request[512];
    snprintf(request, sizeof(request), text, number);
    (void)requestsOf(request, '+');
}

static int setup(void **state) {
    (void)state;
    static const feature *const features[] = {&engineFeature, &keyspaceFeature};
    const configOption *tables[] = {engineFeature.options};
    clockInit();
    hooksInstall(features, 2, NULL, 0);
    configInstall(tables, 1);
    storeInit(1, false);
    commandInstall(specs, (int)COUNT_OF(specs), false);
    if (keyspaceFeature.init(NULL) != OK) return 1;
    executeNewTurn();
    sessionInit(&asker, NULL, SESSION_INTERNAL);
    for (int i = 0; i < KEYS; i++) run("set key:%d aaaaaaaaaaaaaaaa", i);
    run("set number 1%d", 0);
    engineHot.hotkeys_in =
        INT32_MAX; /* a look keeps the name of its key now and then: one request in some 256 */
    return 0;
}

static int teardown(void **state) {
    (void)state;
    sessionClear(&asker);
    commandUninstall();
    configUninstall();
    hooksUninstall();
    storeShutdown();
    outbufPoolTrim();
    return 0;
}

static void expect(const char *text, char reply_begins, uint64_t most) {
    for (int i = 0; i < ROUNDS; i++) {
        char request[512];
        snprintf(request, sizeof(request), text, i);
        if (requestsOf(request, reply_begins) > most) fail_msg("%s asked for memory", request);
    }
}

static void reading_asks_for_no_memory(void **state) {
    (void)state;
    expect("ping", '+', 0);
    expect("ping hello", '$', 0);
    expect("get key:%d", '$', 0);
    expect("get none:%d", '$', 0);
    expect("exists key:%d", ':', 0);
}

static void changing_in_place_asks_for_no_memory(void **state) {
    (void)state;
    expect("set key:%d bbbbbbbbbbbbbbbb", '+', 0);
    expect("set key:%d bbbbbbbbbbbbbbb", '+', 0);
    expect("incr number", ':', 0);
}

/* Now and then the table grows, or the slab store takes a further slab. */
static void a_new_key_asks_for_memory_once(void **state) {
    (void)state;
    int once = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char request[64];
        snprintf(request, sizeof(request), "set other:%d aaaaaaaaaaaaaaaa", i);
        uint64_t asked = requestsOf(request, '+');
        assert_true(asked >= 1);
        once += asked == 1;
    }
    assert_true(once >= ROUNDS * 9 / 10);
}

int test_allocations(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reading_asks_for_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(changing_in_place_asks_for_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_key_asks_for_memory_once, setup, teardown),
    };
    return cmocka_run_group_tests_name("cmd/allocations", tests, NULL, NULL);
}
#else
static void gets_without_copies_are_not_counted(void **state) {
    (void)state;
    skip();
}

int test_allocations(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gets_without_copies_are_not_counted)};
    return cmocka_run_group_tests_name("cmd/allocations", tests, NULL, NULL);
}
#endif

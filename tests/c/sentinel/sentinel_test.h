/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of Sentinel share: a view whose environment records what it is asked to do. */
#ifndef TESTS_C_SENTINEL_SENTINEL_TEST_H
#define TESTS_C_SENTINEL_SENTINEL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "quiet_env.h"
#include "monitor/machine.h"
#include "monitor/view.h"
#include "sentinel/lines.h"

static sentinelView view;
static str told;  /* events: "name text;" */
static str sent;  /* commands: "port: words;" */
static int saves; /* of the file */
static bool save_fails, needs_password;

static const char own_id[] = "1111111111111111111111111111111111111111";
static const char peer_id[] = "2222222222222222222222222222222222222222";
static const char third_id[] = "3333333333333333333333333333333333333333";

static void testSend(sentinelView *v, sentinelLink *l, bool pubsub, int count, const slice *words) {
    const sentinelInstance *i = sentinelLinkUser(v, l);
    strAppendFormat(&sent, "%d%s:", i ? i->addr.port : 0, pubsub ? "p" : "");
    for (int at = 0; at < count; at++)
        strAppendFormat(&sent, " %.*s", (int)words[at].len, words[at].ptr);
    strAppendByte(&sent, ';');
}
static void testEvent(sentinelView *v, logLevel level, const char *name, slice text,
                      const sentinelInstance *notify) {
    (void)v, (void)level, (void)notify;
    strAppendFormat(&told, "%s %.*s;", name, (int)text.len, text.ptr);
}
static bool testSave(sentinelView *v) {
    (void)v;
    saves++;
    return !save_fails;
}

static bool testNeedsPassword(sentinelView *v) {
    (void)v;
    return needs_password;
}

static sentinelEnv test_env;

static inline void beginView(void) {
    test_env = quietEnv();
    test_env.send = testSend;
    test_env.event = testEvent;
    test_env.save = testSave;
    test_env.needs_password = testNeedsPassword;
    sentinelViewInit(&view, &test_env, NULL);
    memcpy(view.id, own_id, sizeof(own_id));
    view.now_ms = 1000000;
    strFree(&told);
    strFree(&sent);
    saves = 0;
    save_fails = needs_password = false;
}

static inline void endView(void) {
    sentinelViewClear(&view);
    strFree(&told);
    strFree(&sent);
}

static inline sentinelInstance *addPrimary(void) {
    sentinelInstance *primary;
    assert_int_equal(sentinelAddPrimary(&view, SLICE("mym"), SLICE("10.0.0.2"), 6379, 2, &primary),
                     OK);
    return primary;
}

static inline void takeLine(const char *line, status expected) {
    str *words;
    slice slices[16];
    int count;
    reason why;
    assert_true(strSplitWords(sliceOf(line), &words, &count));
    for (int i = 0; i < count; i++) slices[i] = strSlice(&words[i]);
    assert_int_equal(sentinelLineTake(&view, slices, count, &why), expected);
    strFreeWords(words, count);
}

#endif

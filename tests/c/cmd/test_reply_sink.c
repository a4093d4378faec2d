/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands into a reply sink: each is run twice on equal data, once into bytes that are parsed and
 * once into a sink, and both must give the same tree of values, in RESP2 and in RESP3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "cmd/cmd.h"
#include "cmd/procs.h"
#include "config/config.h"
#include "engine/engine.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "resp/reply_sink.h"
#include "store/store.h"

#define SPEC(name_, proc_, key_, flags_) \
    { \
        .name = (name_), .proc = (proc_), .arity = -1, .first_key = (key_), .last_key = (key_), \
        .key_step = (key_), .flags = (flags_), .group = "t", .summary = "", .since = "1" \
    }

static const commandSpec specs[] = {
    SPEC("debug", debugCommand, 0, 0),
    SPEC("get", getCommand, 1, CMD_READONLY),
    SPEC("hgetall", hgetallCommand, 1, CMD_READONLY),
    SPEC("hrandfield", hrandfieldCommand, 1, CMD_READONLY),
    SPEC("hscan", hscanCommand, 1, CMD_READONLY),
    SPEC("hset", hsetCommand, 1, CMD_WRITE),
    SPEC("incrbyfloat", incrbyfloatCommand, 1, CMD_WRITE),
    SPEC("lcs", lcsCommand, 1, CMD_READONLY),
    SPEC("lpop", lpopCommand, 1, CMD_WRITE),
    SPEC("lpos", lposCommand, 1, CMD_READONLY),
    SPEC("lrange", lrangeCommand, 1, CMD_READONLY),
    SPEC("mget", mgetCommand, 1, CMD_READONLY),
    SPEC("ping", pingCommand, 0, 0),
    SPEC("rpush", rpushCommand, 1, CMD_WRITE),
    SPEC("sadd", saddCommand, 1, CMD_WRITE),
    SPEC("scan", scanCommand, 0, CMD_READONLY),
    SPEC("set", setCommand, 1, CMD_WRITE),
    SPEC("sinter", sinterCommand, 1, CMD_READONLY),
    SPEC("smembers", smembersCommand, 1, CMD_READONLY),
    SPEC("srandmember", srandmemberCommand, 1, CMD_READONLY),
    SPEC("zadd", zaddCommand, 1, CMD_WRITE),
    SPEC("zrange", zrangeCommand, 1, CMD_READONLY),
    SPEC("zscore", zscoreCommand, 1, CMD_READONLY),
};

/* All kinds of replies, including headers of deferred length and replies that are measured and
 * truncated. 'LONG' is a value that is sent by reference. */
static const char *const requests[] = {
    "ping",
    "ping text",
    "get none",
    "set k v",
    "get k",
    "set k LONG",
    "get k",
    "set n x NX GET EX",
    "hset h a 1 b 2",
    "hgetall h",
    "hgetall none",
    "hscan h 0",
    "hrandfield one -20000",
    "hset one f v",
    "hrandfield one -20000 WITHVALUES",
    "hrandfield one -2 WITHVALUES",
    "rpush l 1 2 3 LONG 1",
    "lrange l 0 -1",
    "lpos l 1 COUNT 0",
    "lpop none 3",
    "lpop l 2",
    "sadd s a",
    "sadd t a b",
    "smembers s",
    "sinter s t",
    "srandmember s -3",
    "zadd z 1.5 a 2 b inf c",
    "zrange z 0 -1 WITHSCORES",
    "zscore z a",
    "zscore z c",
    "zscore z none",
    "incrbyfloat f 1.25",
    "incrbyfloat l 1",
    "mget k l none",
    "set x ohmytext",
    "set y mynewtext",
    "lcs x y",
    "lcs x y IDX WITHMATCHLEN",
    "scan 0",
    "scan 0 MATCH none*",
    "debug protocol string",
    "debug protocol integer",
    "debug protocol double",
    "debug protocol null",
    "debug protocol array",
    "debug protocol set",
    "debug protocol map",
    "debug protocol attrib",
    "debug protocol verbatim",
    "debug protocol bignum",
    "debug protocol true",
    "debug protocol false",
    "nosuch",
};

static session asker;

static int setup(void **state) {
    (void)state;
    static const feature *const features[] = {&engineFeature, &keyspaceFeature};
    static const configOption *tables[2];
    tables[0] = engineFeature.options;
    tables[1] = cmdFeature.options;
    clockInit();
    hooksInstall(features, 2, NULL, 0);
    configInstall(tables, 2);
    storeInit(1, false);
    commandInstall(specs, (int)COUNT_OF(specs), false);
    if (keyspaceFeature.init(NULL) != OK) return 1;
    executeNewTurn();
    sessionInit(&asker, NULL, SESSION_INTERNAL);
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

static void showItem(void *state, const replyEvent *e) {
    str *out = state;
    char number[64];
    snprintf(number, sizeof(number), "%.17g", e->number);
    strAppendFormat(out, "%d %lld %s %s '", e->kind, (long long)e->integer, number, e->format);
    strAppendSlice(out, e->text);
    strAppendText(out, "'\n");
}

/* Runs a request, its words parted by blanks, with its reply into `out`. */
static void run(const char *text, int proto, outbuf *out) {
    static char long_value[100000];
    memset(long_value, 'x', sizeof(long_value));
    slice words[16];
    ctx outer = {.who = &asker,
                 .db = asker.db,
                 .out = out,
                 .proto = (uint8_t)proto,
                 .targets = PROPAGATE_ALL,
                 .now_ms = engineHot.now_ms};
    ctx c;
    ctxInitInner(&c, &outer);
    c.outer = NULL;
    c.argv = words;
    for (const char *at = text; *at; at += strspn(at, " ")) {
        words[c.argc] = sliceMake(at, strcspn(at, " "));
        at += words[c.argc].len;
        if (sliceIs(words[c.argc], "LONG"))
            words[c.argc] = sliceMake(long_value, sizeof(long_value));
        c.argc++;
    }
    executeInner(&c);
}

static str parsed(const char *text, int proto) {
    outbuf out;
    outbufInit(&out);
    run(text, proto, &out);
    size_t len, pos = 0;
    char *bytes = outbufCopy(&out, &len);
    outbufClear(&out);
    replyReader reader;
    replyReaderInit(&reader);
    replyEvent event;
    str shown = STR_EMPTY;
    while (replyRead(&reader, bytes, len, &pos, &event) == REPLY_EVENT) showItem(&shown, &event);
    assert_int_equal(pos, len);
    memFree(bytes);
    return shown;
}

static str taken(const char *text, int proto) {
    str shown = STR_EMPTY;
    replySink sink = {.take = showItem, .state = &shown};
    outbuf out;
    outbufInitSink(&out, &sink);
    run(text, proto, &out);
    assert_int_equal(outbufPending(&out), 0);
    outbufClear(&out);
    return shown;
}

static void compareAll(int proto) {
    str texts[COUNT_OF(requests)];
    for (size_t i = 0; i < COUNT_OF(requests); i++) texts[i] = parsed(requests[i], proto);
    (void)storeFlush(keyspaceMain(), false);
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        str items = taken(requests[i], proto);
        assert_true(texts[i].len > 0);
        if (!sliceEqual(strSlice(&items), strSlice(&texts[i])))
            fail_msg("%s gives\n%s\nto the sink, but as text\n%s", requests[i], strText(&items),
                     strText(&texts[i]));
        strFree(&items);
        strFree(&texts[i]);
    }
}

static void a_sink_gets_what_a_client_of_resp2_reads(void **state) {
    (void)state;
    compareAll(2);
}

static void a_sink_gets_what_a_client_of_resp3_reads(void **state) {
    (void)state;
    compareAll(3);
}

int test_reply_sink(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sink_gets_what_a_client_of_resp2_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sink_gets_what_a_client_of_resp3_reads, setup, teardown),
    };
    return cmocka_run_group_tests_name("cmd/reply_sink", tests, NULL, NULL);
}

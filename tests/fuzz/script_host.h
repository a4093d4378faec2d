/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server without network for fuzzers of scripts: some commands, and a limit of time and memory
 * for each script. */
#ifndef FUZZ_SCRIPT_HOST_H
#define FUZZ_SCRIPT_HOST_H

#include "base/base.h"
#include "cmd/cmd.h"
#include "cmd/procs.h"
#include "config/config.h"
#include "engine/engine.h"
#include "engine/execute.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "resp/resp.h"
#include "script/procs.h"
#include "script/run.h"
#include "script/script.h"
#include "script/script_priv.h"
#include "store/store.h"

#define HOST_SPEC(name_, proc_, arity_, key_, flags_) \
    { \
        .name = (name_), .proc = (proc_), .arity = (arity_), .first_key = (key_), \
        .last_key = (key_), .key_step = (key_), .flags = (flags_), .group = "t", .summary = "", \
        .since = "1" \
    }

static const commandSpec host_specs[] = {
    HOST_SPEC("eval", evalCommand, -3, 0, CMD_NOSCRIPT),
    HOST_SPEC("fcall", fcallCommand, -3, 0, CMD_NOSCRIPT),
    HOST_SPEC("restore", functionRestoreCommand, -3, 0, CMD_NOSCRIPT),
    HOST_SPEC("dump", functionDumpCommand, -2, 0, CMD_NOSCRIPT),
    HOST_SPEC("flush", functionFlushCommand, -2, 0, CMD_NOSCRIPT),
    HOST_SPEC("flushall", flushallCommand, -1, 0, CMD_WRITE | CMD_NOSCRIPT),
    HOST_SPEC("ping", pingCommand, -1, 0, CMD_FAST),
    HOST_SPEC("get", getCommand, 2, 1, CMD_READONLY | CMD_FAST),
    HOST_SPEC("set", setCommand, -3, 1, CMD_WRITE | CMD_DENYOOM),
    HOST_SPEC("incr", incrCommand, 2, 1, CMD_WRITE | CMD_DENYOOM),
    HOST_SPEC("del", delCommand, -2, 1, CMD_WRITE),
    HOST_SPEC("rpush", rpushCommand, -3, 1, CMD_WRITE | CMD_DENYOOM),
    HOST_SPEC("lrange", lrangeCommand, 4, 1, CMD_READONLY),
    HOST_SPEC("hset", hsetCommand, -4, 1, CMD_WRITE | CMD_DENYOOM),
    HOST_SPEC("hgetall", hgetallCommand, 2, 1, CMD_READONLY),
    HOST_SPEC("zadd", zaddCommand, -4, 1, CMD_WRITE | CMD_DENYOOM),
    HOST_SPEC("zrange", zrangeCommand, -4, 1, CMD_READONLY),
};

enum { HOST_SCRIPT_MS = 50, HOST_SCRIPT_BYTES = 64 << 20, HOST_WORDS_MAX = 8 };

static session host_session;
/* The last request was ended for its time. On a busy machine that happens to any script. */
static bool host_ended;

/* The slab store, which is kept, refers to its records from pages that LeakSanitizer does not
 * read. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:slab"; }

/* Ends the script that took too long, as SCRIPT KILL would. */
static void hostServe(void) {
    scriptRun *run = (scriptRun *)(uintptr_t)scriptRunNow();
    if (!run) return;
    run->killed = true;
    host_ended = true;
}

static void hostIdentify(engineIdentity *out) {
    *out = (engineIdentity){
        .version = "1.2.3", .mode = "standalone", .role = "master", .availability_zone = ""};
}

static void hostOpen(void) {
    static const feature *const features[] = {&engineFeature, &keyspaceFeature, &memoryFeature,
                                              &cmdFeature, &scriptFeature};
    static const gate *const gates[] = {&memoryGate, &scriptRulesGate, &scriptBusyGate};
    static const configOption *tables[COUNT_OF(features)];
    int table_count = 0;
    for (size_t i = 0; i < COUNT_OF(features); i++) {
        if (features[i]->options) tables[table_count++] = features[i]->options;
    }
    clockInit();
    logSetLevel(LOG_NOTHING);
    hooksInstall(features, (int)COUNT_OF(features), gates, (int)COUNT_OF(gates));
    configInstall(tables, table_count);
    storeInit(1, false);
    commandInstall(host_specs, (int)COUNT_OF(host_specs), false);
    check(keyspaceFeature.init(NULL) == OK);
    check(scriptFeature.init(NULL) == OK);
    engineSetServeProc(hostServe);
    engineSetIdentityProc(hostIdentify);
    executeNewTurn();
    sessionInit(&host_session, NULL, SESSION_INTERNAL);
    scriptConf.busy_reply_threshold = HOST_SCRIPT_MS;
    scriptConf.script_memory_limit = HOST_SCRIPT_BYTES;
}

/* Runs one request; its reply must be complete. Returns the first byte of the reply. */
static char hostRun(const slice *words, int count) {
    static requestBatch batch;
    requestParser parser = {0};
    requestLimits limits = {
        .bulk_max = 512 << 20, .multibulk_max = INT32_MAX, .authenticated = true};
    requestError error;
    str input = STR_EMPTY;
    strAppendFormat(&input, "*%d\r\n", count);
    for (int i = 0; i < count; i++) {
        strAppendFormat(&input, "$%zu\r\n", words[i].len);
        strAppendSlice(&input, words[i]);
        strAppendText(&input, "\r\n");
    }
    strReserve(&input, REQUEST_READ_SLACK);
    size_t pos = 0, len = input.len;
    host_ended = false;
    executeNewTurn();
    requestBatchInit(&batch);
    requestStatus st =
        requestParse(&parser, input.ptr, &len, &pos, &limits, &batch, REQUEST_BATCH_MAX, &error);
    if (batch.count == 0) { /* a large argument moved to a block of its own */
        size_t cap;
        char *tail = requestParserTail(&parser, &cap);
        check(!tail);
        st = requestParse(&parser, input.ptr, &len, &pos, &limits, &batch, REQUEST_BATCH_MAX,
                          &error);
    }
    check(st != REQUEST_BAD);
    check(batch.count == 1);
    executeResolve(&batch.items[0]);
    executePart part = {&host_session, batch.items, 1};
    executePrefetch(&part, 1);
    check(executeRun(&host_session, batch.items, 1) == 1);
    requestBatchClear(&batch);
    requestParserClear(&parser);
    strFree(&input);
    size_t reply_len;
    char *reply = outbufCopy(&host_session.out, &reply_len);
    replyReader reader;
    replyEvent event = {0};
    replyReaderInit(&reader);
    reader.bulk_max = INT64_MAX;
    size_t at = 0;
    while (at < reply_len && !event.complete)
        check(replyRead(&reader, reply, reply_len, &at, &event) == REPLY_EVENT);
    check(reply_len > 0);
    check(at == reply_len);
    char first = reply[0];
    memFree(reply);
    outbufConsume(&host_session.out, outbufPending(&host_session.out));
    outbufReap(&host_session.out);
    return first;
}

/* Removes all keys. */
static void hostFlush(void) {
    slice flush[] = {SLICE("flushall"), SLICE("sync")};
    check(hostRun(flush, (int)COUNT_OF(flush)) == '+');
}

#endif

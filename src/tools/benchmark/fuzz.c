/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --fuzz: threads that send random commands and read the replies. */
#include "tools/benchmark/fuzz.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/random.h"
#include "tools/benchmark/fuzz_command.h"
#include "tools/benchmark/target.h"

enum { REPLY_TIMEOUT_S = 5, RECONNECTS_MAX = 100 };

/* The counters of all clients. */
typedef struct fuzzRunState {
    const benchOptions *options;
    const fuzzCatalog *catalog;
    int64_t per_client;
    atomic_int_least64_t sent, succeeded, errors, malformed;
    atomic_int threads_failed, next_thread;
} fuzzRunState;

static void report(const fuzzOptions *o, fuzzLevel level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void report(const fuzzOptions *o, fuzzLevel level, const char *format, ...) {
    static const char *const names[] = {"", "ERROR", "INFO ", "DEBUG"};
    if (level > o->level) return;
    char line[1024], clock[16];
    time_t now = time(NULL);
    struct tm parts;
    localtime_r(&now, &parts);
    strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    printf("[%s] [%s] %s\n", clock, names[level], line);
}

/* A command as text, for the log: at most 50 characters of each word. */
static void reportCommand(const fuzzOptions *o, const fuzzCommand *command) {
    if (o->level < FUZZ_DEBUG) return;
    str line = STR_EMPTY;
    for (int i = 0; i < command->argc && line.len < 900; i++) {
        size_t len = command->lens[i];
        if (i) strAppendByte(&line, ' ');
        strAppendQuoted(&line, sliceMake(command->words[i], len > 50 ? 50 : len));
        if (len > 50) strAppendText(&line, "...");
    }
    report(o, FUZZ_DEBUG, "send Command: %s", strText(&line));
    strFree(&line);
}

static void reportReply(const fuzzOptions *o, const valkeyReply *r) {
    if (o->level < FUZZ_DEBUG) return;
    switch (r->type) {
    case VALKEY_REPLY_INTEGER:
    case VALKEY_REPLY_BOOL: report(o, FUZZ_DEBUG, "-> %lld", r->integer); break;
    case VALKEY_REPLY_NIL: report(o, FUZZ_DEBUG, "-> (nil)"); break;
    default:
        if (r->str) {
            report(o, FUZZ_DEBUG, "-> %.100s", r->str);
        } else {
            report(o, FUZZ_DEBUG, "-> (array of %zu elements)", r->elements);
        }
    }
}

static valkeyContext *connectClient(const benchOptions *o) {
    valkeyContext *c = targetConnect(o, &o->server);
    valkeySetTimeout(c, (struct timeval){.tv_sec = REPLY_TIMEOUT_S});
    if (o->resp3) freeReplyObject(valkeyCommand(c, "HELLO 3"));
    if (o->dbnum) freeReplyObject(valkeyCommand(c, "SELECT %d", o->dbnum));
    return c;
}

/* Sends one command; false if the connection is lost. */
static bool sendOne(fuzzRunState *s, valkeyContext *c, fuzzCommand *command) {
    const fuzzOptions *o = &s->options->fuzz;
    const char *argv[FUZZ_WORDS_MAX];
    fuzzCompose(s->catalog, command);
    for (int i = 0; i < command->argc; i++) argv[i] = command->words[i];
    reportCommand(o, command);
    atomic_fetch_add(&s->sent, 1);
    valkeyReply *r = valkeyCommandArgv(c, command->argc, argv, command->lens);
    if (!r) {
        report(o, FUZZ_ERROR, "No reply to %.*s: %s", (int)command->lens[0], command->words[0],
               c->errstr);
        atomic_fetch_add(c->err == VALKEY_ERR_PROTOCOL ? &s->malformed : &s->errors, 1);
        return false;
    }
    reportReply(o, r);
    atomic_fetch_add(r->type == VALKEY_REPLY_ERROR ? &s->errors : &s->succeeded, 1);
    freeReplyObject(r);
    return true;
}

static void *clientMain(void *arg) {
    fuzzRunState *s = arg;
    int index = atomic_fetch_add(&s->next_thread, 1);
    randomSeed(s->options->seed + (uint64_t)index);
    fuzzCommand *command = memNew(fuzzCommand);
    valkeyContext *c = connectClient(s->options);
    int reconnects = 0;
    bool ok = true;
    for (int64_t i = 0; i < s->per_client && ok; i++) {
        if (sendOne(s, c, command)) continue;
        /* A command may have made the server close this connection; the server must accept
         * another. */
        ok = reconnects++ < RECONNECTS_MAX;
        valkeyFree(c);
        c = connectClient(s->options);
    }
    valkeyFree(c);
    memFree(command);
    if (!ok) atomic_fetch_add(&s->threads_failed, 1);
    return NULL;
}

static void reportStatistics(fuzzRunState *s) {
    const fuzzOptions *o = &s->options->fuzz;
    int64_t sent = atomic_load(&s->sent), succeeded = atomic_load(&s->succeeded),
            errors = atomic_load(&s->errors), malformed = atomic_load(&s->malformed);
    int failed = atomic_load(&s->threads_failed);
    report(o, FUZZ_INFO, "All client threads completed. %d succeeded, %d failed.",
           s->options->clients - failed, failed);
    report(o, FUZZ_INFO, "=== FINAL STATISTICS ===");
    report(o, FUZZ_INFO, "Total commands sent: %lld", (long long)sent);
    report(o, FUZZ_INFO, "Success replies: %lld", (long long)succeeded);
    report(o, FUZZ_INFO, "Error replies: %lld", (long long)errors);
    report(o, FUZZ_INFO, "Malformed replies: %lld", (long long)malformed);
    report(o, FUZZ_INFO, "Total errors: %lld", (long long)(errors + malformed));
    report(o, FUZZ_INFO, "Success rate: %.2f%%",
           sent ? 100.0 * (double)succeeded / (double)sent : 0);
    if (errors > 0 && o->level < FUZZ_DEBUG)
        report(o, FUZZ_INFO, "To see full error details, run with --fuzz-loglevel debug");
}

int fuzzRun(const benchOptions *o) {
    valkeyContext *c = targetConnect(o, &o->server);
    fuzzCatalog *catalog = fuzzCatalogNew(valkeyCommand(c, "COMMAND DOCS"), &o->fuzz);
    valkeyFree(c);
    if (!catalog) {
        fprintf(stderr, "The server does not document its commands (COMMAND DOCS)\n");
        return 1;
    }
    fuzzRunState s = {.options = o, .catalog = catalog, .per_client = o->requests / o->clients};
    printf("Running fuzzer with %d clients, %lld commands per client (%lld total commands)\n",
           o->clients, (long long)s.per_client, (long long)o->requests);
    pthread_t *threads = memNewArray(pthread_t, (size_t)o->clients);
    for (int i = 0; i < o->clients; i++) {
        if (pthread_create(&threads[i], NULL, clientMain, &s) == 0) continue;
        fprintf(stderr, "Error: cannot create a thread\n");
        exit(1);
    }
    for (int i = 0; i < o->clients; i++) pthread_join(threads[i], NULL);
    memFree(threads);
    reportStatistics(&s);
    fuzzCatalogFree(catalog);
    return atomic_load(&s.threads_failed) > 0 || atomic_load(&s.malformed) > 0;
}

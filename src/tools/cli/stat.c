/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --stat and --lru-test (modes.h). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/random.h"
#include "tools/cli/info.h"
#include "tools/cli/modes.h"

/* ------------------------------------------------------------------ --stat */

static void printStat(const char *info, int64_t *requests) {
    char memory[NUMBER_TEXT_MAX], counts[64];
    int64_t now = infoNumber(info, "total_commands_processed");
    int64_t saving = infoNumber(info, "rdb_bgsave_in_progress");
    int64_t rewriting = infoNumber(info, "aof_rewrite_in_progress");
    int64_t loading = infoNumber(info, "loading");
    numberPrintHuman(memory, (uint64_t)infoNumber(info, "used_memory"));
    snprintf(counts, sizeof(counts), "%" PRId64 " (+%" PRId64 ")", now,
             *requests < 0 ? 0 : now - *requests);
    *requests = now;
    printf("%-11" PRId64 "%-9s%-8" PRId64 "%-8" PRId64 "%-20s%-12" PRId64 "%s\n", infoKeys(info),
           memory, infoNumber(info, "connected_clients"), infoNumber(info, "blocked_clients"),
           counts, infoNumber(info, "total_connections_received"),
           saving && rewriting ? "SAVE + AOF"
           : saving            ? "SAVE"
           : rewriting         ? "AOF"
           : loading           ? "LOAD"
                               : "");
    fflush(stdout);
}

int modeStat(connection *c) {
    int64_t requests = -1;
    for (int line = 0;; line++) {
        if (!connectionConnect(c)) return 1;
        valkeyReply *reply = connectionRequireText(c, "ERROR: INFO", "INFO");
        if (line % 20 == 0)
            printf("------- data ------ --------------------- load -------------------- - child -\n"
                   "keys       mem      clients blocked requests            connections          "
                   "\n");
        printStat(reply->str, &requests);
        freeReplyObject(reply);
        clockSleepUs(c->options->interval_us ? c->options->interval_us : 1000000);
    }
}

/* ------------------------------------------------------------------ --lru-test */

enum { LRU_PIPELINE = 250 };

/* A number below `keys` whose probability follows a power law: 20 % of the keys get 80 % of the
 * accesses. */
static int64_t skewed(int64_t keys) {
    double uniform = ((double)(randomNext() >> 11) + 1) / 9007199254740993.0;
    double alpha = 6.2;
    double top = pow((double)keys + 1, alpha + 1);
    return keys - (int64_t)pow((top - 1) * uniform + 1, 1.0 / (alpha + 1));
}

static void lruRound(connection *c, int64_t *hits, int64_t *misses) {
    int64_t keys[LRU_PIPELINE];
    int missing = 0;
    for (int i = 0; i < LRU_PIPELINE; i++) {
        keys[i] = skewed(c->options->lru_keys);
        connectionQueue(c, "GET lru:%lld", (long long)keys[i]);
    }
    for (int pass = 0; pass < 2; pass++) {
        int count = pass ? missing : LRU_PIPELINE;
        for (int i = 0; i < count; i++) {
            valkeyReply *r = connectionNext(c);
            if (r->type == VALKEY_REPLY_ERROR) {
                fprintf(stderr, "%s\n", r->str);
                exit(1);
            }
            if (pass == 0 && r->type == VALKEY_REPLY_NIL) {
                keys[missing++] = keys[i];
                (*misses)++;
            } else if (pass == 0) {
                (*hits)++;
            }
            freeReplyObject(r);
        }
        for (int i = 0; pass == 0 && i < missing; i++)
            connectionQueue(c, "SET lru:%lld value", (long long)keys[i]);
    }
}

int modeLruTest(connection *c) {
    if (!connectionConnect(c)) return 1;
    if (c->options->lru_keys < 1) {
        fputs("The number of keys of --lru-test must be positive.\n", stderr);
        return 1;
    }
    for (;;) {
        int64_t hits = 0, misses = 0, start_ms = clockMonoMs(), elapsed_ms;
        do {
            lruRound(c, &hits, &misses);
            elapsed_ms = clockMonoMs() - start_ms;
        } while (elapsed_ms < 1000);
        double total = (double)(hits + misses);
        printf("%.0f Gets/sec | Hits: %" PRId64 " (%.2f%%) | Misses: %" PRId64 " (%.2f%%)\n",
               total * 1000 / (double)elapsed_ms, hits, (double)hits * 100 / total, misses,
               (double)misses * 100 / total);
        fflush(stdout);
    }
}

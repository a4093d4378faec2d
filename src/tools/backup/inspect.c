/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --list and --verify (inspect.h). Invariant: a damaged part does not hide what the others have. */
#include "tools/backup/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "store/store.h"
#include "tools/backup/extract.h"
#include "tools/backup/record.h"

typedef struct inspection {
    const cliOptions *options;
    const partForm *form; /* NULL: nothing is read */
    str json;
    uint64_t chains, bad;
} inspection;

static uint64_t chainBytes(const backupChain *chain) {
    uint64_t bytes = chain->full.part.bytes;
    for (int i = 0; i < chain->count; i++) bytes += chain->segments[i].part.bytes;
    return bytes;
}

/* The parts after a gap cannot be used. */
static bool hasGap(const backupChain *chain) {
    return chain->count && chain->segments[chain->count - 1].last > chainEnd(chain);
}

static void addJson(inspection *in, const char *shard, const backupChain *chain,
                    const char *verdict) {
    str *out = &in->json;
    const backupFull *full = &chain->full;
    strAppendFormat(out, "%s\n  {\"shard\": ", in->chains ? "," : "");
    recordAppendString(out, sliceOf(shard));
    strAppendText(out, ", \"folder\": ");
    recordAppendString(out, strSlice(&chain->folder));
    strAppendText(out, ", \"slots\": ");
    recordAppendString(out, strSlice(&full->slots));
    strAppendFormat(out,
                    ", \"from_ms\": %" PRId64 ", \"to_ms\": %" PRId64 ", \"from_offset\": %" PRId64
                    ", \"to_offset\": %" PRId64 ", \"bytes\": %" PRIu64 ", \"gap\": %s",
                    full->time_ms, chainEndTime(chain), full->offset, chainEnd(chain),
                    chainBytes(chain), hasGap(chain) ? "true" : "false");
    if (verdict) {
        strAppendText(out, ", \"verdict\": ");
        recordAppendString(out, sliceOf(verdict));
    }
    strAppendByte(out, '}');
}

static void showChain(inspection *in, const char *shard, const backupChain *chain,
                      const char *verdict) {
    char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];
    addJson(in, shard, chain, verdict);
    in->chains++;
    if (in->options->output == OUTPUT_JSON) return;
    printf("%s%s%s to %s UTC, offsets %" PRId64 " to %" PRId64 ", %" PRIu64 " bytes%s%s%s\n", shard,
           *shard ? ": " : "", timePrint(chain->full.time_ms, from),
           timePrint(chainEndTime(chain), to), chain->full.offset, chainEnd(chain),
           chainBytes(chain), hasGap(chain) ? ", then a part of the stream is missing" : "",
           verdict ? ": " : "", verdict ? verdict : "");
}

static void verifyChain(inspection *in, const char *shard, const backupChain *chain) {
    backupPlan plan = {.chain = chain, .offset = chainEnd(chain)};
    extractResult result;
    reason why;
    bool good = extractCheck(&plan, in->form, &result, &why) == OK;
    showChain(in, shard, chain, good ? "intact" : why.text);
    in->bad += !good;
}

static status visitShard(const char *folder, const char *name, void *arg, reason *why) {
    inspection *in = arg;
    backupCatalog catalog;
    status st = catalogLoad(folder, &catalog, why);
    for (int i = 0; st == OK && i < catalog.count; i++) {
        if (in->form) {
            verifyChain(in, name, &catalog.chains[i]);
        } else {
            showChain(in, name, &catalog.chains[i], NULL);
        }
    }
    for (int i = 0; i < catalog.problem_count; i++) {
        fprintf(stderr, "%s\n", strText(&catalog.problems[i]));
        in->bad++;
    }
    catalogClear(&catalog);
    return st;
}

static int inspect(const cliOptions *options, const partForm *form) {
    inspection in = {.options = options, .form = form};
    reason why;
    status st = catalogEachShard(options->backup.folder, visitShard, &in, &why);
    if (options->output == OUTPUT_JSON) printf("[%s\n]\n", strText(&in.json));
    strFree(&in.json);
    if (st != OK) fprintf(stderr, "Error: %s\n", why.text);
    if (st == OK && !in.chains) fputs("The folder has no complete full copy.\n", stderr);
    return st == OK && in.chains && !in.bad ? BACKUP_DONE : BACKUP_DAMAGED;
}

int inspectList(const cliOptions *options) { return inspect(options, NULL); }

int inspectVerify(const cliOptions *options, const partForm *form) {
    storeInit(1, false); /* values of the full copy are read as the server does */
    int exit_code = inspect(options, form);
    storeShutdown();
    return exit_code;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --restore (backup.h): checks the options, and restores each shard of the backup. Invariant: all
 * shards are restored to the same time, each by its own server's clock. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "io/append_file.h"
#include "tools/backup/child.h"
#include "tools/backup/copy.h"
#include "tools/backup/extract.h"
#include "tools/backup/inspect.h"
#include "tools/backup/record.h"
#include "tools/backup/transfer.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/modes.h"

typedef struct restoring {
    const cliOptions *options;
    const char *out; /* the folder; NULL with --into */
    partForm form;
    ttlMode ttl;
    planGoal goal;
    int64_t value; /* time or offset */
    transferTarget target;
    str json;
    int shards, exit_code; /* of what has failed */
} restoring;

/* ------------------------------------------------------------------ options */

static const char *readOptions(restoring *r, int argc, char **argv) {
    const backupOptions *o = &r->options->backup;
    bool inspects = o->list || o->verify;
    if (argc > 1 || (argc == 1 && (inspects || o->into)))
        return "--restore FOLDER makes one folder, or brings keys --into a server";
    if (!inspects && !argc && !o->into)
        return "--restore FOLDER needs the folder to be made, --into, --list or --verify";
    if (o->keys && !o->into) return "--keys needs --into";
    if (o->prefix && !o->keys) return "--prefix needs --keys";
    if (o->to_time && o->to_offset >= 0) return "--to-time and --to-offset exclude each other";
    r->goal = o->to_time ? PLAN_TIME : o->to_offset >= 0 ? PLAN_OFFSET : PLAN_LATEST;
    r->value = o->to_offset;
    if (o->to_time && !timeParse(o->to_time, &r->value))
        return "--to-time wants a time in UTC such as '2026-11-28 14:03:00', or seconds since 1970";
    if (o->ttl && !strcmp(o->ttl, "shift")) {
        r->ttl = TTL_SHIFT;
    } else if (o->ttl && !strcmp(o->ttl, "drop")) {
        r->ttl = TTL_DROP;
    } else if (o->ttl && strcmp(o->ttl, "keep") != 0) {
        return "--ttl knows keep, shift and drop";
    }
    r->out = argc ? argv[0] : NULL;
    r->form.decrypt_with = o->decrypt_with;
    return NULL;
}

/* ------------------------------------------------------------------ report */

/* What has been restored, from which chain. */
typedef struct restoredShard {
    const char *name, *folder;
    const backupPlan *plan;
    const extractResult *result;
    transferCounts counts;
    uint64_t changed_times;
} restoredShard;

static void reportJson(restoring *r, const restoredShard *shard) {
    str *out = &r->json;
    strAppendFormat(out, "%s\n  {\"shard\": ", r->shards ? "," : "");
    recordAppendString(out, sliceOf(shard->name));
    if (shard->folder) {
        strAppendText(out, ", \"folder\": ");
        recordAppendString(out, sliceOf(shard->folder));
    }
    strAppendFormat(out,
                    ", \"time_ms\": %" PRId64 ", \"offset\": %" PRId64 ", \"commands\": %" PRIu64
                    ", \"append_only\": %s, \"keys\": %" PRIu64 ", \"expired\": %" PRIu64
                    ", \"existing\": %" PRIu64 "}",
                    shard->plan->time_ms, shard->result->offset, shard->result->commands,
                    shard->result->is_aof ? "true" : "false", shard->counts.keys,
                    shard->counts.expired, shard->counts.existing);
}

static void reportText(const restoring *r, const restoredShard *shard) {
    char time[TIME_TEXT_MAX];
    printf("%s%sstate of %s UTC, offset %" PRId64 " (%" PRIu64 " commands after the full copy)\n",
           shard->name, *shard->name ? ": " : "", timePrint(shard->plan->time_ms, time),
           shard->result->offset, shard->result->commands);
    if (shard->changed_times)
        printf("%" PRIu64 " keys have other expiry times\n", shard->changed_times);
    if (r->out) {
        printf("start: valkey-server --dir %s%s\n", shard->folder,
               shard->result->is_aof ? " --appendonly yes" : "");
    } else {
        printf("%" PRIu64 " keys brought into %s, %" PRIu64 " had expired, %" PRIu64
               " existed and were left\n",
               shard->counts.keys, r->target.address, shard->counts.expired,
               shard->counts.existing);
    }
}

static void report(restoring *r, const restoredShard *shard) {
    if (shard->plan->is_ambiguous)
        fputs("The server's clock was set back, so this time exists twice: the later one was "
              "restored (--to-offset restores the other)\n",
              stderr);
    reportJson(r, shard);
    if (r->options->output != OUTPUT_JSON) reportText(r, shard);
    r->shards++;
}

/* ------------------------------------------------------------------ one shard */

static void removeName(const char *name, void *folder) {
    str path = STR_EMPTY;
    strAppendFormat(&path, "%s/%s", (const char *)folder, name);
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) (void)unlink(path.ptr);
    strFree(&path);
}

/* Removes a folder that this program has made. */
static void removeWork(const char *work) {
    str inner = STR_EMPTY;
    reason why;
    strAppendFormat(&inner, "%s/appendonlydir", work);
    status st = folderEach(inner.ptr, removeName, inner.ptr, &why);
    if (st == OK) (void)rmdir(inner.ptr); /* it may not exist */
    if (st == OK) st = folderEach(work, removeName, (void *)work, &why);
    if (st == OK && rmdir(work) < 0 && errno != ENOENT) st = reasonSetErrno(&why, "%s", work);
    if (st != OK) fprintf(stderr, "not removed: %s\n", why.text);
    strFree(&inner);
}

/* From the restored time to now. */
static int64_t shiftOf(const backupPlan *plan) { return clockWallMs() - plan->time_ms; }

/* Makes dump.rdb in `out` with other expiry times. */
static status changeTimes(restoring *r, const backupPlan *plan, const char *work, const char *out,
                          restoredShard *shard, extractResult *result, reason *why) {
    privateServer server;
    str from = STR_EMPTY, to = STR_EMPTY;
    r->exit_code = BACKUP_TARGET;
    status st = privateServerStart(&server, r->options, work, result->is_aof, true, why);
    if (st != OK) return st;
    st = transferShiftTimes(&server, r->ttl, shiftOf(plan), &shard->changed_times, why);
    if (st == OK) st = privateServerCommand(&server, NULL, why, "SAVE");
    privateServerStop(&server);
    strAppendFormat(&from, "%s/dump.rdb", work);
    strAppendFormat(&to, "%s/dump.rdb", out);
    if (st == OK && rename(from.ptr, to.ptr) < 0) st = reasonSetErrno(why, "%s", to.ptr);
    result->is_aof = false;
    strFree(&from);
    strFree(&to);
    return st;
}

static status restoreFolder(restoring *r, const backupPlan *plan, restoredShard *shard,
                            extractResult *result, reason *why) {
    r->exit_code = BACKUP_DAMAGED;
    if (r->ttl == TTL_KEEP) return extractBuild(plan, &r->form, shard->folder, result, why);
    str work = STR_EMPTY;
    strAppendFormat(&work, "%s/restoring", shard->folder);
    status st = folderCreateAll(shard->folder, why);
    if (st == OK) st = extractBuild(plan, &r->form, work.ptr, result, why);
    if (st == OK) st = changeTimes(r, plan, work.ptr, shard->folder, shard, result, why);
    removeWork(work.ptr);
    strFree(&work);
    return st;
}

static status restoreInto(restoring *r, const backupPlan *plan, restoredShard *shard,
                          extractResult *result, reason *why) {
    privateServer server = {0};
    str work = STR_EMPTY;
    r->exit_code = BACKUP_TARGET;
    if (temporaryFolder(&work, why) != OK) return ERR_IO;
    r->exit_code = BACKUP_DAMAGED;
    status st = extractBuild(plan, &r->form, work.ptr, result, why);
    if (st == OK) {
        r->exit_code = BACKUP_TARGET;
        st = privateServerStart(&server, r->options, work.ptr, result->is_aof, r->ttl != TTL_KEEP,
                                why);
    }
    if (st == OK)
        st = transferKeys(&r->target, &server, r->options, r->ttl, shiftOf(plan), &shard->counts,
                          why);
    privateServerStop(&server);
    removeWork(work.ptr);
    strFree(&work);
    return st;
}

static status restoreShard(const char *folder, const char *name, void *arg, reason *why) {
    restoring *r = arg;
    backupCatalog catalog;
    backupPlan plan;
    extractResult result;
    str out = STR_EMPTY;
    if (r->out) strAppendFormat(&out, "%s%s%s", r->out, *name ? "/" : "", name);
    restoredShard shard = {.name = name, .plan = &plan, .result = &result};
    shard.folder = r->out ? out.ptr : NULL;
    r->exit_code = BACKUP_DAMAGED;
    status st = catalogLoad(folder, &catalog, why);
    if (st == OK) st = catalogPlan(&catalog, r->goal, r->value, &plan, why);
    for (int i = 0; i < catalog.problem_count; i++)
        fprintf(stderr, "not used: %s\n", strText(&catalog.problems[i]));
    if (st == OK)
        st = r->out ? restoreFolder(r, &plan, &shard, &result, why)
                    : restoreInto(r, &plan, &shard, &result, why);
    if (st == OK) report(r, &shard);
    catalogClear(&catalog);
    strFree(&out);
    return st;
}

/* ------------------------------------------------------------------ the mode */

static status restoreAll(restoring *r, reason *why) {
    const backupOptions *o = &r->options->backup;
    status st = OK;
    if (o->into) {
        r->exit_code = BACKUP_TARGET;
        st = transferConnect(&r->target, r->options, o->into, !o->keys, why);
    }
    if (st == OK) st = catalogEachShard(o->folder, restoreShard, r, why);
    if (st == OK && r->options->output == OUTPUT_JSON) printf("[%s\n]\n", strText(&r->json));
    if (st == OK && r->shards > 1 && r->options->output != OUTPUT_JSON)
        puts("Each shard is consistent for itself, at the time of its own server's clock.");
    transferDisconnect(&r->target);
    strFree(&r->json);
    return st;
}

int modeRestore(const cliOptions *options, int argc, char **argv) {
    restoring r = {.options = options};
    reason why;
    const char *wrong = readOptions(&r, argc, argv);
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        return BACKUP_WRONG;
    }
    interruptInstall();
    signal(SIGPIPE, SIG_IGN);
    if (options->backup.list) return inspectList(options);
    if (options->backup.verify) return inspectVerify(options, &r.form);
    if (restoreAll(&r, &why) == OK) return BACKUP_DONE;
    fprintf(stderr, "Error: %s\n", why.text);
    return r.exit_code;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --backup (backup.h): checks the options, and backs up one server or each shard of a cluster.
 * Invariant: a process follows one shard; that of a cluster has a child for each. */
#include "tools/backup/backup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "tools/backup/child.h"
#include "tools/backup/follow.h"
#include "tools/backup/record.h"
#include "tools/backup/retention.h"
#include "tools/backup/shards.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/modes.h"

enum { WATCH_MS = 5000, WAIT_STEP_MS = 500 };

static int fail(int exit_code, const reason *why) {
    fprintf(stderr, "Error: %s\n", why->text);
    return exit_code;
}

/* SIGTERM ends the program as Ctrl-C does. */
static void catchSignals(void) {
    struct sigaction action;
    interruptInstall();
    sigaction(SIGINT, NULL, &action);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is a failure like a full disk */
}

/* ------------------------------------------------------------------ options */

static const char *wrongOption(const backupOptions *o) {
    int64_t seconds;
    bool to_stdout = !strcmp(o->folder, "-");
    if (o->compress && strcmp(o->compress, "zstd") != 0 && strcmp(o->compress, "none") != 0)
        return "--compress knows zstd and none";
    if (o->compress && !strcmp(o->compress, "zstd") && !strstr(compressBuilt(), "zstd"))
        return "this build has no zstd (BUILD_ZSTD=no)";
    if (o->full_every && (!durationParse(o->full_every, &seconds) || seconds <= 0))
        return "--full-every wants a duration, such as 24h";
    if (o->keep && !durationParse(o->keep, &seconds)) return "--keep wants a duration, such as 7d";
    if (!o->follow && (o->full_every || o->metrics))
        return "--full-every and --metrics need --follow";
    if (to_stdout && (o->follow || o->upload || o->users || o->keep))
        return "--follow, --upload, --users and --keep need a folder, not standard output";
    if (o->segment_bytes <= 0 || o->segment_seconds <= 0)
        return "--segment-bytes and --segment-seconds must be positive";
    return NULL;
}

static backupJob jobFor(const cliOptions *options, const char *target) {
    const backupOptions *o = &options->backup;
    return (backupJob){
        .options = options,
        .target = target,
        .shard = "",
        .slots = "",
        .form = {.compress = o->compress && !strcmp(o->compress, "zstd"),
                 .encrypt_to = o->encrypt_to},
        /* Only with --progress json the program prints an object per second in --follow. */
        .quiet = o->follow && options->progress != PROGRESS_JSON,
    };
}

/* Holds the target for this process and its children. */
static status lockTarget(const char *target, reason *why) {
    str path = STR_EMPTY;
    strAppendFormat(&path, "%s/lock", target);
    int fd = open(path.ptr, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    strFree(&path);
    if (fd < 0) return reasonSetErrno(why, "cannot write into %s", target);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return OK;
    close(fd);
    return reasonSet(why, ERR_EXISTS, "another valkey-cli --backup writes into %s", target);
}

/* ------------------------------------------------------------------ one server or shard */

static void printResult(const cliOptions *options, const copyResult *copy) {
    const backupFull *full = &copy->full;
    char time[TIME_TEXT_MAX];
    FILE *to = copy->folder.len ? stdout : stderr; /* standard output may be the copy itself */
    str text = STR_EMPTY;
    if (options->output == OUTPUT_JSON || !copy->folder.len) {
        recordBegin(&text, "full");
        recordText(&text, "folder", strSlice(&copy->folder));
        recordText(&text, "source", strSlice(&full->source));
        recordText(&text, "replication_id", sliceOf(full->repl_id));
        recordNumber(&text, "offset", full->offset);
        recordNumber(&text, "time_ms", full->time_ms);
        recordText(&text, "shard", strSlice(&full->shard));
        recordText(&text, "slots", strSlice(&full->slots));
        partInfoWrite(&text, &full->part);
        strAppendText(&text, "\n}\n");
    } else {
        strAppendFormat(&text,
                        "%s: full copy of %s, %s UTC, offset %" PRId64 ", %" PRIu64 " bytes\n",
                        strText(&copy->folder), strText(&full->source),
                        timePrint(full->time_ms, time), full->offset, full->part.bytes);
    }
    fputs(text.ptr, to);
    strFree(&text);
}

static int copyOnce(const backupJob *job, const char *host, int port) {
    backupSource source;
    copyResult copy;
    reason why;
    int exit_code = BACKUP_SOURCE;
    int64_t keep_s;
    const backupOptions *o = &job->options->backup;
    sourceInit(&source, job->options, host, port);
    status st = sourceConnect(&source, o->this_server, &why);
    if (st == OK && strcmp(job->target, "-") != 0) {
        exit_code = BACKUP_TARGET;
        st = retentionRemoveIncomplete(job, &why);
    }
    if (st == OK) st = copyMake(job, &source, false, &copy, &exit_code, &why);
    if (st == OK) {
        printResult(job->options, &copy);
        exit_code = BACKUP_TARGET;
        if (o->keep && durationParse(o->keep, &keep_s))
            st = retentionApply(job, copy.full.time_ms - keep_s * 1000, &why);
        copyResultClear(&copy);
    }
    sourceClear(&source);
    return st == OK ? BACKUP_DONE : fail(exit_code, &why);
}

/* ------------------------------------------------------------------ clusters */

/* Loads the shards when no slot moves; waits for that as long as --wait says. */
static status loadResting(const cliOptions *options, bool *is_cluster, backupShards *out,
                          reason *why) {
    int64_t end_ms = clockMonoMs() + options->backup.wait_s * 1000;
    bool said = false;
    for (;;) {
        status st = shardsLoad(options, is_cluster, out, why);
        if (st != OK || !out->moving.len) return st;
        (void)reasonSet(why, ERR_AGAIN, "%s: no backup is made meanwhile (--wait waits for it)",
                        strText(&out->moving));
        if (clockMonoMs() >= end_ms || interruptPending()) return ERR_AGAIN;
        if (!said) fprintf(stderr, "waits: %s\n", strText(&out->moving));
        said = true;
        shardsClear(out);
        clockSleepUs(WAIT_STEP_MS * 1000);
    }
}

static status shardJob(const backupJob *job, const backupShard *shard, str *folder, backupJob *out,
                       reason *why) {
    *out = *job;
    strAppendFormat(folder, "%s/%s", job->target, strText(&shard->name));
    out->target = folder->ptr;
    out->shard = strText(&shard->name);
    out->slots = strText(&shard->slots);
    return folderCreateAll(folder->ptr, why);
}

static int copyShards(const backupJob *job, const backupShards *shards) {
    backupShards after;
    bool is_cluster;
    reason why;
    int exit_code = BACKUP_DONE;
    for (int i = 0; i < shards->count && exit_code == BACKUP_DONE; i++) {
        const backupShard *shard = &shards->list[i];
        str folder = STR_EMPTY;
        backupJob own;
        exit_code = shardJob(job, shard, &folder, &own, &why) == OK
                        ? copyOnce(&own, strText(&shard->host), shard->port)
                        : fail(BACKUP_TARGET, &why);
        strFree(&folder);
    }
    if (exit_code != BACKUP_DONE) return exit_code;
    if (shardsLoad(job->options, &is_cluster, &after, &why) != OK) {
        exit_code = fail(BACKUP_SOURCE, &why);
    } else if (after.moving.len ||
               !sliceEqual(strSlice(&after.owners), strSlice(&shards->owners))) {
        (void)reasonSet(&why, ERR_AGAIN,
                        "slots were moved during the backup: keys of these slots may be in two of "
                        "its shards or in none; make another one");
        exit_code = fail(BACKUP_SOURCE, &why);
    }
    shardsClear(&after);
    return exit_code;
}

/* A child that follows a shard. */
typedef struct shardChild {
    str name;
    pid_t pid;
} shardChild;

typedef struct shardChildren {
    shardChild *list;
    int count;
} shardChildren;

static void startChild(const backupJob *job, const backupShard *shard, shardChildren *children) {
    for (int i = 0; i < children->count; i++) {
        if (sliceEqual(strSlice(&children->list[i].name), strSlice(&shard->name))) return;
    }
    pid_t pid = childFork();
    if (pid == 0) {
        str folder = STR_EMPTY;
        backupJob own;
        reason why;
        if (shardJob(job, shard, &folder, &own, &why) != OK) _exit(fail(BACKUP_TARGET, &why));
        interruptInstall(); /* a pipe of its own */
        _exit(followRun(&own, strText(&shard->host), shard->port));
    }
    if (pid < 0) return; /* the next round tries again */
    children->list =
        memRealloc(children->list, sizeof(*children->list) * (size_t)(children->count + 1));
    children->list[children->count++] =
        (shardChild){.name = strNew(strSlice(&shard->name)), .pid = pid};
}

/* Says which slots each shard has now. */
static void sayOwners(const backupJob *job, const backupShards *shards) {
    for (int i = 0; i < shards->count; i++)
        backupSay(job, "slots have moved: %s has %s", strText(&shards->list[i].name),
                  strText(&shards->list[i].slots));
}

/* A child ends only when it is told to; one that was killed is started again. */
static void forgetEnded(shardChildren *children) {
    for (int i = 0; i < children->count; i++) {
        if (waitpid(children->list[i].pid, NULL, WNOHANG) != children->list[i].pid) continue;
        strFree(&children->list[i].name);
        children->list[i--] = children->list[--children->count];
    }
}

static int endChildren(shardChildren *children) {
    int exit_code = BACKUP_DONE;
    for (int i = 0; i < children->count; i++) kill(children->list[i].pid, SIGTERM);
    for (int i = 0; i < children->count; i++) {
        int state = 0;
        if (waitpid(children->list[i].pid, &state, 0) < 0 || !WIFEXITED(state)) {
            exit_code = BACKUP_TARGET;
        } else if (WEXITSTATUS(state) != BACKUP_DONE) {
            exit_code = WEXITSTATUS(state);
        }
        strFree(&children->list[i].name);
    }
    memFree(children->list);
    return exit_code;
}

static int followShards(const backupJob *job, backupShards *shards) {
    shardChildren children = {0};
    int64_t next_ms = 0;
    while (!interruptPending()) {
        clockSleepUs(100 * 1000);
        if (clockMonoMs() < next_ms) continue;
        next_ms = clockMonoMs() + WATCH_MS;
        forgetEnded(&children);
        for (int i = 0; i < shards->count; i++) startChild(job, &shards->list[i], &children);
        backupShards now;
        bool is_cluster;
        reason ignored; /* the children tell what fails */
        if (shardsLoad(job->options, &is_cluster, &now, &ignored) == OK && now.count &&
            !sliceEqual(strSlice(&now.owners), strSlice(&shards->owners))) {
            sayOwners(job, &now);
            shardsClear(shards);
            *shards = now;
        } else {
            shardsClear(&now);
        }
    }
    return endChildren(&children);
}

/* ------------------------------------------------------------------ the mode */

static int run(const backupJob *job) {
    const cliOptions *options = job->options;
    backupShards shards = {0};
    bool is_cluster = false;
    reason why;
    status st = loadResting(options, &is_cluster, &shards, &why);
    int exit_code = BACKUP_DONE;
    if (st != OK && options->backup.follow && st != ERR_AGAIN && st != ERR_DENIED) {
        /* A server that is away now may come back, unless it is a cluster, which nobody knows. */
        fprintf(stderr, "%s; tries again\n", why.text);
        while (st != OK && !interruptPending()) {
            clockSleepUs(WAIT_STEP_MS * 1000);
            shardsClear(&shards);
            st = shardsLoad(options, &is_cluster, &shards, &why);
        }
    }
    if (st != OK) {
        exit_code = fail(BACKUP_SOURCE, &why);
    } else if (is_cluster && !strcmp(job->target, "-")) {
        fputs("Error: a cluster needs a folder, not standard output\n", stderr);
        exit_code = BACKUP_WRONG;
    } else if (is_cluster) {
        exit_code = options->backup.follow ? followShards(job, &shards) : copyShards(job, &shards);
    } else {
        exit_code = options->backup.follow ? followRun(job, options->host, options->port)
                                           : copyOnce(job, options->host, options->port);
    }
    shardsClear(&shards);
    return exit_code;
}

int modeBackup(const cliOptions *options) {
    const backupOptions *o = &options->backup;
    const char *wrong = wrongOption(o);
    reason why;
    if (wrong) {
        fprintf(stderr, "%s\n", wrong);
        return BACKUP_WRONG;
    }
    catchSignals();
    backupJob job = jobFor(options, o->folder);
    if (strcmp(o->folder, "-") != 0) {
        if (folderCreateAll(o->folder, &why) != OK || lockTarget(o->folder, &why) != OK)
            return fail(BACKUP_TARGET, &why);
    }
    return run(&job);
}

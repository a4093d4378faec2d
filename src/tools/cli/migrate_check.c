/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --migrate-check (modes.h): reads the version, used commands, settings and dataset of a running
 * Valkey or Redis, or an RDB file, and reports which of these would not work on this server, what
 * differs and what is gained. Invariant: it only reads. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/build_info.h"
#include "base/number.h"
#include "tools/cli/help.h"
#include "tools/cli/info.h"
#include "tools/cli/migrate_priv.h"
#include "tools/cli/migrate_types.h"
#include "tools/cli/modes.h"
#include "tools/cli/reply_map.h"

enum { SAMPLE = 2000 };

typedef enum finding {
    FINDING_MISSING,
    FINDING_DIFFERS,
    FINDING_COMES,
    FINDING_GAINED,
    FINDINGS,
} finding;

static const char *const titles[FINDINGS] = {
    [FINDING_MISSING] = "Would not work",
    [FINDING_DIFFERS] = "Differs, or needs something",
    [FINDING_COMES] = "Comes along",
    [FINDING_GAINED] = "Gained",
};

typedef struct migrateJob {
    connection c;
    valkeyReply *info; /* reply of INFO everything */
    bool redis;        /* not Valkey */
    str texts[FINDINGS];
    str directives; /* names that are unknown here, each after a blank */
    datasetCounts counts;
} migrateJob;

static void note(migrateJob *job, finding kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void note(migrateJob *job, finding kind, const char *format, ...) {
    va_list args;
    str *to = &job->texts[kind];
    strAppendText(to, "  - ");
    va_start(args, format);
    strAppendFormatV(to, format, args);
    va_end(args);
    strAppendByte(to, '\n');
}

/* Sends a command whose reply has to be an array. Returns the reply; NULL, after a note in the
 * report, if the server refuses. */
static valkeyReply *ask(migrateJob *job, const char *command) {
    valkeyReply *reply = connectionCommand(&job->c, command);
    if (reply->type == VALKEY_REPLY_ARRAY) return reply;
    note(job, FINDING_DIFFERS, "%s could not be asked: %s", command,
         reply->str ? reply->str : "unexpected reply");
    freeReplyObject(reply);
    return NULL;
}

static int64_t number(const migrateJob *job, const char *field) {
    return infoNumber(job->info->str, field);
}

static const char *text(const migrateJob *job, const char *field, char *out, size_t size) {
    return infoText(job->info->str, field, out, size);
}

/* ------------------------------------------------------------------ commands */

static bool isKnownCommand(slice name) {
    str line = STR_EMPTY;
    strAppendSlice(&line, name);
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '|') line.ptr[i] = ' ';
    }
    words command = {0};
    int used = 0;
    bool known = wordsSplit(strSlice(&line), &command) && command.count > 0 &&
                 helpFind(&command, &used) && used == command.count;
    wordsClear(&command);
    strFree(&line);
    return known;
}

/* Notes unknown commands in the lines cmdstat_name:calls=N,... of INFO. */
static void checkCommands(migrateJob *job) {
    static const char prefix[] = "\ncmdstat_";
    int used = 0;
    for (const char *at = job->info->str; (at = strstr(at, prefix)); at++) {
        const char *name = at + strlen(prefix);
        slice command = sliceMake(name, strcspn(name, ":\r\n"));
        uint64_t calls = strtoull(name + command.len + strlen(":calls="), NULL, 10);
        used++;
        if (isKnownCommand(command)) continue;
        note(job, FINDING_MISSING, "command %.*s: %" PRIu64 " calls, unless a module brings it",
             (int)command.len, command.ptr, calls);
    }
    if (!used)
        note(job, FINDING_DIFFERS,
             "no command was counted since the start or CONFIG RESETSTAT: check again later");
}

/* ------------------------------------------------------------------ directives */

static const knownDirective *findDirective(const char *name) {
    for (int i = 0; i < knownDirectiveCount; i++) {
        if (!strcmp(knownDirectives[i].name, name)) return &knownDirectives[i];
    }
    return NULL;
}

static void checkDirectives(migrateJob *job) {
    valkeyReply *reply = ask(job, "CONFIG GET *");
    for (size_t i = 0; reply && i + 1 < reply->elements; i += 2) {
        const char *name = reply->element[i]->str, *value = reply->element[i + 1]->str;
        const knownDirective *known = name ? findDirective(name) : NULL;
        if (!name || !value || strchr(name, '.')) continue; /* a dot: of a module */
        if (!known) {
            strAppendFormat(&job->directives, " %s", name);
        } else if (known->no_effect && known->fallback && strcmp(known->fallback, value) != 0) {
            note(job, FINDING_DIFFERS, "%s %s has no effect: %s", name, value, known->no_effect);
        }
    }
    freeReplyObject(reply);
    if (job->directives.len)
        note(job, FINDING_DIFFERS,
             "directives that are unknown here; valkey-server --migrate-config FILE writes a file "
             "without them:%s",
             strText(&job->directives));
}

/* ------------------------------------------------------------------ types */

/* Adds the counts of a server or a file to the report. */
static void noteCounts(migrateJob *job, const datasetCounts *counts) {
    for (int i = 0; i < counts->type_count; i++) {
        str text = STR_EMPTY;
        datasetDescribe(&counts->types[i], &text);
        note(job, FINDING_MISSING,
             "%s: there is no such type here, unless a module with it is loaded (loadmodule); with "
             "foreign-values skip the rest is loaded",
             strText(&text));
        strFree(&text);
    }
    if (counts->hashes_with_times)
        note(job, FINDING_COMES,
             "hashes with expiring fields: %" PRIu64 "; the way back is in docs/migration.md",
             counts->hashes_with_times);
    if (counts->streams_with_ids)
        note(job, FINDING_COMES, "streams with ids of producers (XADD IDMP): %" PRIu64,
             counts->streams_with_ids);
    if (counts->functions)
        note(job, FINDING_COMES, "libraries of functions: %" PRIu64, counts->functions);
    if (counts->modules.len)
        note(job, FINDING_DIFFERS,
             "data of modules outside of keys, which are skipped if the module is not loaded:%s",
             strText(&counts->modules));
    if (counts->failed) note(job, FINDING_DIFFERS, "some keys could not be counted");
}

/* ------------------------------------------------------------------ modules, engines, users */

static void checkModules(migrateJob *job) {
    valkeyReply *modules = ask(job, "MODULE LIST");
    for (size_t i = 0; modules && i < modules->elements; i++) {
        const valkeyReply *module = modules->element[i];
        const char *name = replyMapText(module, "name"), *path = replyMapText(module, "path");
        if (!strcmp(name, "lua")) continue; /* the engine that every Valkey has */
        if (!job->redis || *path) {
            note(job, FINDING_DIFFERS, "module %s: load the same file here (loadmodule %s)", name,
                 *path ? path : "PATH");
        }
    }
    freeReplyObject(modules);
}

static void checkFunctions(migrateJob *job) {
    valkeyReply *libraries = connectionCommand(&job->c, "FUNCTION LIST");
    for (size_t i = 0; i < libraries->elements; i++) {
        const char *engine = replyMapText(libraries->element[i], "engine");
        if (!strcmp(engine, "LUA")) {
            job->counts.functions++;
        } else {
            note(job, FINDING_MISSING, "function library %s needs the module of engine %s",
                 replyMapText(libraries->element[i], "library_name"), engine);
        }
    }
    freeReplyObject(libraries);
}

static bool isCategory(slice name) {
    static const char *const names[] = {
        "all",       "keyspace",   "read",        "write",     "set",     "sortedset",
        "list",      "hash",       "string",      "bitmap",    "geo",     "hyperloglog",
        "stream",    "pubsub",     "admin",       "fast",      "slow",    "blocking",
        "dangerous", "connection", "transaction", "scripting", "pathhash"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (sliceIs(name, names[i])) return true;
    }
    return false;
}

/* True for a rule that names a command or a category which does not exist here. */
static bool isUnknownRule(slice rule) {
    if (rule.len < 2 || (rule.ptr[0] != '+' && rule.ptr[0] != '-')) return false;
    slice name = sliceMake(rule.ptr + 1, rule.len - 1);
    if (name.ptr[0] == '@') return !isCategory(sliceMake(name.ptr + 1, name.len - 1));
    return !isKnownCommand(name);
}

/* Counts the rules of a line of ACL LIST, and collects those that are unknown here. */
static int countRules(const char *line, str *unknown) {
    int rules = 0;
    for (const char *at = line; *at;) {
        size_t len = strcspn(at, " ()");
        slice rule = sliceMake(at, len);
        rules += len && memchr("+-~&%", rule.ptr[0], 5) != NULL;
        if (len && isUnknownRule(rule)) strAppendFormat(unknown, " %.*s", (int)len, at);
        at += len + (at[len] != 0);
    }
    return rules;
}

static void checkRules(migrateJob *job) {
    valkeyReply *lines = connectionCommand(&job->c, "ACL LIST");
    int rules = 0;
    str unknown = STR_EMPTY;
    for (size_t i = 0; i < lines->elements; i++)
        rules += lines->element[i]->str ? countRules(lines->element[i]->str, &unknown) : 0;
    if (unknown.len)
        note(job, FINDING_MISSING,
             "rules of users that name commands or categories which are unknown here:%s",
             strText(&unknown));
    if (lines->elements > 1) note(job, FINDING_DIFFERS, "these users have %d rules in all", rules);
    strFree(&unknown);
    freeReplyObject(lines);
}

static void checkUsers(migrateJob *job) {
    char file[1024] = "";
    valkeyReply *reply = connectionCommand(&job->c, "CONFIG GET aclfile");
    if (reply->elements == 2 && reply->element[1]->str)
        snprintf(file, sizeof(file), "%s", reply->element[1]->str);
    freeReplyObject(reply);
    reply = connectionCommand(&job->c, "ACL USERS");
    if (reply->elements > 1)
        note(job, FINDING_DIFFERS,
             "%zu users: copy %s, they are not part of the data or of replication", reply->elements,
             *file ? file : "the lines \"user\" of the configuration file");
    freeReplyObject(reply);
}

/* ------------------------------------------------------------------ data and topology */

/* True for a Redis of this version or a later one. */
static bool isVersion(const migrateJob *job, int major, int minor) {
    char version[64];
    int major_there = 0, minor_there = 0;
    (void)sscanf(text(job, "redis_version", version, sizeof(version)), "%d.%d", &major_there,
                 &minor_there);
    return job->redis && (major_there > major || (major_there == major && minor_there >= minor));
}

static void checkData(migrateJob *job) {
    datasetCountServer(&job->c, job->info->str, isVersion(job, 8, 6), &job->counts);
    noteCounts(job, &job->counts);
    if (number(job, "cluster_enabled"))
        note(job, FINDING_DIFFERS,
             "cluster: replace it node by node, as replicas that take over; check each node");
    if (number(job, "connected_slaves"))
        note(job, FINDING_DIFFERS, "%" PRId64 " replicas: replace them first, then the primary",
             number(job, "connected_slaves"));
    char role[32];
    if (!strcmp(text(job, "role", role, sizeof(role)), "slave"))
        note(job, FINDING_DIFFERS, "this is a replica: check its primary, too");
}

/* ------------------------------------------------------------------ gains */

static void noteMemory(migrateJob *job) {
    char now[NUMBER_TEXT_MAX], then[NUMBER_TEXT_MAX];
    memoryEstimate e = migrateEstimate(&job->c, job->info->str, SAMPLE);
    int64_t data = number(job, "used_memory_dataset");
    if (!e.keys || e.there <= 0 || data <= 0) return;
    numberPrintHuman(now, (uint64_t)data);
    numberPrintHuman(then, (uint64_t)(e.here / e.there * (double)data));
    note(job, e.here < e.there ? FINDING_GAINED : FINDING_DIFFERS,
         "memory of the data: about %s instead of %s (from %" PRIu64 " keys)", then, now, e.keys);
}

static void noteGains(migrateJob *job) {
    char size[NUMBER_TEXT_MAX];
    int64_t fork_us = number(job, "latest_fork_usec");
    int64_t copied = number(job, "rdb_last_cow_size");
    if (number(job, "aof_last_cow_size") > copied) copied = number(job, "aof_last_cow_size");
    numberPrintHuman(size, (uint64_t)copied);
    if (fork_us > 0)
        note(job, FINDING_GAINED,
             "no fork for saves of more than 64 MB: the last one stopped the server for %.1f ms "
             "and copied %s",
             (double)fork_us / 1000, size);
    note(job, FINDING_GAINED,
         "a quarter to two thirds of the processor time for pipelined requests");
}

static void noteClients(migrateJob *job) {
    int64_t clients = number(job, "connected_clients");
    note(job, FINDING_GAINED,
         "nothing to change in programs (clients now: %" PRId64 "): the protocol is the same",
         clients);
}

/* ------------------------------------------------------------------ the report */

static void printHead(const migrateJob *job, const char *uri) {
    char version[64], mode[32], role[32];
    text(job, job->redis ? "redis_version" : "valkey_version", version, sizeof(version));
    text(job, job->redis ? "redis_mode" : "server_mode", mode, sizeof(mode));
    text(job, "role", role, sizeof(role));
    printf("%s %s at %s: %s, %s, %" PRId64 " keys\n", job->redis ? "Redis" : "Valkey", version, uri,
           mode, !strcmp(role, "slave") ? "replica" : "primary", infoKeys(job->info->str));
    if (strstr(job->info->str, "\nserver_release:")) puts("It is a server of this kind already.");
}

static void printFindings(const migrateJob *job, finding end) {
    for (finding kind = 0; kind < end; kind++) {
        const str *found = &job->texts[kind];
        printf("\n%s\n%s", titles[kind], found->len ? strText(found) : "  - nothing was found\n");
    }
    puts("\nThe steps are in docs/migration.md; --diff compares both servers afterwards.");
}

static void clearJob(migrateJob *job) {
    for (finding kind = 0; kind < FINDINGS; kind++) strFree(&job->texts[kind]);
    strFree(&job->directives);
    datasetCountsClear(&job->counts);
}

/* Checks an RDB file. Returns the exit status. */
static int checkFile(const char *path) {
    migrateJob job = {0};
    bool good = datasetCountFile(path, &job.counts);
    if (good) {
        printf("%s: %" PRIu64 " keys\n", path, job.counts.keys);
        noteCounts(&job, &job.counts);
        printFindings(&job, FINDING_GAINED);
    }
    int status = !good || job.texts[FINDING_MISSING].len;
    clearJob(&job);
    return status;
}

int modeMigrateCheck(const cliOptions *options) {
    if (access(options->check_uri, F_OK) == 0) return checkFile(options->check_uri);
    migrateJob job = {0};
    cliOptions there;
    cliOptionsForUri(&there, options, options->check_uri);
    if (there.db < 0) there.db = 0;
    connectionInit(&job.c, &there);
    int status = 1;
    if (connectionConnect(&job.c)) {
        job.info = connectionRequireText(&job.c, "INFO", "INFO everything");
        job.redis = !strstr(job.info->str, "\nvalkey_version:");
        checkCommands(&job);
        checkModules(&job);
        checkFunctions(&job);
        checkData(&job);
        checkDirectives(&job);
        checkUsers(&job);
        checkRules(&job);
        noteMemory(&job);
        noteGains(&job);
        noteClients(&job);
        printHead(&job, options->check_uri);
        printFindings(&job, FINDINGS);
        status = job.texts[FINDING_MISSING].len != 0;
        freeReplyObject(job.info);
    }
    clearJob(&job);
    connectionClear(&job.c);
    cliOptionsClear(&there);
    return status;
}

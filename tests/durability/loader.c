/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loads append only files fast, for power.py and cuts.py: a whole server in this process, and each
 * load in a forked child of it.
 *
 *     loader
 *
 * Reads commands from the standard input, one per line:
 *
 *     load FOLDER           starts with the files of a folder. Replies "ok DIGEST", with the digest
 *     of DEBUG DIGEST, or
 *                           "refused"
 *     cuts FILE START KEY   replays the first n bytes of a file of records from START on, for every
 *     n. Replies "n SAFE
 *                           VALUE" for the first n and each n with another SAFE, where the server
 *                           would cut the file, or VALUE, that of a string key, and then "end"
 *     preamble FILE         reads the first n bytes of an RDB file, for every n. Replies "whole N"
 *     if the first N bytes
 *                           are valid, and fewer never
 *
 * main.c is linked under the name serverMain(); its loop is loaderLoop(), and no port is opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "format/aof_reader.h"
#include "format/rdb_file.h"
#include "format/rdb_settings.h"
#include "io/file.h"
#include "io/loop.h"
#include "persist/aof_files.h"
#include "persist/aof_load.h"
#include "persist/loading.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"
#include "store/digest.h"
#include "store/keyspace.h"
#include "store/store.h"

int serverMain(int argc, char **argv);
void loaderLoop(loop *l);
void loaderCronStart(void);
status loaderListen(reason *why);

static void printDigest(void) {
    digest all;
    char hex[DIGEST_HEX];
    storeDigest(keyspaceMain(), lookAtAll(), &all);
    digestPrint(&all, hex);
    printf("ok %.*s\n", DIGEST_HEX, hex);
}

/* In the child: what a start of the server in this folder does. */
static void loadHere(const char *folder) {
    reason why;
    persistConf.appendonly = true;
    if (chdir(folder) == 0 && aofFilesReadManifest() == OK &&
        persistLoadAtStart(false, &why) == OK) {
        printDigest();
    } else {
        printf("refused\n");
    }
    fflush(stdout);
    _exit(0);
}

static str readFile(const char *path) {
    str content;
    reason why;
    check(fileReadAll(path, (size_t)1 << 30, &content, &why) == OK);
    return content;
}

static slice valueOf(const char *key, char *digits) {
    slice name = sliceOf(key);
    const robj *o = dbFindUncounted(storeDb(0), name, storeHash(name), lookAtAll());
    return o ? objectText(o, digits) : SLICE("0");
}

/* The records before `safe` have been run; runs those that the next byte completes, as a load of
 * the file up to there does. Returns the new end of the last complete transaction. */
static uint64_t replay(const str *content, uint64_t safe, size_t n, int *db_id) {
    rdbSliceSource source;
    aofReader reader;
    aofReplay run;
    reason why;
    rdbSliceSourceInit(&source, sliceMake(content->ptr + safe, n - safe));
    aofReaderInit(&reader, &source.source, safe);
    aofReplayInit(&run);
    check(sessionSelect(&run.who, *db_id) == OK);
    aofItem item = aofReplayRun(&run, &reader, &why);
    check(item == AOF_END || item == AOF_TRUNCATED);
    check(item == AOF_END || n > reader.safe_offset);
    if (reader.safe_offset > safe) *db_id = run.who.db_id;
    safe = reader.safe_offset;
    aofReplayClear(&run);
    aofReaderClear(&reader);
    return safe;
}

static void cutEverywhere(char *arguments) {
    char path[2048], key[256], digits[NUMBER_TEXT_MAX], before[NUMBER_TEXT_MAX] = "";
    unsigned long long start;
    check(sscanf(arguments, "%2047s %llu %255s", path, &start, key) == 3);
    str content = readFile(path);
    uint64_t safe = start, last = 0;
    int db_id = 0;
    loadingBegin(DATASET_AOF, path, (int64_t)content.len);
    for (size_t n = start; n <= content.len; n++) {
        safe = replay(&content, safe, n, &db_id);
        slice value = valueOf(key, digits);
        if (n > start && safe == last && sliceEqual(value, sliceOf(before))) continue;
        last = safe;
        snprintf(before, sizeof(before), "%.*s", (int)value.len, value.ptr);
        printf("%zu %llu %s\n", n, (unsigned long long)safe, before);
    }
    printf("end\n");
    strFree(&content);
}

static status dropKey(void *arg, rdbReader *r, rdbKey *key) {
    (void)arg, (void)r;
    objectFree(key->o);
    return OK;
}

static void readPreambles(const char *path) {
    static const rdbFileHandler handler = {.key = dropKey};
    str content = readFile(path);
    rdbFileOptions options = {.values = {.limits = *rdbLimitsNow(), .look = lookAtAll()},
                              .check_checksum = true};
    size_t whole = 0;
    for (size_t n = 0; n <= content.len && !whole; n++) {
        rdbSliceSource source;
        rdbReader r;
        rdbFileResult result;
        rdbSliceSourceInit(&source, sliceMake(content.ptr, n));
        rdbReaderInit(&r, &source.source, true);
        if (rdbFileRead(&r, &options, &handler, NULL, &result) == OK) {
            whole = n;
        } else {
            check(r.short_read);
        }
        rdbReaderClear(&r);
    }
    printf("whole %zu\n", whole);
    strFree(&content);
}

/* In the child. */
static void __attribute__((noreturn)) runLine(char *line) {
    if (!strncmp(line, "load ", 5)) loadHere(line + 5);
    if (!strncmp(line, "cuts ", 5)) cutEverywhere(line + 5);
    if (!strncmp(line, "preamble ", 9)) readPreambles(line + 9);
    fflush(stdout);
    _exit(0);
}

void loaderLoop(loop *l) {
    (void)l; /* nothing is served */
    char line[4096];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) runLine(line);
        int ended;
        check(waitpid(child, &ended, 0) == child);
        if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) printf("crashed\n");
        fflush(stdout);
    }
    _exit(0);
}

void loaderCronStart(void) {}

status loaderListen(reason *why) {
    (void)why; /* no connection is to arrive */
    return OK;
}

int main(void) {
    static const char *const words[] = {"loader",       "--save",     "",
                                        "--appendonly", "no",         "--logfile",
                                        "/dev/null",    "--loglevel", "warning"};
    char *argv[COUNT_OF(words) + 1] = {NULL};
    for (size_t i = 0; i < COUNT_OF(words); i++) argv[i] = memDup(words[i], strlen(words[i]));
    return serverMain((int)COUNT_OF(words), argv);
}

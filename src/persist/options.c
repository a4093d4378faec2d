/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of snapshots and the append only file, and `dir`, the working directory. Main thread
 * only. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "format/rdb_settings.h"
#include "persist/aof.h"
#include "persist/aof_files.h"
#include "persist/aof_rewrite.h"
#include "persist/persist_priv.h"
#include "persist/rdb_save.h"
#include "persist/snapshot.h"
#include "store/placeholder.h"

persistConfig persistConf;

static const configWord version_words[] = {
    {"strict", RDB_VERSION_STRICT}, {"relaxed", RDB_VERSION_RELAXED}, {NULL, 0}};
static const configWord compression_words[] = {
    {"no", RDB_COMPRESS_NO},   {"yes", RDB_COMPRESS_YES},   {"lzf", RDB_COMPRESS_LZF},
    {"lz4", RDB_COMPRESS_LZ4}, {"zstd", RDB_COMPRESS_ZSTD}, {NULL, 0}};
static const configWord foreign_words[] = {
    {"refuse", FOREIGN_REFUSE}, {"skip", FOREIGN_SKIP}, {NULL, 0}};
static const configWord fsync_words[] = {
    {"everysec", FSYNC_EVERYSEC}, {"always", FSYNC_ALWAYS}, {"no", FSYNC_NO}, {NULL, 0}};
static const configWord snapshot_mode_words[] = {
    {"auto", SNAPSHOT_AUTO}, {"inline", SNAPSHOT_INLINE}, {"fork", SNAPSHOT_FORK}, {NULL, 0}};
static const configWord bgsave_words[] = {
    {"fork", BGSAVE_FORK}, {"forkless", BGSAVE_FORKLESS}, {NULL, 0}};
static const configWord excess_words[] = {
    {"wait", EXCESS_WAIT}, {"cancel", EXCESS_CANCEL}, {NULL, 0}};

/* ------------------------------------------------------------------ save */

/* Several lines of a file accumulate; an empty one resets the list. */
static status setSave(const slice *words, int count, bool more, reason *why) {
    int kept = more && count ? persistConf.save_point_count : 0;
    if (count % 2) return reasonSet(why, ERR_SYNTAX, "Invalid save parameters");
    savePoint *points = memNewArray(savePoint, (size_t)(kept + count / 2 + 1));
    if (kept) memcpy(points, persistConf.save_points, sizeof(savePoint) * (size_t)kept);
    for (int i = 0; i < count / 2; i++) {
        savePoint *point = &points[kept + i];
        bool good = numberParseInt(words[2 * i], &point->seconds) &&
                    numberParseInt(words[2 * i + 1], &point->changes);
        if (good && point->seconds >= 1 && point->changes >= 0) continue;
        memFree(points);
        return reasonSet(why, ERR_SYNTAX, "Invalid save parameters");
    }
    memFree(persistConf.save_points);
    persistConf.save_points = points;
    persistConf.save_point_count = kept + count / 2;
    return OK;
}

static void getSave(str *out) {
    for (int i = 0; i < persistConf.save_point_count; i++) {
        const savePoint *point = &persistConf.save_points[i];
        strAppendFormat(out, "%s%lld %lld", i ? " " : "", (long long)point->seconds,
                        (long long)point->changes);
    }
}

static const configSpecial save_points = {
    .set = setSave, .get = getSave, .reset = "\"\"", .adds_up = true};

/* ------------------------------------------------------------------ dir */

/* The value is the current working directory of the process. */
static status setDir(const slice *words, int count, bool more, reason *why) {
    (void)count, (void)more; /* the registry checks for one word; the last line applies */
    if (words[0].len == 0) return reasonSet(why, ERR_SYNTAX, "dir can't be empty");
    char *path = memDup(words[0].ptr, words[0].len);
    status st = chdir(path) == 0 ? OK : reasonSet(why, ERR_IO, "%s", strerror(errno));
    memFree(path);
    return st;
}

static void getDir(str *out) {
    char path[PATH_MAX];
    if (getcwd(path, sizeof(path))) strAppendText(out, path);
}

static const configSpecial working_folder = {.set = setDir, .get = getDir};

/* ------------------------------------------------------------------ file names */

static status acceptName(slice text, const char *directive, const char *what, reason *why) {
    if (text.len == 0) return reasonSet(why, ERR_SYNTAX, "%s can't be empty", directive);
    if (memchr(text.ptr, '/', text.len) == NULL) return OK;
    return reasonSet(why, ERR_SYNTAX, "%s can't be a path, just a %s", directive, what);
}

static status acceptDbfilename(slice text, int64_t number, reason *why) {
    (void)number;
    return acceptName(text, "dbfilename", "filename", why);
}

static status acceptAppendfilename(slice text, int64_t number, reason *why) {
    (void)number;
    return acceptName(text, "appendfilename", "filename", why);
}

static status acceptAppenddirname(slice text, int64_t number, reason *why) {
    (void)number;
    return acceptName(text, "appenddirname", "dirname", why);
}

static status applySaving(reason *why) {
    (void)why; /* cannot fail */
    snapshotUpdateGate();
    return OK;
}

static status applyCompression(reason *why) {
    (void)why; /* cannot fail */
    rdbSetCompression(persistConf.rdbcompression != RDB_COMPRESS_NO);
    return OK;
}

static status acceptCompression(slice text, int64_t number, reason *why) {
    (void)text;
    return compressRequire(rdbSaveCodecOf((int)number), why);
}

static status applyVersionCheck(reason *why) {
    (void)why; /* cannot fail */
    rdbSetVersionsRelaxed(persistConf.rdb_version_check == RDB_VERSION_RELAXED);
    return OK;
}

static status applyForeignValues(reason *why) {
    (void)why; /* cannot fail */
    placeholdersAllow(persistConf.foreign_values == FOREIGN_SKIP);
    return OK;
}

static status applyAppendonly(reason *why) {
    bool on = aofStateNow() != AOF_IS_OFF;
    if (on == persistConf.appendonly) return OK;
    if (persistConf.appendonly) return aofSwitchOn(why);
    aofSwitchOff();
    return OK;
}

/* ------------------------------------------------------------------ the table */

/* History that was kept is removed when it is not kept any more. */
static status applyHistory(reason *why) {
    (void)why; /* a failure is logged; the history remains */
    aofFilesRemoveHistory();
    return OK;
}

const configOption persistOptions[] = {
    /* Snapshots. */
    CONFIG_SPECIAL("save", &save_points, "3600 1 300 100 60 10000",
                   .flags = CONFIG_MULTI_WORD | CONFIG_MAY_BE_BARE | CONFIG_ALWAYS_WRITTEN |
                            CONFIG_OF_DATASET,
                   .apply = applySaving),
    CONFIG_SPECIAL("dir", &working_folder, NULL,
                   .flags = CONFIG_PROTECTED | CONFIG_NOT_WHILE_LOADING),
    CONFIG_STRING("dbfilename", persistConf.dbfilename, "dump.rdb", .flags = CONFIG_PROTECTED,
                  .accept = acceptDbfilename),
    CONFIG_ENUM("rdbcompression", persistConf.rdbcompression, compression_words, RDB_COMPRESS_YES,
                .flags = CONFIG_APPLY_AT_START, .accept = acceptCompression,
                .apply = applyCompression),
    CONFIG_BOOL("rdbchecksum", persistConf.rdbchecksum, true, .flags = CONFIG_IMMUTABLE),
    CONFIG_ENUM("rdb-version-check", persistConf.rdb_version_check, version_words,
                RDB_VERSION_STRICT, .flags = CONFIG_APPLY_AT_START, .apply = applyVersionCheck),
    CONFIG_ENUM("foreign-values", persistConf.foreign_values, foreign_words, FOREIGN_REFUSE,
                .apply = applyForeignValues, .flags = CONFIG_APPLY_AT_START),
    CONFIG_BOOL("rdb-del-sync-files", persistConf.rdb_del_sync_files, false),
    CONFIG_BOOL("rdb-save-incremental-fsync", persistConf.rdb_save_incremental_fsync, true),
    CONFIG_BOOL("stop-writes-on-bgsave-error", persistConf.stop_writes_on_bgsave_error, true,
                .apply = applySaving),
    CONFIG_STRING("bgsave-cpulist", persistConf.bgsave_cpulist, "", .flags = CONFIG_IMMUTABLE,
                  .alias = "bgsave_cpulist"),
    CONFIG_ENUM("snapshot-mode", persistConf.snapshot_mode, snapshot_mode_words, SNAPSHOT_AUTO),
    CONFIG_BOOL("forkless-infrastructure-enabled", persistConf.forkless_infrastructure_enabled,
                false),
    CONFIG_ENUM("bgsave-default-method", persistConf.bgsave_default_method, bgsave_words,
                BGSAVE_FORK),
    CONFIG_MEMORY("snapshot-excess-limit", persistConf.snapshot_excess_limit, 64 * CONFIG_MB,
                  CONFIG_MB, INT64_MAX),
    CONFIG_ENUM("snapshot-excess-action", persistConf.snapshot_excess_action, excess_words,
                EXCESS_WAIT),
    /* Append only file. */
    CONFIG_BOOL("appendonly", persistConf.appendonly, false, .flags = CONFIG_NOT_WHILE_LOADING,
                .apply = applyAppendonly),
    CONFIG_STRING("appendfilename", persistConf.appendfilename, "appendonly.aof",
                  .flags = CONFIG_IMMUTABLE, .accept = acceptAppendfilename),
    CONFIG_STRING("appenddirname", persistConf.appenddirname, "appendonlydir",
                  .flags = CONFIG_IMMUTABLE, .accept = acceptAppenddirname),
    CONFIG_ENUM("appendfsync", persistConf.appendfsync, fsync_words, FSYNC_EVERYSEC),
    CONFIG_BOOL("no-appendfsync-on-rewrite", persistConf.no_appendfsync_on_rewrite, false),
    CONFIG_INT("auto-aof-rewrite-percentage", persistConf.auto_aof_rewrite_percentage, 100, 0,
               INT_MAX),
    CONFIG_MEMORY("auto-aof-rewrite-min-size", persistConf.auto_aof_rewrite_min_size,
                  64 * CONFIG_MB, 0, INT64_MAX),
    CONFIG_BOOL("aof-load-truncated", persistConf.aof_load_truncated, true),
    CONFIG_BOOL("aof-use-rdb-preamble", persistConf.aof_use_rdb_preamble, true),
    CONFIG_BOOL("aof-timestamp-enabled", persistConf.aof_timestamp_enabled, false),
    CONFIG_BOOL("aof-rewrite-incremental-fsync", persistConf.aof_rewrite_incremental_fsync, true),
    CONFIG_STRING("aof-rewrite-cpulist", persistConf.aof_rewrite_cpulist, "",
                  .flags = CONFIG_IMMUTABLE, .alias = "aof_rewrite_cpulist"),
    CONFIG_BOOL("aof-disable-auto-gc", persistConf.aof_disable_auto_gc, false,
                .flags = CONFIG_HIDDEN, .apply = applyHistory),
    /* For tests: slow down loading and saving. */
    CONFIG_INT("key-load-delay", persistConf.key_load_delay, 0, INT_MIN, INT_MAX,
               .flags = CONFIG_HIDDEN),
    CONFIG_INT("rdb-key-save-delay", persistConf.rdb_key_save_delay, 0, INT_MIN, INT_MAX,
               .flags = CONFIG_HIDDEN),
    CONFIG_INT("loading-process-events-interval-bytes",
               persistConf.loading_process_events_interval_bytes, 2 * CONFIG_MB, 1024, INT_MAX,
               .flags = CONFIG_HIDDEN),
    CONFIG_END,
};

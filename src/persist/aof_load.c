/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading the append only file (aof_load.h). Commands run as those of a client, with the origin
 * ORIGIN_AOF: nothing is propagated, and keys whose time is past remain until their deletion
 * comes. */
#include "persist/aof_load.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/command.h"
#include "engine/execute.h"
#include "engine/reply.h"
#include "engine/stream_fault.h"
#include "format/rdb_source.h"
#include "io/append_file.h"
#include "persist/aof_files.h"
#include "persist/foreign.h"
#include "persist/loading.h"
#include "persist/persist_priv.h"
#include "persist/rdb_load.h"
#include "store/store.h"

enum { SERVE_EVERY = 1024 }; /* commands between two looks at the progress */

/* One file of the append only file. */
typedef struct loadedFile {
    const char *name;
    char *path;
    bool last; /* its end may be cut */
} loadedFile;

/* ------------------------------------------------------------------ running commands */

/* An error means that the data differ from those of the server that wrote the file. */
static void noteError(aofReplay *p, slice text) {
    const request *r = p->current;
    hotCheck(r->argc > 0);
    str behavior = STR_EMPTY;
    slice name = sliceMake(r->argv[0].ptr, sizeMin(r->argv[0].len, 128));
    uint64_t unlogged;
    bool logs = streamFaultNote(FAULT_OF_FILE, name, text, &unlogged);
    if (logs)
        logWarning(
            "== CRITICAL == This server is sending an error to its AOF-loading-client: '-%.*s' after "
            "processing the command '%.*s'",
            (int)text.len, text.ptr, (int)name.len, name.ptr);
    if (logs && unlogged)
        logWarning("%llu further commands of the append only file have failed since the last such "
                   "line",
                   (unsigned long long)unlogged);
    configGet(configFind(SLICE("propagation-error-behavior")), &behavior);
    bool panics = !strcmp(strText(&behavior), "panic"), stops = !strcmp(strText(&behavior), "stop");
    strFree(&behavior);
    if (stops) {
        p->refused = p->why;
        (void)reasonSet(p->why, ERR_SYNTAX,
                        "'%.*s' failed: %.*s. 'propagation-error-behavior ignore' loads the rest",
                        (int)name.len, name.ptr, (int)text.len, text.ptr);
    }
    if (panics)
        panic("This server is configured to panic on an error of the append only file: %.*s",
              (int)text.len, text.ptr);
}

/* Reports the errors among the replies, also those within the reply to EXEC. */
static void takeReply(void *state, const replyEvent *event) {
    aofReplay *p = state;
    if (likely(event->kind != REPLY_ERROR)) return;
    if (sliceEqual(event->text, ERR_DB_RANGE_TEXT)) {
        p->refused = p->why;
        (void)reasonSet(
            p->why, ERR_SYNTAX,
            "DB index is out of range: the file was written with more than %d databases",
            storeDbCount());
        return;
    }
    if (!p->refused) {
        noteError(p, event->text);
        return;
    }
    size_t skip = sizeof("ERR ") - 1;
    (void)reasonSet(p->refused, ERR_SYNTAX, "%.*s", (int)(event->text.len - skip),
                    event->text.ptr + skip);
}

void aofReplayInit(aofReplay *p) {
    *p = (aofReplay){.sink = {.take = takeReply, .state = p}};
    sessionInit(&p->who, NULL, SESSION_INTERNAL | SESSION_DENY_BLOCKING);
    sessionSetOrigin(&p->who, ORIGIN_AOF);
}

void aofReplayClear(aofReplay *p) { sessionClear(&p->who); }

/* True if the command exists and the number of its arguments is right. */
static bool canRun(const request *r) {
    const command *cmd = r->command;
    bool fits = cmd->arity >= 0 ? r->argc == cmd->arity : r->argc >= -cmd->arity;
    return cmd->name.len && fits;
}

static bool runRecord(aofReplay *p, const aofReader *reader, reason *why) {
    hotCheck(reader->argc > 0);
    request r = {.argv = reader->argv, .argc = reader->argc, .raw = reader->raw};
    executeResolveReplay(&r);
    p->why = why;
    bool is_unknown = !((const command *)r.command)->name.len;
    bool skipped = is_unknown && foreignSkipsCommand(r.argv[0]);
    p->refused = skipped || canRun(&r) ? NULL : why;
    p->current = &r;
    executeReplay(&p->who, &r, &p->sink);
    if (p->refused) return false;
    p->commands++;
    return true;
}

aofItem aofReplayRun(aofReplay *p, aofReader *r, reason *why) {
    hotCheck(p->who.flags & SESSION_INTERNAL);
    for (;;) {
        aofItem item = aofReaderNext(r);
        if (item != AOF_COMMAND && item != AOF_ANNOTATION) return item;
        if (p->position) aofPositionRead(p->position, r, item);
        if (item == AOF_ANNOTATION) continue;
        loadingDelayKey();
        if (!runRecord(p, r, why)) return AOF_COMMAND;
        if (p->commands % SERVE_EVERY == 0) {
            (void)loadingAdvance(aofReaderOffset(r)); /* it is time in any case */
            loadingServe();
        } else if (persistConf.key_load_delay) {
            loadingProgress(aofReaderOffset(r));
        }
    }
}

/* ------------------------------------------------------------------ the end of a file */

static status stopBadFormat(const loadedFile *f) {
    logWarning(
        "Bad file format reading the append only file %s: make a backup of your AOF file, then use "
        "./valkey-check-aof --fix <filename.manifest>",
        f->name);
    return ERR_SYNTAX;
}

/* Cuts the file after its last complete transaction. */
static status cutTail(const loadedFile *f, uint64_t size, bool in_multi) {
    reason why;
    if (!f->last || !persistConf.aof_load_truncated) {
        if (!f->last) {
            logWarning(
                "Fatal error: the truncated file is not the last file: %s ends at offset %llu",
                f->name, (unsigned long long)size);
        } else {
            logWarning(
                "Unexpected end of file reading the append only file %s. You can: 1) Make a backup of "
                "your AOF file, then use ./valkey-check-aof --fix <filename.manifest>. 2) "
                "Alternatively you can set the 'aof-load-truncated' configuration option to yes and "
                "restart the server.",
                f->name);
        }
        return ERR_SYNTAX;
    }
    if (in_multi) logWarning("Revert incomplete MULTI/EXEC transaction in AOF file %s", f->name);
    logWarning("!!! Warning: short read while loading the AOF file %s!!!", f->name);
    logWarning("!!! Truncating the AOF %s at offset %llu !!!", f->name, (unsigned long long)size);
    if (fileCut(f->path, (int64_t)size, &why) != OK) {
        logWarning("Error truncating the AOF file %s: %s", f->name, why.text);
        return ERR_IO;
    }
    logWarning("AOF %s loaded anyway because aof-load-truncated is enabled", f->name);
    return OK;
}

static status finishFile(const loadedFile *f, const aofReader *r, aofItem item, const reason *why) {
    switch (item) {
    case AOF_END: return r->in_multi ? cutTail(f, r->safe_offset, true) : OK;
    case AOF_TRUNCATED: return cutTail(f, r->safe_offset, r->in_multi);
    case AOF_COMMAND:
        logWarning("Error reading the append only file %s, error: %s", f->name, why->text);
        return ERR_SYNTAX;
    case AOF_FAILED:
        logWarning("Unrecoverable error reading the append only file %s: %s", f->name, r->why.text);
        return ERR_IO;
    default:
        logWarning("Invalid content of %s at offset %llu: %s", f->name,
                   (unsigned long long)r->error_offset, r->why.text);
        return stopBadFormat(f);
    }
}

/* ------------------------------------------------------------------ files */

/* Loads an RDB preamble, if there is one; *end is its length. */
static status loadPreamble(const loadedFile *f, uint64_t *end) {
    reason why;
    bool is_rdb;
    *end = 0;
    status st = aofFileIsRdb(f->path, &is_rdb, &why);
    if (st != OK) {
        logWarning("Fatal error: can't open the append log file %s for reading: %s", f->name,
                   why.text);
        return st;
    }
    if (!is_rdb) return OK;
    bool old_style = aofFilesIsOldStyle(f->name);
    logNotice(old_style ? "Reading RDB preamble from AOF file..."
                        : "Reading RDB base file on AOF loading...");
    loadingSetFormat(false);
    st = rdbLoadPreamble(f->path, end, &why);
    loadingSetFormat(true);
    if (st != OK) {
        logWarning("Error reading the RDB preamble of the AOF file %s, AOF loading aborted",
                   f->name);
    } else if (old_style) {
        logNotice("Reading the remaining AOF tail...");
    }
    return st;
}

static status loadFile(const loadedFile *f, aofPosition *position) {
    uint64_t start;
    status st = loadPreamble(f, &start);
    if (st != OK) return st;
    aofPositionNextFile(position);
    rdbFileSource from;
    reason why;
    st = rdbFileSourceOpen(&from, f->path, &why);
    if (st == OK) st = fileReaderSkip(&from.file, (int64_t)start, &why);
    if (st != OK) {
        logWarning("Unrecoverable error reading the append only file %s: %s", f->name, why.text);
        fileReaderClose(&from.file);
        return st;
    }
    aofReader reader;
    aofReplay replay;
    aofReaderInit(&reader, &from.source, start);
    aofReplayInit(&replay);
    replay.position = position;
    aofItem item = aofReplayRun(&replay, &reader, &why);
    loadingProgress(aofReaderOffset(&reader));
    st = finishFile(f, &reader, item, &why);
    aofPositionCut(position, &reader);
    aofReplayClear(&replay);
    aofReaderClear(&reader);
    fileReaderClose(&from.file);
    return st;
}

/* Adds up the sizes of all files; fails if one is missing. */
static status totalSize(const aofManifest *m, int64_t *total) {
    *total = 0;
    for (int i = 0; i < m->count; i++) {
        if (m->files[i].type == AOF_HISTORY) continue;
        str path = aofFilesPath(m->files[i].name);
        int64_t size = fileSize(strText(&path));
        strFree(&path);
        if (size < 0) {
            logWarning("Unable to obtain the AOF file %s length. stat: %s", m->files[i].name,
                       strerror(errno));
            return ERR_NOT_FOUND;
        }
        *total += size;
    }
    return OK;
}

/* True if what follows the file is empty: an incomplete end of it loses nothing else. The next file
 * is listed while changes still go to the last one. */
static bool isLast(const aofManifest *m, int index) {
    if (!aofManifestCount(m, AOF_INCR)) return true;
    for (int i = index + 1; i < m->count; i++) {
        str path = aofFilesPath(m->files[i].name);
        bool has_data = m->files[i].type != AOF_HISTORY && fileSize(strText(&path)) > 0;
        strFree(&path);
        if (has_data) return false;
    }
    return true;
}

static status loadListed(const aofManifest *m, int index, aofPosition *position) {
    hotCheck(index >= 0);
    hotCheck(index < m->count);
    const aofFile *file = &m->files[index];
    if (file->type == AOF_HISTORY) return OK;
    str path = aofFilesPath(file->name);
    loadedFile f = {.name = file->name, .path = path.ptr, .last = isLast(m, index)};
    int64_t began_us = clockMonoUs();
    int64_t size = fileSize(f.path);
    status st = loadFile(&f, position);
    if (st == OK && size > 0)
        logNotice("DB loaded from %s file %s: %.3f seconds",
                  file->type == AOF_BASE ? "base" : "incr", file->name,
                  (double)(clockMonoUs() - began_us) / 1e6);
    loadingNextFile();
    strFree(&path);
    return st;
}

void aofLoadPrintInfo(str *out) {
    hotCheck(threadIsMain());
    uint64_t count = streamFaultCount(FAULT_OF_FILE);
    if (!count) return;
    strAppendFormat(out, "aof_load_errors:%llu\r\naof_load_last_error:", (unsigned long long)count);
    strAppendSlice(out, streamFaultLast(FAULT_OF_FILE));
    strAppendText(out, "\r\n");
}

status aofLoad(void) {
    hotCheck(threadIsMain());
    const aofManifest *m = aofFilesManifest();
    if (!aofManifestBase(m) && !aofManifestCount(m, AOF_INCR)) return ERR_NOT_FOUND;
    int64_t total;
    status st = totalSize(m, &total);
    if (st != OK) return ERR_IO;
    streamFaultForget(FAULT_OF_FILE);
    loadingBegin(DATASET_AOF, persistConf.appendfilename, total);
    aofPosition position;
    aofPositionInit(&position);
    for (int i = 0; i < m->count && st == OK; i++) st = loadListed(m, i, &position);
    loadingEnd(persistConf.appendfilename, st == OK);
    rdbLoadSetOrigin(&position.at);
    return st == ERR_NOT_FOUND ? ERR_IO : st;
}

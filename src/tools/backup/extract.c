/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Folders from chains (extract.h). Invariant: a command within MULTI is written only with the EXEC
 * that ends it, so a cut never leaves half of a transaction. */
#include "tools/backup/extract.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "format/aof_manifest.h"
#include "format/aof_reader.h"
#include "format/rdb_file.h"
#include "format/rdb_settings.h"
#include "format/rdb_source.h"
#include "io/append_file.h"
#include "io/file.h"
#include "store/store.h"
#include "tools/backup/copy.h"

#define AOF_FOLDER "appendonlydir"
#define BASE_NAME "appendonly.aof.1.base.rdb"
#define INCR_NAME "appendonly.aof.1.incr.aof"
enum { STEP_BYTES = 256 * 1024 };

/* ------------------------------------------------------------------ the stream of a chain */

typedef struct streamSource {
    rdbSource source;
    const backupChain *chain;
    const partForm *form;
    int64_t at, limit;            /* offsets: of the next byte, and of the last one wanted */
    const backupSegment *segment; /* NULL: none is open */
    partReader part;
} streamSource;

static void closeSegment(streamSource *s) {
    if (s->segment) partReaderClose(&s->part);
    s->segment = NULL;
}

/* Opens the segment with the next byte. */
static status openSegment(streamSource *s, reason *why) {
    const backupChain *chain = s->chain;
    for (int i = 0; i < chain->count; i++) {
        const backupSegment *segment = &chain->segments[i];
        if (segment->first > s->at || segment->last <= s->at) continue;
        s->segment = segment;
        status st = partReaderOpen(&s->part, strText(&chain->folder), strText(&segment->part.file),
                                   s->form, why);
        char skipped[4096];
        for (int64_t skip = s->at - segment->first; st == OK && skip > 0;) {
            size_t len;
            st = s->part.source.read(&s->part.source, skipped,
                                     sizeMin(sizeof(skipped), (size_t)skip), &len, why);
            if (st == OK && !len) st = reasonSet(why, ERR_IO, "a segment is too short");
            skip -= (int64_t)len;
        }
        return st;
    }
    return reasonSet(why, ERR_NOT_FOUND, "the stream lacks the bytes after offset %" PRId64, s->at);
}

static status readStream(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    streamSource *s = (streamSource *)source;
    *len = 0;
    if (s->at == s->limit) return OK;
    if (s->segment && s->at == s->segment->last) closeSegment(s);
    status st = s->segment ? OK : openSegment(s, why);
    if (st != OK) return st;
    int64_t rest = s->segment->last < s->limit ? s->segment->last - s->at : s->limit - s->at;
    st = s->part.source.read(&s->part.source, dst, sizeMin(cap, (size_t)rest), len, why);
    if (st == OK && !*len) st = reasonSet(why, ERR_IO, "a segment is too short");
    s->at += (int64_t)*len;
    return st;
}

/* ------------------------------------------------------------------ the increment */

typedef struct incrWriter {
    fileWriter *file;  /* NULL: nothing is written */
    str unit;          /* records of a transaction that has no end yet */
    int64_t written_s; /* time of the last annotation */
    const backupChain *chain;
    int segment, mark; /* the next mark */
    uint64_t commands, waiting;
} incrWriter;

/* Writes the times that the stream has passed, so that valkey-check-aof can cut there. */
static void annotate(incrWriter *w, int64_t offset) {
    int64_t time_s = -1;
    while (w->segment < w->chain->count) {
        const backupMarks *marks = &w->chain->segments[w->segment].marks;
        if (w->mark == marks->count) {
            w->segment++;
            w->mark = 0;
            continue;
        }
        if (marks->list[w->mark].offset > offset) break;
        time_s = marks->list[w->mark++].time_ms / 1000;
    }
    if (time_s <= w->written_s) return;
    w->written_s = time_s;
    aofPrintTime(&w->unit, time_s);
}

/* What a replica is told about the link, not about the data. */
static bool isOfLink(slice name) { return sliceIs(name, "ping") || sliceIs(name, "replconf"); }

static status addRecord(incrWriter *w, const aofReader *r, int64_t before, reason *why) {
    if (isOfLink(r->argv[0])) return OK;
    if (!w->unit.len) annotate(w, before);
    strAppendSlice(&w->unit, r->raw);
    w->waiting++;
    if (r->in_multi) return OK;
    status st = w->file ? fileWriterWrite(w->file, w->unit.ptr, w->unit.len, why) : OK;
    w->commands += w->waiting;
    w->waiting = 0;
    strClear(&w->unit);
    return st;
}

static status copyStream(const backupPlan *plan, const partForm *form, incrWriter *w,
                         extractResult *result, reason *why) {
    int64_t from = plan->chain->full.offset;
    streamSource source = {.source = {.read = readStream},
                           .chain = plan->chain,
                           .form = form,
                           .at = from,
                           .limit = plan->offset};
    aofReader reader;
    aofReaderInit(&reader, &source.source, (uint64_t)from);
    w->chain = plan->chain;
    status st = OK;
    aofItem item = AOF_COMMAND;
    while (st == OK) {
        int64_t before = (int64_t)aofReaderOffset(&reader);
        item = aofReaderNext(&reader);
        if (item == AOF_ANNOTATION) continue;
        if (item != AOF_COMMAND) break;
        st = addRecord(w, &reader, before, why);
    }
    if (item == AOF_INVALID || item == AOF_FAILED)
        st = reasonSet(why, ERR_SYNTAX, "the stream cannot be read at offset %" PRIu64 ": %s",
                       reader.error_offset, reader.why.text);
    result->offset = reader.safe_offset ? (int64_t)reader.safe_offset : from;
    result->commands = w->commands;
    strFree(&w->unit);
    aofReaderClear(&reader);
    closeSegment(&source);
    return st;
}

/* ------------------------------------------------------------------ the full copy */

/* The database that the stream begins in. */
static status onAux(void *arg, rdbReader *r, slice name, slice value) {
    (void)r;                                                               /* is not wrong */
    if (sliceIs(name, "repl-stream-db")) (void)numberParseInt(value, arg); /* else it is 0 */
    return OK;
}

static status stopAtDb(void *arg, rdbReader *r, uint64_t id) {
    (void)arg, (void)r, (void)id; /* the fields precede */
    return ERR_EXISTS;
}

static status stopAtFunction(void *arg, rdbReader *r, slice source) {
    (void)arg, (void)r, (void)source; /* the same */
    return ERR_EXISTS;
}

static rdbFileOptions readOptions(void) {
    return (rdbFileOptions){
        .values = {.limits = *rdbLimitsNow(), .look = lookAtAll()},
        .relaxed = true,
        .skip_modules = true,
        .skip_foreign = true,
        .foreign_everywhere = true,
        .check_checksum = true,
    };
}

static int64_t readStreamDb(const char *path) {
    static const rdbFileHandler handler = {
        .aux = onAux, .db = stopAtDb, .function = stopAtFunction, .key = NULL};
    const rdbFileOptions options = readOptions();
    rdbFileSource source;
    rdbReader reader;
    rdbFileResult result;
    reason why;
    int64_t db = 0;
    if (rdbFileSourceOpen(&source, path, &why) != OK) return 0;
    rdbReaderInit(&reader, &source.source, false);
    status st = rdbFileRead(&reader, &options, &handler, &db, &result);
    if (st != OK && st != ERR_EXISTS) db = 0; /* the copy was verified: it is of another format */
    rdbReaderClear(&reader);
    fileReaderClose(&source.file);
    return db > 0 ? db : 0;
}

static status copyFull(const backupPlan *plan, const partForm *form, const char *path,
                       reason *why) {
    partReader part;
    fileWriter file;
    str temporary = STR_EMPTY;
    strAppendFormat(&temporary, "%s.tmp", path);
    status st = partReaderOpen(&part, strText(&plan->chain->folder),
                               strText(&plan->chain->full.part.file), form, why);
    if (st == OK) {
        st = fileWriterOpen(&file, temporary.ptr, 0, why);
        char *buffer = memAlloc(STEP_BYTES);
        size_t len = 1;
        bool opened = st == OK;
        while (st == OK && len > 0) {
            st = part.source.read(&part.source, buffer, STEP_BYTES, &len, why);
            if (st == OK) st = fileWriterWrite(&file, buffer, len, why);
        }
        if (st == OK) {
            st = fileWriterPublish(&file, path, why);
        } else if (opened) {
            fileWriterAbort(&file);
        }
        memFree(buffer);
    }
    partReaderClose(&part);
    strFree(&temporary);
    return st;
}

/* ------------------------------------------------------------------ the folder */

static status prepareFolder(const char *out, reason *why) {
    DIR *folder = opendir(out);
    if (!folder) {
        if (errno != ENOENT) return reasonSetErrno(why, "%s", out);
        return folderCreateAll(out, why);
    }
    int entries = 0;
    while (readdir(folder)) entries++;
    closedir(folder);
    return entries <= 2 ? OK : reasonSet(why, ERR_EXISTS, "%s is not empty", out);
}

static status writeManifest(const char *folder, reason *why) {
    aofManifest manifest = {0};
    str text = STR_EMPTY, path = STR_EMPTY;
    aofManifestAdd(&manifest, AOF_BASE, BASE_NAME, 1);
    aofManifestAdd(&manifest, AOF_INCR, INCR_NAME, 1);
    aofManifestPrint(&manifest, &text);
    strAppendFormat(&path, "%s/appendonly.aof.manifest", folder);
    status st = fileReplace(path.ptr, strSlice(&text), 0644, why);
    aofManifestClear(&manifest);
    strFree(&text);
    strFree(&path);
    return st;
}

static status writeIncrement(const backupPlan *plan, const partForm *form, const char *folder,
                             int64_t db, extractResult *result, reason *why) {
    fileWriter file;
    str path = STR_EMPTY, temporary = STR_EMPTY;
    strAppendFormat(&path, "%s/" INCR_NAME, folder);
    strAppendFormat(&temporary, "%s.tmp", path.ptr);
    status st = fileWriterOpen(&file, temporary.ptr, 0, why);
    if (st == OK) {
        incrWriter w = {.file = &file};
        char digits[NUMBER_TEXT_MAX];
        const slice select[] = {SLICE("SELECT"), sliceMake(digits, numberPrintInt(digits, db))};
        str first = STR_EMPTY;
        aofPrintCommand(&first, 2, select);
        st = fileWriterWrite(&file, first.ptr, first.len, why);
        strFree(&first);
        if (st == OK) st = copyStream(plan, form, &w, result, why);
        if (st == OK) {
            st = fileWriterPublish(&file, path.ptr, why);
        } else {
            fileWriterAbort(&file);
        }
    }
    strFree(&path);
    strFree(&temporary);
    return st;
}

status extractVerify(const backupPlan *plan, reason *why) {
    const backupChain *chain = plan->chain;
    status st = partVerify(strText(&chain->folder), &chain->full.part, why);
    for (int i = 0; i < chain->count && st == OK; i++) {
        const backupSegment *segment = &chain->segments[i];
        if (segment->first >= plan->offset) break;
        if (!segment->is_open) st = partVerify(strText(&chain->folder), &segment->part, why);
    }
    return st;
}

status extractBuild(const backupPlan *plan, const partForm *form, const char *out,
                    extractResult *result, reason *why) {
    const backupFull *full = &plan->chain->full;
    check(plan->offset >= full->offset);
    *result = (extractResult){.offset = full->offset, .is_aof = plan->offset > full->offset};
    str folder = STR_EMPTY, path = STR_EMPTY;
    status st = prepareFolder(out, why);
    if (st == OK) st = extractVerify(plan, why);
    strAppendFormat(&folder, "%s%s", out, result->is_aof ? "/" AOF_FOLDER : "");
    strAppendFormat(&path, "%s/%s", folder.ptr, result->is_aof ? BASE_NAME : "dump.rdb");
    if (st == OK) st = folderCreate(folder.ptr, why);
    if (st == OK) st = copyFull(plan, form, path.ptr, why);
    if (st == OK && result->is_aof) {
        st = writeIncrement(plan, form, folder.ptr, readStreamDb(path.ptr), result, why);
        if (st == OK) st = writeManifest(folder.ptr, why);
    }
    strFree(&folder);
    strFree(&path);
    return st;
}

/* ------------------------------------------------------------------ without writing */

static status dropKey(void *arg, rdbReader *r, rdbKey *key) {
    (void)arg, (void)r; /* only the reading counts */
    if (key->o) objectFree(key->o);
    return OK;
}

static status readFull(const backupPlan *plan, const partForm *form, reason *why) {
    static const rdbFileHandler handler = {.key = dropKey};
    const rdbFileOptions options = readOptions();
    partReader part;
    rdbReader reader;
    rdbFileResult result;
    const char *file = strText(&plan->chain->full.part.file);
    status st = partReaderOpen(&part, strText(&plan->chain->folder), file, form, why);
    if (st == OK) {
        rdbReaderInit(&reader, &part.source, true);
        st = rdbFileRead(&reader, &options, &handler, NULL, &result);
        if (st != OK) (void)reasonSet(why, st, "%s: %s", file, reader.why.text);
        rdbReaderClear(&reader);
    }
    partReaderClose(&part);
    return st;
}

status extractCheck(const backupPlan *plan, const partForm *form, extractResult *result,
                    reason *why) {
    incrWriter w = {0};
    *result = (extractResult){.offset = plan->chain->full.offset};
    status st = extractVerify(plan, why);
    if (st == OK) st = readFull(plan, form, why);
    if (st == OK && plan->offset > plan->chain->full.offset)
        st = copyStream(plan, form, &w, result, why);
    return st;
}

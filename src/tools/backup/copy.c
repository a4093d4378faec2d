/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Full copies (copy.h). Invariant: a chain has its description only after its copy is complete and
 * on disk, so an incomplete one is never restored. */
#include "tools/backup/copy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "io/append_file.h"
#include "io/file.h"
#include "tools/backup/record.h"
#include "tools/cli/interrupt.h"

enum { MARK_TRIES = 3 };

void backupSay(const backupJob *job, const char *format, ...) {
    char now[TIME_TEXT_MAX];
    va_list args;
    va_start(args, format);
    str line = STR_EMPTY; /* in one write: the lines of several shards do not mix */
    strAppendFormat(&line, "%s%s%s: ", timePrint(clockWallMs(), now), *job->shard ? " " : "",
                    job->shard);
    strAppendFormatV(&line, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", line.ptr);
    strFree(&line);
}

status folderCreateAll(const char *path, reason *why) {
    str part = STR_EMPTY;
    status st = OK;
    for (const char *at = path; st == OK && *at; at++) {
        if (*at == '/' && part.len) st = folderCreate(part.ptr, why);
        strAppendByte(&part, *at);
    }
    if (st == OK) st = folderCreate(strText(&part), why);
    strFree(&part);
    return st;
}

/* ------------------------------------------------------------------ upload */

static void appendShellWord(str *out, const char *text) {
    strAppendByte(out, '\'');
    for (; *text; text++) {
        if (*text == '\'') {
            strAppendText(out, "'\\''");
        } else {
            strAppendByte(out, *text);
        }
    }
    strAppendByte(out, '\'');
}

status uploadFile(const backupJob *job, const char *folder, const char *file, reason *why) {
    const char *command = job->options->backup.upload, *at;
    if (!command) return OK;
    str line = STR_EMPTY, path = STR_EMPTY;
    strAppendFormat(&path, "%s/%s", folder, file);
    while ((at = strstr(command, "{}"))) {
        strAppend(&line, command, (size_t)(at - command));
        appendShellWord(&line, path.ptr);
        command = at + 2;
    }
    strAppendText(&line, command);
    int state = system(line.ptr);
    bool good = state != -1 && WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (!good)
        (void)reasonSet(why, ERR_IO, "the command of --upload failed for %s (exit code %d)",
                        path.ptr, WIFEXITED(state) ? WEXITSTATUS(state) : -1);
    strFree(&line);
    strFree(&path);
    return good ? OK : ERR_IO;
}

/* ------------------------------------------------------------------ the copy */

typedef struct copySink {
    partWriter writer;
    status st;
    reason why;
} copySink;

static bool addToPart(void *arg, const char *bytes, size_t len) {
    copySink *sink = arg;
    sink->st = partWriterAdd(&sink->writer, bytes, len, &sink->why);
    return sink->st == OK;
}

static void chainFolder(const backupJob *job, const backupFull *full, str *out) {
    char text[TIME_TEXT_MAX];
    time_t seconds = (time_t)(full->time_ms / 1000);
    struct tm parts;
    strftime(text, sizeof(text), "%Y%m%dT%H%M%S", gmtime_r(&seconds, &parts));
    strAppendFormat(out, "%s/full-%s.%03dZ-%" PRId64, job->target, text,
                    (int)(full->time_ms % 1000), full->offset);
}

/* The clock is asked just after the copy began: what was written in between is in the stream up to
 * the mark's offset. */
static status timeOf(backupSource *source, copyResult *out, reason *why) {
    status st = ERR_AGAIN;
    for (int i = 0; i < MARK_TRIES && st == ERR_AGAIN; i++) {
        st = sourceMark(source, &out->begin, why);
        if (st == ERR_AGAIN) clockSleepUs(100 * 1000);
    }
    if (st == OK) out->full.time_ms = out->begin.time_ms;
    return st;
}

static void describe(const backupJob *job, const backupSource *source, backupFull *full) {
    memcpy(full->repl_id, source->repl_id, sizeof(full->repl_id));
    full->offset = source->offset;
    full->server = strNew(strSlice(&source->server));
    full->version = strNew(strSlice(&source->version));
    full->shard = strNew(sliceOf(job->shard));
    full->slots = strNew(sliceOf(job->slots));
    strAppendFormat(&full->source, "%s:%d", strText(&source->at.host), source->at.port);
}

/* Receives the copy into a part. */
static status receive(const backupJob *job, backupSource *source, const char *folder,
                      partInfo *part, int *exit_code, reason *why) {
    copySink sink = {.st = OK};
    *exit_code = BACKUP_TARGET;
    status st = partWriterOpen(&sink.writer, folder, "dump.rdb", &job->form, why);
    if (st != OK) return st;
    jobProgress progress;
    const fullSyncSink into = {.write = addToPart, .arg = &sink};
    jobProgressBegin(&progress, job->quiet ? PROGRESS_NONE : job->options->progress, "backup",
                     "bytes", 0);
    if (sourceReceive(source, &into, &progress)) return partWriterEnd(&sink.writer, part, why);
    partWriterAbort(&sink.writer);
    if (sink.st != OK) return reasonSet(why, sink.st, "%s", sink.why.text);
    *exit_code = BACKUP_SOURCE;
    return reasonSet(why, ERR_IO, "%s:%d: %s during the full copy", strText(&source->at.host),
                     source->at.port,
                     interruptPending() ? "interrupted" : "the connection was lost");
}

/* ACL LIST as a part with a description. */
static status copyUsers(const backupJob *job, backupSource *source, const char *folder,
                        reason *why) {
    valkeyReply *reply;
    status st = sourceCommand(source, &reply, why, "ACL LIST");
    if (st != OK) return st;
    str text = STR_EMPTY, path = STR_EMPTY;
    for (size_t i = 0; i < reply->elements; i++)
        strAppendFormat(&text, "%s\n", reply->element[i]->str);
    freeReplyObject(reply);
    partWriter writer;
    partInfo part = {0};
    st = partWriterOpen(&writer, folder, "users.acl", &job->form, why);
    if (st == OK) st = partWriterAdd(&writer, strText(&text), text.len, why);
    if (st == OK) st = partWriterEnd(&writer, &part, why);
    if (st == OK) {
        strAppendFormat(&path, "%s/users.json", folder);
        strClear(&text);
        recordBegin(&text, "users");
        partInfoWrite(&text, &part);
        st = recordSave(&text, path.ptr, why);
    }
    if (st == OK) st = uploadFile(job, folder, strText(&part.file), why);
    if (st == OK) st = uploadFile(job, folder, "users.json", why);
    partInfoClear(&part);
    strFree(&text);
    strFree(&path);
    return st;
}

status copyUpload(const backupJob *job, const char *folder, const backupFull *full, bool begin,
                  reason *why) {
    if (!job->options->backup.upload) return OK;
    str owed = STR_EMPTY;
    strAppendFormat(&owed, "%s/upload-owed", folder);
    status st = OK;
    if (begin) st = fileReplace(owed.ptr, SLICE(""), 0640, why);
    if (st == OK && fileSize(owed.ptr) >= 0) {
        st = uploadFile(job, folder, strText(&full->part.file), why);
        if (st == OK) st = uploadFile(job, folder, FULL_FILE, why);
        if (st == OK && unlink(owed.ptr) < 0) st = reasonSetErrno(why, "%s", owed.ptr);
    }
    strFree(&owed);
    return st;
}

static status fillChain(const backupJob *job, backupSource *source, copyResult *out, int *exit_code,
                        reason *why) {
    backupFull *full = &out->full;
    status st = OK;
    if (job->options->backup.users) st = copyUsers(job, source, out->folder.ptr, why);
    if (st == OK) st = receive(job, source, out->folder.ptr, &full->part, exit_code, why);
    if (st != OK) return st;
    return fullSave(full, out->folder.ptr, why);
}

static status writeChain(const backupJob *job, backupSource *source, copyResult *out,
                         int *exit_code, reason *why) {
    partInfo *part = &out->full.part;
    if (!strcmp(job->target, "-")) return receive(job, source, "-", part, exit_code, why);
    chainFolder(job, &out->full, &out->folder);
    *exit_code = BACKUP_TARGET;
    status st = folderCreate(out->folder.ptr, why);
    if (st != OK) return st;
    st = fillChain(job, source, out, exit_code, why);
    reason left;
    if (st != OK && chainRemove(out->folder.ptr, &left) != OK) backupSay(job, "%s", left.text);
    return st == OK ? copyUpload(job, out->folder.ptr, &out->full, true, why) : st;
}

status copyReceive(const backupJob *job, backupSource *source, copyResult *out, int *exit_code,
                   reason *why) {
    *out = (copyResult){0};
    *exit_code = BACKUP_SOURCE;
    status st = timeOf(source, out, why);
    if (st == OK) {
        describe(job, source, &out->full);
        st = writeChain(job, source, out, exit_code, why);
    }
    if (st != OK) copyResultClear(out);
    return st;
}

status copyMake(const backupJob *job, backupSource *source, bool stays, copyResult *out,
                int *exit_code, reason *why) {
    bool continues = false;
    *exit_code = BACKUP_SOURCE;
    status st = sourceBegin(source, NULL, 0, stays, &continues, why);
    check(st != OK || !continues);
    if (st != OK) {
        *out = (copyResult){0};
        return st;
    }
    return copyReceive(job, source, out, exit_code, why);
}

void copyResultClear(copyResult *result) {
    fullClear(&result->full);
    strFree(&result->folder);
}

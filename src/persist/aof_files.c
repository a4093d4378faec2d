/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of the append only file (aof_files.h). Invariant: `manifest` equals the manifest on
 * disk. A file is created and its folder flushed before the manifest lists it, and removed after a
 * manifest that does not need it is on disk: whenever the power fails, the manifest lists complete
 * files. Files that a killed process leaves are in the manifest, as history, or in no manifest, and
 * are removed at the next start.
 *
 * The manifest is written only after its first files are complete, so a first rewrite that fails
 * leaves no manifest. Files without a manifest are data whose manifest is missing, unless an empty
 * file, the mark, exists. The mark means that a process has ended while it created the first files:
 * it is on disk before these files get their names, and is removed after the manifest was written.
 *
 * If the folder cannot be flushed after the manifest was replaced, either version may survive a
 * power failure. Then the old one stays in use, the files of both remain, and the numbers of the
 * new files are not used again. */
#include "persist/aof_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/latency.h"
#include "engine/server_event.h"
#include "io/bio.h"
#include "io/file.h"
#include "io/file_stream.h"
#include "io/sys.h"
#include "persist/persist_priv.h"
#include "persist/rdb_save.h"

enum { MANIFEST_BYTES_MAX = 64 * 1024 * 1024 };

/* A manifest may have no files, if only history files are left. An empty manifest would be
 * refused. */
static const char no_files[] = "# no files\n";

static struct {
    aofManifest manifest; /* without one on disk it has the numbers that are in use, but no files */
    bool exists;          /* on disk */
    bool may_mark;        /* without one: there are no data that a next start may not remove */
    bool unsure;          /* the last change failed, and the version on disk may be the new one */
    struct filesJob *job; /* in the background; NULL: none */
} files;

const aofManifest *aofFilesManifest(void) { return &files.manifest; }

/* ------------------------------------------------------------------ names */

str aofFilesPath(const char *name) {
    str path = STR_EMPTY;
    strAppendFormat(&path, "%s/%s", persistConf.appenddirname, name);
    return path;
}

static str manifestName(void) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "%s.manifest", persistConf.appendfilename);
    return name;
}

static str manifestPath(void) {
    str name = manifestName(), path = aofFilesPath(strText(&name));
    strFree(&name);
    return path;
}

static str baseName(int64_t seq, bool as_commands) {
    hotCheck(seq > 0);
    str name = STR_EMPTY;
    strAppendFormat(&name, "%s.%lld.base.%s", persistConf.appendfilename, (long long)seq,
                    as_commands ? "aof" : "rdb");
    return name;
}

static str incrName(int64_t seq) {
    hotCheck(seq > 0);
    str name = STR_EMPTY;
    strAppendFormat(&name, "%s.%lld.incr.aof", persistConf.appendfilename, (long long)seq);
    return name;
}

/* Returns the path of a temporary file, which the caller frees. */
static str temporaryPath(const char *ending) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "temp-%s.%s", persistConf.appendfilename, ending);
    str path = aofFilesPath(strText(&name));
    strFree(&name);
    return path;
}

static str temporaryIncrPath(void) { return temporaryPath("incr"); }
static str markPath(void) { return temporaryPath("first"); }

bool aofFilesIsOldStyle(const char *name) { return !strcmp(name, persistConf.appendfilename); }

static int64_t sizeOf(const aofFile *file) {
    str path = aofFilesPath(file->name);
    int64_t size = fileSize(strText(&path));
    strFree(&path);
    return size > 0 ? size : 0;
}

int64_t aofFilesSize(void) {
    int64_t size = 0;
    for (int i = 0; i < files.manifest.count; i++) {
        const aofFile *file = &files.manifest.files[i];
        if (file->type != AOF_HISTORY) size += sizeOf(file);
    }
    return size;
}

int64_t aofFilesBaseSize(void) {
    const aofFile *base = aofManifestBase(&files.manifest);
    return base ? sizeOf(base) : 0;
}

/* ------------------------------------------------------------------ the manifest */

static void logManifestError(const aofManifestError *error) {
    logWarning("\n*** FATAL AOF MANIFEST FILE ERROR ***\n");
    if (error->line) {
        logWarning("Reading the manifest file, at line %d\n", error->line);
        logWarning(">>> '%s'\n", strText(&error->text));
    }
    logWarning("%s\n", error->why.text);
}

status aofFilesReadManifest(void) {
    aofFilesWait();
    str path = manifestPath(), content;
    reason why;
    status st = OK;
    files.exists = fileSize(strText(&path)) >= 0;
    if (files.exists) {
        st = fileReadAll(strText(&path), MANIFEST_BYTES_MAX, &content, &why);
        if (st != OK) logWarning("Fatal error: can't read the AOF manifest: %s", why.text);
    }
    if (files.exists && st == OK) {
        aofManifest read;
        aofManifestError error;
        st = aofManifestParse(strSlice(&content), &read, &error);
        if (st == OK) {
            aofManifestClear(&files.manifest);
            files.manifest = read;
        } else {
            logManifestError(&error);
            strFree(&error.text);
        }
        strFree(&content);
    }
    strFree(&path);
    return st;
}

/* A new manifest on its way to the disk. */
typedef struct manifestChange {
    aofManifest next;
    str content, path, temporary;
    bool tried;
    status st; /* if it was tried */
    reason why;
    bool unsure; /* it failed, and the version on disk may be the new one */
} manifestChange;

static status writeManifest(const manifestChange *c, reason *why) {
    fileWriter w;
    status st = fileWriterOpen(&w, strText(&c->temporary), 0, why);
    if (st != OK) return st;
    st = fileWriterWrite(&w, c->content.ptr, c->content.len, why);
    if (st == OK) return fileWriterPublish(&w, strText(&c->path), why);
    fileWriterAbort(&w);
    return st;
}

/* True if this is the manifest's content as others see it. */
static bool manifestReads(const manifestChange *c) {
    str now;
    reason why;
    if (fileReadAll(strText(&c->path), MANIFEST_BYTES_MAX, &now, &why) != OK) return false;
    bool same = sliceEqual(strSlice(&now), strSlice(&c->content));
    strFree(&now);
    return same;
}

/* ANY_THREAD. */
static void changeInit(manifestChange *c, aofManifest *take) {
    str name = manifestName();
    *c = (manifestChange){.next = *take, .path = manifestPath()};
    strAppendFormat(&c->temporary, "%s/temp-%s", persistConf.appenddirname, strText(&name));
    strFree(&name);
    aofManifestPrint(&c->next, &c->content);
    if (!c->content.len) strAppendText(&c->content, no_files);
    *take = (aofManifest){0};
}

/* Writes and flushes it. ANY_THREAD. */
static void changeRun(manifestChange *c) {
    hotCheck(c->content.len > 0);
    c->tried = true;
    c->st = fileSyncFolder(strText(&c->path), &c->why); /* the files it lists */
    if (c->st != OK) return;
    c->st = writeManifest(c, &c->why);
    c->unsure = c->st != OK && manifestReads(c);
}

/* If removing the mark fails, the next start removes it. */
static void removeMark(void) {
    str path = markPath();
    (void)unlink(strText(&path));
    strFree(&path);
}

/* After a failure files.unsure tells whether the new files must remain. */
static status changeEnd(manifestChange *c, reason *why) {
    hotCheck(threadIsMain());
    files.unsure = c->unsure;
    if (c->tried && c->st == OK) {
        aofManifestClear(&files.manifest);
        files.manifest = c->next;
        if (!files.exists) removeMark();
        files.exists = true;
    } else {
        if (c->tried) *why = c->why;
        if (c->tried) logWarning("Fail to persist the AOF manifest: %s", why->text);
        if (files.unsure) {
            files.manifest.base_seq = c->next.base_seq;
            files.manifest.incr_seq = c->next.incr_seq;
        }
        aofManifestClear(&c->next);
    }
    strFree(&c->content);
    strFree(&c->path);
    strFree(&c->temporary);
    return c->st;
}

/* Replaces the manifest by `*take`. */
static status setManifest(aofManifest *take, reason *why) {
    manifestChange change;
    changeInit(&change, take);
    changeRun(&change);
    return changeEnd(&change, why);
}

/* ------------------------------------------------------------------ files without a manifest */

typedef struct found {
    int64_t highest_seq;
    bool has_data;
} found;

/* Reads the number in "<appendfilename>.<seq>.base.*" or "<appendfilename>.<seq>.incr.aof". */
static bool parseName(const char *name, long long *seq, bool *incr) {
    size_t len = strlen(persistConf.appendfilename);
    char kind[5] = "";
    if (strncmp(name, persistConf.appendfilename, len) != 0) return false;
    if (sscanf(name + len, ".%lld.%4[a-z].", seq, kind) != 2 || *seq < 1) return false;
    *incr = !strcmp(kind, "incr");
    return *incr || !strcmp(kind, "base");
}

static void noteFile(const char *name, void *arg) {
    found *f = arg;
    long long seq;
    bool incr;
    if (!parseName(name, &seq, &incr)) return;
    if (seq > f->highest_seq) f->highest_seq = seq;
    str path = aofFilesPath(name);
    f->has_data = f->has_data || !incr || fileSize(strText(&path)) > 0;
    strFree(&path);
}

static status findFiles(found *out, reason *why) {
    *out = (found){0};
    return folderEach(persistConf.appenddirname, noteFile, out, why);
}

static bool isMarked(void) {
    str path = markPath();
    bool marked = fileSize(strText(&path)) >= 0;
    strFree(&path);
    return marked;
}

status aofFilesCheckLost(reason *why) {
    hotCheck(threadIsMain());
    found f;
    if (files.exists || isMarked()) return OK;
    status st = findFiles(&f, why);
    if (st != OK || !f.has_data) return st;
    str path = manifestPath();
    st =
        reasonSet(why, ERR_NOT_FOUND,
                  "the AOF manifest %s is missing, but the directory has AOF files. Restore it, or "
                  "move the directory away to start with an empty dataset",
                  strText(&path));
    strFree(&path);
    return st;
}

/* Creates the folder, unless it exists. New files get numbers above those of files that are not in
 * the manifest. */
static status prepareFolder(reason *why) {
    status st = folderCreate(persistConf.appenddirname, why);
    if (st != OK || files.exists) return st;
    found f;
    st = findFiles(&f, why);
    if (st != OK) return st;
    files.may_mark = !f.has_data || isMarked();
    int64_t *base = &files.manifest.base_seq, *incr = &files.manifest.incr_seq;
    if (*base < f.highest_seq) *base = f.highest_seq;
    if (*incr < f.highest_seq) *incr = f.highest_seq;
    return OK;
}

/* Puts the mark on disk. ANY_THREAD. */
static status markFirst(reason *why) {
    str path = markPath();
    appendFile mark;
    status st = appendFileOpen(&mark, strText(&path), true, why);
    if (st == OK) {
        appendFileClose(&mark);
        st = fileSyncFolder(strText(&path), why);
    }
    if (st == OK) st = fileSyncFolder(persistConf.appenddirname, why); /* the folder itself */
    strFree(&path);
    return st;
}

/* ------------------------------------------------------------------ migration */

status aofFilesMigrate(reason *why) {
    hotCheck(threadIsMain());
    const char *old = persistConf.appendfilename;
    const aofFile *base = aofManifestBase(&files.manifest);
    /* After a crash between the two steps below the base is listed, but not in the folder. */
    bool begun = base && files.manifest.count == 1 && aofFilesIsOldStyle(base->name);
    if ((files.exists && !begun) || fileSize(old) < 0) return OK;
    str path = aofFilesPath(old);
    status st = OK;
    if (begun && fileSize(strText(&path)) >= 0) {
        strFree(&path);
        return OK;
    }
    st = folderCreate(persistConf.appenddirname, why);
    if (st == OK) st = fileSyncFolder(persistConf.appenddirname, why);
    if (st == OK && !begun) {
        aofManifest m = {0};
        aofManifestAdd(&m, AOF_BASE, old, 1);
        st = setManifest(&m, why);
    }
    if (st == OK && sysCallsNow()->rename(old, strText(&path)) != 0)
        st = reasonSetErrno(why, "Can't move the old-style AOF file %s to %s", old, strText(&path));
    if (st == OK) st = fileSyncFolder(strText(&path), why);
    if (st == OK)
        logNotice("Successfully migrated an old-style AOF file (%s) into the AOF directory (%s).",
                  old, persistConf.appenddirname);
    strFree(&path);
    return st;
}

/* ------------------------------------------------------------------ changes of files */

/* A change of files, by a thread or at once. There is one at a time: files.job. */
typedef struct filesJob {
    manifestChange change;
    str path;        /* of the new incremental file; empty: files are renamed instead */
    appendFile incr; /* it */
    str from[2], to[2];
    bool marks;                /* the first files get a mark before they have their names */
    int rename_count, renamed; /* how many are to be renamed, and were */
    int64_t rename_ms;         /* the longest of them */
    bool removes_history;
    manifestChange after; /* without history files */
    status st;
    reason why;
    aofFilesDoneProc *done;
} filesJob;

static void createFile(filesJob *job) {
    hotCheck(job->path.len > 0);
    hotCheck(!job->removes_history);
    job->st = appendFileOpen(&job->incr, strText(&job->path), true, &job->why);
    if (job->st != OK) return;
    changeRun(&job->change);
    job->st = job->change.st;
    if (job->st == OK) return;
    appendFileClose(&job->incr);
    if (!job->change.unsure) (void)unlink(strText(&job->path)); /* else it remains, empty */
}

/* Renames and lists them, or leaves nothing. */
static void adoptFiles(filesJob *job) {
    hotCheck(job->rename_count > 0);
    hotCheck(!job->renamed);
    while (job->st == OK && job->renamed < job->rename_count) {
        const char *from = strText(&job->from[job->renamed]), *to = strText(&job->to[job->renamed]);
        int64_t began_ms = clockMonoMs();
        if (sysCallsNow()->rename(from, to) != 0) {
            job->st = reasonSetErrno(&job->why, "Can't rename %s to %s", from, to);
        } else {
            job->renamed++;
        }
        int64_t ms = clockMonoMs() - began_ms;
        if (ms > job->rename_ms) job->rename_ms = ms;
    }
    if (job->st == OK) {
        changeRun(&job->change);
        job->st = job->change.st;
    }
    if (job->st == OK || job->change.unsure) return;
    for (int i = 0; i < job->rename_count; i++)
        (void)unlink(strText(&job->to[i])); /* nothing refers to it */
}

static bool unlinkHistory(const char *path) { return unlink(path) == 0 || errno == ENOENT; }

/* Removes history files by `remove`, and those that are gone from the list. Until the new list is
 * on disk the manifest has them, so that a process that ends now leaves nothing that is not found
 * again. After a failure it lists files that are missing; history is never read. True if one is
 * gone. The threads are those of `remove`. */
static bool dropHistory(aofManifest *m, bool (*remove)(const char *path)) {
    bool any = false;
    for (int i = 0; i < m->count;) {
        str path = aofFilesPath(m->files[i].name);
        bool gone = m->files[i].type == AOF_HISTORY && remove(strText(&path));
        strFree(&path);
        if (gone) {
            aofManifestRemove(m, i);
            any = true;
        } else {
            i++;
        }
    }
    return any;
}

static void removeHistory(filesJob *job) {
    hotCheck(job->change.tried);
    aofManifest after = aofManifestCopy(&job->change.next);
    bool removed = dropHistory(&after, unlinkHistory);
    changeInit(&job->after, &after);
    if (removed) changeRun(&job->after);
}

/* ANY_THREAD; at the end the main thread calls endJob(). */
static void runJob(filesJob *job) {
    job->st = folderCreate(persistConf.appenddirname, &job->why);
    if (job->st == OK && job->marks) job->st = markFirst(&job->why);
    if (job->st != OK) return;
    if (job->path.len) {
        createFile(job);
    } else {
        adoptFiles(job);
    }
    if (job->st == OK && job->removes_history) removeHistory(job);
}

static void initJob(filesJob *job) {
    hotCheck(!files.job);
    *job = (filesJob){.incr = {.fd = -1}, .marks = !files.exists && files.may_mark};
}

static void logHistory(const aofManifest *m) {
    for (int i = 0; i < m->count; i++) {
        if (m->files[i].type == AOF_HISTORY)
            logNotice("Removing the history file %s in the background", m->files[i].name);
    }
}

static void logRenamed(const filesJob *job) {
    latencyNote("aof-rename", job->rename_ms);
    if (job->renamed)
        logNotice("Successfully renamed the temporary AOF base file %s into %s",
                  strText(&job->from[0]), strText(&job->to[0]));
    if (job->renamed > 1)
        logNotice("Successfully renamed the temporary AOF incr file %s into %s",
                  strText(&job->from[1]), strText(&job->to[1]));
}

/* Frees what the job contains, but not its file. */
static status endJob(filesJob *job, reason *why) {
    hotCheck(threadIsMain());
    hotCheck(job->renamed <= job->rename_count);
    status st = job->st;
    if (job->rename_count) logRenamed(job);
    if (st != OK) *why = job->why;
    (void)changeEnd(&job->change, why); /* the same status */
    if (st == OK && job->removes_history) {
        reason ignored; /* a failure is logged */
        logHistory(&files.manifest);
        (void)changeEnd(&job->after, &ignored);
    }
    strFree(&job->path);
    for (int i = 0; i < job->rename_count; i++) {
        strFree(&job->from[i]);
        strFree(&job->to[i]);
    }
    return st;
}

/* ------------------------------------------------------------------ creating and opening */

static status addToManifest(aofFileType type, const char *name, int64_t seq, reason *why) {
    hotCheck(seq > 0);
    aofManifest next = aofManifestCopy(&files.manifest);
    aofManifestAdd(&next, type, name, seq);
    return setManifest(&next, why);
}

status aofFilesCreateBase(reason *why) {
    hotCheck(threadIsMain());
    status st = prepareFolder(why);
    if (st == OK && !files.exists && files.may_mark) st = markFirst(why);
    if (st != OK) return st;
    bool as_commands = !persistConf.aof_use_rdb_preamble;
    int64_t seq = files.manifest.base_seq + 1;
    str name = baseName(seq, as_commands), path = aofFilesPath(strText(&name));
    logNotice("Creating AOF base file %s on server start", strText(&name));
    char temporary[64];
    snprintf(temporary, sizeof(temporary), "temp-rewriteaof-%d.aof", (int)getpid());
    const rdbSaveJob job = {.temporary = temporary,
                            .name = strText(&path),
                            .is_aof_base = true,
                            .as_commands = as_commands,
                            .syncs = persistConf.aof_rewrite_incremental_fsync};
    serverEventSaving(EVENT_BEGINS, true, true);
    st = rdbSaveTo(&job, why);
    if (st == OK) st = addToManifest(AOF_BASE, strText(&name), seq, why);
    serverEventSaving(st == OK ? EVENT_ENDED : EVENT_FAILED, true, true);
    strFree(&name);
    strFree(&path);
    return st;
}

/* The manifest that lists the next incremental file. */
static void initCreate(filesJob *job, const char *when) {
    aofManifest next = aofManifestCopy(&files.manifest);
    int64_t seq = files.manifest.incr_seq + 1;
    str name = incrName(seq);
    initJob(job);
    job->path = aofFilesPath(strText(&name));
    logNotice("Creating AOF incr file %s on %s", strText(&name), when);
    aofManifestAdd(&next, AOF_INCR, strText(&name), seq);
    changeInit(&job->change, &next);
    strFree(&name);
}

/* Creates an incremental file and adds it to the manifest. */
static status createIncr(appendFile *out, const char *when, reason *why) {
    aofFilesWait();
    status st = prepareFolder(why);
    if (st != OK) return st;
    filesJob job;
    initCreate(&job, when);
    runJob(&job);
    *out = job.incr;
    return endJob(&job, why);
}

status aofFilesOpenLast(appendFile *out, reason *why) {
    hotCheck(threadIsMain());
    const aofFile *last = aofManifestLast(&files.manifest, AOF_INCR);
    if (!last) return createIncr(out, "server start", why);
    logNotice("Opening AOF incr file %s on server start", last->name);
    str path = aofFilesPath(last->name);
    status st = appendFileOpen(out, strText(&path), false, why);
    strFree(&path);
    return st;
}

status aofFilesCreateIncr(appendFile *out, reason *why) {
    return createIncr(out, "background rewrite", why);
}

status aofFilesCreateTemporaryIncr(appendFile *out, reason *why) {
    hotCheck(threadIsMain());
    status st = prepareFolder(why);
    if (st != OK) return st;
    str path = temporaryIncrPath();
    logNotice("Creating AOF incr file temp-%s.incr on background rewrite",
              persistConf.appendfilename);
    st = appendFileOpen(out, strText(&path), true, why);
    strFree(&path);
    return st;
}

void aofFilesRemoveTemporaryIncr(void) {
    hotCheck(threadIsMain());
    str path = temporaryIncrPath();
    if (fileSize(strText(&path)) >= 0) {
        logNotice("Removing the temp incr aof file temp-%s.incr in the background",
                  persistConf.appendfilename);
        (void)unlink(strText(&path)); /* the next one replaces it */
    }
    strFree(&path);
}

/* ------------------------------------------------------------------ after a rewrite */

/* Adds the renaming of a file. */
static void addRename(filesJob *job, str *take_from, str *take_to) {
    hotCheck(job->rename_count < (int)COUNT_OF(job->from));
    job->from[job->rename_count] = *take_from;
    job->to[job->rename_count++] = *take_to;
    *take_from = *take_to = STR_EMPTY;
}

static void initAdopt(filesJob *job, const char *temporary, bool as_commands, bool adopt_incr,
                      bool keep_incr) {
    aofManifest next = aofManifestCopy(&files.manifest);
    int64_t base_seq = next.base_seq + 1, incr_seq = next.incr_seq + 1;
    str name = baseName(base_seq, as_commands);
    str from = strNew(sliceOf(temporary)), to = aofFilesPath(strText(&name));
    initJob(job);
    addRename(job, &from, &to);
    aofManifestRetire(&next, keep_incr ? 1 : 0);
    aofManifestAdd(&next, AOF_BASE, strText(&name), base_seq);
    strFree(&name);
    if (adopt_incr) {
        name = incrName(incr_seq);
        from = temporaryIncrPath();
        to = aofFilesPath(strText(&name));
        addRename(job, &from, &to);
        aofManifestAdd(&next, AOF_INCR, strText(&name), incr_seq);
        strFree(&name);
    }
    changeInit(&job->change, &next);
}

status aofFilesAdoptBase(const char *temporary, bool as_commands, bool adopt_incr, bool keep_incr,
                         reason *why) {
    aofFilesWait();
    status st = prepareFolder(why);
    if (st != OK) return st;
    filesJob job;
    initAdopt(&job, temporary, as_commands, adopt_incr, keep_incr);
    runJob(&job);
    return endJob(&job, why);
}

/* ------------------------------------------------------------------ in the background */

static int runInBackground(void *arg) {
    runJob(arg);
    return 0; /* the result is in the job */
}

static void backgroundDone(void *arg, int error) {
    (void)error; /* always 0 */
    filesJob *job = arg;
    hotCheck(job == files.job);
    reason why;
    aofFilesDoneProc *done = job->done;
    appendFile incr = job->incr;
    files.job = NULL;
    status st = endJob(job, &why);
    memFree(job);
    done(st, &incr, &why);
}

static void startJob(filesJob *job, aofFilesDoneProc *done) {
    hotCheck(!files.job);
    job->done = done;
    files.job = job;
    bioSubmitTask(BIO_CLOSE, runInBackground, backgroundDone, job);
}

bool aofFilesAreChanging(void) { return files.job != NULL; }

void aofFilesWait(void) {
    hotCheck(threadIsMain());
    while (files.job) {
        bioDrain(BIO_CLOSE);
        bioComplete();
    }
}

status aofFilesCreateIncrLater(aofFilesDoneProc *done, reason *why) {
    aofFilesWait();
    status st = prepareFolder(why);
    if (st != OK) return st;
    filesJob *job = memNew(filesJob);
    initCreate(job, "background rewrite");
    startJob(job, done);
    return OK;
}

status aofFilesAdoptBaseLater(const char *temporary, bool as_commands, bool adopt_incr,
                              bool keep_incr, aofFilesDoneProc *done, reason *why) {
    aofFilesWait();
    status st = prepareFolder(why);
    if (st != OK) return st;
    filesJob *job = memNew(filesJob);
    initAdopt(job, temporary, as_commands, adopt_incr, keep_incr);
    job->removes_history = !persistConf.aof_disable_auto_gc;
    startJob(job, done);
    return OK;
}

/* ------------------------------------------------------------------ removing */

static void closeFile(void *arg) { (void)close((int)(intptr_t)arg); }

/* Removes the name at once; the blocks are freed in the background, when the last descriptor is
 * closed. True if there is no such file any more. */
static bool removeFile(const char *path) {
    int fd = fileOpen(path, O_RDONLY, 0);
    bool gone = unlink(path) == 0 || errno == ENOENT;
    if (!gone) logWarning("Can't remove %s: %s", path, strerror(errno));
    if (fd >= 0) bioSubmit(BIO_CLOSE, closeFile, (void *)(intptr_t)fd);
    return gone;
}

void aofFilesRemoveHistory(void) {
    aofFilesWait();
    if (persistConf.aof_disable_auto_gc || !aofManifestCount(&files.manifest, AOF_HISTORY)) return;
    aofManifest next = aofManifestCopy(&files.manifest);
    reason why;
    logHistory(&files.manifest);
    (void)dropHistory(&next, removeFile); /* a failure is logged, as that of the next line */
    (void)setManifest(&next, &why);
}

/* True for the name of a file that only this server can have made in its folder. */
static bool isOurs(const char *name) {
    long long seq;
    bool incr;
    if (!strncmp(name, "temp-", 5)) {
        const char *rest = name + 5;
        size_t len = strlen(persistConf.appendfilename);
        if (strncmp(rest, persistConf.appendfilename, len) != 0) return false;
        return !strcmp(rest + len, ".incr") || !strcmp(rest + len, ".manifest") ||
               !strcmp(rest + len, ".first");
    }
    if (!parseName(name, &seq, &incr)) return false;
    str expected[3] = {incrName(seq), baseName(seq, false), baseName(seq, true)};
    bool same = false;
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        same = same || !strcmp(name, strText(&expected[i]));
        strFree(&expected[i]);
    }
    return same;
}

static void sweepFile(const char *name, void *arg) {
    (void)arg;
    if (!isOurs(name)) return;
    for (int i = 0; i < files.manifest.count; i++)
        if (!strcmp(files.manifest.files[i].name, name)) return;
    logNotice("Removing the file %s, which the AOF manifest does not list", name);
    str path = aofFilesPath(name);
    (void)removeFile(strText(&path)); /* a failure is logged */
    strFree(&path);
}

void aofFilesSweep(void) {
    hotCheck(threadIsMain());
    reason why;
    str path = manifestPath();
    /* The manifest that was read may not be on disk; until it is, files of an older one may be
     * needed again. */
    status st = files.exists && !persistConf.aof_disable_auto_gc
                    ? fileSyncFolder(strText(&path), &why)
                    : ERR_NOT_FOUND;
    strFree(&path);
    if (st != OK) return;
    if (folderEach(persistConf.appenddirname, sweepFile, NULL, &why) != OK)
        logWarning("Files that the AOF manifest does not list are not removed: %s", why.text);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of the append only file (aof_files.h). Invariant: `manifest` equals the manifest on
 * disk. A file is created and its folder flushed before the manifest lists it, and removed after a
 * manifest that does not need it is on disk: whenever the power fails, the manifest lists complete
 * files. What a killed process leaves is in the manifest, as history, or in none, and is removed at
 * the next start.
 *
 * If the folder cannot be flushed after the manifest was replaced, either version may survive a
 * power failure. Then the old one stays in use, the files of both remain, and the numbers of the
 * new files are not used again. */
#include "persist/aof_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

/* Written before the first files exist, so that files without a manifest are recognised as an
 * accident. */
static const char no_files[] = "# no files yet\n";

static struct {
    aofManifest manifest;
    bool exists; /* on disk */
    bool unsure; /* the last change failed, and the version on disk may be the new one */
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

static str temporaryIncrPath(void) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "temp-%s.incr", persistConf.appendfilename);
    str path = aofFilesPath(strText(&name));
    strFree(&name);
    return path;
}

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
    hotCheck(threadIsMain());
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

static status writeManifest(slice content, reason *why) {
    str name = manifestName(), path = manifestPath(), temporary = STR_EMPTY;
    strAppendFormat(&temporary, "%s/temp-%s", persistConf.appenddirname, strText(&name));
    fileWriter w;
    status st = fileWriterOpen(&w, strText(&temporary), 0, why);
    if (st == OK) {
        st = fileWriterWrite(&w, content.ptr, content.len, why);
        if (st == OK) {
            st = fileWriterPublish(&w, strText(&path), why);
        } else {
            fileWriterAbort(&w);
        }
    }
    strFree(&name);
    strFree(&path);
    strFree(&temporary);
    return st;
}

/* True if this is the manifest's content as others see it. */
static bool manifestReads(slice content) {
    str path = manifestPath(), now;
    reason why;
    bool same = false;
    if (fileReadAll(strText(&path), MANIFEST_BYTES_MAX, &now, &why) == OK) {
        same = sliceEqual(strSlice(&now), content);
        strFree(&now);
    }
    strFree(&path);
    return same;
}

/* Replaces the manifest by `*take`. After a failure files.unsure tells whether the new files must
 * remain. */
static status setManifest(aofManifest *take, reason *why) {
    str content = STR_EMPTY, path = manifestPath();
    aofManifestPrint(take, &content);
    if (!content.len) strAppendText(&content, no_files);
    files.unsure = false;
    status st = fileSyncFolder(strText(&path), why); /* the files it lists */
    if (st == OK) {
        st = writeManifest(strSlice(&content), why);
        files.unsure = st != OK && manifestReads(strSlice(&content));
    }
    if (st == OK) {
        aofManifestClear(&files.manifest);
        files.manifest = *take;
        files.exists = true;
    } else {
        logWarning("Fail to persist the AOF manifest: %s", why->text);
        if (files.unsure) {
            files.manifest.base_seq = take->base_seq;
            files.manifest.incr_seq = take->incr_seq;
        }
        aofManifestClear(take);
    }
    strFree(&content);
    strFree(&path);
    return st;
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

status aofFilesCheckLost(reason *why) {
    hotCheck(threadIsMain());
    found f;
    if (files.exists) return OK;
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

/* Creates the folder and a manifest without files, unless they exist. New files get numbers above
 * those of files that are not in the manifest. */
static status prepareFolder(reason *why) {
    status st = folderCreate(persistConf.appenddirname, why);
    if (st != OK || files.exists) return st;
    found f;
    st = fileSyncFolder(persistConf.appenddirname, why);
    if (st == OK) st = findFiles(&f, why);
    if (st != OK) return st;
    aofManifest empty = {.base_seq = f.highest_seq, .incr_seq = f.highest_seq};
    return setManifest(&empty, why);
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

/* Creates an incremental file and adds it to the manifest. */
static status createIncr(appendFile *out, const char *when, reason *why) {
    status st = prepareFolder(why);
    if (st != OK) return st;
    int64_t seq = files.manifest.incr_seq + 1;
    str name = incrName(seq), path = aofFilesPath(strText(&name));
    logNotice("Creating AOF incr file %s on %s", strText(&name), when);
    st = appendFileOpen(out, strText(&path), true, why);
    if (st == OK) {
        st = addToManifest(AOF_INCR, strText(&name), seq, why);
        if (st != OK) {
            appendFileClose(out);
            if (!files.unsure) (void)unlink(strText(&path)); /* else it remains, empty */
        }
    }
    strFree(&name);
    strFree(&path);
    return st;
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

static status renameFile(const char *from, const char *to, reason *why) {
    int64_t began_ms = clockMonoMs();
    status st = sysCallsNow()->rename(from, to) == 0
                    ? OK
                    : reasonSetErrno(why, "Can't rename %s to %s", from, to);
    latencyNote("aof-rename", clockMonoMs() - began_ms);
    return st;
}

/* Gives the temporary incremental file its name; *name and *seq are those of the manifest. */
static status adoptIncr(str *name, int64_t seq, reason *why) {
    hotCheck(seq > 0);
    *name = incrName(seq);
    str from = temporaryIncrPath(), to = aofFilesPath(strText(name));
    status st = renameFile(strText(&from), strText(&to), why);
    if (st == OK)
        logNotice("Successfully renamed the temporary AOF incr file temp-%s.incr into %s",
                  persistConf.appendfilename, strText(name));
    strFree(&from);
    strFree(&to);
    return st;
}

/* Removes the files of a change that failed. */
static void removeUnused(const char *base, const char *incr) {
    const char *const names[] = {base, incr};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!names[i][0]) continue;
        str path = aofFilesPath(names[i]);
        (void)unlink(strText(&path)); /* nothing refers to it */
        strFree(&path);
    }
}

status aofFilesAdoptBase(const char *temporary, bool as_commands, bool adopt_incr, bool keep_incr,
                         reason *why) {
    hotCheck(threadIsMain());
    status st = prepareFolder(why);
    if (st != OK) return st;
    aofManifest next = aofManifestCopy(&files.manifest);
    int64_t base_seq = next.base_seq + 1, incr_seq = next.incr_seq + 1;
    str base = baseName(base_seq, as_commands), base_path = aofFilesPath(strText(&base));
    str incr = STR_EMPTY;
    st = renameFile(temporary, strText(&base_path), why);
    if (st == OK)
        logNotice("Successfully renamed the temporary AOF base file %s into %s", temporary,
                  strText(&base));
    if (st == OK && adopt_incr) st = adoptIncr(&incr, incr_seq, why);
    if (st == OK) {
        aofManifestRetire(&next, keep_incr ? 1 : 0);
        aofManifestAdd(&next, AOF_BASE, strText(&base), base_seq);
        if (adopt_incr) aofManifestAdd(&next, AOF_INCR, strText(&incr), incr_seq);
        st = setManifest(&next, why);
    } else {
        aofManifestClear(&next);
        files.unsure = false;
    }
    if (st != OK && !files.unsure) removeUnused(strText(&base), strText(&incr));
    strFree(&base);
    strFree(&base_path);
    strFree(&incr);
    return st;
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
    hotCheck(threadIsMain());
    if (persistConf.aof_disable_auto_gc || !aofManifestCount(&files.manifest, AOF_HISTORY)) return;
    aofManifest next = aofManifestCopy(&files.manifest);
    for (int i = 0; i < next.count;) {
        str path = aofFilesPath(next.files[i].name);
        bool removed = false;
        if (next.files[i].type == AOF_HISTORY) {
            logNotice("Removing the history file %s in the background", next.files[i].name);
            removed = removeFile(strText(&path));
        }
        if (removed) {
            aofManifestRemove(&next, i);
        } else {
            i++;
        }
        strFree(&path);
    }
    reason why;
    /* Until here the manifest lists them, so that a process that ends now leaves nothing that is
     * not found again. After a failure, which was logged, it lists files that are missing; history
     * is never read. */
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
        return !strcmp(rest + len, ".incr") || !strcmp(rest + len, ".manifest");
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

/* Files of rewrites are named after a process; another server in the same directory may be one that
 * runs. */
static void sweepTemporary(const char *name, void *arg) {
    (void)arg;
    static const char *const forms[] = {"temp-rewriteaof-bg-%d.ao%c%c", "temp-rewriteaof-%d.ao%c%c",
                                        "temp-sync-base-%d.rd%c%c"};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        int process = 0;
        char last, more;
        if (sscanf(name, forms[i], &process, &last, &more) != 2 || process <= 0) continue;
        if (process != getpid() && (kill(process, 0) == 0 || errno != ESRCH)) return;
        logNotice("Removing the file %s of a rewrite that did not end", name);
        (void)removeFile(name); /* a failure is logged */
        return;
    }
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
    if (folderEach(persistConf.appenddirname, sweepFile, NULL, &why) != OK ||
        folderEach(".", sweepTemporary, NULL, &why) != OK)
        logWarning("Files that the AOF manifest does not list are not removed: %s", why.text);
}

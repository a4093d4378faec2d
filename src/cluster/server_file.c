/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads and writes the configuration file of this node, its copy and its lock (server_file.h).
 *
 * Invariant: the file and its copy are each replaced as a whole by a rename. A save that is flushed
 * replaces the copy first, so after a crash at least one of both is complete. The thread reads a
 * text that nobody changes, and the name of the file, which cannot be changed. */
#include "cluster/server_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/base.h"
#include "bus/file_choice.h"
#include "cluster/cluster_priv.h"
#include "cluster/server_bus.h"
#include "engine/hot.h"
#include "io/bio.h"
#include "io/file.h"
#include "io/thread.h"
#include "net/net.h"

enum { FILE_MAX_BYTES = 64 << 20, FILE_MODE = 0644, COMPLAINT_MS = 30000 };

static int lock_fd = -1;
static int64_t copy_told_ms; /* when a failure was last told of; 0: never */
static struct {
    int64_t at_s;
    bool failed;
} last_save;

str serverFileName(const char *suffix) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "%s%s", clusterConf.cluster_config_file, suffix);
    return name;
}

/* ------------------------------------------------------------------ the lock */

static status takeLock(reason *why) {
    check(lock_fd < 0);
    str name = serverFileName(".lock");
    status st = OK;
    int fd = fileOpen(strText(&name), O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (fd < 0) {
        st = reasonSetErrno(why, "Can't open %s in order to acquire a lock", strText(&name));
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            st = reasonSet(why, ERR_DENIED,
                           "Sorry, the cluster configuration file %s is already used by a "
                           "different Cluster node. Please make sure that different nodes use "
                           "different cluster configuration files.",
                           clusterConf.cluster_config_file);
        } else {
            st = reasonSetErrno(why, "Impossible to lock %s", strText(&name));
        }
        close(fd);
    }
    strFree(&name);
    if (st == OK) lock_fd = fd;
    return st;
}

void serverFileInChild(void) {
    if (lock_fd < 0) return;
    close(lock_fd); /* the lock stays: the server has the same open file */
    lock_fd = -1;
}

/* ------------------------------------------------------------------ reading */

/* Reads a file; `out` is NULL if there is none, and never for an empty one. */
static status readText(const char *path, str *content, slice *out, reason *why) {
    status st = fileReadAll(path, FILE_MAX_BYTES, content, why);
    *out = st == OK ? sliceMake(strText(content), content->len) : (slice){NULL, 0};
    return st == ERR_NOT_FOUND ? OK : st;
}

/* Keeps a text that is not used, which the next save would replace. */
static void keepAside(slice text) {
    check(text.len > 0);
    str name = serverFileName(".old");
    reason why;
    if (fileReplace(strText(&name), text, FILE_MODE, &why) == OK) {
        logNotice("The text that is not used is kept in %s.", strText(&name));
    } else {
        logWarning("The text that is not used is lost: %s", why.text);
    }
    strFree(&name);
}

static status parseText(clusterMap *m, slice text, const char *path, reason *why) {
    reason line;
    status st = clusterMapParse(m, text, netTlsForCluster(), serverBusNowMs(), &line);
    if (st == OK) return OK;
    return reasonSet(why, st, "Unrecoverable error: corrupted cluster config file \"%s\": %s.",
                     path, line.text);
}

/* The file is damaged and there is no copy. */
static status refuse(const fileChoice *choice, const char *path, reason *why) {
    check(choice->why);
    char line[32] = "";
    if (choice->line) snprintf(line, sizeof(line), " (line %d)", choice->line);
    return reasonSet(
        why, ERR_SYNTAX,
        "Unrecoverable error: corrupted cluster config file \"%s\": it %s%s, and there "
        "is no intact copy. If it was edited by hand, remove the word crc64 and its "
        "value from the last line.",
        path, choice->why, line);
}

static status useCopy(clusterMap *m, const char *words, slice main, slice copy, reason *why) {
    check(copy.len > 0);
    const char *path = clusterConf.cluster_config_file;
    logWarning("Cluster configuration file %s %s: using its copy %s.bak.", path, words, path);
    if (main.len) keepAside(main);
    return parseText(m, copy, path, why);
}

static status useChoice(clusterMap *m, const fileChoice *choice, slice main, slice copy,
                        reason *why) {
    const char *path = clusterConf.cluster_config_file;
    status st;
    switch (choice->use) {
    case FILE_NONE:
        if (!copy.len) return OK;
        logNotice("The cluster configuration file %s is missing, so this node is a new one.", path);
        keepAside(copy);
        return OK;
    case FILE_REFUSED: return refuse(choice, path, why);
    case FILE_COPY: return useCopy(m, choice->why, main, copy, why);
    case FILE_MAIN:
    case FILE_MAIN_IF_VALID:
        st = parseText(m, main, path, why);
        if (st == OK && choice->why)
            logWarning("Cluster configuration file %s %s: it is used as it is.", path, choice->why);
        if (st == OK || choice->use == FILE_MAIN) return st;
        logWarning("%s", why->text);
        return useCopy(m, choice->why, main, copy, why);
    }
    return ERR_SYNTAX;
}

status serverFileOpen(clusterMap *m, bool *found, bool *intact, reason *why) {
    check(!m->myself);
    const char *path = clusterConf.cluster_config_file;
    str main_text = STR_EMPTY, copy_text = STR_EMPTY, copy_path = serverFileName(".bak");
    slice main, copy;
    reason ignored;
    status st = takeLock(why);
    if (st == OK) st = readText(path, &main_text, &main, why);
    if (st == OK) {
        if (readText(strText(&copy_path), &copy_text, &copy, &ignored) != OK)
            logWarning("The copy of the cluster configuration file is ignored: %s", ignored.text);
        fileChoice choice = clusterFileChoose(main, copy);
        *found = choice.use != FILE_NONE;
        *intact = choice.use == FILE_MAIN && sliceEqual(main, copy) &&
                  !fileIsSame(path, strText(&copy_path));
        st = useChoice(m, &choice, main, copy, why);
    }
    strFree(&main_text);
    strFree(&copy_text);
    strFree(&copy_path);
    return st;
}

/* ------------------------------------------------------------------ writing */

/* A text to be written, and what became of it. Until its end the thread has it alone. */
typedef struct fileSave {
    str text;
    bool flush;
    status result;
    fileFailure failure;
    bool owes_copy; /* both names are of one file */
    int copy_error; /* as errno; 0: none */
    serverFileDone *done;
} fileSave;

static void logFailure(const fileFailure *failure) {
    static const char *const steps[] = {
        [FILE_CREATE] = "Could not open temp cluster config file",
        [FILE_OWNER] = "Could not set the owner of the temp cluster config file",
        [FILE_WRITE] = "Could not write tmp cluster config file",
        [FILE_SYNC] = "Could not sync tmp cluster config file",
        [FILE_LINK] = "Could not link tmp cluster config file",
        [FILE_RENAME] = "Could not rename tmp cluster config file",
        [FILE_SYNC_FOLDER] = "Could not sync the directory of the cluster config file",
    };
    check((size_t)failure->step < COUNT_OF(steps));
    logWarning("%s: %s", steps[failure->step], strerror(failure->error));
}

static fileSave *newSave(const clusterMap *m, bool flush, serverFileDone *done) {
    check(lock_fd >= 0);
    fileSave *save = memNew(fileSave);
    *save = (fileSave){.text = STR_EMPTY, .flush = flush, .done = done};
    clusterMapPrint(m, netTlsForCluster(), &save->text);
    clusterFileSeal(&save->text);
    return save;
}

/* Writes the copy as a file of its own. Its name gets to the disk with that of the file, in the
 * same directory. ANY_THREAD. */
static void writeCopy(fileSave *save) {
    check(save->text.len > 0);
    str path = serverFileName(".bak");
    fileFailure failure;
    status st = fileReplaceAs(strText(&path), strSlice(&save->text), FILE_MODE, FILE_FLUSH_CONTENT,
                              &failure);
    save->copy_error = st == OK ? 0 : failure.error;
    strFree(&path);
}

/* ANY_THREAD. */
static int writeFile(void *arg) {
    fileSave *save = arg;
    const char *path = clusterConf.cluster_config_file;
    slice text = strSlice(&save->text);
    if (save->flush) {
        str copy = serverFileName(".bak");
        save->result = fileReplaceBoth(path, strText(&copy), text, FILE_MODE, &save->failure);
        strFree(&copy);
        save->owes_copy = save->result == OK;
        if (save->owes_copy || save->failure.step != FILE_LINK) return 0;
        writeCopy(save);
    }
    save->result = fileReplaceAs(path, text, FILE_MODE,
                                 save->flush ? FILE_FLUSH_ALL : FILE_FLUSH_NONE, &save->failure);
    return 0; /* the result is in `save` */
}

static int separateCopy(void *arg) {
    writeCopy(arg);
    return 0;
}

/* Tasks of the thread whose end was not processed yet. A task that has run but not ended counts:
 * its end may begin the next save. */
static int tasks;

static void submit(bioTaskProc *run, bioDoneProc *done, fileSave *save) {
    tasks++;
    bioSubmitTask(BIO_REPLACE, run, done, save);
}

/* The node works without the copy, so a failure is only told. */
static void freeSave(fileSave *save) {
    if (save->copy_error && logIsDue(&copy_told_ms, engineHot.now_ms, COMPLAINT_MS))
        logWarning("The copy of the cluster configuration file could not be written to %s.bak: %s",
                   clusterConf.cluster_config_file, strerror(save->copy_error));
    strFree(&save->text);
    memFree(save);
}

static void copyEnded(void *arg, int error) {
    (void)error; /* the result is in the save */
    check(tasks > 0);
    tasks--;
    freeSave(arg);
}

/* Reports what writeFile() has done, and has the thread do the rest. */
static void conclude(fileSave *save) {
    check(threadIsMain());
    last_save.failed = save->result != OK;
    if (last_save.failed) {
        logFailure(&save->failure);
    } else {
        last_save.at_s = clockWallMs() / 1000;
    }
    if (save->done) save->done(save->result);
    if (save->owes_copy) {
        submit(separateCopy, copyEnded, save);
    } else {
        freeSave(save);
    }
}

static void fileEnded(void *arg, int error) {
    (void)error; /* the result is in the save */
    check(tasks > 0);
    tasks--;
    conclude(arg);
}

void serverFileBegin(const clusterMap *m, bool flush, serverFileDone *done) {
    submit(writeFile, fileEnded, newSave(m, flush, done));
}

void serverFileWait(void) {
    check(threadIsMain());
    while (tasks) {
        bioDrain(BIO_REPLACE);
        bioComplete(); /* which may begin the next one */
    }
}

status serverFileWrite(const clusterMap *m, bool flush, reason *why) {
    serverFileWait();
    fileSave *save = newSave(m, flush, NULL);
    (void)writeFile(save); /* the result is in `save` */
    status st = save->result;
    if (st != OK) st = reasonSet(why, st, "%s", strerror(save->failure.error));
    conclude(save);
    return st;
}

int64_t serverFileSavedAt(bool *failed) {
    *failed = last_save.failed;
    return last_save.at_s;
}

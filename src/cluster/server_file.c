/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads and writes the configuration file of this node, its copy and its lock (server_file.h).
 *
 * Invariant: the file and its copy are each replaced as a whole by a rename. A save that is flushed
 * replaces the copy first, so after a crash at least one of both is complete. Main thread only. */
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
#include "io/file.h"
#include "net/net.h"

enum { FILE_MAX_BYTES = 64 << 20, FILE_MODE = 0644, COMPLAINT_MS = 30000 };

static int lock_fd = -1;
static bool owes_flush; /* a save that had to be flushed has failed */
/* When a failure was last told of; 0: never. */
static int64_t unsaved_told_ms, copy_told_ms;

/* The name of a file beside the configuration file; the caller frees it. */
static str nameOf(const char *suffix) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "%s%s", clusterConf.cluster_config_file, suffix);
    return name;
}

/* ------------------------------------------------------------------ the lock */

static status takeLock(reason *why) {
    check(lock_fd < 0);
    str name = nameOf(".lock");
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
    str name = nameOf(".old");
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
    str main_text = STR_EMPTY, copy_text = STR_EMPTY, copy_path = nameOf(".bak");
    slice main, copy;
    reason ignored;
    status st = takeLock(why);
    if (st == OK) st = readText(path, &main_text, &main, why);
    if (st == OK) {
        if (readText(strText(&copy_path), &copy_text, &copy, &ignored) != OK)
            logWarning("The copy of the cluster configuration file is ignored: %s", ignored.text);
        fileChoice choice = clusterFileChoose(main, copy);
        *found = choice.use != FILE_NONE;
        *intact = choice.use == FILE_MAIN && sliceEqual(main, copy);
        st = useChoice(m, &choice, main, copy, why);
    }
    strFree(&main_text);
    strFree(&copy_text);
    strFree(&copy_path);
    return st;
}

/* ------------------------------------------------------------------ writing */

static void logFailure(const fileFailure *failure) {
    static const char *const steps[] = {
        [FILE_CREATE] = "Could not open temp cluster config file",
        [FILE_OWNER] = "Could not set the owner of the temp cluster config file",
        [FILE_WRITE] = "Could not write tmp cluster config file",
        [FILE_SYNC] = "Could not sync tmp cluster config file",
        [FILE_RENAME] = "Could not rename tmp cluster config file",
        [FILE_SYNC_FOLDER] = "Could not sync the directory of the cluster config file",
    };
    check((size_t)failure->step < COUNT_OF(steps));
    logWarning("%s: %s", steps[failure->step], strerror(failure->error));
}

/* The node works without the copy, so a failure is only told. */
static void writeCopy(slice text) {
    check(text.len > 0);
    str path = nameOf(".bak");
    fileFailure failure;
    /* Its name gets to the disk with that of the file, in the same directory. */
    status st = fileReplaceAs(strText(&path), text, FILE_MODE, FILE_FLUSH_CONTENT, &failure);
    if (st != OK && logIsDue(&copy_told_ms, engineHot.now_ms, COMPLAINT_MS))
        logWarning("The copy of the cluster configuration file could not be written to %s: %s",
                   strText(&path), strerror(failure.error));
    strFree(&path);
}

status serverFileWrite(const clusterMap *m, bool flush, reason *why) {
    check(lock_fd >= 0);
    str text = STR_EMPTY;
    fileFailure failure;
    clusterMapPrint(m, netTlsForCluster(), &text);
    clusterFileSeal(&text);
    if (flush) writeCopy(strSlice(&text));
    status st = fileReplaceAs(clusterConf.cluster_config_file, strSlice(&text), FILE_MODE,
                              flush ? FILE_FLUSH_ALL : FILE_FLUSH_NONE, &failure);
    strFree(&text);
    if (st == OK) return OK;
    logFailure(&failure);
    return reasonSet(why, st, "%s", strerror(failure.error));
}

void serverFileKeep(const clusterMap *m, bool flush) {
    check(m->myself);
    reason why; /* was logged */
    owes_flush |= flush;
    if (serverFileWrite(m, owes_flush, &why) == OK) {
        owes_flush = false;
        return;
    }
    if (clusterConf.cluster_config_save_behavior == SAVE_BEST_EFFORT) {
        if (logIsDue(&unsaved_told_ms, engineHot.now_ms, COMPLAINT_MS))
            logWarning("Cluster config updated even though writing the cluster config file to disk "
                       "failed.");
        return;
    }
    logWarning("Fatal: can't update cluster config file.");
    _exit(1); /* without cleaning up what other threads use */
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Known differences between this replica's data and its primary's (divergence.h).
 *
 * They are stored in a file of one line: `diverged PRIMARY WORD TEXT`. PRIMARY is the id of a node
 * of a cluster, or HOST:PORT; WORD is `stopped` or `follows`; TEXT is the last failure. The name of
 * the file contains the port of this server, because servers may share a folder. The file is
 * written at the first failure and when the link stops or goes on, so a series of failures does not
 * write to the disk each time.
 *
 * Invariant: the file exists if and only if a difference is known, unless writing has failed. */
#include "repl/divergence.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "engine/options.h"
#include "engine/stream_fault.h"
#include "io/file.h"
#include "net/net.h"
#include "repl/repl_priv.h"
#include "repl/role_priv.h"
#include "repl/server_state.h"

enum { FILE_MODE = 0644, FILE_MAX_BYTES = 4096 };

static bool stopped; /* true: a failed command has stopped the link */

bool divergenceStops(void) { return stopped; }
bool divergenceIsKnown(void) { return streamFaultCount(FAULT_OF_PRIMARY) > 0; }

/* ------------------------------------------------------------------ the file */

/* Returns the name of the file, which the caller frees. */
static str nameOf(void) {
    str name = STR_EMPTY;
    strAppendFormat(&name, "replica-diverged-%d.conf", netPort());
    return name;
}

/* The beginning of the line, which names the primary. The caller frees the text. */
static str lineOf(void) {
    str line = STR_EMPTY;
    strAppendText(&line, "diverged ");
    roleAppendPrimary(&line);
    strAppendByte(&line, ' ');
    return line;
}

static void keep(void) {
    check(divergenceIsKnown());
    str name = nameOf(), line = lineOf();
    reason why;
    strAppendText(&line, stopped ? "stopped " : "follows ");
    strAppendSlice(&line, streamFaultLast(FAULT_OF_PRIMARY));
    strAppendByte(&line, '\n');
    if (fileReplace(strText(&name), strSlice(&line), FILE_MODE, &why) != OK)
        logWarning("After a restart this replica would not know that its data differ from its "
                   "primary's: %s",
                   why.text);
    strFree(&name);
    strFree(&line);
}

static void removeFile(void) {
    str name = nameOf();
    if (unlink(strText(&name)) != 0 && errno != ENOENT)
        logWarning("Can't remove %s: %s", strText(&name), strerror(errno));
    hotCheck(name.len > 0);
    strFree(&name);
}

/* Restores the state from the rest of the line: WORD and TEXT. False: the rest is not valid. */
static bool takeRest(slice rest) {
    enum { WORD_LEN = 8 }; /* with the blank */
    if (rest.len < WORD_LEN + 2 || rest.ptr[rest.len - 1] != '\n') return false;
    bool stops = sliceHasPrefix(rest, SLICE("stopped "));
    if (!stops && !sliceHasPrefix(rest, SLICE("follows "))) return false;
    slice last = sliceMake(rest.ptr + WORD_LEN, rest.len - WORD_LEN - 1);
    streamFaultRestore(FAULT_OF_PRIMARY, last);
    stopped = stops && replConf.propagation_error_behavior == PROPAGATION_ERROR_STOP;
    return true;
}

bool divergenceAfterStart(void) {
    str name = nameOf(), text = STR_EMPTY;
    reason why;
    hotCheck(threadIsMain());
    status st = fileReadAll(strText(&name), FILE_MAX_BYTES, &text, &why);
    if (st != OK && st != ERR_NOT_FOUND) logWarning("%s", why.text);
    if (st == OK) {
        str line = lineOf();
        bool same = replConf.primary_host.len && sliceHasPrefix(strSlice(&text), strSlice(&line));
        /* The file is removed if it names another primary, or if this server is a primary now. */
        if (!same || !takeRest(sliceMake(text.ptr + line.len, text.len - line.len))) removeFile();
        strFree(&line);
    }
    strFree(&name);
    strFree(&text);
    /* If commands of the own append only file have failed, the data are not those of the
     * replication offset. */
    if (replConf.primary_host.len && !divergenceIsKnown() && streamFaultCount(FAULT_OF_FILE)) {
        streamFaultRestore(FAULT_OF_PRIMARY, streamFaultLast(FAULT_OF_FILE));
        keep();
    }
    if (stopped)
        logWarning("The link to the primary stays closed, as a command of its stream has failed "
                   "before: %s",
                   streamFaultLast(FAULT_OF_PRIMARY).ptr);
    return stopped;
}

/* ------------------------------------------------------------------ failures */

static void logBacklog(void) {
    enum { SHOWN = 256 };
    replServer *server = replThis();
    if (!server->has_backlog || backlogLength(&server->backlog) == 0) return;
    if (engineHidesUserData()) {
        logNotice("hide-user-data-from-log is on, skip logging backlog content to avoid spilling "
                  "user data.");
        return;
    }
    char tail[SHOWN];
    str shown = STR_EMPTY;
    strAppendQuoted(&shown, sliceMake(tail, backlogTail(&server->backlog, tail, SHOWN)));
    logNotice("Latest backlog is: '%.*s'", (int)shown.len - 2, strText(&shown) + 1);
    strFree(&shown);
}

static void logFault(slice command, slice error, uint64_t unlogged) {
    const char *dash = "-";
    hotCheck(command.len > 0);
    if (error.len > 4 && !memcmp(error.ptr, "ERR ", 4)) {
        error = sliceMake(error.ptr + 4, error.len - 4);
        dash = "";
    }
    logWarning("== CRITICAL == This replica is sending an error to its primary: '%s%.*s' after "
               "processing the command '%.*s'",
               dash, (int)error.len, error.ptr, (int)command.len, command.ptr);
    if (unlogged)
        logWarning("%llu further commands of the primary have failed since the last such line",
                   (unsigned long long)unlogged);
    logBacklog();
}

static void stop(void) {
    check(!stopped);
    stopped = true;
    logWarning("The link to the primary is closed (propagation-error-behavior stop). REPLICAOF or "
               "CLUSTER REPLICATE synchronizes the whole dataset again, CONFIG SET "
               "propagation-error-behavior ignore goes on with the commands that follow");
}

bool divergenceNote(slice command, slice error) {
    hotCheck(threadIsMain());
    uint64_t unlogged = 0;
    bool counts = command.len > 0;
    if (!counts) command = SLICE("<unknown>");
    if (!counts || streamFaultNote(FAULT_OF_PRIMARY, command, error, &unlogged))
        logFault(command, error, unlogged);
    int behavior = replConf.propagation_error_behavior;
    /* Clients of a writable replica can cause such errors. */
    if (!replConf.replica_read_only) behavior = PROPAGATION_ERROR_IGNORE;
    if (behavior == PROPAGATION_ERROR_PANIC || behavior == PROPAGATION_ERROR_PANIC_ON_REPLICAS)
        panic("This replica panicked sending an error to its primary after processing the command "
              "'%.*s'",
              (int)command.len, command.ptr);
    if (!counts) return false;
    bool stops = behavior == PROPAGATION_ERROR_STOP && !stopped;
    if (stops) stop();
    if (stops || streamFaultCount(FAULT_OF_PRIMARY) == 1) keep();
    return stops;
}

void divergenceForget(void) {
    hotCheck(threadIsMain());
    bool known = divergenceIsKnown();
    stopped = false;
    streamFaultForget(FAULT_OF_PRIMARY);
    if (known) removeFile();
}

void divergenceGoOn(void) {
    check(stopped);
    stopped = false;
    keep();
}

/* ------------------------------------------------------------------ reports */

void divergenceAppendReason(str *out) {
    check(divergenceIsKnown());
    slice last = streamFaultLast(FAULT_OF_PRIMARY);
    strAppendFormat(out,
                    "The data here differ from the primary's: %llu commands of its stream failed, "
                    "the last one was '%.*s'",
                    (unsigned long long)streamFaultCount(FAULT_OF_PRIMARY), (int)last.len,
                    last.ptr);
}

void divergencePrintInfo(str *out) {
    hotCheck(threadIsMain());
    strAppendField(out, "master_stream_errors", streamFaultCount(FAULT_OF_PRIMARY));
    if (!divergenceIsKnown()) return;
    strAppendText(out, "master_stream_last_error:");
    strAppendSlice(out, streamFaultLast(FAULT_OF_PRIMARY));
    strAppendText(out, "\r\n");
}

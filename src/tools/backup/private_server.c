/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server of this program alone (private_server.h). Invariant: it listens on no port, and its
 * socket is in a folder that other users cannot enter. */
#define _GNU_SOURCE /* memrchr() */
#include "tools/backup/private_server.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "io/file.h"
#include "tools/backup/child.h"
#include "tools/cli/connection.h"
#include "tools/cli/interrupt.h"

enum { POLL_US = 20 * 1000, LOG_BYTES_MAX = 16 << 20 };

/* The server beside this program, else that of PATH. */
static void findProgram(const cliOptions *options, str *out) {
    char own[PATH_MAX];
    if (options->backup.server_program) {
        strAppendText(out, options->backup.server_program);
        return;
    }
    ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
    const char *end = len > 0 ? memrchr(own, '/', (size_t)len) : NULL;
    if (end) strAppendFormat(out, "%.*s/valkey-server", (int)(end - own), own);
    if (end && access(out->ptr, X_OK) == 0) return;
    strClear(out);
    strAppendText(out, "valkey-server");
}

static status startProgram(const char *program, const char *socket, const char *log,
                           const char *folder, bool is_aof, bool keep_expired, pid_t *pid,
                           reason *why) {
    const char *argv[] = {program,
                          "--port",
                          "0",
                          "--unixsocket",
                          socket,
                          "--dir",
                          folder,
                          "--appendonly",
                          is_aof ? "yes" : "no",
                          "--save",
                          "",
                          "--logfile",
                          log,
                          "--databases",
                          "1024",
                          "--daemonize",
                          "no",
                          "--auto-aof-rewrite-percentage",
                          "0",
                          keep_expired ? "--import-mode" : NULL,
                          "yes",
                          NULL};
    return childStart(argv, -1, STDERR_FILENO, true, pid, why);
}

/* The last line of the log, or that the program has not begun. */
static status hasEnded(privateServer *s, const char *log, reason *why) {
    str text = STR_EMPTY;
    reason ignored;
    s->pid = 0;
    if (fileReadAll(log, LOG_BYTES_MAX, &text, &ignored) != OK || !text.len) {
        (void)reasonSet(why, ERR_IO, "the private server could not be started (--server-program)");
    } else {
        while (text.len && text.ptr[text.len - 1] == '\n') strCut(&text, text.len - 1);
        const char *line = memrchr(strText(&text), '\n', text.len);
        (void)reasonSet(why, ERR_IO, "the private server ended: %s",
                        line ? line + 1 : strText(&text));
    }
    strFree(&text);
    return ERR_IO;
}

/* True if the server has loaded its data. */
static bool isReady(privateServer *s, const cliOptions *options, const char *socket) {
    if (access(socket, F_OK) < 0) return false;
    if (!s->link) s->link = connectionOpenUnix(options, socket);
    valkeyReply *reply = s->link && !s->link->err ? valkeyCommand(s->link, "PING") : NULL;
    bool ready = reply && reply->type == VALKEY_REPLY_STATUS;
    freeReplyObject(reply);
    if (!reply) {
        valkeyFree(s->link);
        s->link = NULL;
    }
    return ready;
}

static status await(privateServer *s, const cliOptions *options, const char *socket,
                    const char *log, reason *why) {
    while (!isReady(s, options, socket)) {
        if (interruptPending()) return reasonSet(why, ERR_IO, "interrupted");
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) return hasEnded(s, log, why);
        clockSleepUs(POLL_US);
    }
    return OK;
}

status privateServerStart(privateServer *s, const cliOptions *options, const char *folder,
                          bool is_aof, bool keep_expired, reason *why) {
    *s = (privateServer){0};
    str program = STR_EMPTY, socket = STR_EMPTY, log = STR_EMPTY;
    cliOptions plain = *options; /* the server has no TLS */
    char *absolute = fileAbsolute(folder);
    plain.tls.on = false;
    if (temporaryFolder(&s->socket_dir, why) != OK) {
        memFree(absolute);
        return ERR_IO;
    }
    strAppendFormat(&socket, "%s/socket", s->socket_dir.ptr);
    strAppendFormat(&log, "%s/log", s->socket_dir.ptr);
    findProgram(options, &program);
    status st = startProgram(program.ptr, socket.ptr, log.ptr, absolute, is_aof, keep_expired,
                             &s->pid, why);
    if (st == OK) st = await(s, &plain, socket.ptr, log.ptr, why);
    if (st == OK && keep_expired)
        st = privateServerCommand(s, NULL, why, "CLIENT IMPORT-SOURCE ON");
    memFree(absolute);
    strFree(&program);
    strFree(&socket);
    strFree(&log);
    if (st != OK) privateServerStop(s);
    return st;
}

void privateServerStop(privateServer *s) {
    valkeyFree(s->link);
    s->link = NULL;
    if (s->pid > 0) {
        kill(s->pid, SIGKILL); /* nothing of it is needed */
        childForget(&s->pid);
    }
    s->pid = 0;
    if (s->socket_dir.len) {
        str path = STR_EMPTY;
        size_t len = s->socket_dir.len;
        strAppendSlice(&path, strSlice(&s->socket_dir));
        strAppendText(&path, "/socket");
        (void)unlink(path.ptr); /* a file that stays does no harm, in a folder for temporary ones */
        strCut(&path, len);
        strAppendText(&path, "/log");
        (void)unlink(path.ptr);
        (void)rmdir(s->socket_dir.ptr);
        strFree(&path);
    }
    strFree(&s->socket_dir);
}

status privateServerCommand(privateServer *s, valkeyReply **out, reason *why, const char *format,
                            ...) {
    va_list args;
    va_start(args, format);
    valkeyReply *reply = valkeyvCommand(s->link, format, args);
    va_end(args);
    if (!reply) return reasonSet(why, ERR_IO, "private server: %s", s->link->errstr);
    if (reply->type == VALKEY_REPLY_ERROR) {
        (void)reasonSet(why, ERR_IO, "private server: %s", reply->str);
        freeReplyObject(reply);
        return ERR_IO;
    }
    if (out) {
        *out = reply;
    } else {
        freeReplyObject(reply);
    }
    return OK;
}

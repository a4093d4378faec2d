/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Daemon functions: detaching, pid file, notifications to the supervisor, process title. Main
 * thread only. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "config/config.h"
#include "io/file.h"
#include "net/net.h"
#include "server/server.h"
#include "server/server_priv.h"

extern char **environ;

void daemonDetach(void) {
    hotCheck(threadIsMain());
    pid_t child = fork();
    if (child < 0) panic("cannot fork: %s", strerror(errno));
    if (child > 0) _exit(0);
    memAfterFork();
    setsid();
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0) return;
    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
}

static const char *pidFilePath(void) {
    if (serverConf.pidfile[0]) return serverConf.pidfile;
    return serverConf.daemonize ? "/var/run/valkey.pid" : "";
}

void daemonWritePidFile(void) {
    hotCheck(threadIsMain());
    const char *path = pidFilePath();
    if (!path[0]) return;
    FILE *f = fopen(path, "w");
    if (!f) {
        logWarning("Failed to write PID file: %s", strerror(errno));
        return;
    }
    fprintf(f, "%d\n", (int)getpid());
    if (fclose(f)) logWarning("Failed to write PID file: %s", strerror(errno));
}

void daemonRemovePidFile(void) {
    hotCheck(threadIsMain());
    const char *path = pidFilePath();
    if (!path[0]) return;
    logNotice("Removing the pid file.");
    (void)unlink(path); /* it may have been removed already */
}

/* ------------------------------------------------------------------ the supervisor */

static struct {
    int64_t period_ms; /* of its watchdog; 0: none */
    int64_t due_ms;    /* monotonic: time of the next notification */
} watchdog;

static bool fillAddress(struct sockaddr_un *addr, socklen_t *size) {
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    if (len == 0 || len >= sizeof(addr->sun_path)) return false;
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(addr->sun_path, path, len);
    if (addr->sun_path[0] == '@') addr->sun_path[0] = 0; /* abstract namespace */
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

void daemonNotify(const char *state) {
    hotCheck(threadIsMain());
    struct sockaddr_un addr;
    socklen_t size;
    if (serverRunNow()->supervisor != SUPERVISED_SYSTEMD || !fillAddress(&addr, &size)) return;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&addr,
               size) < 0) {
        logWarning("systemd supervision error: sendmsg: %s", strerror(errno));
    }
    close(fd);
}

/* The period of the systemd watchdog, if it applies to this process. */
static int64_t watchdogPeriodMs(void) {
    const char *period = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us, owner;
    if (!period || !numberParseInt(sliceOf(period), &us) || us <= 0) return 0;
    if (pid && (!numberParseInt(sliceOf(pid), &owner) || owner != getpid())) return 0;
    return us / 1000 / 2 > 0 ? us / 1000 / 2 : 1;
}

void daemonFindSupervisor(void) {
    hotCheck(threadIsMain());
    bool systemd = getenv("NOTIFY_SOCKET") != NULL, upstart = getenv("UPSTART_JOB") != NULL;
    int wanted = serverConf.supervised, *found = &serverRunNow()->supervisor;
    *found = SUPERVISED_NO;
    if (wanted == SUPERVISED_SYSTEMD && !systemd)
        logWarning("systemd supervision requested or auto-detected, but NOTIFY_SOCKET not found");
    if (wanted == SUPERVISED_UPSTART && !upstart)
        logWarning("upstart supervision requested, but UPSTART_JOB not found");
    if (systemd && (wanted == SUPERVISED_SYSTEMD || wanted == SUPERVISED_AUTO)) {
        *found = SUPERVISED_SYSTEMD;
        watchdog.period_ms = watchdogPeriodMs();
        logNotice(
            "Supervised by systemd. Please make sure you set appropriate values for TimeoutStartSec "
            "and TimeoutStopSec in your service unit.");
        daemonNotify("STATUS=Loading\n");
    } else if (upstart && (wanted == SUPERVISED_UPSTART || wanted == SUPERVISED_AUTO)) {
        *found = SUPERVISED_UPSTART;
        logNotice("Supervised by upstart, will stop to signal readiness.");
        (void)raise(SIGSTOP); /* upstart sends SIGCONT */
        unsetenv("UPSTART_JOB");
    }
}

void daemonReady(void) { daemonNotify("STATUS=Ready to accept connections\nREADY=1\n"); }

void daemonTick(int64_t budget_us) {
    hotCheck(threadIsMain());
    (void)budget_us; /* sends at most one datagram */
    if (!watchdog.period_ms || clockMonoMs() < watchdog.due_ms) return;
    watchdog.due_ms = clockMonoMs() + watchdog.period_ms;
    daemonNotify("WATCHDOG=1\n");
}

bool daemonIsWatched(void) { return watchdog.period_ms != 0; }

/* ------------------------------------------------------------------ the process title */

/* The title is written over argv and the environment after it, which are contiguous in memory. */
static struct {
    char *at;
    size_t capacity;
} title;

void titleInit(int argc, char **argv) {
    hotCheck(threadIsMain());
    char *end = argv[0];
    for (int i = 0; i < argc; i++) {
        if (argv[i] == end) end = argv[i] + strlen(argv[i]) + 1;
    }
    int count = 0;
    while (environ[count]) count++;
    char **kept = memAlloc(((size_t)count + 1) * sizeof(*kept));
    for (int i = 0; i < count; i++) {
        if (environ[i] == end) end = environ[i] + strlen(environ[i]) + 1;
        kept[i] = memDup(environ[i], strlen(environ[i]));
    }
    kept[count] = NULL;
    environ = kept; /* never freed */
    title.at = argv[0];
    title.capacity = (size_t)(end - argv[0]);
}

/* Replaces {name} by its value and {{ by a brace. Unknown names were refused when the template was
 * set. */
static void expandTemplate(const char *from, const char *(*value)(slice name), str *to) {
    hotCheck(to->len <= to->cap);
    while (*from) {
        if (from[0] == '{' && from[1] == '{') {
            strAppendByte(to, '{');
            from += 2;
            continue;
        }
        const char *close = *from == '{' ? strchr(from, '}') : NULL;
        if (!close) {
            strAppendByte(to, *from++);
            continue;
        }
        strAppendText(to, value(sliceMake(from + 1, (size_t)(close - from - 1))));
        from = close + 1;
    }
}

static const char *titleValue(slice name) {
    static char text[256];
    if (sliceIs(name, "title")) return serverRunNow()->program;
    if (sliceIs(name, "listen-addr")) {
        netListenText(text, sizeof(text));
        return text;
    }
    if (sliceIs(name, "server-mode")) {
        if (!serverModeNow()->has_dataset) return "[sentinel]";
        return serverIsCluster() ? "[cluster]" : "";
    }
    if (sliceIs(name, "config-file")) return serverConfigFile();
    if (sliceIs(name, "port") || sliceIs(name, "tls-port") || sliceIs(name, "unixsocket")) {
        static str value;
        strClear(&value);
        const configOption *o = configFind(name);
        if (o) configGet(o, &value);
        return strText(&value);
    }
    return "";
}

void titleSet(void) {
    hotCheck(threadIsMain());
    if (!serverConf.set_proc_title || !title.at) return;
    str text = STR_EMPTY;
    expandTemplate(serverConf.proc_title_template, titleValue, &text);
    while (text.len && text.ptr[text.len - 1] == ' ') strCut(&text, text.len - 1);
    size_t len = sizeMin(text.len, title.capacity - 1);
    memset(title.at, 0, title.capacity);
    memcpy(title.at, strText(&text), len);
    strFree(&text);
}

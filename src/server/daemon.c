/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Life as a daemon: detaching, the pid file, the supervisor's datagrams, the process title.
 * Main thread only. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/config.h"
#include "io/file.h"
#include "net/net.h"
#include "server/roof.h"
#include "server/server_priv.h"

extern char **environ;

void daemonDetach(void) {
    pid_t child = fork();
    if (child < 0) panic("cannot fork: %s", strerror(errno));
    if (child > 0) _exit(0);
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
    const char *path = pidFilePath();
    if (!path[0]) return;
    logNotice("Removing the pid file.");
    (void)unlink(path); /* it may be gone already */
}

void daemonNotify(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    if (!serverRunNow()->supervised || !path || !path[0]) return;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof(addr.sun_path)) return;
    memcpy(addr.sun_path, path, len);
    if (addr.sun_path[0] == '@') addr.sun_path[0] = 0; /* the abstract namespace */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
        logWarning("systemd supervision error: sendmsg: %s", strerror(errno));
    }
    close(fd);
}

bool daemonIsSupervised(void) {
    bool systemd = getenv("NOTIFY_SOCKET") != NULL, upstart = getenv("UPSTART_JOB") != NULL;
    switch (serverConf.supervised) {
    case SUPERVISED_SYSTEMD:
        if (!systemd)
            logWarning(
                "systemd supervision requested or auto-detected, but NOTIFY_SOCKET not found");
        return systemd;
    case SUPERVISED_UPSTART:
        if (!upstart) logWarning("upstart supervision requested, but UPSTART_JOB not found");
        return upstart;
    case SUPERVISED_AUTO: return systemd || upstart;
    default: return false;
    }
}

/* The title overwrites argv and the environment behind it, which lie in one stretch. */
static struct {
    char *at;
    size_t room;
} title;

void titleInit(int argc, char **argv) {
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
    environ = kept; /* lives as long as the process */
    title.at = argv[0];
    title.room = (size_t)(end - argv[0]);
}

/* Replaces {name} by its value; unknown names were refused when the template was set. */
static void expandTemplate(const char *from, const char *(*value)(slice name), str *to) {
    while (*from) {
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
    if (sliceIs(name, "server-mode")) return serverIsCluster() ? "[cluster]" : "";
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
    if (!serverConf.set_proc_title || !title.at) return;
    str text = STR_EMPTY;
    expandTemplate(serverConf.proc_title_template, titleValue, &text);
    while (text.len && text.ptr[text.len - 1] == ' ') strCut(&text, text.len - 1);
    size_t len = sizeMin(text.len, title.room - 1);
    memset(title.at, 0, title.room);
    memcpy(title.at, strText(&text), len);
    strFree(&text);
}

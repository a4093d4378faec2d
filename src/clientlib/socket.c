/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The transport over plain sockets: connecting with a time limit, reading, writing, socket options.
 * The only file of the library that makes system calls. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <valkey/net.h>

#include "clientlib/client_priv.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static void setErrno(valkeyContext *c, const char *what) {
    char text[96];
    int saved = errno;
    snprintf(text, sizeof(text), "%s: %s", what, strerror(saved));
    vkSetError(c, VALKEY_ERR_IO, text);
    errno = saved;
}

static long long monotonicUs(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

long long (*vkClock)(void) = monotonicUs;

long long vkNowUs(void) { return vkClock(); }
long long vkNowMs(void) { return vkNowUs() / 1000; }

void vkSleepMs(int ms) { poll(NULL, 0, ms); }

valkeyFD vkTimerOpen(int ms) {
    struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}};
    valkeyFD fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd != VALKEY_INVALID_FD && timerfd_settime(fd, 0, &when, NULL) != 0) {
        close(fd);
        return VALKEY_INVALID_FD;
    }
    return fd;
}

void vkTimerClose(valkeyFD fd) { close(fd); }

bool vkTimerHasExpired(valkeyFD fd) {
    uint64_t expirations;
    return read(fd, &expirations, sizeof(expirations)) == sizeof(expirations);
}

void valkeyNetClose(valkeyContext *c) {
    if (c->fd == VALKEY_INVALID_FD) return;
    close(c->fd);
    c->fd = VALKEY_INVALID_FD;
}

/* So that microseconds can be calculated. */
enum { MICROSECONDS = 1000000 };
#define TIMEOUT_MAX_S (LLONG_MAX / MICROSECONDS - 1)

bool vkTimeoutMs(valkeyContext *c, const struct timeval *tv, long *ms) {
    *ms = -1;
    if (!tv) return true;
    if (tv->tv_sec < 0 || tv->tv_usec < 0 || tv->tv_usec > MICROSECONDS ||
        tv->tv_sec > TIMEOUT_MAX_S) {
        vkSetError(c, VALKEY_ERR_IO, "Invalid timeout specified");
        return false;
    }
    *ms = (long)tv->tv_sec * 1000 + ((long)tv->tv_usec + 999) / 1000;
    return true;
}

bool vkSocketWait(valkeyContext *c, short events, long ms) {
    struct pollfd p = {.fd = c->fd, .events = events};
    long long end = vkNowMs() + ms;
    for (;;) {
        int n = poll(&p, 1, ms < 0 ? -1 : (int)(ms < INT_MAX ? ms : INT_MAX));
        if (n > 0) return true;
        if (n == 0 && ms <= INT_MAX) {
            errno = ETIMEDOUT;
            return false;
        }
        if (n < 0 && errno != EINTR) return false;
        if (ms >= 0) {
            long long rest = end - vkNowMs();
            ms = rest > 0 ? (long)rest : 0;
        }
    }
}

static bool setBlocking(valkeyContext *c, bool blocking) {
    int flags = fcntl(c->fd, F_GETFL);
    if (flags != -1) {
        flags = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
        if (fcntl(c->fd, F_SETFL, flags) != -1) return true;
    }
    setErrno(c, "fcntl");
    valkeyNetClose(c);
    return false;
}

/* ------------------------------------------------------------------ options */

int valkeyTcpSetTimeout(valkeyContext *c, const struct timeval tv) {
    if (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) != 0) {
        setErrno(c, "setsockopt(SO_RCVTIMEO)");
        return VALKEY_ERR;
    }
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) != 0) {
        setErrno(c, "setsockopt(SO_SNDTIMEO)");
        return VALKEY_ERR;
    }
    return VALKEY_OK;
}

static int setOption(valkeyContext *c, int level, int option, int value, const char *what) {
    if (setsockopt(c->fd, level, option, &value, sizeof(value)) == 0) return VALKEY_OK;
    setErrno(c, what);
    return VALKEY_ERR;
}

int valkeySetTcpNoDelay(valkeyContext *c) {
    return setOption(c, IPPROTO_TCP, TCP_NODELAY, 1, "setsockopt(TCP_NODELAY)");
}

int valkeyKeepAlive(valkeyContext *c, int interval) {
    int between = interval / 3 > 0 ? interval / 3 : 1;
    if (setOption(c, SOL_SOCKET, SO_KEEPALIVE, 1, "setsockopt(SO_KEEPALIVE)") != VALKEY_OK ||
        setOption(c, IPPROTO_TCP, TCP_KEEPIDLE, interval, "setsockopt(TCP_KEEPIDLE)") !=
            VALKEY_OK ||
        setOption(c, IPPROTO_TCP, TCP_KEEPINTVL, between, "setsockopt(TCP_KEEPINTVL)") != VALKEY_OK)
        return VALKEY_ERR;
    return setOption(c, IPPROTO_TCP, TCP_KEEPCNT, 3, "setsockopt(TCP_KEEPCNT)");
}

int valkeyEnableKeepAliveWithInterval(valkeyContext *c, int interval_s) {
    return c->connection_type == VALKEY_CONN_UNIX ? VALKEY_ERR : valkeyKeepAlive(c, interval_s);
}

int valkeyEnableKeepAlive(valkeyContext *c) {
    return valkeyEnableKeepAliveWithInterval(c, VALKEY_KEEPALIVE_INTERVAL);
}

int valkeyContextSetTcpUserTimeout(valkeyContext *c, unsigned int timeout_ms) {
    return setOption(c, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)timeout_ms,
                     "setsockopt(TCP_USER_TIMEOUT)");
}

int valkeySetTcpUserTimeout(valkeyContext *c, unsigned int timeout_ms) {
    return valkeyContextSetTcpUserTimeout(c, timeout_ms);
}

/* ------------------------------------------------------------------ connecting */

int valkeyCheckSocketError(valkeyContext *c) {
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
    if (!error) return VALKEY_OK;
    errno = error;
    vkSetError(c, VALKEY_ERR_IO, NULL);
    return VALKEY_ERR;
}

int valkeyCheckConnectDone(valkeyContext *c, int *completed) {
    *completed = 0;
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) == 0) return VALKEY_OK;
    if (valkeyCheckSocketError(c) != VALKEY_OK) return VALKEY_ERR;
    *completed = 1;
    return VALKEY_OK;
}

/* Waits for a connection attempt in progress to succeed. False with c->err. */
static bool waitConnected(valkeyContext *c, long ms) {
    int done = 0;
    if (!vkSocketWait(c, POLLOUT, ms)) {
        vkSetError(c, VALKEY_ERR_IO, NULL);
    } else if (valkeyCheckConnectDone(c, &done) == VALKEY_OK && done) {
        return true;
    }
    int saved = errno;
    valkeyNetClose(c);
    errno = saved;
    return false;
}

static bool bindSource(valkeyContext *c, const char *source, const struct addrinfo *hints) {
    struct addrinfo *list, *a;
    int rc = getaddrinfo(source, NULL, hints, &list);
    if (rc != 0) {
        char text[128];
        snprintf(text, sizeof(text), "Can't get addr: %s", gai_strerror(rc));
        vkSetError(c, VALKEY_ERR_OTHER, text);
        return false;
    }
    if (c->flags & VALKEY_REUSEADDR) {
        int on = 1;
        setsockopt(c->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* an optimisation */
    }
    bool bound = false;
    for (a = list; a && !bound; a = a->ai_next) bound = bind(c->fd, a->ai_addr, a->ai_addrlen) == 0;
    int saved = errno;
    freeaddrinfo(list);
    if (bound) return true;
    char text[128];
    snprintf(text, sizeof(text), "Can't bind socket: %s", strerror(saved));
    vkSetError(c, VALKEY_ERR_OTHER, text);
    return false;
}

static bool keepAddress(valkeyContext *c, const struct addrinfo *a) {
    struct sockaddr *copy = vk_malloc(a->ai_addrlen);
    if (!copy) {
        vkSetError(c, VALKEY_ERR_OOM, "Out of memory");
        return false;
    }
    memcpy(copy, a->ai_addr, a->ai_addrlen);
    vk_free(c->saddr);
    c->saddr = copy;
    c->addrlen = a->ai_addrlen;
    return true;
}

typedef enum attempt { ATTEMPT_OK, ATTEMPT_NEXT, ATTEMPT_STOP } attempt;

/* Tries one address. ATTEMPT_NEXT with errno: another one may work. */
static attempt connectAddress(valkeyContext *c, const struct addrinfo *a, const char *source,
                              long ms) {
    bool blocking = c->flags & VALKEY_BLOCK;
    for (int tries = 0;; tries++) {
        int protocol = c->flags & VALKEY_MPTCP ? IPPROTO_MPTCP : a->ai_protocol;
        c->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, protocol);
        if (c->fd == VALKEY_INVALID_FD) return ATTEMPT_NEXT;
        if (!setBlocking(c, false)) return ATTEMPT_STOP;
        if (source) {
            struct addrinfo hints = {.ai_family = a->ai_family, .ai_socktype = SOCK_STREAM};
            if (!bindSource(c, source, &hints)) return ATTEMPT_STOP;
        }
        if (!keepAddress(c, a)) return ATTEMPT_STOP;
        if (connect(c->fd, a->ai_addr, a->ai_addrlen) == 0) break;
        int saved = errno;
        if (saved == EINPROGRESS && !blocking) break;
        if (saved == EINPROGRESS) {
            if (waitConnected(c, ms)) break;
            if (errno == ETIMEDOUT) return ATTEMPT_STOP;
            saved = errno;
            c->err = 0;
        }
        valkeyNetClose(c);
        errno = saved;
        bool again = saved == EADDRNOTAVAIL && (c->flags & VALKEY_REUSEADDR);
        if (!again || tries >= VALKEY_CONNECT_RETRIES) return ATTEMPT_NEXT;
    }
    if (blocking && !setBlocking(c, true)) return ATTEMPT_STOP;
    return valkeySetTcpNoDelay(c) == VALKEY_OK ? ATTEMPT_OK : ATTEMPT_STOP;
}

static int resolve(valkeyContext *c, struct addrinfo **list) {
    char port[12];
    snprintf(port, sizeof(port), "%d", c->tcp.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    bool v4 = c->flags & VALKEY_PREFER_IPV4, v6 = c->flags & VALKEY_PREFER_IPV6;
    if (v4 && v6) {
        hints.ai_family = AF_UNSPEC;
    } else {
        hints.ai_family = v6 ? AF_INET6 : AF_INET;
    }
    int rc = getaddrinfo(c->tcp.host, port, &hints, list);
    if (rc != 0 && hints.ai_family != AF_UNSPEC) {
        hints.ai_family = v6 ? AF_INET : AF_INET6;
        rc = getaddrinfo(c->tcp.host, port, &hints, list);
    }
    return rc;
}

int valkeyHasMptcp(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
    if (fd == -1) return 0;
    close(fd);
    return 1;
}

/* Keeps the limit for connecting: milliseconds, -1 for none. */
static bool takeConnectTimeout(valkeyContext *c, const valkeyOptions *options, long *ms) {
    if (vkCopyTimeout(&c->connect_timeout, options->connect_timeout))
        return vkTimeoutMs(c, c->connect_timeout, ms);
    vkSetError(c, VALKEY_ERR_OOM, "Out of memory");
    return false;
}

int valkeyContextConnectTcp(valkeyContext *c, const valkeyOptions *options) {
    long ms;
    c->connection_type = VALKEY_CONN_TCP;
    if (!takeConnectTimeout(c, options, &ms)) return VALKEY_ERR;
    if ((c->flags & VALKEY_MPTCP) && !valkeyHasMptcp()) {
        vkSetError(c, VALKEY_ERR_PROTOCOL, "MPTCP is not supported on this platform");
        return VALKEY_ERR;
    }
    c->tcp.port = options->endpoint.tcp.port;
    if (!options->endpoint.tcp.ip) {
        vkSetError(c, VALKEY_ERR_OTHER, "No host given");
        return VALKEY_ERR;
    }
    if (!vkCopyString(&c->tcp.host, options->endpoint.tcp.ip) ||
        !vkCopyString(&c->tcp.source_addr, options->endpoint.tcp.source_addr)) {
        vkSetError(c, VALKEY_ERR_OOM, "Out of memory");
        return VALKEY_ERR;
    }
    struct addrinfo *list, *a;
    int rc = resolve(c, &list);
    if (rc != 0) {
        vkSetError(c, VALKEY_ERR_OTHER, gai_strerror(rc));
        return VALKEY_ERR;
    }
    attempt result = ATTEMPT_NEXT;
    for (a = list; a && result == ATTEMPT_NEXT; a = a->ai_next)
        result = connectAddress(c, a, c->tcp.source_addr, ms);
    int saved = errno;
    freeaddrinfo(list);
    if (result == ATTEMPT_OK) {
        c->flags |= VALKEY_CONNECTED;
        return VALKEY_OK;
    }
    valkeyNetClose(c);
    errno = saved;
    if (!c->err) vkSetError(c, VALKEY_ERR_IO, NULL);
    return VALKEY_ERR;
}

static int connectUnix(valkeyContext *c, const valkeyOptions *options) {
    long ms; /* the socket gets the limit itself */
    c->connection_type = VALKEY_CONN_UNIX;
    if (!takeConnectTimeout(c, options, &ms)) return VALKEY_ERR;
    const char *path = options->endpoint.unix_socket;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof(address.sun_path)) {
        vkSetError(c, VALKEY_ERR_OTHER, path ? "Unix socket path too long" : "No path given");
        return VALKEY_ERR;
    }
    strcpy(address.sun_path, path);
    if (!vkCopyString(&c->unix_sock.path, path)) {
        vkSetError(c, VALKEY_ERR_OOM, "Out of memory");
        return VALKEY_ERR;
    }
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd == VALKEY_INVALID_FD) {
        vkSetError(c, VALKEY_ERR_IO, NULL);
        return VALKEY_ERR;
    }
    /* Such a connection is accepted at once, or when the backlog has space: a blocking attempt with
     * a limit. */
    struct timeval none = {0};
    bool blocking = c->flags & VALKEY_BLOCK;
    if (!blocking && !setBlocking(c, false)) return VALKEY_ERR;
    if (blocking && c->connect_timeout)
        setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, c->connect_timeout, sizeof(none));
    if (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno != EINPROGRESS) {
        if (errno == EAGAIN && blocking) errno = ETIMEDOUT;
        vkSetError(c, VALKEY_ERR_IO, NULL);
        valkeyNetClose(c);
        return VALKEY_ERR;
    }
    if (blocking && c->connect_timeout)
        setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
    c->flags |= VALKEY_CONNECTED;
    return VALKEY_OK;
}

int vkSocketConnect(valkeyContext *c, const valkeyOptions *options) {
    switch (options->type) {
    case VALKEY_CONN_TCP: return valkeyContextConnectTcp(c, options);
    case VALKEY_CONN_UNIX: return connectUnix(c, options);
    case VALKEY_CONN_USERFD:
        c->fd = options->endpoint.fd;
        c->flags |= VALKEY_CONNECTED;
        return VALKEY_OK;
    default:
        vkSetError(c, VALKEY_ERR_OTHER, "The type of connection is not supported");
        return VALKEY_ERR;
    }
}

/* ------------------------------------------------------------------ transfer */

ssize_t vkSocketRead(valkeyContext *c, char *buf, size_t cap) {
    ssize_t n = recv(c->fd, buf, cap, 0);
    if (n > 0) return n;
    if (n == 0) {
        vkSetError(c, VALKEY_ERR_EOF, "Server closed the connection");
        return -1;
    }
    if (errno == EINTR) return 0;
    if ((errno == EAGAIN || errno == EWOULDBLOCK) && !(c->flags & VALKEY_BLOCK)) return 0;
    if (errno == ETIMEDOUT && (c->flags & VALKEY_BLOCK)) {
        vkSetError(c, VALKEY_ERR_TIMEOUT, "recv timeout");
    } else {
        vkSetError(c, VALKEY_ERR_IO, NULL);
    }
    return -1;
}

ssize_t vkSocketWriteBytes(valkeyContext *c, const char *buf, size_t len) {
    ssize_t n = send(c->fd, buf, len, MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno == EINTR) return 0;
    if ((errno == EAGAIN || errno == EWOULDBLOCK) && !(c->flags & VALKEY_BLOCK)) return 0;
    vkSetError(c, VALKEY_ERR_IO, NULL);
    return -1;
}

ssize_t vkSocketWrite(valkeyContext *c) {
    return vkSocketWriteBytes(c, c->obuf, vkTextLen(c->obuf));
}

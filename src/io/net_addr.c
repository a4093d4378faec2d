/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sockets and addresses. Invariant: every returned descriptor is non-blocking and close-on-exec,
 * and no descriptor leaks on failure. Host names are resolved by the calling thread, which may
 * block; literal addresses never block. ANY_THREAD. */
#include "io/net_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/number.h"
#include "io/sys.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define PORT_TEXT_MAX 8

typedef union netAddr {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    struct sockaddr_un local;
    struct sockaddr_storage storage;
} netAddr;

/* ---- options --------------------------------------------------------------------------------- */

static status setOption(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0 ? OK : ERR_IO;
}

status netSetNoDelay(int fd, bool on) { return setOption(fd, IPPROTO_TCP, TCP_NODELAY, on); }

status netSetKeepAlive(int fd, int seconds) {
    if (setOption(fd, SOL_SOCKET, SO_KEEPALIVE, seconds > 0) != OK) return ERR_IO;
    if (seconds <= 0) return OK;
#if defined(TCP_KEEPIDLE) && defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
    /* A dead peer is detected after twice the time: three probes at a third of it. */
    int interval = seconds / 3 > 0 ? seconds / 3 : 1;
    if (setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds) != OK) return ERR_IO;
    if (setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval) != OK) return ERR_IO;
    return setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
#elif defined(TCP_KEEPALIVE)
    return setOption(fd, IPPROTO_TCP, TCP_KEEPALIVE, seconds);
#else
    return OK;
#endif
}

status netSetMark(int fd, uint32_t mark) {
    if (mark == 0) return OK;
#ifdef SO_MARK
    return setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) == 0 ? OK : ERR_IO;
#else
    (void)fd;
    errno = ENOPROTOOPT;
    return ERR_IO;
#endif
}

int netSocketError(int fd) {
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

int64_t netRaiseFdLimit(int64_t want) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
    int64_t granted = limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
    /* The kernel does not report its limit: find it by bisection. */
    int64_t refused = want + 1;
    for (int64_t ask = want; granted < ask; ask = granted + (refused - granted) / 2) {
        struct rlimit raised = limit;
        raised.rlim_cur = (rlim_t)ask;
        if (raised.rlim_max < raised.rlim_cur) raised.rlim_max = raised.rlim_cur;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            granted = ask;
        } else {
            refused = ask;
        }
    }
    return granted;
}

/* ---- creating sockets ------------------------------------------------------------------------ */

static int newSocket(int family, int protocol) {
#ifdef SOCK_NONBLOCK
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
#else
    int fd = socket(family, SOCK_STREAM, protocol);
    if (fd < 0) return -1;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        close(fd);
        return -1;
    }
    return fd;
#endif
}

/* close() that preserves errno. */
static void closeQuietly(int fd) {
    int saved = errno;
    close(fd);
    errno = saved;
}

static bool isUnsupported(int error) {
    return error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPFNOSUPPORT ||
           error == EPROTONOSUPPORT || error == ESOCKTNOSUPPORT || error == ENOPROTOOPT;
}

static int tcpProtocol(bool mptcp) { return mptcp ? IPPROTO_MPTCP : IPPROTO_TCP; }

/* Addresses of `host`; with NULL any address of `family`. Returns NULL on failure. */
static struct addrinfo *resolve(const char *host, int family, int port, int flags, reason *why) {
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    char port_text[PORT_TEXT_MAX];
    snprintf(port_text, sizeof(port_text), "%u", (unsigned)port & 0xffff);
    int failed = getaddrinfo(host, port_text, &hints, &found);
    if (failed) {
        reasonSet(why, ERR_IO, "%s", gai_strerror(failed));
        return NULL;
    }
    return found;
}

/* The steps from a new socket to a listening one; `why` tells which one failed. */
static status bindAndListen(int fd, const struct addrinfo *to, const netListenOptions *options,
                            reason *why) {
    if (to->ai_family == AF_INET6 && options->ip6_only &&
        setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) != OK)
        return reasonSetErrno(why, "setsockopt");
    if (setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1) != OK)
        return reasonSetErrno(why, "setsockopt SO_REUSEADDR");
    if (netSetMark(fd, options->mark) != OK) return reasonSetErrno(why, "setsockopt SO_MARK");
    if (bind(fd, to->ai_addr, to->ai_addrlen) != 0) return reasonSetErrno(why, "bind");
    if (listen(fd, options->backlog) != 0) return reasonSetErrno(why, "listen");
    return OK;
}

int netListenTcp(const char *addr, int port, const netListenOptions *options, bool *unsupported,
                 reason *why) {
    if (unsupported) *unsupported = false;
    int family = strchr(addr, ':') ? AF_INET6 : AF_INET;
    const char *host = addr;
    if (strcmp(addr, "*") == 0 || strcmp(addr, "::*") == 0) host = NULL;
    struct addrinfo *found = resolve(host, family, port, AI_PASSIVE, why);
    if (!found) {
        /* Without IPv6 support, resolving an IPv6 address fails already. */
        if (unsupported) *unsupported = netAddrIsValid(addr);
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *to = found; to && fd < 0; to = to->ai_next) {
        fd = newSocket(to->ai_family, tcpProtocol(options->mptcp));
        status st = fd < 0 ? reasonSetErrno(why, "socket") : bindAndListen(fd, to, options, why);
        if (st == OK) break;
        if (unsupported) *unsupported = isUnsupported(errno);
        if (fd >= 0) closeQuietly(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* Fills in the address of a Unix socket; false if the path is too long or empty. */
static bool unixAddr(const char *path, struct sockaddr_un *addr, reason *why) {
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof(addr->sun_path)) {
        reasonSet(why, ERR_LIMIT, "unix socket path of %zu bytes: must be 1 to %zu", len,
                  sizeof(addr->sun_path) - 1);
        errno = ENAMETOOLONG;
        return false;
    }
    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    memcpy(addr->sun_path, path, len + 1);
    return true;
}

/* Sets mode and group of the socket file. */
static status setUnixRights(const char *path, mode_t mode, const char *group, reason *why) {
    if (group && *group) {
        errno = 0;
        const struct group *found = getgrnam(group);
        if (!found) return reasonSet(why, ERR_NOT_FOUND, "unknown group '%s'", group);
        if (chown(path, (uid_t)-1, found->gr_gid) != 0) return reasonSetErrno(why, "chown");
    }
    if (mode && chmod(path, mode) != 0) return reasonSetErrno(why, "chmod");
    return OK;
}

int netListenUnix(const char *path, mode_t mode, const char *group, int backlog, reason *why) {
    struct sockaddr_un addr;
    if (!unixAddr(path, &addr, why)) return -1;
    int fd = newSocket(AF_UNIX, 0);
    if (fd < 0) {
        reasonSetErrno(why, "socket");
        return -1;
    }
    /* The socket of a former process is removed, no other file. If it cannot be, bind() reports the
     * error. */
    struct stat old;
    if (lstat(path, &old) == 0 && (S_ISSOCK(old.st_mode) || S_ISLNK(old.st_mode))) unlink(path);
    if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        reasonSetErrno(why, "bind");
        goto fail;
    }
    if (setUnixRights(path, mode, group, why) != OK) goto fail_bound;
    if (listen(fd, backlog) != 0) {
        reasonSetErrno(why, "listen");
        goto fail_bound;
    }
    return fd;
fail_bound:
    unlink(path); /* remove our own socket file */
fail:
    closeQuietly(fd);
    return -1;
}

int netAccept(int listen_fd) {
    for (;;) {
#ifdef SOCK_NONBLOCK
        int fd = sysCallsNow()->accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
        int fd = sysCallsNow()->accept4(listen_fd, NULL, NULL, 0);
#endif
        if (fd >= 0) return fd;
        /* The peer closed while waiting in the queue: try the next one. */
        if (errno != EINTR && errno != ECONNABORTED) return -1;
    }
}

/* Binds `fd` to an address of `source` of the same family. */
static status bindSource(int fd, int family, const char *source, reason *why) {
    if (!source || !*source) return OK;
    struct addrinfo *found = resolve(source, family, 0, 0, why);
    if (!found) return ERR_IO;
    status st = ERR_IO;
    if (setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1) != OK) {
        reasonSetErrno(why, "setsockopt SO_REUSEADDR");
    } else {
        for (const struct addrinfo *from = found; from && st != OK; from = from->ai_next) {
            if (bind(fd, from->ai_addr, from->ai_addrlen) == 0) st = OK;
        }
        if (st != OK) reasonSetErrno(why, "bind");
    }
    freeaddrinfo(found);
    return st;
}

int netConnectTcp(const char *addr, int port, const char *source, bool mptcp, reason *why) {
    struct addrinfo *found = resolve(addr, AF_UNSPEC, port, 0, why);
    if (!found) return -1;
    int fd = -1, failed = 0;
    for (const struct addrinfo *to = found; to; to = to->ai_next) {
        fd = newSocket(to->ai_family, tcpProtocol(mptcp));
        if (fd < 0) {
            failed = errno;
            reasonSetErrno(why, "socket");
            continue;
        }
        if (bindSource(fd, to->ai_family, source, why) == OK) {
            if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 || errno == EINPROGRESS) break;
            reasonSetErrno(why, "connect");
        }
        failed = errno;
        closeQuietly(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    errno = failed;
    return fd;
}

/* ---- names ----------------------------------------------------------------------------------- */

typedef int nameCall(int fd, struct sockaddr *addr, socklen_t *len);

/* Gets the address of one end; `*len` is the length filled in. */
static bool getName(nameCall *call, int fd, netAddr *addr, socklen_t *len) {
    memset(addr, 0, sizeof(*addr));
    *len = sizeof(*addr);
    return call(fd, &addr->any, len) == 0;
}

static bool hasPath(const netAddr *addr, socklen_t len) {
    return len > offsetof(struct sockaddr_un, sun_path) && addr->local.sun_path[0];
}

/* "1.2.3.4:5": CLIENT LIST prints two addresses per client, and snprintf() would take half of its
 * time. */
static void printIp4(char *dst, const struct sockaddr_in *addr) {
    check(addr->sin_family == AF_INET);
    uint8_t parts[4];
    memcpy(parts, &addr->sin_addr, sizeof(parts));
    for (int i = 0; i < 4; i++) {
        dst += numberPrintUint(dst, parts[i]);
        *dst++ = i < 3 ? '.' : ':';
    }
    dst[numberPrintUint(dst, ntohs(addr->sin_port))] = '\0';
}

static bool endText(nameCall *call, nameCall *other, int fd, char dst[NET_ADDR_TEXT_MAX]) {
    netAddr addr;
    socklen_t len;
    char ip[INET6_ADDRSTRLEN];
    if (!getName(call, fd, &addr, &len)) goto unknown;
    switch (addr.any.sa_family) {
    case AF_INET: printIp4(dst, &addr.ip4); return true;
    case AF_INET6:
        if (!inet_ntop(AF_INET6, &addr.ip6.sin6_addr, ip, sizeof(ip))) goto unknown;
        snprintf(dst, NET_ADDR_TEXT_MAX, "[%s]:%u", ip, (unsigned)ntohs(addr.ip6.sin6_port));
        return true;
    case AF_UNIX:
        /* Only the listening side has a path, which is shown for both ends. */
        if (!hasPath(&addr, len) && (!getName(other, fd, &addr, &len) || !hasPath(&addr, len)))
            goto unknown;
        snprintf(dst, NET_ADDR_TEXT_MAX, "%.*s:0", NET_ADDR_TEXT_MAX - 3, addr.local.sun_path);
        return true;
    default: break;
    }
unknown:
    memcpy(dst, "?:0", 4);
    return false;
}

bool netPeerText(int fd, char dst[NET_ADDR_TEXT_MAX]) {
    return endText(getpeername, getsockname, fd, dst);
}

bool netLocalText(int fd, char dst[NET_ADDR_TEXT_MAX]) {
    return endText(getsockname, getpeername, fd, dst);
}

int netSplitText(const char *text, char *ip, size_t size) {
    const char *colon = strrchr(text, ':');
    check(colon);
    check(size > 0);
    size_t brackets = text[0] == '[';
    size_t len = (size_t)(colon - text) - 2 * brackets;
    if (len >= size) len = 0;
    memcpy(ip, text + brackets, len);
    ip[len] = 0;
    return atoi(colon + 1);
}

bool netPeerIsLocal(int fd) {
    netAddr addr;
    socklen_t len;
    if (!getName(getpeername, fd, &addr, &len)) return false;
    const uint8_t *ip6 = addr.ip6.sin6_addr.s6_addr;
    switch (addr.any.sa_family) {
    case AF_UNIX: return true;
    case AF_INET: return ntohl(addr.ip4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        if (IN6_IS_ADDR_V4MAPPED(&addr.ip6.sin6_addr)) return ip6[12] == IN_LOOPBACKNET;
        return IN6_IS_ADDR_LOOPBACK(&addr.ip6.sin6_addr);
    default: return false;
    }
}

bool netAddrIsValid(const char *text) {
    uint8_t addr[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, addr) == 1 || inet_pton(AF_INET6, text, addr) == 1;
}

bool netAddrIsOwn(const char *text) {
    netAddr addr;
    memset(&addr, 0, sizeof(addr));
    bool ip4 = inet_pton(AF_INET, text, &addr.ip4.sin_addr) == 1;
    if (!ip4 && inet_pton(AF_INET6, text, &addr.ip6.sin6_addr) != 1) return true;
    addr.any.sa_family = ip4 ? AF_INET : AF_INET6;
    int fd = socket(addr.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return true;
    bool own = bind(fd, &addr.any, ip4 ? sizeof(addr.ip4) : sizeof(addr.ip6)) == 0 ||
               errno != EADDRNOTAVAIL;
    closeQuietly(fd);
    return own;
}

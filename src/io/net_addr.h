/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses and sockets: listen, dial, accept, name both ends, set options. All descriptors are
 * non-blocking and close-on-exec. ANY_THREAD. */
#ifndef IO_NET_ADDR_H
#define IO_NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"

#define NET_ADDR_TEXT_MAX 128 /* "[ip6]:port" or a shortened socket path, with NUL */

typedef struct netListenOptions {
    int backlog;
    uint32_t mark; /* SO_MARK; 0 = none */
    bool mptcp;
    bool ip6_only;
} netListenOptions;

/* A listening TCP socket on a literal address ("*" = all IPv4, "::*" = all IPv6). `*unsupported`
 * (may be NULL) tells that the address family or address is not there, which an optional bind
 * forgives. -1 on failure. */
int netListenTcp(const char *addr, int port, const netListenOptions *options, bool *unsupported,
                 reason *why);
/* A listening Unix socket; an old file there is removed first; `mode` 0 leaves the umask's;
 * `group` "" leaves it. */
int netListenUnix(const char *path, mode_t mode, const char *group, int backlog, reason *why);
/* One waiting connection, or -1 (errno EAGAIN: none). */
int netAccept(int listen_fd);
/* Starts a non-blocking connect; `source` "" lets the kernel choose. -1 on failure. */
int netDialTcp(const char *addr, int port, const char *source, bool mptcp, reason *why);
int netDialUnix(const char *path, reason *why);

/* "ip:port" or "[ip6]:port" of either end; a Unix socket shows "path:0". Returns false and "?:0"
 * when unknown. */
bool netPeerText(int fd, char dst[NET_ADDR_TEXT_MAX]);
bool netLocalText(int fd, char dst[NET_ADDR_TEXT_MAX]);
bool netPeerIsLocal(int fd);           /* loopback or Unix socket */
bool netAddrIsValid(const char *text); /* a literal IPv4 or IPv6 address */

status netSetNoDelay(int fd, bool on);
/* Sends probes after `seconds` of silence; 0 switches them off. */
status netSetKeepAlive(int fd, int seconds);
status netSetNonBlocking(int fd, bool on);
status netSetMark(int fd, uint32_t mark);
int netSocketError(int fd); /* SO_ERROR, cleared by reading it */
/* Raises the soft limit of descriptors towards `want`; returns what it is then. */
int64_t netRaiseFdLimit(int64_t want);

#endif

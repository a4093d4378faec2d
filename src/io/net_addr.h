/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sockets and addresses: listen, connect, accept, names of both ends, options. All descriptors are
 * non-blocking and close-on-exec. ANY_THREAD. */
#ifndef IO_NET_ADDR_H
#define IO_NET_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"

#define NET_ADDR_TEXT_MAX 128 /* "[ip6]:port" or a truncated socket path, with a NUL */

typedef struct netListenOptions {
    int backlog;
    uint32_t mark; /* SO_MARK; 0: none */
    bool mptcp;
    bool ip6_only;
} netListenOptions;

/* A listening TCP socket on a literal address ("*" = all IPv4, "::*" = all IPv6). Sets
 * `*unsupported` (may be NULL) if the machine does not have the address or its family, which is not
 * an error for an optional address. -1 on failure. */
int netListenTcp(const char *addr, int port, const netListenOptions *options, bool *unsupported,
                 reason *why);
/* A listening Unix socket; replaces an existing file. `mode` 0 uses the umask; `group` "" keeps the
 * default group. */
int netListenUnix(const char *path, mode_t mode, const char *group, int backlog, reason *why);
/* Accepts one connection; -1 if there is none (errno EAGAIN). */
int netAccept(int listen_fd);
/* Starts a non-blocking connect; with `source` "" the kernel chooses the address. -1 on failure,
 * with errno, which is ECONNREFUSED if nobody listens there. */
int netConnectTcp(const char *addr, int port, const char *source, bool mptcp, reason *why);

/* Address of either end as "ip:port" or "[ip6]:port"; "path:0" for a Unix socket. False and "?:0"
 * if unknown. */
bool netPeerText(int fd, char dst[NET_ADDR_TEXT_MAX]);
bool netLocalText(int fd, char dst[NET_ADDR_TEXT_MAX]);
/* Splits such a text: stores the address without brackets in `ip`, "" if it does not fit into `size`
 * bytes, and returns the port. */
int netSplitText(const char *text, char *ip, size_t size);
bool netPeerIsLocal(int fd);           /* loopback or Unix socket */
bool netAddrIsValid(const char *text); /* a literal IPv4 or IPv6 address */
/* True if this host has the literal address, or that cannot be found out. */
bool netAddrIsOwn(const char *text);

status netSetNoDelay(int fd, bool on);
/* Sends probes after `seconds` without traffic; 0 disables them. */
status netSetKeepAlive(int fd, int seconds);
status netSetMark(int fd, uint32_t mark);
int netSocketError(int fd); /* SO_ERROR; reading it clears it */
/* Raises the soft limit of descriptors towards `want`; returns the resulting limit. */
int64_t netRaiseFdLimit(int64_t want);

#endif

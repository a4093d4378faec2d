/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sockets of contexts, for programs and transports that handle them themselves. Each function
 * that fails has set c->err. */
#ifndef VALKEY_NET_H
#define VALKEY_NET_H

#include <valkey/valkey.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Closes the socket, if there is one. */
LIBVALKEY_API void valkeyNetClose(valkeyContext *c);
/* 1 if connections over several paths (VALKEY_OPT_MPTCP) are supported, else 0. */
LIBVALKEY_API int valkeyHasMptcp(void);
/* VALKEY_ERR if the socket has an error. */
LIBVALKEY_API int valkeyCheckSocketError(valkeyContext *c);
/* Limit for each read and write. */
LIBVALKEY_API int valkeyTcpSetTimeout(valkeyContext *c, const struct timeval tv);
LIBVALKEY_API int valkeyContextConnectTcp(valkeyContext *c, const valkeyOptions *options);
/* Probes a connection that is idle for `interval` seconds. */
LIBVALKEY_API int valkeyKeepAlive(valkeyContext *c, int interval);
/* `*completed` is set to 1 if a connection attempt has succeeded, to 0 while it is under way. */
LIBVALKEY_API int valkeyCheckConnectDone(valkeyContext *c, int *completed);
LIBVALKEY_API int valkeySetTcpNoDelay(valkeyContext *c);
/* Milliseconds that sent data may remain without acknowledgement. */
LIBVALKEY_API int valkeyContextSetTcpUserTimeout(valkeyContext *c, unsigned int timeout);

#ifdef __cplusplus
}
#endif

#endif

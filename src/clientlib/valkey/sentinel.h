/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client that asks Sentinels where a primary is, connects to it, and follows it after a failover.
 * Synchronous; a context belongs to one thread at a time. Not in libvalkey. */
#ifndef VALKEY_SENTINEL_H
#define VALKEY_SENTINEL_H

#include <valkey/valkey.h>

#define VALKEY_SENTINEL_WAIT_MS 30000

#ifdef __cplusplus
extern "C" {
#endif

/* To be zeroed first; texts are copied. */
typedef struct valkeySentinelOptions {
    const char *sentinels; /* "host:port,host:port" */
    const char *name;      /* of the primary, as Sentinels know it */
    int use_replica;       /* connects to a replica that is up, if there is one */
    const char *sentinel_username, *sentinel_password;
    const char *username, *password; /* of the servers */
    int select_db;
    const struct timeval *connect_timeout; /* NULL: a second */
    const struct timeval *command_timeout; /* NULL: none; a second for Sentinels */
    /* How long a server is looked for, as during a failover; 0: VALKEY_SENTINEL_WAIT_MS. */
    int wait_ms;
    /* Called with each new connection before anything is sent, e.g. for TLS; not VALKEY_OK: it
     * failed, with c->err. */
    int (*on_connect)(valkeyContext *c, int is_sentinel, void *data);
    void *on_connect_data;
} valkeySentinelOptions;

typedef struct valkeySentinelContext {
    int err; /* of the last call: 0 or VALKEY_ERR_* */
    char errstr[128];
    valkeyContext *con; /* with the server; NULL: none now */
    char *host;         /* of the server, or NULL */
    int port;
    struct valkeySentinelState *state; /* the library's */
} valkeySentinelContext;

/* Connects. The context is to be checked for `err`; it looks again with the next command. NULL if
 * memory is exhausted or an option is not valid. */
LIBVALKEY_API valkeySentinelContext *valkeySentinelConnect(const valkeySentinelOptions *options);
LIBVALKEY_API void valkeySentinelFree(valkeySentinelContext *sc);
/* Makes sure that `con` is a connection with the server of now: Sentinels have not told of another
 * one, the server has not closed it, and its ROLE was right. For programs that use `con`
 * themselves; commands below do so. */
LIBVALKEY_API int valkeySentinelCheck(valkeySentinelContext *sc);

/* Send a command and return its reply, which the caller frees; NULL after an error. A command that
 * a replica has refused (READONLY) is sent again to the new primary. One whose connection fails is
 * not, as it may have been executed: the caller decides, and the next one finds the new primary. */
LIBVALKEY_API void *valkeySentinelvCommand(valkeySentinelContext *sc, const char *format,
                                           va_list ap);
LIBVALKEY_API void *valkeySentinelCommand(valkeySentinelContext *sc, const char *format, ...);
/* `argvlen` NULL: the arguments are C strings. */
LIBVALKEY_API void *valkeySentinelCommandArgv(valkeySentinelContext *sc, int argc,
                                              const char **argv, const size_t *argvlen);

#ifdef __cplusplus
}
#endif

#endif

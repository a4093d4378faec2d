/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of `net`. Each field is named after its directive; only the configuration registry
 * writes them. */
#ifndef NET_NET_PRIV_H
#define NET_NET_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "config/config.h"
#include "engine/hooks.h"

enum { BIND_MAX = 16 };

typedef enum outputClass {
    OUTPUT_NORMAL,
    OUTPUT_REPLICA,
    OUTPUT_PUBSUB,
    OUTPUT_CLASSES
} outputClass;
typedef struct outputLimit {
    size_t hard_bytes, soft_bytes; /* 0: no limit */
    int64_t soft_seconds;
} outputLimit;

enum tlsAuthClients { TLS_AUTH_NO, TLS_AUTH_YES, TLS_AUTH_OPTIONAL };
enum tlsAuthUser { TLS_USER_CN, TLS_USER_URI, TLS_USER_OFF };

typedef struct netConfig {
    /* Listening. */
    char *bind[BIND_MAX]; /* a leading '-': may be missing */
    int bind_count;
    int port; /* 0: no TCP */
    int admin_port, cluster_gateway_port, cluster_gateway_tls_port;
    bool protected_mode;
    int tcp_backlog;
    char *unixsocket, *unixsocketgroup;
    int unixsocketperm;
    bool mptcp;
    int64_t socket_mark_id;
    char *bind_source_addr;
    /* Connections. */
    int64_t maxclients;
    int timeout, tcp_keepalive; /* seconds, 0: off */
    int maxclients_reserved, maxclients_per_second,
        max_tls_handshakes_per_second; /* 0: none, off */
    char *priority_subnets;
    int max_new_connections_per_cycle, max_new_tls_connections_per_cycle;
    /* Buffers. */
    outputLimit output_limits[OUTPUT_CLASSES];
    int64_t client_query_buffer_limit;
    int64_t client_memory_before_auth; /* bytes of all together, 0: no limit */
    int64_t maxmemory_clients;         /* bytes, 0: no limit, negative: percent of maxmemory */
    /* I/O threads. */
    int io_threads;
    bool io_threads_always_active;
    int min_io_threads_avoid_copy_reply, min_string_size_avoid_copy_reply;
    int min_string_size_avoid_copy_reply_threaded;
    /* RDMA (not supported). */
    char *rdma_bind[BIND_MAX];
    int rdma_bind_count;
    int rdma_port, rdma_rx_size, rdma_completion_vector;
    /* TLS. */
    int tls_port;
    bool tls_replication, tls_cluster, tls_check_hostname;
    char *tls_cert_file, *tls_key_file;
    str tls_key_file_pass;
    char *tls_alt_cert_file, *tls_alt_key_file;
    str tls_alt_key_file_pass;
    char *tls_client_cert_file, *tls_client_key_file;
    str tls_client_key_file_pass;
    char *tls_dh_params_file, *tls_ca_cert_file, *tls_ca_cert_dir;
    int tls_auth_clients, tls_auth_clients_user;
    char *tls_protocols, *tls_ciphers, *tls_ciphersuites;
    bool tls_prefer_server_ciphers, tls_session_caching;
    int tls_session_cache_size, tls_session_cache_timeout, tls_auto_reload_interval;
} netConfig;

extern netConfig netConf;
extern const configOption netOptions[];
extern const configOption netTlsOptions[];

/* Reopens the TCP and TLS listeners after a port or `bind` has changed. No effect before
 * netListen(). On failure all are closed: the caller restores the old values and calls again. */
status netRelisten(reason *why);
/* Effect of tls-port. */
status netApplyTlsPort(reason *why);
/* True after netListen(): the start is over. */
bool netIsListening(void);
/* A forked child closes the listening sockets, so that a new server can use the ports. */
void listenerChildEvent(childEvent e, int kind, int exit_code, int signal);

/* Recomputes the memory of all clients after `maxmemory-clients` has changed. */
status limitsApplyClientMemory(reason *why);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of `net`: listening, clients, buffers. TLS: options_tls.c. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/lifecycle.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/priority.h"
#include "net/tls.h"

netConfig netConf;

/* ------------------------------------------------------------------ lists of addresses */

static status setAddresses(char **list, int *list_count, const slice *words, int count,
                           reason *why) {
    if (count > BIND_MAX) return reasonSet(why, ERR_LIMIT, "Too many bind addresses specified.");
    for (int i = 0; i < *list_count; i++) memFree(list[i]);
    for (int i = 0; i < count; i++) list[i] = memDup(words[i].ptr, words[i].len);
    *list_count = count;
    return OK;
}

static void getAddresses(char *const *list, int count, str *out) {
    for (int i = 0; i < count; i++) strAppendFormat(out, "%s%s", i ? " " : "", list[i]);
}

static status setBind(const slice *words, int count, bool more, reason *why) {
    (void)more; /* the last line applies */
    return setAddresses(netConf.bind, &netConf.bind_count, words, count, why);
}
static void getBind(str *out) { getAddresses(netConf.bind, netConf.bind_count, out); }
static const configSpecial bind_list = {.set = setBind, .get = getBind};

static status setRdmaBind(const slice *words, int count, bool more, reason *why) {
    (void)more; /* the last line applies */
    return setAddresses(netConf.rdma_bind, &netConf.rdma_bind_count, words, count, why);
}
static void getRdmaBind(str *out) { getAddresses(netConf.rdma_bind, netConf.rdma_bind_count, out); }
static const configSpecial rdma_bind_list = {.set = setRdmaBind, .get = getRdmaBind};

static status applyRdma(reason *why) {
    if (netConf.rdma_port == 0 && netConf.rdma_bind_count == 0) return OK;
    return reasonSet(why, ERR_DENIED, "No RDMA building support.");
}

/* ------------------------------------------------------------------ client-output-buffer-limit */

/* As shown by CONFIG GET; "replica" is accepted, too. */
static const char *const class_names[OUTPUT_CLASSES] = {"normal", "slave", "pubsub"};

static status parseLimit(const slice *words, outputLimit *limits, reason *why) {
    int class = 0;
    while (class < OUTPUT_CLASSES && !sliceIs(words[0], class_names[class])) class ++;
    if (sliceIs(words[0], "replica")) class = OUTPUT_REPLICA;
    if (class == OUTPUT_CLASSES) {
        return reasonSet(why, ERR_SYNTAX,
                         "Invalid client class specified in buffer limit configuration.");
    }
    uint64_t hard, soft;
    int64_t seconds;
    bool good = numberParseMemory(words[1], &hard) && numberParseMemory(words[2], &soft) &&
                numberParseInt(words[3], &seconds);
    if (!good || seconds < 0 || seconds > INT_MAX) {
        return reasonSet(
            why, ERR_SYNTAX,
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    limits[class] = (outputLimit){hard, soft, seconds};
    return OK;
}

static status setOutputLimits(const slice *words, int count, bool more, reason *why) {
    (void)more; /* classes that are not mentioned keep their values */
    if (count % 4) {
        return reasonSet(why, ERR_SYNTAX,
                         "Wrong number of arguments in buffer limit configuration.");
    }
    outputLimit limits[OUTPUT_CLASSES];
    memcpy(limits, netConf.output_limits, sizeof(limits));
    for (int i = 0; i < count; i += 4) {
        status st = parseLimit(words + i, limits, why);
        if (st != OK) return st;
    }
    memcpy(netConf.output_limits, limits, sizeof(limits));
    return OK;
}

static void getOutputLimits(str *out) {
    for (int i = 0; i < OUTPUT_CLASSES; i++) {
        const outputLimit *limit = &netConf.output_limits[i];
        strAppendFormat(out, "%s%s %zu %zu %lld", i ? " " : "", class_names[i], limit->hard_bytes,
                        limit->soft_bytes, (long long)limit->soft_seconds);
    }
}

/* One line per class, as is usual in configuration files. */
static void rewriteOutputLimits(configLines *lines) {
    for (int i = 0; i < OUTPUT_CLASSES; i++) {
        const outputLimit *limit = &netConf.output_limits[i];
        str rest = STR_EMPTY;
        strAppendFormat(&rest, "%s ", i == OUTPUT_REPLICA ? "replica" : class_names[i]);
        configAppendMemory(&rest, limit->hard_bytes);
        strAppendByte(&rest, ' ');
        configAppendMemory(&rest, limit->soft_bytes);
        strAppendFormat(&rest, " %lld", (long long)limit->soft_seconds);
        configLinesAdd(lines, strSlice(&rest));
        strFree(&rest);
    }
}

static const configSpecial output_limits = {
    .set = setOutputLimits, .get = getOutputLimits, .rewrite = rewriteOutputLimits};

/* ------------------------------------------------------------------ applying values */

/* After a failure the registry restores the old values but does not call `apply`: the listeners are
 * reopened here with the previous values. */
static struct {
    int port, tls_port, admin_port, gateway_port, gateway_tls_port;
    char *bind[BIND_MAX];
    int bind_count;
} in_effect;

static void saveListening(void) {
    for (int i = 0; i < in_effect.bind_count; i++) memFree(in_effect.bind[i]);
    in_effect.port = netConf.port;
    in_effect.tls_port = netConf.tls_port;
    in_effect.admin_port = netConf.admin_port;
    in_effect.gateway_port = netConf.cluster_gateway_port;
    in_effect.gateway_tls_port = netConf.cluster_gateway_tls_port;
    in_effect.bind_count = netConf.bind_count;
    for (int i = 0; i < netConf.bind_count; i++) {
        in_effect.bind[i] = memDup(netConf.bind[i], strlen(netConf.bind[i]));
    }
}

static status relisten(const char *refusal, reason *why) {
    reason detail;
    if (netRelisten(&detail) == OK) {
        saveListening();
        return OK;
    }
    netConfig wanted = netConf;
    netConf.port = in_effect.port;
    netConf.tls_port = in_effect.tls_port;
    netConf.admin_port = in_effect.admin_port;
    netConf.cluster_gateway_port = in_effect.gateway_port;
    netConf.cluster_gateway_tls_port = in_effect.gateway_tls_port;
    netConf.bind_count = in_effect.bind_count;
    memcpy(netConf.bind, in_effect.bind, sizeof(netConf.bind));
    if (netRelisten(&detail) != OK) logWarning("Could not listen again: %s", detail.text);
    netConf = wanted;
    return reasonSet(why, ERR_IO, "%s", refusal);
}

static status applyPort(reason *why) {
    return relisten("Unable to listen on this port. Check server logs.", why);
}

/* Opening the port builds the context anew: the files may have changed while TLS was off. */
status netApplyTlsPort(reason *why) {
    status st = netTlsApply(why);
    return st == OK ? relisten("Unable to listen on this port. Check server logs.", why) : st;
}

/* While the server starts it is not known yet whether it is a node: the gateway asks for that. */
static status refuseWithoutCluster(int port, reason *why) {
    if (!port || !netIsListening() || engineCluster()) return OK;
    return reasonSet(why, ERR_DENIED, "the gateway needs cluster-enabled yes");
}

static status applyGatewayPort(reason *why) {
    status st = refuseWithoutCluster(netConf.cluster_gateway_port, why);
    return st == OK ? applyPort(why) : st;
}

static status applyGatewayTlsPort(reason *why) {
    status st = refuseWithoutCluster(netConf.cluster_gateway_tls_port, why);
    return st == OK ? netApplyTlsPort(why) : st;
}

static status applyBind(reason *why) {
    return relisten("Failed to bind to specified addresses.", why);
}

static status applyMaxclients(reason *why) {
    reason detail = {""};
    int64_t wanted = netConf.maxclients;
    status st = netFitDescriptors(&detail);
    int64_t possible = netConf.maxclients;
    netConf.maxclients = wanted;
    if (st == OK && possible == wanted) return OK;
    return reasonSet(
        why, ERR_LIMIT,
        "The operating system is not able to handle the specified number of clients, try with %lld",
        (long long)possible);
}

/* ------------------------------------------------------------------ the table */

const configOption netOptions[] = {
    /* Listening. */
    CONFIG_SPECIAL("bind", &bind_list, "* -::*", .flags = CONFIG_MULTI_WORD | CONFIG_APPLY_AT_START,
                   .apply = applyBind),
    CONFIG_INT("port", netConf.port, 6379, 0, CONFIG_PORT_MAX, .flags = CONFIG_APPLY_AT_START,
               .apply = applyPort),
    CONFIG_INT("admin-port", netConf.admin_port, 0, 0, CONFIG_PORT_MAX,
               .flags = CONFIG_APPLY_AT_START, .apply = applyPort),
    CONFIG_INT("cluster-gateway-port", netConf.cluster_gateway_port, 0, 0, CONFIG_PORT_MAX,
               .flags = CONFIG_APPLY_AT_START, .apply = applyGatewayPort),
    CONFIG_INT("cluster-gateway-tls-port", netConf.cluster_gateway_tls_port, 0, 0, CONFIG_PORT_MAX,
               .apply = applyGatewayTlsPort),
    CONFIG_BOOL("protected-mode", netConf.protected_mode, true),
    CONFIG_INT("tcp-backlog", netConf.tcp_backlog, 511, 0, INT_MAX, .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("unixsocket", netConf.unixsocket, "", .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("unixsocketgroup", netConf.unixsocketgroup, "", .flags = CONFIG_IMMUTABLE),
    CONFIG_OCTAL("unixsocketperm", netConf.unixsocketperm, 0, 0, 0777, .flags = CONFIG_IMMUTABLE),
    CONFIG_BOOL("mptcp", netConf.mptcp, false, .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("socket-mark-id", netConf.socket_mark_id, 0, 0, UINT32_MAX,
               .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("bind-source-addr", netConf.bind_source_addr, ""),
    /* Connections. */
    CONFIG_INT("maxclients", netConf.maxclients, 10000, 1, UINT32_MAX, .apply = applyMaxclients),
    CONFIG_INT("maxclients-reserved", netConf.maxclients_reserved, 0, 0, INT_MAX),
    CONFIG_STRING("priority-subnets", netConf.priority_subnets, "", .flags = CONFIG_APPLY_AT_START,
                  .apply = priorityApply),
    CONFIG_INT("maxclients-per-second", netConf.maxclients_per_second, 0, 0, 1000000),
    CONFIG_INT("max-tls-handshakes-per-second", netConf.max_tls_handshakes_per_second, 0, 0,
               1000000),
    CONFIG_INT("timeout", netConf.timeout, 0, 0, INT_MAX),
    CONFIG_INT("tcp-keepalive", netConf.tcp_keepalive, 300, 0, INT_MAX),
    CONFIG_INT("max-new-connections-per-cycle", netConf.max_new_connections_per_cycle, 10, 1, 1000),
    CONFIG_INT("max-new-tls-connections-per-cycle", netConf.max_new_tls_connections_per_cycle, 1, 1,
               1000),
    /* Buffers. */
    CONFIG_SPECIAL("client-output-buffer-limit", &output_limits,
                   "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
                   .flags = CONFIG_MULTI_WORD),
    CONFIG_MEMORY("client-query-buffer-limit", netConf.client_query_buffer_limit, CONFIG_GB,
                  CONFIG_MB, INT64_MAX, .flags = CONFIG_IN_CRASH_REPORT),
    CONFIG_MEMORY("client-memory-before-auth", netConf.client_memory_before_auth, 16 * CONFIG_MB, 0,
                  1024 * CONFIG_GB),
    CONFIG_MEMORY_OR_PERCENT("maxmemory-clients", netConf.maxmemory_clients, 0,
                             .apply = limitsApplyClientMemory),
    /* I/O threads. */
    CONFIG_INT("io-threads", netConf.io_threads, 1, 1, 256, .flags = CONFIG_IN_CRASH_REPORT,
               .apply = ioThreadsApply),
    CONFIG_BOOL("io-threads-always-active", netConf.io_threads_always_active, false,
                .flags = CONFIG_HIDDEN, .apply = ioThreadsApply),
    CONFIG_INT("min-io-threads-avoid-copy-reply", netConf.min_io_threads_avoid_copy_reply, 7, 0,
               INT_MAX, .flags = CONFIG_HIDDEN, .no_effect = "the limit is fixed here"),
    CONFIG_INT("min-string-size-avoid-copy-reply", netConf.min_string_size_avoid_copy_reply, 16384,
               0, INT_MAX, .flags = CONFIG_HIDDEN, .no_effect = "the limit is fixed here"),
    CONFIG_INT("min-string-size-avoid-copy-reply-threaded",
               netConf.min_string_size_avoid_copy_reply_threaded, 65536, 0, INT_MAX,
               .flags = CONFIG_HIDDEN, .no_effect = "the limit is fixed here"),
    /* RDMA. */
    CONFIG_SPECIAL("rdma-bind", &rdma_bind_list, "", .flags = CONFIG_MULTI_WORD, .apply = applyRdma,
                   .no_effect = "RDMA is not supported"),
    CONFIG_INT("rdma-port", netConf.rdma_port, 0, 0, CONFIG_PORT_MAX, .apply = applyRdma,
               .no_effect = "RDMA is not supported"),
    CONFIG_INT("rdma-rx-size", netConf.rdma_rx_size, CONFIG_MB, 64 * CONFIG_KB, 16 * CONFIG_MB,
               .flags = CONFIG_IMMUTABLE, .no_effect = "RDMA is not supported"),
    CONFIG_INT("rdma-completion-vector", netConf.rdma_completion_vector, -1, -1, 1024,
               .flags = CONFIG_IMMUTABLE, .no_effect = "RDMA is not supported"),
    CONFIG_TABLE(netTlsOptions),
    CONFIG_END,
};

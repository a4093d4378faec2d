/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO's section Clients and the network part of Stats, with their samples. INFO clients costs a
 * look at the flags of all clients. Main thread only. */
#include "net/client_list.h"

#include "base/base.h"
#include "engine/lifecycle.h"
#include "engine/block.h"
#include "engine/hot.h"
#include "engine/pause.h"
#include "engine/session_report.h"
#include "engine/stats.h"
#include "engine/watch.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"
#include "net/priority.h"
#include "net/tls.h"

enum { RECENT_SECONDS = 8 };

static struct {
    rate input, output, repl_input, repl_output;
    /* Maximum buffer sizes of the last seconds, one slot per second; those of the current second
     * are in netStats(). */
    uint64_t input_max[RECENT_SECONDS], output_max[RECENT_SECONDS];
    int slot;
} samples;

static void sampleRates(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    int64_t now_us = clockMonoUs();
    rateSample(&samples.input, netStats()->bytes_in, now_us);
    rateSample(&samples.output, netStats()->bytes_out, now_us);
    rateSample(&samples.repl_input, netStats()->repl_in, now_us);
    rateSample(&samples.repl_output, netStats()->repl_out, now_us);
}

static void sampleBuffers(int64_t budget_us) {
    (void)budget_us; /* takes no time */
    netStatistics *stats = netStats();
    samples.slot = (samples.slot + 1) % RECENT_SECONDS;
    samples.input_max[samples.slot] = stats->recent_input_max;
    samples.output_max[samples.slot] = stats->recent_output_max;
    stats->recent_input_max = stats->recent_output_max = 0;
    hotCheck(samples.slot < RECENT_SECONDS);
}

void netResetStats(void) {
    hotCheck(threadIsMain());
    netStatistics *stats = netStats();
    *stats = (netStatistics){.recent_input_max = stats->recent_input_max,
                             .recent_output_max = stats->recent_output_max};
    ioThreadsResetStats();
    samples.input = samples.output = (rate){0};
    samples.repl_input = samples.repl_output = (rate){0}; /* their counters restart */
}

void netCountDataset(size_t received) {
    netTotals()->bytes_in += received;
    netTotals()->repl_in += received;
}

void netCountSlots(size_t received) {
    netTotals()->bytes_in += received;
    netTotals()->slots_in += received;
}

void netCountDatasetSent(size_t sent) {
    hotCheck(threadIsMain());
    netTotals()->bytes_out += sent;
    netTotals()->repl_out += sent;
}

void netSampleBuffers(const client *cl) {
    hotCheck(threadIsMain());
    if (clientIsAway(cl)) return; /* the thread counts what it reads */
    netStatistics *stats = netStats();
    stats->recent_input_max = sizeMax(stats->recent_input_max, clientInputMemory(cl));
    stats->recent_output_max = sizeMax(stats->recent_output_max, outbufPending(&cl->session.out));
}

static uint64_t recentMax(const uint64_t *slots, uint64_t present) {
    for (int i = 0; i < RECENT_SECONDS; i++) {
        if (slots[i] > present) present = slots[i];
    }
    return present;
}

static void printClients(str *out) {
    uint64_t connected = 0, blocked = 0, subscribed = 0;
    const list *all = clientAll();
    for (listNode *n = listFirst(all); n; n = listNext(all, n)) {
        const client *cl = LIST_OWNER(n, client, all);
        uint64_t flags = cl->session.flags;
        if (flags & SESSION_CLOSE_NOW) continue;
        connected += !(flags & SESSION_REPLICA);
        blocked += (flags & (SESSION_BLOCKED | SESSION_PAUSED)) != 0;
        subscribed += (flags & SESSION_PUBSUB) != 0;
    }
    const netStatistics *stats = netStats();
    strAppendField(out, "connected_clients", connected);
    strAppendField(out, "cluster_connections",
                   engineCluster() ? (uint64_t)engineCluster()->links() : 0);
    strAppendField(out, "connected_priority_clients", (uint64_t)priorityClients());
    strAppendField(out, "maxclients", (uint64_t)netConf.maxclients);
    strAppendField(out, "client_recent_max_input_buffer",
                   recentMax(samples.input_max, stats->recent_input_max));
    strAppendField(out, "client_recent_max_output_buffer",
                   recentMax(samples.output_max, stats->recent_output_max));
    strAppendField(out, "blocked_clients", blocked);
    strAppendField(out, "tracking_clients", sessionTrackingCount());
    strAppendField(out, "pubsub_clients", subscribed);
    strAppendField(out, "watching_clients", watchingSessionCount());
    strAppendField(out, "clients_in_timeout_table", 0);
    strAppendField(out, "total_watched_keys", watchedKeyCount());
    strAppendField(out, "total_blocking_keys", blockedKeyCount());
    strAppendField(out, "total_blocking_keys_on_nokey", blockedKeyWhenGoneCount());
    static const char *const actions[] = {"none", "write", "write", "all"};
    int64_t left_ms = pauseEndMs() - clockWallMs();
    strAppendFormat(out, "paused_reason:%s\r\npaused_actions:%s\r\n", pauseReasonName(),
                    actions[pauseNow()]);
    strAppendField(out, "paused_timeout_milliseconds", left_ms > 0 ? (uint64_t)left_ms : 0);
}

static void appendRate(str *out, const char *name, const rate *r) {
    strAppendFormat(out, "%s:%.2f\r\n", name, (double)ratePerSecond(r) / 1024);
}

static void printStats(str *out) {
    const netStatistics *stats = netStats();
    strAppendField(out, "total_connections_received", stats->connections);
    strAppendField(out, "total_net_input_bytes", stats->bytes_in);
    strAppendField(out, "total_net_output_bytes", stats->bytes_out);
    strAppendField(out, "total_net_repl_input_bytes", stats->repl_in);
    strAppendField(out, "total_net_repl_output_bytes", stats->repl_out);
    strAppendField(out, "total_net_cluster_slot_import_bytes", stats->slots_in);
    strAppendField(out, "total_net_cluster_slot_export_bytes", stats->slots_out);
    appendRate(out, "instantaneous_input_kbps", &samples.input);
    appendRate(out, "instantaneous_output_kbps", &samples.output);
    appendRate(out, "instantaneous_input_repl_kbps", &samples.repl_input);
    appendRate(out, "instantaneous_output_repl_kbps", &samples.repl_output);
    strAppendField(out, "rejected_connections", stats->rejected);
    strAppendField(out, "rejected_priority_connections", stats->rejected_priority);
    strAppendField(out, "evicted_clients", stats->evicted);
    strAppendField(out, "total_reads_processed", stats->reads);
    strAppendField(out, "total_writes_processed", stats->writes);
    ioThreadsPrintStats(out);
    strAppendField(out, "client_query_buffer_limit_disconnections", stats->input_limit_closed);
    strAppendField(out, "client_output_buffer_limit_disconnections", stats->output_limit_closed);
    strAppendField(out, "reply_buffer_shrinks", 0);
    strAppendField(out, "reply_buffer_expands", 0);
}

const infoSection netSections[] = {
    {"clients", "# Clients", INFO_NORMAL, INFO_CLIENTS, printClients},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {"tls", "# TLS", INFO_IN_ALL | INFO_IN_EVERYTHING, INFO_TLS, netTlsPrintInfo},
    {0},
};

/* Output blocks that were needed for a burst are returned to the allocator after some seconds. */
static void agePool(int64_t budget_us) {
    (void)budget_us;       /* at most a few blocks */
    (void)outbufPoolAge(); /* the number of bytes is not needed */
}

const tickJob netTicks[] = {
    {"output-pool", 1000, agePool, NULL},
    {"client-limits", 100, limitsTick, limitsAreBusy},
    {"door-rates", 100, sampleRates, NULL},
    {"door-buffers", 1000, sampleBuffers, NULL},
    {"tls-reload", 1000, netTlsTick, NULL},
    {"io-threads", 100, ioThreadsTick, ioThreadsAreBusy},
    {0},
};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Table of directives of other servers that this server does not have, with advice for the user.
 * Also finds placeholders of templates that were not replaced.
 *
 * Invariant: a row is used only for a name that is no directive of this server. ANY_THREAD. */
#include "base/base.h"
#include "config/config_priv.h"

#define REDIS_8 "Redis 8"
#define KEYDB "KeyDB"
#define OLD "Redis before 3.2"

/* A `*` at the end of a name matches one or more bytes. The first row that matches is used. */
static const configForeign rows[] = {
    /* Redis 7.4 to 8.10. */
    {"aof-load-corrupt-tail-max-size", REDIS_8, NULL,
     "remove it: nothing cuts a corrupt end but valkey-check-aof --fix", true},
    {"array-*", REDIS_8, NULL, "remove it: there are no arrays", true},
    {"bf-*", REDIS_8, NULL, "remove it: it belongs to a module for Bloom filters", true},
    {"cf-*", REDIS_8, NULL, "remove it: it belongs to a module for cuckoo filters", true},
    {"cluster-bus-port-protected-mode", REDIS_8, NULL,
     "remove it, and protect the port of the bus with cluster-bus-secret or tls-cluster", false},
    {"cluster-compatibility-sample-ratio", REDIS_8, NULL,
     "remove it: it only counts commands that a cluster would refuse", true},
    {"cluster-slot-migration-handoff-max-lag-bytes", REDIS_8,
     "slot-migration-max-failover-repl-bytes", NULL, true},
    {"cluster-slot-migration-*", REDIS_8, NULL,
     "remove it: CLUSTER MIGRATESLOTS needs no such limit", true},
    {"cms-*", REDIS_8, NULL, "remove it: it belongs to a module for count-min sketches", true},
    {"hash-min-template-entries", REDIS_8, NULL,
     "remove it: hashes with the same fields share the names without a setting", true},
    {"hash-max-template-*", REDIS_8, NULL,
     "remove it: hashes with the same fields share the names without a setting", true},
    {"json-*", REDIS_8, NULL, "remove it: it belongs to a module for JSON", true},
    {"key-memory-histograms", REDIS_8, NULL, "remove it: see MEMORY EXPLAIN", true},
    {"lookahead", REDIS_8, NULL, "remove it: requests are prefetched without a setting", true},
    {"repl-rdb-channel", REDIS_8, NULL,
     "use dual-channel-replication-enabled, which replicas of this server and Valkey have", true},
    {"replica-full-sync-buffer-limit", REDIS_8, NULL,
     "remove it: client-output-buffer-limit replica bounds what waits for a replica", true},
    {"search-*", REDIS_8, NULL, "remove it: it belongs to a module for search", true},
    {"stream-idmp-*", REDIS_8, NULL, "remove it, or use XCFGSET for each stream", true},
    {"tdigest-*", REDIS_8, NULL, "remove it: it belongs to a module for t-digests", true},
    {"topk-*", REDIS_8, NULL, "remove it: it belongs to a module for top-k", true},
    {"ts-*", REDIS_8, NULL, "remove it: it belongs to a module for time series", true},
    {"vset-*", REDIS_8, NULL, "remove it: there are no vector sets", true},

    {"active-client-balancing", KEYDB, NULL, "remove it: I/O threads share the work by themselves",
     true},
    {"active-replica", KEYDB, NULL,
     "there is one primary: use replicaof, and for several writers a cluster", false},
    {"allow-rdb-resize-op", KEYDB, NULL, "remove it", true},
    {"allow-write-during-load", KEYDB, NULL, "remove it: a load refuses writes", false},
    {"db-s3-object", KEYDB, NULL, "copy the file with another program", false},
    {"enable-async-*", KEYDB, NULL, "remove it", true},
    {"enable-motd", KEYDB, NULL, "remove it: there is no message of the day", true},
    {"fastsync*", KEYDB, NULL, "remove it: synchronisations do not fork without a setting", true},
    {"force-backlog-disk-reserve", KEYDB, NULL, "remove it: the backlog is in memory", true},
    {"keydb-*", KEYDB, NULL, "remove it", false},
    {"max-client-subset*", KEYDB, NULL, "remove it", true},
    {"min-clients-per-thread", KEYDB, NULL, "remove it: I/O threads are active when needed", true},
    {"multi-master", KEYDB, NULL,
     "there is one primary: use replicaof, and for several writers a cluster", false},
    {"multi-master-no-forward", KEYDB, NULL, "remove it, as multi-master", true},
    {"overload-protect-*", KEYDB, NULL, "use maxclients and maxclients-per-second", false},
    {"replica-weighting-factor", KEYDB, NULL, "remove it: one thread executes all commands", true},
    {"scratch-file-path", KEYDB, NULL, "remove it: values are in memory", true},
    {"semi-ordered-set-*", KEYDB, NULL, "remove it", true},
    {"server-thread-affinity", KEYDB, NULL, "use server-cpulist", false},
    {"server-threads", KEYDB, "io-threads", NULL, false},
    {"soft-shutdown", KEYDB, NULL, "use shutdown-timeout", true},
    {"storage-*", KEYDB, NULL, "values are in memory: use maxmemory", false},
    {"testmode", KEYDB, NULL, "remove it", true},
    {"time-thread-priority", KEYDB, NULL, "remove it", true},

    {"glueoutputbuf", OLD, NULL, "remove it: replies are sent together", true},
    {"gopher-enabled", "Redis 6", NULL, "remove it: there is no Gopher protocol", true},
    {"hash-max-zipmap-entries", OLD, "hash-max-listpack-entries", NULL, false},
    {"hash-max-zipmap-value", OLD, "hash-max-listpack-value", NULL, false},
    {"shareobjects*", OLD, NULL, "remove it: small values take no more memory than shared ones",
     true},
    {"vm-*", OLD, NULL, "remove it: values are in memory; maxmemory limits them", false},
};

static bool matches(const configForeign *f, slice name) {
    slice pattern = sliceOf(f->name);
    bool is_prefix = pattern.ptr[pattern.len - 1] == '*';
    if (!is_prefix) return sliceEqualFold(name, pattern);
    pattern.len--;
    return name.len >= pattern.len && sliceEqualFold(sliceMake(name.ptr, pattern.len), pattern);
}

const configForeign *configForeignFind(slice name) {
    check(name.ptr);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (matches(&rows[i], name)) return &rows[i];
    }
    return NULL;
}

void configForeignHint(const configForeign *f, str *out) {
    hotCheck(!f->here != !f->advice);
    if (f->here) {
        strAppendFormat(out, "of %s, its name here is '%s'", f->from, f->here);
    } else {
        strAppendFormat(out, "of %s: %s", f->from, f->advice);
    }
}

/* ------------------------------------------------------------------ placeholders */

static bool isNameByte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns the placeholder at the beginning of a text: `open`, a name or an expression, `close`. The
 * result is empty if there is none. */
static slice placeholderAt(slice text, const char *open, const char *close) {
    size_t at = strlen(open), end = strlen(close);
    bool has_name = false;
    if (text.len < at || memcmp(text.ptr, open, at) != 0) return sliceMake(text.ptr, 0);
    for (size_t i = at; i + end <= text.len; i++) {
        if (memcmp(text.ptr + i, close, end) == 0)
            return sliceMake(text.ptr, has_name ? i + end : 0);
        char c = text.ptr[i];
        has_name |= isNameByte(c);
        if (!isNameByte(c) && !memchr(" -.:/?=", c, 7)) break;
        if (c == ' ' && open[0] == '%') break; /* "5% to 6%" has no placeholder */
    }
    return sliceMake(text.ptr, 0);
}

slice configPlaceholder(slice text) {
    check(text.ptr);
    static const char *const kinds[][2] = {
        {"${", "}"}, {"{{", "}}"}, {"%", "%"}, {"@", "@"}, {"<%=", "%>"},
    };
    for (size_t i = 0; i < text.len; i++) {
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            slice found =
                placeholderAt(sliceMake(text.ptr + i, text.len - i), kinds[k][0], kinds[k][1]);
            if (found.len) return found;
        }
    }
    return sliceMake(text.ptr, 0);
}

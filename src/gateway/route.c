/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of routes (route.h). utils/gen_gateway.py reads its rows for docs/gateway.md.
 * Invariant: a command of which this file knows nothing, and which has keys, is executed by the
 * owner of their slot; one that blocks or keeps state in its connection has a row. */
#include "gateway/route.h"

#include "base/assert.h"

typedef struct routeRow {
    const char *name; /* "script|": all subcommands of it */
    route route;
} routeRow;

#define REFUSED(why_) \
    { .kind = ROUTE_REFUSED, .why = (why_) }

static const char connection_state[] = "it keeps state in one connection to one node";
static const char one_node[] = "it is about one node: connect to its own port";

static const routeRow rows[] = {
    /* The connection. */
    {"auth", {.kind = ROUTE_ORDERED}},
    {"hello", {.kind = ROUTE_ORDERED}},
    {"reset", {.kind = ROUTE_ORDERED}},
    {"quit", {.kind = ROUTE_ORDERED}},
    {"info", {.kind = ROUTE_INFO}},
    {"client|tracking", {.kind = ROUTE_TRACKING}},
    {"client|import-source", REFUSED(connection_state)},
    /* Cluster mode. */
    {"cluster|", {.kind = ROUTE_ABSENT}},
    {"cluster", {.kind = ROUTE_ABSENT}},
    {"clusterscan", {.kind = ROUTE_ABSENT}},
    {"readonly", {.kind = ROUTE_ABSENT}},
    {"readwrite", {.kind = ROUTE_ABSENT}},
    {"asking", {.kind = ROUTE_ABSENT}},
    {"restore-asking", {.kind = ROUTE_ABSENT}},
    {"migrate", REFUSED(one_node)},
    /* Replication. */
    {"sync", REFUSED(one_node)},
    {"psync", REFUSED(one_node)},
    {"replconf", REFUSED(one_node)},
    {"replicaof", REFUSED(one_node)},
    {"slaveof", REFUSED(one_node)},
    {"failover", REFUSED(one_node)},
    {"wait", {.kind = ROUTE_EACH, .merge = MERGE_LEAST}},
    {"waitaof", {.kind = ROUTE_EACH, .merge = MERGE_LEAST}},
    {"changes|", REFUSED(one_node)},
    /* Several keys. */
    {"mget", {.kind = ROUTE_SPLIT, .merge = MERGE_VALUES}},
    {"mset", {.kind = ROUTE_SPLIT, .merge = MERGE_FIRST}},
    {"del", {.kind = ROUTE_SPLIT, .merge = MERGE_SUM}},
    {"unlink", {.kind = ROUTE_SPLIT, .merge = MERGE_SUM}},
    {"exists", {.kind = ROUTE_SPLIT, .merge = MERGE_SUM}},
    {"touch", {.kind = ROUTE_SPLIT, .merge = MERGE_SUM}},
    {"sunion", {.kind = ROUTE_FETCH}},
    {"sinter", {.kind = ROUTE_FETCH}},
    {"sdiff", {.kind = ROUTE_FETCH}},
    {"sunioncard", {.kind = ROUTE_FETCH}},
    {"sintercard", {.kind = ROUTE_FETCH}},
    {"sdiffcard", {.kind = ROUTE_FETCH}},
    {"zunion", {.kind = ROUTE_FETCH}},
    {"zinter", {.kind = ROUTE_FETCH}},
    {"zdiff", {.kind = ROUTE_FETCH}},
    {"zintercard", {.kind = ROUTE_FETCH}},
    {"pfcount", {.kind = ROUTE_FETCH}},
    {"lcs", {.kind = ROUTE_FETCH}},
    /* All keys. */
    {"dbsize", {.kind = ROUTE_ALL, .merge = MERGE_SUM}},
    {"keys", {.kind = ROUTE_ALL, .merge = MERGE_APPEND}},
    {"randomkey", {.kind = ROUTE_ALL, .merge = MERGE_ANY_ONE}},
    {"flushall", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"flushdb", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"countprefix", {.kind = ROUTE_EACH, .merge = MERGE_SUM}},
    {"delprefix", {.kind = ROUTE_EACH, .merge = MERGE_SUM}},
    {"scan", {.kind = ROUTE_SCAN}},
    {"swapdb", REFUSED("cluster mode does not have it")},
    /* Scripts and functions. */
    {"script|load", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"script|exists", {.kind = ROUTE_ALL, .merge = MERGE_EVERY}},
    {"script|flush", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"script|kill", {.kind = ROUTE_EACH, .merge = MERGE_ANY_OK}},
    {"script|show", {.kind = ROUTE_ALL, .merge = MERGE_ANY_OK}},
    {"script|debug", REFUSED(connection_state)},
    {"function|load", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"function|delete", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"function|flush", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"function|restore", {.kind = ROUTE_ALL, .merge = MERGE_FIRST}},
    {"function|kill", {.kind = ROUTE_EACH, .merge = MERGE_ANY_OK}},
    /* Messages: the bus of the cluster carries PUBLISH to all nodes. */
    {"publish", {.kind = ROUTE_PUBLISH}},
    {"pubsub|channels", {.kind = ROUTE_NODES, .merge = MERGE_UNION}},
    {"pubsub|shardchannels", {.kind = ROUTE_NODES, .merge = MERGE_UNION}},
    {"pubsub|numsub", {.kind = ROUTE_NODES, .merge = MERGE_COUNTS}},
    {"pubsub|shardnumsub", {.kind = ROUTE_NODES, .merge = MERGE_COUNTS}},
    {"pubsub|numpat", {.kind = ROUTE_NODES, .merge = MERGE_SUM}},
    {"ssubscribe", {.kind = ROUTE_SHARD}},
    {"sunsubscribe", {.kind = ROUTE_SHARD}},
    /* Transactions. */
    {"exec", {.kind = ROUTE_EXEC}},
    {"multi", {.kind = ROUTE_LOCAL}},
    {"discard", {.kind = ROUTE_UNWATCH}},
    {"watch", {.kind = ROUTE_WATCH}},
    {"unwatch", {.kind = ROUTE_UNWATCH}},
    /* State in a connection. */
    {"himport|", REFUSED(connection_state)},
};

static bool isRow(slice name, const char *row) {
    slice text = sliceOf(row);
    check(text.len > 0);
    if (text.ptr[text.len - 1] == '|') return sliceHasPrefix(name, text);
    return sliceEqual(name, text);
}

route routeOf(slice name, const commandSpec *spec) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (isRow(name, rows[i].name)) return rows[i].route;
    bool has_channels = spec->flags & CMD_PUBSUB && spec->first_key;
    bool has_slot = commandSpecHasKeys(spec) || has_channels;
    return (route){.kind = has_slot ? ROUTE_SLOT : ROUTE_LOCAL};
}

bool routeIsQueued(const route *r) {
    switch (r->kind) {
    case ROUTE_ALL:
    case ROUTE_EACH:
    case ROUTE_NODES:
    case ROUTE_SCAN:
    case ROUTE_SHARD:
    case ROUTE_TRACKING:
    case ROUTE_INFO: return false;
    default: return true;
    }
}

bool routeMayBeQueued(slice name) {
    static const char *const names[] = {"ping", "echo", "time", "publish"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (sliceEqual(name, sliceOf(names[i]))) return true;
    return false;
}

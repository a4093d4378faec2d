/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts of /status.json: commands, errors, hot keys, persistence, replication, cluster. Each list
 * has a bound. Main thread only. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/histogram.h"
#include "base/number.h"
#include "engine/command.h"
#include "engine/hot.h"
#include "engine/hotkeys.h"
#include "engine/lifecycle.h"
#include "metrics/metrics_priv.h"

enum { COMMANDS_MAX = 50, ERRORS_MAX = 20, HOT_KEYS_MAX = 10, HOT_KEY_BYTES_MAX = 64 };
enum { REPLICAS_MAX = 20, NODES_MAX = 100, RANGES_MAX = 20 };

/* ------------------------------------------------------------------ commands */

static int byTime(const void *a, const void *b) {
    uint64_t x = commandById(*(const int *)a)->usec_ns, y = commandById(*(const int *)b)->usec_ns;
    return (x < y) - (x > y);
}

static void printCommand(str *out, int id) {
    const command *cmd = commandById(id);
    strAppendByte(out, '{');
    jsonString(out, "name", cmd->name);
    strAppendFormat(out, ",\"calls\":%llu,\"usec\":%llu,\"failed\":%llu,\"rejected\":%llu",
                    (unsigned long long)cmd->calls, (unsigned long long)(cmd->usec_ns / 1000),
                    (unsigned long long)cmd->failed, (unsigned long long)cmd->rejected);
    jsonName(out, "per_second");
    jsonDecimal(out, historyCommandRate(id));
    if (cmd->latency) {
        jsonName(out, "p50_us");
        jsonDecimal(out, (double)histogramPercentile(cmd->latency, 50) / 1000);
        jsonName(out, "p99_us");
        jsonDecimal(out, (double)histogramPercentile(cmd->latency, 99) / 1000);
    }
    strAppendByte(out, '}');
}

/* Those that took the most time. */
void statusPrintCommands(str *out) {
    hotCheck(threadIsMain());
    int *ids = memNewArray(int, (size_t)commandIdCount() + 1), count = 0;
    for (int id = 0; id < commandIdCount(); id++) {
        const command *cmd = commandById(id);
        if (cmd->calls || cmd->failed || cmd->rejected) ids[count++] = id;
    }
    qsort(ids, (size_t)count, sizeof(int), byTime);
    strAppendByte(out, '[');
    for (int i = 0; i < count && i < COMMANDS_MAX; i++) {
        if (i) strAppendByte(out, ',');
        printCommand(out, ids[i]);
    }
    strAppendByte(out, ']');
    memFree(ids);
}

void statusPrintErrors(str *out, slice text) {
    hotCheck(threadIsMain());
    slice prefix = SLICE("errorstat_"), name, value;
    int count = 0;
    strAppendByte(out, '[');
    while (count < ERRORS_MAX && infoFieldsNext(&text, &name, &value)) {
        if (name.len <= prefix.len || memcmp(name.ptr, prefix.ptr, prefix.len)) continue;
        strAppendText(out, count++ ? ",{" : "{");
        jsonString(out, "code", sliceMake(name.ptr + prefix.len, name.len - prefix.len));
        jsonNumber(out, "count", infoPart(value, "count"));
        strAppendByte(out, '}');
    }
    strAppendByte(out, ']');
}

/* ------------------------------------------------------------------ hot keys */

/* The rate of a key that was seen by three samples lately. Fewer are chance: of many keys that are
 * asked for equally, some are always among the samples. */
static double leastHotRate(void) {
    double age = (double)(engineHot.now_ms - hotkeysSince()) / 1000;
    double window = 1 - exp2(-(age > 1 ? age : 1) / HOTKEYS_HALF_LIFE_S);
    return 3 * HOTKEYS_SAMPLE / (window * HOTKEYS_HALF_LIFE_S / log(2));
}

void statusPrintHotKeys(str *out, bool hide_user_data) {
    hotCheck(threadIsMain());
    int count;
    double total;
    const hotKey *keys = hotkeysRead(&count, &total);
    strAppendFormat(out, "{\"half_life_seconds\":%d,\"hidden\":%s", HOTKEYS_HALF_LIFE_S,
                    hide_user_data ? "true" : "false");
    jsonName(out, "per_second");
    jsonDecimal(out, total);
    jsonName(out, "list");
    strAppendByte(out, '[');
    int printed = 0;
    double least = leastHotRate();
    for (int i = 0; i < count && printed < HOT_KEYS_MAX; i++) {
        if (keys[i].rate - keys[i].error < least) continue;
        strAppendFormat(out, "%s{\"db\":%d", printed++ ? "," : "", keys[i].db_id);
        slice key = strSlice(&keys[i].key);
        key.len = sizeMin(key.len, HOT_KEY_BYTES_MAX);
        if (!hide_user_data) jsonString(out, "key", key);
        jsonName(out, "per_second");
        jsonDecimal(out, keys[i].rate);
        jsonName(out, "error");
        jsonDecimal(out, keys[i].error);
        strAppendByte(out, '}');
    }
    strAppendText(out, "]}");
}

/* ------------------------------------------------------------------ persistence, replication */

void statusPrintPersistence(str *out, const infoIndex *info) {
    static const jsonField fields[] = {
        {"loading", "loading"},
        {"changes", "rdb_changes_since_last_save"},
        {"saving", "rdb_bgsave_in_progress"},
        {"last_save_time", "rdb_last_save_time"},
        {"last_save_seconds", "rdb_last_bgsave_time_sec"},
        {"saves", "rdb_saves"},
        {"aof_enabled", "aof_enabled"},
        {"aof_rewriting", "aof_rewrite_in_progress"},
        {"aof_bytes", "aof_current_size"},
    };
    strAppendByte(out, '{');
    jsonFields(out, info, fields, COUNT_OF(fields));
    jsonString(out, "last_save_status", infoIndexFind(info, "rdb_last_bgsave_status"));
    jsonString(out, "aof_write_status", infoIndexFind(info, "aof_last_write_status"));
    jsonString(out, "aof_rewrite_status", infoIndexFind(info, "aof_last_bgrewrite_status"));
    strAppendByte(out, '}');
}

/* "slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1,type=..." */
static void printReplicas(str *out, slice text) {
    slice prefix = SLICE("slave"), name, value;
    int count = 0;
    strAppendByte(out, '[');
    while (count < REPLICAS_MAX && infoFieldsNext(&text, &name, &value)) {
        int64_t number;
        if (name.len <= prefix.len || memcmp(name.ptr, prefix.ptr, prefix.len)) continue;
        if (!numberParseInt(sliceMake(name.ptr + prefix.len, name.len - prefix.len), &number))
            continue;
        strAppendText(out, count++ ? ",{" : "{");
        jsonString(out, "ip", infoPart(value, "ip"));
        jsonString(out, "port", infoPart(value, "port"));
        jsonString(out, "state", infoPart(value, "state"));
        jsonNumber(out, "offset", infoPart(value, "offset"));
        jsonNumber(out, "lag", infoPart(value, "lag"));
        strAppendByte(out, '}');
    }
    strAppendByte(out, ']');
}

void statusPrintReplication(str *out, const infoIndex *info, slice text) {
    static const jsonField of_replica[] = {
        {"last_io_seconds", "master_last_io_seconds_ago"},
        {"syncing", "master_sync_in_progress"},
        {"replica_offset", "slave_repl_offset"},
    };
    static const jsonField fields[] = {
        {"offset", "master_repl_offset"},
        {"connected", "connected_slaves"},
        {"backlog_bytes", "repl_backlog_size"},
    };
    strAppendByte(out, '{');
    jsonString(out, "role", infoIndexFind(info, "role"));
    if (infoIndexFind(info, "master_host").len) {
        jsonString(out, "primary_host", infoIndexFind(info, "master_host"));
        jsonString(out, "primary_port", infoIndexFind(info, "master_port"));
        jsonString(out, "link", infoIndexFind(info, "master_link_status"));
        jsonFields(out, info, of_replica, COUNT_OF(of_replica));
    }
    jsonFields(out, info, fields, COUNT_OF(fields));
    jsonName(out, "replicas");
    printReplicas(out, text);
    strAppendByte(out, '}');
}

/* ------------------------------------------------------------------ cluster */

/* Removes the next word from `line`; empty at the end. */
static slice nextWord(slice *line) {
    while (line->len && line->ptr[0] == ' ') *line = sliceMake(line->ptr + 1, line->len - 1);
    const char *end = line->len ? memchr(line->ptr, ' ', line->len) : NULL;
    slice word = sliceMake(line->ptr, end ? (size_t)(end - line->ptr) : line->len);
    *line = sliceMake(line->ptr + word.len, line->len - word.len);
    return word;
}

/* The slots of a node: their number, and the first ranges as text. */
static void printSlots(str *out, slice rest) {
    str ranges = STR_EMPTY;
    int64_t slots = 0;
    int count = 0;
    for (slice word = nextWord(&rest); word.len; word = nextWord(&rest)) {
        int64_t first, last;
        if (word.ptr[0] == '[') continue; /* is moving */
        const char *dash = memchr(word.ptr, '-', word.len);
        size_t len = dash ? (size_t)(dash - word.ptr) : word.len;
        if (!numberParseInt(sliceMake(word.ptr, len), &first)) continue;
        last = first;
        if (dash && !numberParseInt(sliceMake(dash + 1, word.len - len - 1), &last)) continue;
        slots += last - first + 1;
        if (count < RANGES_MAX) {
            if (count) strAppendByte(&ranges, ' ');
            strAppendSlice(&ranges, word);
        }
        if (count++ == RANGES_MAX) strAppendText(&ranges, " ...");
    }
    strAppendFormat(out, ",\"slots\":%lld", (long long)slots);
    jsonString(out, "ranges", strSlice(&ranges));
    strFree(&ranges);
}

/* A line of CLUSTER NODES: id, address, flags, primary, ping, pong, epoch, link, slots. */
static void printNode(str *out, slice line) {
    hotCheck(line.len > 0);
    enum { ID, ADDRESS, FLAGS, PRIMARY, PING, PONG, EPOCH, LINK, WORDS };
    slice words[WORDS];
    for (int i = 0; i < WORDS; i++) words[i] = nextWord(&line);
    const char *at =
        words[ADDRESS].len ? memchr(words[ADDRESS].ptr, '@', words[ADDRESS].len) : NULL;
    if (at) words[ADDRESS].len = (size_t)(at - words[ADDRESS].ptr); /* without the bus port */
    strAppendByte(out, '{');
    jsonString(out, "id", words[ID]);
    jsonString(out, "address", words[ADDRESS]);
    jsonString(out, "flags", words[FLAGS]);
    jsonString(out, "primary", words[PRIMARY]);
    jsonString(out, "link", words[LINK]);
    jsonNumber(out, "epoch", words[EPOCH]);
    printSlots(out, line);
    strAppendByte(out, '}');
}

void statusPrintCluster(str *out, const infoIndex *info) {
    static const jsonField fields[] = {
        {"slots_assigned", "cluster_slots_assigned"},
        {"slots_ok", "cluster_slots_ok"},
        {"slots_failed", "cluster_slots_fail"},
        {"known_nodes", "cluster_known_nodes"},
        {"size", "cluster_size"},
        {"epoch", "cluster_current_epoch"},
    };
    check(engineCluster());
    str lines = STR_EMPTY;
    engineCluster()->describe(&lines);
    strAppendByte(out, '{');
    jsonString(out, "state", infoIndexFind(info, "cluster_state"));
    jsonFields(out, info, fields, COUNT_OF(fields));
    jsonName(out, "nodes");
    strAppendByte(out, '[');
    const char *next = strText(&lines), *end;
    for (int count = 0; count < NODES_MAX && (end = strchr(next, '\n')); next = end + 1) {
        if (count++) strAppendByte(out, ',');
        printNode(out, sliceMake(next, (size_t)(end - next)));
    }
    strAppendText(out, "]}");
    strFree(&lines);
}

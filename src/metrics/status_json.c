/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The object of /status.json, which the status page requests every second. If the server has a
 * password, user data (client names, arguments of slow commands) is omitted, because this port has
 * no authentication, or one that asks only for the right to run INFO. */
#include "acl/acl.h"
#include "base/base.h"
#include "base/number.h"
#include "engine/commandlog.h"
#include "engine/lifecycle.h"
#include "metrics/metrics_priv.h"
#include "net/net.h"

enum { CLIENTS_MAX = 10, SLOW_MAX = 20, COMMAND_BYTES_MAX = 256 };

/* ------------------------------------------------------------------ sections */

static void appendServer(str *out, const infoIndex *info) {
    static const jsonField fields[] = {
        {"uptime_seconds", "uptime_in_seconds"}, {"pid", "process_id"}, {"port", "tcp_port"}};
    strAppendByte(out, '{');
    jsonString(out, "product", infoIndexFind(info, "server_product"));
    jsonString(out, "release", infoIndexFind(info, "server_release"));
    jsonString(out, "version", infoIndexFind(info, "valkey_version"));
    jsonFields(out, info, fields, COUNT_OF(fields));
    engineIdentity server; /* INFO's field has two names */
    engineIdentify(&server);
    jsonString(out, "mode", sliceOf(server.mode));
    strAppendByte(out, '}');
}

static void appendOps(str *out, const infoIndex *info) {
    static const jsonField fields[] = {
        {"per_second", "instantaneous_ops_per_sec"},
        {"total_commands", "total_commands_processed"},
        {"hits", "keyspace_hits"},
        {"misses", "keyspace_misses"},
        {"input_bytes", "total_net_input_bytes"},
        {"output_bytes", "total_net_output_bytes"},
    };
    strAppendByte(out, '{');
    jsonFields(out, info, fields, COUNT_OF(fields));
    strAppendByte(out, '}');
}

static void appendMemory(str *out, const infoIndex *info) {
    static const jsonField fields[] = {
        {"used", "used_memory"},
        {"peak", "used_memory_peak"},
        {"rss", "used_memory_rss"},
        {"max", "maxmemory"},
        {"fragmentation", "mem_fragmentation_ratio"},
        {"fragmentation_bytes", "mem_fragmentation_bytes"},
    };
    strAppendByte(out, '{');
    jsonFields(out, info, fields, COUNT_OF(fields));
    strAppendByte(out, '}');
}

/* The value after " name=" in a line of CLIENT LIST; values contain no blanks. */
static slice clientField(slice line, const char *name) { return infoSubfield(line, name, ' '); }

static void appendClient(str *out, slice line, bool hide_user_data) {
    static const jsonField numbers[] = {{"age", "age"},
                                        {"idle", "idle"},
                                        {"qbuf", "qbuf"},
                                        {"omem", "omem"},
                                        {"tot_mem", "tot-mem"}};
    strAppendByte(out, '{');
    jsonNumber(out, "id", clientField(line, "id"));
    jsonString(out, "addr", clientField(line, "addr"));
    jsonString(out, "name", hide_user_data ? SLICE("") : clientField(line, "name"));
    jsonString(out, "cmd", clientField(line, "cmd"));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        jsonNumber(out, numbers[i].name, clientField(line, numbers[i].info_name));
    strAppendByte(out, '}');
}

static void appendClientList(str *out, bool hide_user_data) {
    str lines = STR_EMPTY;
    netDescribeLargest(CLIENTS_MAX, &lines);
    slice rest = strSlice(&lines);
    strAppendByte(out, '[');
    for (bool first = true; rest.len; first = false) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        if (!first) strAppendByte(out, ',');
        appendClient(out, sliceMake(rest.ptr, len), hide_user_data);
        len += end != NULL;
        rest = sliceMake(rest.ptr + len, rest.len - len);
    }
    strAppendByte(out, ']');
    strFree(&lines);
}

static void appendClients(str *out, const infoIndex *info, bool hide_user_data) {
    static const jsonField fields[] = {
        {"connected", "connected_clients"}, {"blocked", "blocked_clients"}, {"max", "maxclients"}};
    strAppendByte(out, '{');
    jsonFields(out, info, fields, COUNT_OF(fields));
    jsonName(out, "list"); /* those with the most memory, largest first */
    appendClientList(out, hide_user_data);
    strAppendByte(out, '}');
}

static void appendKeyspace(str *out, slice info) {
    slice info_name, value;
    bool first = true;
    strAppendByte(out, '[');
    while (infoFieldsNext(&info, &info_name, &value)) {
        int64_t db;
        if (info_name.len < 3 || memcmp(info_name.ptr, "db", 2)) continue;
        if (!numberParseInt(sliceMake(info_name.ptr + 2, info_name.len - 2), &db)) continue;
        strAppendText(out, first ? "{" : ",{");
        first = false;
        jsonNumber(out, "db", sliceMake(info_name.ptr + 2, info_name.len - 2));
        jsonNumber(out, "keys", infoPart(value, "keys"));
        jsonNumber(out, "expires", infoPart(value, "expires"));
        strAppendByte(out, '}');
    }
    strAppendByte(out, ']');
}

/* What a Sentinel watches, if this is one; the keys are those of INFO. */
static void appendWatched(str *out, slice info, const char *prefix, const char *const *keys) {
    slice name, value;
    bool first = true;
    strAppendByte(out, '[');
    while (infoFieldsNext(&info, &name, &value)) {
        if (name.len <= strlen(prefix) || memcmp(name.ptr, prefix, strlen(prefix))) continue;
        strAppendText(out, first ? "{" : ",{");
        first = false;
        for (int i = 0; keys[i]; i++) jsonString(out, keys[i], infoPart(value, keys[i]));
        strAppendByte(out, '}');
    }
    strAppendByte(out, ']');
}

/* Prints a slow command; only its name if `hide_user_data`. */
static void appendCommand(str *out, const commandlogEntry *e, bool hide_user_data) {
    str text = STR_EMPTY;
    int shown = hide_user_data && e->argc > 1 ? 1 : e->argc;
    for (int i = 0; i < shown && text.len < COMMAND_BYTES_MAX; i++) {
        if (i) strAppendByte(&text, ' ');
        strAppendSlice(&text, strSlice(&e->argv[i]));
    }
    if (shown < e->argc) strAppendText(&text, " ...");
    jsonString(out, "command", strSlice(&text));
    strFree(&text);
}

static void appendSlowLog(str *out, bool hide_user_data) {
    const list *entries = commandlogOf(COMMANDLOG_SLOW);
    int count = 0;
    strAppendByte(out, '[');
    for (listNode *n = listFirst(entries); n && count < SLOW_MAX; n = listNext(entries, n)) {
        const commandlogEntry *e = LIST_OWNER(n, commandlogEntry, node);
        strAppendFormat(out, "%s{\"id\":%lld,\"time\":%lld,\"micros\":%lld", count++ ? "," : "",
                        (long long)e->id, (long long)e->time_s, (long long)e->value);
        appendCommand(out, e, hide_user_data);
        strAppendByte(out, '}');
    }
    strAppendByte(out, ']');
}

void statusPrint(str *out) {
    hotCheck(threadIsMain());
    bool hide_user_data = aclDefaultNeedsPassword();
    str text = STR_EMPTY;
    infoFieldsRead(&text);
    infoIndex info;
    infoIndexInit(&info, strSlice(&text));
    strAppendByte(out, '{');
    jsonName(out, "server");
    appendServer(out, &info);
    jsonName(out, "ops");
    appendOps(out, &info);
    jsonName(out, "memory");
    appendMemory(out, &info);
    jsonName(out, "clients");
    appendClients(out, &info, hide_user_data);
    jsonName(out, "keyspace");
    appendKeyspace(out, strSlice(&text));
    jsonName(out, "slowlog");
    appendSlowLog(out, hide_user_data);
    jsonName(out, "commands");
    statusPrintCommands(out);
    jsonName(out, "errors");
    statusPrintErrors(out, strSlice(&text));
    jsonName(out, "hot_keys");
    statusPrintHotKeys(out, hide_user_data);
    jsonName(out, "persistence");
    statusPrintPersistence(out, &info);
    jsonName(out, "replication");
    statusPrintReplication(out, &info, strSlice(&text));
    if (engineCluster()) {
        jsonName(out, "cluster");
        statusPrintCluster(out, &info);
    }
    static const char *const primary_keys[] = {
        "name",      "address",      "status", "replicas", "ok_replicas",
        "sentinels", "ok_sentinels", "quorum", "ckquorum", "config_epoch",
        "state",     "switched",     "why",    NULL};
    static const char *const instance_keys[] = {"primary", "kind", "address", "up", NULL};
    if (infoIndexFind(&info, "sentinel_masters").len) {
        jsonName(out, "primaries");
        appendWatched(out, strSlice(&text), "sentinel_primary_", primary_keys);
        jsonName(out, "instances");
        appendWatched(out, strSlice(&text), "sentinel_instance_", instance_keys);
    }
    strAppendText(out, "}\n");
    infoIndexClear(&info);
    strFree(&text);
}

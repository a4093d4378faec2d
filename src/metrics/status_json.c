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

enum { CLIENTS_MAX = 50, SLOW_MAX = 20, COMMAND_BYTES_MAX = 256 };

/* ------------------------------------------------------------------ JSON */

/* Non-ASCII bytes are printed as the code point of the same number, so any bytes give valid
 * JSON. */
static void appendText(str *out, slice text) {
    strAppendByte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if (byte == '"' || byte == '\\') {
            strAppendFormat(out, "\\%c", byte);
        } else if (byte < 0x20 || byte >= 0x7f) {
            strAppendFormat(out, "\\u%04x", byte);
        } else {
            strAppendByte(out, (char)byte);
        }
    }
    strAppendByte(out, '"');
}

/* Prints "name":, preceded by a comma unless it is the first of its object. */
static void appendName(str *out, const char *name) {
    if (out->len && out->ptr[out->len - 1] != '{') strAppendByte(out, ',');
    strAppendFormat(out, "\"%s\":", name);
}

/* Prints the number in `text`, 0 if it is none. JSON allows fewer forms of numbers than Valkey. */
static void appendNumber(str *out, const char *name, slice text) {
    double number;
    if (!numberParseDouble(text, &number)) number = 0;
    char digits[NUMBER_TEXT_MAX];
    size_t len = numberPrintDouble(digits, number);
    appendName(out, name);
    bool plain = digits[0] == '-' || (digits[0] >= '0' && digits[0] <= '9');
    strAppendSlice(out, plain ? sliceMake(digits, len) : SLICE("0"));
}

static void appendNamed(str *out, const char *name, slice text) {
    appendName(out, name);
    appendText(out, text);
}

typedef struct fieldName {
    const char *name, *info_name;
} fieldName;

static void appendFields(str *out, const infoIndex *info, const fieldName *fields, size_t count) {
    for (size_t i = 0; i < count; i++)
        appendNumber(out, fields[i].name, infoIndexFind(info, fields[i].info_name));
}

/* ------------------------------------------------------------------ sections */

static void appendServer(str *out, const infoIndex *info) {
    static const fieldName fields[] = {
        {"uptime_seconds", "uptime_in_seconds"}, {"pid", "process_id"}, {"port", "tcp_port"}};
    strAppendByte(out, '{');
    appendNamed(out, "version", infoIndexFind(info, "valkey_version"));
    appendFields(out, info, fields, COUNT_OF(fields));
    engineIdentity server; /* INFO's field has two names */
    engineIdentify(&server);
    appendNamed(out, "mode", sliceOf(server.mode));
    strAppendByte(out, '}');
}

static void appendOps(str *out, const infoIndex *info) {
    static const fieldName fields[] = {
        {"per_second", "instantaneous_ops_per_sec"},
        {"total_commands", "total_commands_processed"},
        {"hits", "keyspace_hits"},
        {"misses", "keyspace_misses"},
        {"input_bytes", "total_net_input_bytes"},
        {"output_bytes", "total_net_output_bytes"},
    };
    strAppendByte(out, '{');
    appendFields(out, info, fields, COUNT_OF(fields));
    strAppendByte(out, '}');
}

static void appendMemory(str *out, const infoIndex *info) {
    static const fieldName fields[] = {
        {"used", "used_memory"},
        {"peak", "used_memory_peak"},
        {"rss", "used_memory_rss"},
        {"max", "maxmemory"},
        {"fragmentation", "mem_fragmentation_ratio"},
    };
    strAppendByte(out, '{');
    appendFields(out, info, fields, COUNT_OF(fields));
    strAppendByte(out, '}');
}

/* The value after " name=" in a line of CLIENT LIST; values contain no blanks. */
static slice clientField(slice line, const char *name) { return infoSubfield(line, name, ' '); }

static void appendClient(str *out, slice line, bool hide_user_data) {
    static const fieldName numbers[] = {{"age", "age"},
                                        {"idle", "idle"},
                                        {"qbuf", "qbuf"},
                                        {"omem", "omem"},
                                        {"tot_mem", "tot-mem"}};
    strAppendByte(out, '{');
    appendNumber(out, "id", clientField(line, "id"));
    appendNamed(out, "addr", clientField(line, "addr"));
    appendNamed(out, "name", hide_user_data ? SLICE("") : clientField(line, "name"));
    appendNamed(out, "cmd", clientField(line, "cmd"));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        appendNumber(out, numbers[i].name, clientField(line, numbers[i].info_name));
    strAppendByte(out, '}');
}

static void appendClientList(str *out, bool hide_user_data) {
    str lines = STR_EMPTY;
    netDescribeClients(CLIENTS_MAX, false, &lines);
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
    static const fieldName fields[] = {
        {"connected", "connected_clients"}, {"blocked", "blocked_clients"}, {"max", "maxclients"}};
    strAppendByte(out, '{');
    appendFields(out, info, fields, COUNT_OF(fields));
    appendName(out, "list");
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
        appendNumber(out, "db", sliceMake(info_name.ptr + 2, info_name.len - 2));
        appendNumber(out, "keys", infoPart(value, "keys"));
        appendNumber(out, "expires", infoPart(value, "expires"));
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
        for (int i = 0; keys[i]; i++) appendNamed(out, keys[i], infoPart(value, keys[i]));
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
    appendNamed(out, "command", strSlice(&text));
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
    appendName(out, "server");
    appendServer(out, &info);
    appendName(out, "ops");
    appendOps(out, &info);
    appendName(out, "memory");
    appendMemory(out, &info);
    appendName(out, "clients");
    appendClients(out, &info, hide_user_data);
    appendName(out, "keyspace");
    appendKeyspace(out, strSlice(&text));
    appendName(out, "slowlog");
    appendSlowLog(out, hide_user_data);
    static const char *const primary_keys[] = {
        "name",      "address",      "status", "replicas", "ok_replicas",
        "sentinels", "ok_sentinels", "quorum", "ckquorum", "config_epoch",
        "state",     "switched",     "why",    NULL};
    static const char *const instance_keys[] = {"primary", "kind", "address", "up", NULL};
    if (infoIndexFind(&info, "sentinel_masters").len) {
        appendName(out, "primaries");
        appendWatched(out, strSlice(&text), "sentinel_primary_", primary_keys);
        appendName(out, "instances");
        appendWatched(out, strSlice(&text), "sentinel_instance_", instance_keys);
    }
    strAppendText(out, "}\n");
    infoIndexClear(&info);
    strFree(&text);
}

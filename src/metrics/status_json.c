/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The object of /status.json, which the status page asks for each second. Where the server has a password, what users
 * chose (names of clients, arguments of slow commands) is left out: this port knows no passwords. */
#include "acl/acl.h"
#include "base/base.h"
#include "base/number.h"
#include "engine/commandlog.h"
#include "metrics/metrics_priv.h"
#include "net/net.h"

enum { CLIENTS_MAX = 50, SLOW_MAX = 20, COMMAND_BYTES_MAX = 256 };

/* ------------------------------------------------------------------ JSON */

/* Bytes that are not ASCII come out as characters of their own number: any bytes make a valid text. */
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

/* "name":, with a comma in front unless it is the first of its object. */
static void appendName(str *out, const char *name) {
    if (out->len && out->ptr[out->len - 1] != '{') strAppendByte(out, ',');
    strAppendFormat(out, "\"%s\":", name);
}

/* A number as it stands in the text; 0 when it is none. JSON knows fewer forms of them than we do. */
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
    const char *name, *fact;
} fieldName;

static void appendFacts(str *out, const factsIndex *facts, const fieldName *fields, size_t count) {
    for (size_t i = 0; i < count; i++)
        appendNumber(out, fields[i].name, factsFind(facts, fields[i].fact));
}

/* ------------------------------------------------------------------ parts */

static void appendServer(str *out, const factsIndex *facts) {
    static const fieldName fields[] = {
        {"uptime_seconds", "uptime_in_seconds"}, {"pid", "process_id"}, {"port", "tcp_port"}};
    strAppendByte(out, '{');
    appendNamed(out, "version", factsFind(facts, "valkey_version"));
    appendFacts(out, facts, fields, COUNT_OF(fields));
    appendNamed(out, "mode", factsFind(facts, "server_mode"));
    strAppendByte(out, '}');
}

static void appendOps(str *out, const factsIndex *facts) {
    static const fieldName fields[] = {
        {"per_second", "instantaneous_ops_per_sec"},
        {"total_commands", "total_commands_processed"},
        {"hits", "keyspace_hits"},
        {"misses", "keyspace_misses"},
        {"input_bytes", "total_net_input_bytes"},
        {"output_bytes", "total_net_output_bytes"},
    };
    strAppendByte(out, '{');
    appendFacts(out, facts, fields, COUNT_OF(fields));
    strAppendByte(out, '}');
}

static void appendMemory(str *out, const factsIndex *facts) {
    static const fieldName fields[] = {
        {"used", "used_memory"},
        {"peak", "used_memory_peak"},
        {"rss", "used_memory_rss"},
        {"max", "maxmemory"},
        {"fragmentation", "mem_fragmentation_ratio"},
    };
    strAppendByte(out, '{');
    appendFacts(out, facts, fields, COUNT_OF(fields));
    strAppendByte(out, '}');
}

/* The value behind " name=" of a line of CLIENT LIST; values hold no blanks. */
static slice clientField(slice line, const char *name) { return factsField(line, name, ' '); }

static void appendClient(str *out, slice line, bool hides) {
    static const fieldName numbers[] = {{"age", "age"},
                                        {"idle", "idle"},
                                        {"qbuf", "qbuf"},
                                        {"omem", "omem"},
                                        {"tot_mem", "tot-mem"}};
    strAppendByte(out, '{');
    appendNumber(out, "id", clientField(line, "id"));
    appendNamed(out, "addr", clientField(line, "addr"));
    appendNamed(out, "name", hides ? SLICE("") : clientField(line, "name"));
    appendNamed(out, "cmd", clientField(line, "cmd"));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        appendNumber(out, numbers[i].name, clientField(line, numbers[i].fact));
    strAppendByte(out, '}');
}

static void appendClientList(str *out, bool hides) {
    str lines = STR_EMPTY;
    netDescribeClients(CLIENTS_MAX, false, &lines);
    slice rest = strSlice(&lines);
    strAppendByte(out, '[');
    for (bool first = true; rest.len; first = false) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        if (!first) strAppendByte(out, ',');
        appendClient(out, sliceMake(rest.ptr, len), hides);
        len += end != NULL;
        rest = sliceMake(rest.ptr + len, rest.len - len);
    }
    strAppendByte(out, ']');
    strFree(&lines);
}

static void appendClients(str *out, const factsIndex *facts, bool hides) {
    static const fieldName fields[] = {
        {"connected", "connected_clients"}, {"blocked", "blocked_clients"}, {"max", "maxclients"}};
    strAppendByte(out, '{');
    appendFacts(out, facts, fields, COUNT_OF(fields));
    appendName(out, "list");
    appendClientList(out, hides);
    strAppendByte(out, '}');
}

static void appendKeyspace(str *out, slice facts) {
    slice fact, value;
    bool first = true;
    strAppendByte(out, '[');
    while (factsNext(&facts, &fact, &value)) {
        int64_t db;
        if (fact.len < 3 || memcmp(fact.ptr, "db", 2)) continue;
        if (!numberParseInt(sliceMake(fact.ptr + 2, fact.len - 2), &db)) continue;
        strAppendText(out, first ? "{" : ",{");
        first = false;
        appendNumber(out, "db", sliceMake(fact.ptr + 2, fact.len - 2));
        appendNumber(out, "keys", factsPart(value, "keys"));
        appendNumber(out, "expires", factsPart(value, "expires"));
        strAppendByte(out, '}');
    }
    strAppendByte(out, ']');
}

/* The command's name alone where arguments are nobody's business. */
static void appendCommand(str *out, const commandlogEntry *e, bool hides) {
    str text = STR_EMPTY;
    int shown = hides && e->argc > 1 ? 1 : e->argc;
    for (int i = 0; i < shown && text.len < COMMAND_BYTES_MAX; i++) {
        if (i) strAppendByte(&text, ' ');
        strAppendSlice(&text, strSlice(&e->argv[i]));
    }
    if (shown < e->argc) strAppendText(&text, " ...");
    appendNamed(out, "command", strSlice(&text));
    strFree(&text);
}

static void appendSlowLog(str *out, bool hides) {
    const list *entries = commandlogOf(COMMANDLOG_SLOW);
    int count = 0;
    strAppendByte(out, '[');
    for (listNode *n = listFirst(entries); n && count < SLOW_MAX; n = listNext(entries, n)) {
        const commandlogEntry *e = LIST_OWNER(n, commandlogEntry, node);
        strAppendFormat(out, "%s{\"id\":%lld,\"time\":%lld,\"micros\":%lld", count++ ? "," : "",
                        (long long)e->id, (long long)e->time_s, (long long)e->value);
        appendCommand(out, e, hides);
        strAppendByte(out, '}');
    }
    strAppendByte(out, ']');
}

void statusPrint(str *out) {
    bool hides = aclDefaultNeedsPassword();
    str text = STR_EMPTY;
    factsRead(&text);
    factsIndex facts;
    factsIndexInit(&facts, strSlice(&text));
    strAppendByte(out, '{');
    appendName(out, "server");
    appendServer(out, &facts);
    appendName(out, "ops");
    appendOps(out, &facts);
    appendName(out, "memory");
    appendMemory(out, &facts);
    appendName(out, "clients");
    appendClients(out, &facts, hides);
    appendName(out, "keyspace");
    appendKeyspace(out, strSlice(&text));
    appendName(out, "slowlog");
    appendSlowLog(out, hides);
    strAppendText(out, "}\n");
    factsIndexClear(&facts);
    strFree(&text);
}

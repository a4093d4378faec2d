/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --sentinel-view (modes.h): a table of what a Sentinel watches. On a terminal it is refreshed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "tools/cli/modes.h"
#include "tools/cli/reply_map.h"
#include "tools/cli/terminal.h"

enum { SWITCH_TEXT_MAX = 96 };

typedef struct sentinelTable {
    connection *c;
    bool terminal;
    int columns;
    char *watched; /* INFO sentinel_watched, which Valkey's Sentinel does not have */
    str text;
} sentinelTable;

/* ------------------------------------------------------------------ lines */

/* Appends a line, cut at the width of the terminal. Names may contain anything. */
static void addLine(sentinelTable *t, bool head, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void addLine(sentinelTable *t, bool head, const char *format, ...) {
    str line = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&line, format, args);
    va_end(args);
    if (t->terminal && line.len > (size_t)t->columns) strCut(&line, (size_t)t->columns);
    for (size_t i = 0; i < line.len; i++) {
        if ((unsigned char)line.ptr[i] < ' ' || line.ptr[i] == 0x7f) line.ptr[i] = '?';
    }
    if (head && t->terminal) strAppendText(&t->text, "\033[7m");
    strAppendSlice(&t->text, strSlice(&line));
    if (head && t->terminal) strAppendText(&t->text, "\033[0m");
    strAppendText(&t->text, t->terminal ? "\033[K\n" : "\n");
    strFree(&line);
}

/* The flags that say something; "ok" if none does. */
static void stateOf(const valkeyReply *map, str *out) {
    str flags = STR_EMPTY;
    strClear(out);
    strAppendText(&flags, replyMapText(map, "flags"));
    strAppendByte(&flags, ','); /* strtok_r() needs a text */
    char *rest = NULL;
    for (char *flag = strtok_r(flags.ptr, ",", &rest); flag; flag = strtok_r(NULL, ",", &rest)) {
        bool is_kind =
            !strcmp(flag, "master") || !strcmp(flag, "slave") || !strcmp(flag, "sentinel");
        if (!is_kind) strAppendFormat(out, "%s%s", out->len ? "," : "", flag);
    }
    const char *step = replyMapText(map, "failover-state");
    if (step[0] && strcmp(step, "none")) strAppendFormat(out, ":%s", step);
    if (!out->len) strAppendText(out, "ok");
    strFree(&flags);
}

/* When the primary was last replaced since the start of the Sentinel, and why. */
static void lastSwitch(const sentinelTable *t, const char *name, char out[SWITCH_TEXT_MAX]) {
    char prefix[256];
    long long at_s = 0;
    (void)snprintf(out, SWITCH_TEXT_MAX, "-");
    (void)snprintf(prefix, sizeof(prefix), ":name=%s,address=", name);
    const char *line = t->watched ? strstr(t->watched, prefix) : NULL;
    if (!line) return;
    const char *end = strpbrk(line, "\r\n"), *at = strstr(line, ",switched=");
    const char *why = strstr(line, ",why=");
    if (!end || !at || !why || at > end || why > end) return;
    at_s = strtoll(at + strlen(",switched="), NULL, 10);
    time_t when = (time_t)at_s;
    struct tm tm;
    if (!at_s || !localtime_r(&when, &tm)) return;
    size_t len = strftime(out, SWITCH_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &tm);
    why += strlen(",why=");
    if (end > why)
        (void)snprintf(out + len, SWITCH_TEXT_MAX - len, ", %.*s", (int)(end - why), why);
}

/* ------------------------------------------------------------------ the table */

static void addAddress(const valkeyReply *map, char *out, size_t size) {
    const char *host = replyMapText(map, "ip");
    (void)snprintf(out, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
                   replyMapText(map, "port"));
}

static void addOthers(sentinelTable *t, const char *name, bool sentinels) {
    valkeyReply *list =
        connectionCommand(t->c, "SENTINEL %s %s", sentinels ? "SENTINELS" : "SLAVES", name);
    str state = STR_EMPTY;
    for (size_t i = 0; i < list->elements; i++) {
        const valkeyReply *map = list->element[i];
        char address[300];
        addAddress(map, address, sizeof(address));
        stateOf(map, &state);
        if (sentinels) {
            addLine(t, false, "  sentinel         %-24s %-28s %s", address, strText(&state),
                    replyMapText(map, "name"));
        } else {
            addLine(t, false, "  replica          %-24s %-28s link %s, offset %s, priority %s",
                    address, strText(&state), replyMapText(map, "master-link-status"),
                    replyMapText(map, "slave-repl-offset"), replyMapText(map, "slave-priority"));
        }
    }
    strFree(&state);
    freeReplyObject(list);
}

static void addPrimary(sentinelTable *t, const valkeyReply *map) {
    const char *name = replyMapText(map, "name");
    char address[300], last[SWITCH_TEXT_MAX];
    str state = STR_EMPTY;
    addAddress(map, address, sizeof(address));
    stateOf(map, &state);
    lastSwitch(t, name, last);
    addLine(t, false, "%-18s %-24s %-28s quorum %s of %d, epoch %s, last failover %s", name,
            address, strText(&state), replyMapText(map, "quorum"),
            atoi(replyMapText(map, "num-other-sentinels")) + 1, replyMapText(map, "config-epoch"),
            last);
    strFree(&state);
    addOthers(t, name, false);
    addOthers(t, name, true);
}

int modeSentinelView(connection *c) {
    static sentinelTable t;
    int64_t interval_us = c->options->interval_us ? c->options->interval_us : 1000000;
    t = (sentinelTable){.c = c, .terminal = isatty(STDOUT_FILENO)};
    do {
        if (!connectionConnect(c)) return 1;
        t.columns = terminalColumns();
        valkeyReply *primaries =
            connectionRequire(c, "ERROR: SENTINEL MASTERS", "SENTINEL MASTERS");
        valkeyReply *watched = connectionCommand(c, "INFO sentinel_watched");
        t.watched = watched->type == VALKEY_REPLY_ERROR ? NULL : watched->str;
        strClear(&t.text);
        if (t.terminal) strAppendText(&t.text, "\033[H");
        addLine(&t, true, "%-18s %-24s %-28s %s", "NAME", "ADDRESS", "STATE", "DETAILS");
        for (size_t i = 0; i < primaries->elements; i++) addPrimary(&t, primaries->element[i]);
        if (t.terminal) strAppendText(&t.text, "\033[J");
        fwrite(t.text.ptr, 1, t.text.len, stdout);
        fflush(stdout);
        freeReplyObject(primaries);
        freeReplyObject(watched);
        if (t.terminal) clockSleepUs(interval_us);
    } while (t.terminal);
    strFree(&t.text);
    return 0;
}

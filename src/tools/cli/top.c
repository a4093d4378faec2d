/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --top (modes.h): a view of clients, memory, commands and hot keys that is refreshed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "tools/cli/info.h"
#include "tools/cli/modes.h"
#include "tools/cli/terminal.h"
#include "tools/cli/top_keys.h"

enum {
    COMMANDS_MAX = 512,
    KEY_LINES = 10,
    LINES_MIN = 4,
    KEY_WIDTH_MIN = 16,
    KEY_WIDTH_MAX = 46,
    COLUMNS_AFTER_KEY = 27,
    FIRST_US = 250000, /* the first view has no rates, so the second one follows soon */
};

typedef struct topCommand {
    char name[48];
    int64_t calls, calls_before;
    double us_per_call;
    bool seen;
} topCommand;

typedef struct topView {
    topCommand commands[COMMANDS_MAX];
    int count;
    int64_t requests, received, sent, at_us; /* of the last refresh; at_us 0: none */
    topKeys keys;
    double seconds; /* since the last refresh */
    bool terminal;
    int columns;
    str text;
} topView;

/* ------------------------------------------------------------------ lines */

/* Appends a line, cut at the width of the terminal. */
static void addLine(topView *view, bool head, const str *line) {
    size_t len = line->len;
    if (view->terminal && len > (size_t)view->columns) len = (size_t)view->columns;
    if (head && view->terminal) strAppendText(&view->text, "\033[7m");
    strAppend(&view->text, line->ptr, len);
    for (; head && view->terminal && len < (size_t)view->columns; len++)
        strAppendByte(&view->text, ' ');
    if (head && view->terminal) strAppendText(&view->text, "\033[0m");
    strAppendText(&view->text, view->terminal ? "\033[K\n" : "\n");
}

static void addFormat(topView *view, bool head, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void addFormat(topView *view, bool head, const char *format, ...) {
    str line = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&line, format, args);
    va_end(args);
    addLine(view, head, &line);
    strFree(&line);
}

/* ------------------------------------------------------------------ server */

static double rate(const topView *view, int64_t now, int64_t before) {
    return view->at_us ? (double)(now - before) / view->seconds : 0;
}

static void addServer(topView *view, const char *info) {
    char memory[NUMBER_TEXT_MAX], peak[NUMBER_TEXT_MAX], limit[NUMBER_TEXT_MAX];
    int64_t requests = infoNumber(info, "total_commands_processed");
    int64_t received = infoNumber(info, "total_net_input_bytes");
    int64_t sent = infoNumber(info, "total_net_output_bytes");
    numberPrintHuman(memory, (uint64_t)infoNumber(info, "used_memory"));
    numberPrintHuman(peak, (uint64_t)infoNumber(info, "used_memory_peak"));
    numberPrintHuman(limit, (uint64_t)infoNumber(info, "maxmemory"));
    addFormat(view, false,
              "keys %" PRId64 "   clients %" PRId64 " (%" PRId64
              " blocked)   memory %s, peak %s, limit %s",
              infoKeys(info), infoNumber(info, "connected_clients"),
              infoNumber(info, "blocked_clients"), memory, peak,
              infoNumber(info, "maxmemory") ? limit : "none");
    addFormat(view, false, "requests/s %.0f   in %.1f kB/s   out %.1f kB/s",
              rate(view, requests, view->requests), rate(view, received, view->received) / 1000,
              rate(view, sent, view->sent) / 1000);
    addFormat(view, false,
              "hits %" PRId64 "   misses %" PRId64 "   evicted %" PRId64 "   expired %" PRId64,
              infoNumber(info, "keyspace_hits"), infoNumber(info, "keyspace_misses"),
              infoNumber(info, "evicted_keys"), infoNumber(info, "expired_keys"));
    view->requests = requests;
    view->received = received;
    view->sent = sent;
}

/* ------------------------------------------------------------------ commands */

static topCommand *findCommand(topView *view, const char *name, size_t len) {
    if (len >= sizeof(view->commands->name)) len = sizeof(view->commands->name) - 1;
    for (int i = 0; i < view->count; i++) {
        if (!strncmp(view->commands[i].name, name, len) && !view->commands[i].name[len])
            return &view->commands[i];
    }
    if (view->count == COMMANDS_MAX) return NULL;
    topCommand *row = &view->commands[view->count++];
    *row = (topCommand){0};
    memcpy(row->name, name, len);
    return row;
}

/* Lines cmdstat_get:calls=1,usec=2,usec_per_call=2.00,... */
static void readCommands(topView *view, const char *info) {
    for (const char *at = info; (at = strstr(at, "cmdstat_")); at++) {
        const char *name = at + 8, *end = strchr(name, ':');
        if (!end) return;
        topCommand *row = findCommand(view, name, (size_t)(end - name));
        const char *per_call = strstr(end, "usec_per_call=");
        if (!row) return;
        row->calls_before = row->seen ? row->calls : 0;
        row->seen = true;
        row->calls = strncmp(end, ":calls=", 7) ? 0 : atoll(end + 7);
        row->us_per_call = per_call ? atof(per_call + 14) : 0;
    }
}

static int byRate(const void *a, const void *b) {
    const topCommand *x = a, *y = b;
    int64_t left = x->calls - x->calls_before, right = y->calls - y->calls_before;
    return left < right ? 1 : left > right ? -1 : strcmp(x->name, y->name);
}

static void addCommands(topView *view, const char *info, int lines) {
    readCommands(view, info);
    qsort(view->commands, (size_t)view->count, sizeof(*view->commands), byRate);
    addFormat(view, true, "%-32s %12s %14s %10s", "command", "calls/s", "calls", "us/call");
    for (int i = 0; i < view->count && i < lines; i++) {
        const topCommand *row = &view->commands[i];
        addFormat(view, false, "%-32s %12.0f %14" PRId64 " %10.1f", row->name,
                  rate(view, row->calls, row->calls_before), row->calls, row->us_per_call);
    }
}

/* ------------------------------------------------------------------ hot keys */

static void addKeys(topView *view, int lines) {
    const topKeys *keys = &view->keys;
    int width = view->terminal ? view->columns - COLUMNS_AFTER_KEY : KEY_WIDTH_MAX;
    if (width > KEY_WIDTH_MAX) width = KEY_WIDTH_MAX;
    if (width < KEY_WIDTH_MIN) width = KEY_WIDTH_MIN;
    if (keys->source == TOP_KEYS_NONE) {
        addFormat(view, true, "hot keys");
        addFormat(view, false, "%s", strText(&keys->why));
        return;
    }
    if (keys->source == TOP_KEYS_HOTKEYS) {
        addFormat(view, true, "%-*s %4s %12s %7s", width, "hot key (of the last half minute)", "db",
                  "requests/s", "share");
    } else {
        addFormat(view, true, "%-*s %4s %12s", width, "hot key", "db", "OBJECT FREQ");
    }
    for (int i = 0; i < keys->count && i < lines; i++) {
        const topKey *key = &keys->list[i];
        const char *name = strText(&key->name);
        if (keys->source == TOP_KEYS_HOTKEYS) {
            addFormat(view, false, "%-*.*s %4d %12.0f %6.1f%%", width, width, name, key->db,
                      key->rate, key->percent);
        } else {
            addFormat(view, false, "%-*.*s %4d %12" PRId64, width, width, name, key->db,
                      key->count);
        }
    }
    if (keys->source == TOP_KEYS_FREQ)
        addFormat(view, false, "(%" PRIu64 " keys examined, some hundred per refresh)",
                  keys->examined);
}

/* ------------------------------------------------------------------ */

/* Shares the rows of the terminal: five are for the server and the heads, one for an empty line,
 * one for the cursor. */
static void addPanels(topView *view, const char *info) {
    int rows = terminalRows() - 7, key_lines = rows / 2;
    if (key_lines > KEY_LINES) key_lines = KEY_LINES;
    if (key_lines < LINES_MIN) key_lines = LINES_MIN;
    int command_lines = rows - key_lines;
    if (command_lines < LINES_MIN) command_lines = LINES_MIN;
    addServer(view, info);
    addCommands(view, info, command_lines);
    addFormat(view, false, "%s", "");
    addKeys(view, key_lines - (view->keys.source == TOP_KEYS_FREQ));
}

int modeTop(connection *c) {
    static topView view;
    int64_t interval_us = c->options->interval_us ? c->options->interval_us : 1000000;
    view.terminal = isatty(STDOUT_FILENO);
    for (;;) {
        if (!connectionConnect(c)) return 1;
        view.columns = terminalColumns();
        valkeyReply *info = connectionRequireText(c, "ERROR: INFO", "INFO everything");
        int64_t now_us = clockMonoUs();
        const char *policy = strstr(info->str, "maxmemory_policy:");
        const char *line_end = policy ? strchr(policy, '\n') : NULL;
        const char *lfu = policy ? strstr(policy, "lfu") : NULL;
        topKeysRefresh(&view.keys, c, lfu && line_end && lfu < line_end);
        view.seconds = (double)(now_us - view.at_us) / 1e6;
        strClear(&view.text);
        if (view.terminal) strAppendText(&view.text, "\033[H");
        addPanels(&view, info->str);
        strAppendText(&view.text, view.terminal ? "\033[J" : "\n");
        fwrite(view.text.ptr, 1, view.text.len, stdout);
        fflush(stdout);
        freeReplyObject(info);
        bool first = view.at_us == 0;
        view.at_us = now_us;
        clockSleepUs(first && interval_us > FIRST_US ? FIRST_US : interval_us);
    }
}

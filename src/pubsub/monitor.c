/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MONITOR: sends a line for every executed command to monitoring sessions, with secrets redacted.
 * Invariant: the observer is armed if and only if the list is not empty, so there is no cost
 * without monitors. A line is formatted once and copied to each monitor. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "engine/deliver.h"
#include "engine/hooks.h"
#include "engine/reply.h"
#include "engine/session_report.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"
#include "pubsub/procs.h"

enum { LISTENERS_FIRST = 8, LINE_KEPT_MAX = 4096 };

static struct {
    session **list;
    int count, cap;
    /* Id of the session whose address is in `peer`; 0: none, as ids start with 1. */
    uint64_t peer_of;
    str peer;
    str line; /* of the current command; reused */
} monitors;

/* ------------------------------------------------------------------ the line */

/* The address of a session, cached while commands come from the same one; the clients of another
 * node change with each command. */
static void appendPeer(const session *s, str *out) {
    if (monitors.peer_of != s->id || s->flags & SESSION_NODE_LINK) {
        strClear(&monitors.peer);
        sessionPeerForLog(s, &monitors.peer);
        monitors.peer_of = s->id;
    }
    strAppendSlice(out, strSlice(&monitors.peer));
}

/* 1500000000.123456 [0 127.0.0.1:1234] "get" "key" */
static void appendLine(const ctx *c, str *out) {
    hotCheck(c->argc > 0);
    char digits[NUMBER_TEXT_MAX];
    const session *s = c->who;
    int64_t now_us = clockWallUs();
    strAppendInt(out, now_us / 1000000);
    /* The leading one preserves zeros. */
    (void)numberPrintInt(digits, 1000000 + now_us % 1000000);
    digits[0] = '.';
    strAppend(out, digits, 7);
    strAppendText(out, " [");
    strAppendInt(out, s->db_id);
    strAppendByte(out, ' ');
    if (c->origin == ORIGIN_SCRIPT) {
        strAppendText(out, "lua");
    } else {
        appendPeer(s, out);
    }
    strAppendByte(out, ']');
    for (int i = 0; i < c->argc; i++) {
        strAppendByte(out, ' ');
        if (ctxArgIsSecret(c, i)) {
            strAppendText(out, "\"(redacted)\"");
        } else {
            strAppendQuoted(out, c->argv[i]);
        }
    }
}

/* Sends the command's line to all of them. */
static void sendLine(const ctx *c) {
    hotCheck(monitors.count > 0);
    strClear(&monitors.line);
    strAppendByte(&monitors.line, '+');
    appendLine(c, &monitors.line);
    strAppendText(&monitors.line, "\r\n");
    for (int i = 0; i < monitors.count; i++) {
        sessionDeliver(monitors.list[i], DELIVER_LINE, strSlice(&monitors.line));
    }
    if (monitors.line.cap > LINE_KEPT_MAX) strFree(&monitors.line);
}

/* Commands that run other commands (scripts) are reported before those; they are the commands
 * without the general flags that may have keys anywhere. */
static bool isReportedBefore(const command *cmd) {
    const uint64_t both = CMD_SKIP_MONITOR | CMD_MOVABLEKEYS;
    return (cmd->flags & both) == both;
}

static void before(ctx *c) {
    if (isReportedBefore(c->cmd)) sendLine(c);
}

static void after(ctx *c, int64_t duration_ns) {
    (void)duration_ns;
    if (c->flags & CTX_WOKEN) return; /* was reported when it started to block */
    if (!(c->cmd->flags & (CMD_SKIP_MONITOR | CMD_ADMIN))) sendLine(c);
}

static const commandObserver monitor = {.name = "monitor", .before = before, .after = after};

/* ------------------------------------------------------------------ monitors */

/* A monitoring session must not access the keyspace. */
static bool touchesKeys(const commandSpec *spec) {
    return spec->flags & (CMD_WRITE | CMD_READONLY | CMD_MAY_REPLICATE);
}

static gateVerdict refuse(ctx *c) {
    replyError(c, SLICE("ERR Replica can't interact with the keyspace"));
    return GATE_REFUSED;
}

const gate monitorGate = {
    .name = "monitor", .selects = touchesKeys, .admit = refuse, .origins = GATE_FOR_CLIENTS};

static void leave(session *s) {
    hotCheck(s->flags & SESSION_MONITOR);
    int at = 0;
    while (at < monitors.count && monitors.list[at] != s) at++;
    if (at == monitors.count) return;
    monitors.list[at] = monitors.list[--monitors.count];
    s->flags &= ~SESSION_MONITOR;
    gateArmSession(s, &monitorGate, false);
    if (monitors.count) return;
    commandObserverArm(&monitor, false);
    memFree(monitors.list);
    monitors.list = NULL;
    monitors.cap = 0;
    strFree(&monitors.peer);
    strFree(&monitors.line);
    monitors.peer_of = 0;
}

void monitorOnSession(session *s, sessionEvent e) {
    if (e != SESSION_ENDING && e != SESSION_WAS_RESET) return;
    if (s->flags & SESSION_MONITOR) leave(s);
}

/* MONITOR. Reply: OK, then a line for each executed command; nothing if the session is a monitor
 * already. */
void monitorCommand(ctx *c) {
    session *s = c->who;
    if (s->flags & (SESSION_DENY_BLOCKING | SESSION_INTERNAL)) {
        replyError(c, SLICE("ERR MONITOR isn't allowed for DENY BLOCKING client"));
        return;
    }
    if (s->flags & SESSION_MONITOR) return;
    if (monitors.count == monitors.cap) {
        monitors.cap = monitors.cap ? monitors.cap * 2 : LISTENERS_FIRST;
        monitors.list = memRealloc(monitors.list, (size_t)monitors.cap * sizeof(*monitors.list));
    }
    monitors.list[monitors.count++] = s;
    s->flags |= SESSION_MONITOR;
    gateArmSession(s, &monitorGate, true);
    commandObserverArm(&monitor, true);
    replyOk(c);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command log (commandlog.h). Invariant: entries are ordered from newest to oldest with
 * descending ids; after an entry was added, the list is trimmed to the configured length. An entry
 * costs one allocation, and one per argument; only exceptional commands are logged. */
#include "engine/commandlog.h"

#include "base/base.h"
#include "engine/commandlog_priv.h"
#include "engine/engine_priv.h"
#include "engine/later.h"
#include "engine/user.h"

static struct {
    list entries;
    int64_t next_id;
} logs[COMMANDLOG_KINDS];

static list *entriesOf(commandlogKind kind) {
    hotCheck(kind < COMMANDLOG_KINDS);
    list *l = &logs[kind].entries;
    if (!l->head.next) listInit(l);
    return l;
}

const list *commandlogOf(commandlogKind kind) { return entriesOf(kind); }

int64_t commandlogLimit(commandlogKind kind) {
    const int64_t limits[] = {engineConf.commandlog_execution_slower_than,
                              engineConf.commandlog_request_larger_than,
                              engineConf.commandlog_reply_larger_than};
    const int64_t lengths[] = {engineConf.commandlog_slow_execution_max_len,
                               engineConf.commandlog_large_request_max_len,
                               engineConf.commandlog_large_reply_max_len};
    return lengths[kind] ? limits[kind] : -1;
}

static int64_t maxEntries(commandlogKind kind) {
    return kind == COMMANDLOG_SLOW            ? engineConf.commandlog_slow_execution_max_len
           : kind == COMMANDLOG_LARGE_REQUEST ? engineConf.commandlog_large_request_max_len
                                              : engineConf.commandlog_large_reply_max_len;
}

static void dropLast(list *l) {
    hotCheck(l->count > 0);
    commandlogEntry *e = LIST_OWNER(l->head.prev, commandlogEntry, node);
    listRemove(l, &e->node);
    for (int i = 0; i < e->argc; i++) strFree(&e->argv[i]);
    strFree(&e->peer);
    strFree(&e->name);
    strFree(&e->user);
    memFree(e);
}

static void trim(commandlogKind kind, int64_t limit) {
    list *l = entriesOf(kind);
    while ((int64_t)l->count > limit) dropLast(l);
    hotCheck(limit < 0 || (int64_t)entriesOf(kind)->count <= limit);
}

/* A part of the entries of a list that is in no log. */
static laterRest dropSome(void *arg) {
    enum { PART = 500 };
    list *l = arg;
    hotCheck(l->count > 0);
    for (int i = 0; i < PART && l->count > 0; i++) dropLast(l);
    if (l->count > 0) return LATER_MORE;
    memFree(l);
    return LATER_NOTHING;
}

void commandlogClear(commandlogKind kind) {
    enum { AT_ONCE = 500 };
    list *l = entriesOf(kind);
    if (l->count > AT_ONCE) {
        list *dropped = memNew(list);
        listInit(dropped);
        listMoveAll(dropped, l);
        laterRun(dropSome, dropped);
    }
    trim(kind, 0);
}

static str cutArgument(slice arg) {
    hotCheck(arg.ptr || arg.len == 0);
    if (arg.len <= COMMANDLOG_ARG_BYTES_MAX) return strNew(arg);
    str text = strNew(sliceMake(arg.ptr, COMMANDLOG_ARG_BYTES_MAX));
    strAppendFormat(&text, "... (%zu more bytes)", arg.len - COMMANDLOG_ARG_BYTES_MAX);
    return text;
}

static void copyArguments(commandlogEntry *e, const ctx *c) {
    hotCheck(e->argc > 0);
    hotCheck(e->argc <= c->argc);
    for (int i = 0; i < e->argc; i++) {
        if (i == e->argc - 1 && c->argc > e->argc) {
            e->argv[i] = STR_EMPTY;
            strAppendFormat(&e->argv[i], "... (%d more arguments)", c->argc - e->argc + 1);
        } else if (ctxArgIsSecret(c, i)) {
            e->argv[i] = strNew(SLICE("(redacted)"));
        } else {
            e->argv[i] = cutArgument(c->argv[i]);
        }
    }
}

void commandlogNote(const ctx *c, commandlogKind kind, int64_t value, int64_t elapsed_us) {
    hotCheck(threadIsMain());
    int64_t limit = commandlogLimit(kind);
    if (limit < 0 || value < limit) return;
    int argc = c->argc < COMMANDLOG_ARGS_MAX ? c->argc : COMMANDLOG_ARGS_MAX;
    commandlogEntry *e = memAlloc(sizeof(*e) + (size_t)argc * sizeof(str));
    *e = (commandlogEntry){.id = logs[kind].next_id++,
                           .time_s = c->now_ms / 1000,
                           .value = value,
                           .elapsed_us = elapsed_us,
                           .argc = argc,
                           .name = strNew(sessionName(c->who)),
                           .user = strNew(userNameOf(ctxClient(c))),
                           .peer = STR_EMPTY};
    sessionPeer(c->who, &e->peer);
    copyArguments(e, c);
    listPrepend(entriesOf(kind), &e->node);
    trim(kind, maxEntries(kind));
}

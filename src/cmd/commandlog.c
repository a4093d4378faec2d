/* SPDX-License-Identifier: BSD-3-Clause
 *
 * COMMANDLOG, and SLOWLOG, its older form for slow commands. Main thread only. */
#include "engine/commandlog.h"

#include "base/base.h"
#include "cmd/procs.h"
#include "engine/job.h"
#include "engine/reply.h"

/* Parses argv[i] as the name of a log. False: the error was replied. */
static bool kindArg(ctx *c, int i, commandlogKind *kind) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    static const char *const names[COMMANDLOG_KINDS] = {"slow", "large-request", "large-reply"};
    for (int k = 0; k < COMMANDLOG_KINDS; k++) {
        if (!ctxArgIs(c, i, names[k])) continue;
        *kind = (commandlogKind)k;
        return true;
    }
    replyError(c,
               SLICE("ERR type should be one of the following: slow, large-request, large-reply"));
    return false;
}

/* Parses argv[i] as a number of entries, -1 meaning all. False: the error was replied. */
static bool countArg(ctx *c, int i, int64_t *count) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    return ctxArgIntIn(c, i, -1, INT64_MAX, count,
                       "ERR count should be greater than or equal to -1");
}

static void replyEntry(ctx *c, const commandlogEntry *e, bool with_user) {
    replyArray(c, with_user ? 8 : 6);
    replyInteger(c, e->id);
    replyInteger(c, e->time_s);
    replyInteger(c, e->value);
    replyArray(c, e->argc);
    for (int i = 0; i < e->argc; i++) replyBulk(c, strSlice(&e->argv[i]));
    replyBulk(c, strSlice(&e->peer));
    replyBulk(c, strSlice(&e->name));
    if (!with_user) return; /* clients of Valkey rely on the number of items */
    replyBulk(c, strSlice(&e->user));
    replyInteger(c, e->elapsed_us);
}

enum { ENTRY_ELEMENTS = 16 }; /* an entry takes as long as so many elements (job.h) */

/* jobPoint() before entry `e`, the oldest ones after which may be dropped meanwhile. False: it has
 * been dropped as well, or nobody wants the reply. */
static bool isStillThere(const ctx *c, const list *entries, const commandlogEntry *e) {
    int64_t id = e->id;
    if (jobPoint(c, ENTRY_ELEMENTS)) return false;
    if (likely(!(c->flags & CTX_SLICED))) return true;
    return !listIsEmpty(entries) && LIST_OWNER(entries->head.prev, commandlogEntry, node)->id <= id;
}

static void replyEntries(ctx *c, commandlogKind kind, int64_t count, bool with_user) {
    hotCheck(kind < COMMANDLOG_KINDS);
    const list *entries = commandlogOf(kind);
    if (count < 0 || count > (int64_t)entries->count) count = (int64_t)entries->count;
    if (jobStart(c, (uint64_t)count * ENTRY_ELEMENTS)) return;
    respDeferred array = respDeferBegin(c->out);
    int64_t replied = 0;
    for (listNode *n = listFirst(entries); n && replied < count; n = listNext(entries, n)) {
        const commandlogEntry *e = LIST_OWNER(n, commandlogEntry, node);
        if (!isStillThere(c, entries, e)) break;
        replyEntry(c, e, with_user);
        replied++;
    }
    respDeferEnd(c->out, array, '*', c->proto, replied);
}

static void replyWanted(ctx *c, bool with_user) {
    commandlogKind kind;
    int64_t count;
    if (!countArg(c, 2, &count) || !kindArg(c, 3, &kind)) return;
    replyEntries(c, kind, count, with_user);
}

/* COMMANDLOG GET count type. Reply: the newest entries, all if count is -1. */
void commandlogGetCommand(ctx *c) { replyWanted(c, false); }

/* COMMANDLOG USERS count type. Reply: the newest entries as with GET, each with the user and the
 * microseconds from begin to end. */
void commandlogUsersCommand(ctx *c) { replyWanted(c, true); }

/* COMMANDLOG LEN type. Reply: number of entries. */
void commandlogLenCommand(ctx *c) {
    commandlogKind kind;
    if (kindArg(c, 2, &kind)) replyInteger(c, (int64_t)commandlogOf(kind)->count);
}

/* COMMANDLOG RESET type. Reply: OK. */
void commandlogResetCommand(ctx *c) {
    commandlogKind kind;
    if (!kindArg(c, 2, &kind)) return;
    commandlogClear(kind);
    replyOk(c);
}

void commandlogHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "GET <count> <type>",
        "    Return top <count> entries of the specified <type> from the commandlog (-1 mean all).",
        "    Entries are made of:",
        "    id, timestamp,",
        "        time in microseconds for type of slow,",
        "        or size in bytes for type of large-request,",
        "        or size in bytes for type of large-reply",
        "    arguments array, client IP and port,",
        "    client name",
        "LEN <type>",
        "    Return the length of the specified type of commandlog.",
        "RESET <type>",
        "    Reset the specified type of commandlog.",
        "USERS <count> <type>",
        "    Return entries like GET, each with two more items: the name of the user,",
        "    and the time from begin to end in microseconds, which is longer than that of",
        "    execution for a command that ran in slices.",
        NULL,
    };
    replyHelp(c, lines);
}

/* ------------------------------------------------------------------ SLOWLOG */

/* SLOWLOG GET [count]. Reply: the newest entries, by default ten. */
void slowlogGetCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    int64_t count = 10;
    if (c->argc > 3) {
        replyErrorSubcommand(c);
    } else if (c->argc < 3 || countArg(c, 2, &count)) {
        replyEntries(c, COMMANDLOG_SLOW, count, false);
    }
}

/* SLOWLOG LEN. Reply: number of entries. */
void slowlogLenCommand(ctx *c) { replyInteger(c, (int64_t)commandlogOf(COMMANDLOG_SLOW)->count); }

/* SLOWLOG RESET. Reply: OK. */
void slowlogResetCommand(ctx *c) {
    commandlogClear(COMMANDLOG_SLOW);
    replyOk(c);
}

void slowlogHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "GET [<count>]",
        "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, arguments array, client IP and port,",
        "    client name",
        "LEN",
        "    Return the length of the slowlog.",
        "RESET",
        "    Reset the slowlog.",
        NULL,
    };
    replyHelp(c, lines);
}

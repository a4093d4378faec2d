/* SPDX-License-Identifier: BSD-3-Clause
 *
 * EVAL, EVALSHA, their read-only forms, and SCRIPT. Main thread only. */
#include "base/base.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "script/engines.h"
#include "script/cache.h"
#include "script/debug.h"
#include "script/header.h"
#include "script/procs.h"
#include "script/run.h"
#include "script/script_priv.h"

static const slice NO_SCRIPT_TEXT = SLICE("NOSCRIPT No matching script.");

bool scriptArgKeys(ctx *c, int *count, const char *not_a_number) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 3);
    int64_t n;
    if (!ctxArgIntIn(c, 2, INT64_MIN, INT64_MAX, &n, not_a_number)) return false;
    if (n > c->argc - 3) {
        replyError(c, SLICE("ERR Number of keys can't be greater than number of args"));
        return false;
    }
    if (n < 0) {
        replyError(c, SLICE("ERR Number of keys can't be negative"));
        return false;
    }
    *count = (int)n;
    return true;
}

static void run(ctx *c, const script *s, int key_count, bool read_only) {
    hotCheck(key_count >= 0);
    hotCheck(key_count <= c->argc - 3);
    scriptRun now = {.name = sliceMake(s->digest, SCRIPT_DIGEST_LEN),
                     .flags = s->flags,
                     .is_read_only = read_only};
    if (!scriptRunBegin(&now, c, 3, key_count)) return;
    s->engine->call(scriptEngineVm(s->engine, SCRIPT_USE_EVAL, true), s->handle, &now);
    scriptRunEnd(&now);
    scriptNoteWork();
}

static void runText(ctx *c, bool read_only) {
    hotCheck(c->argc >= 3);
    int key_count;
    if (!scriptArgKeys(c, &key_count, NULL)) return;
    const script *s = scriptCacheFindText(c->argv[1]);
    if (unlikely(!s)) {
        str error = STR_EMPTY;
        s = scriptCacheAdd(c->argv[1], &error);
        if (!s) replyError(c, strSlice(&error));
        strFree(&error);
        if (!s) return;
    }
    run(c, s, key_count, read_only);
}

static void runDigest(ctx *c, bool read_only) {
    hotCheck(c->argc >= 3);
    int key_count;
    if (c->argv[1].len != SCRIPT_DIGEST_LEN) {
        replyError(c, NO_SCRIPT_TEXT);
        return;
    }
    if (debugIsWanted(c)) {
        replyError(c, SLICE("ERR Please use EVAL instead of EVALSHA for debugging"));
        return;
    }
    if (!scriptArgKeys(c, &key_count, NULL)) return;
    const script *s = scriptCacheFindDigest(c->argv[1]);
    if (unlikely(!s)) {
        replyError(c, NO_SCRIPT_TEXT);
        return;
    }
    run(c, s, key_count, read_only);
}

/* EVAL script numkeys [key ...] [arg ...]. Reply: what the script returns. */
void evalCommand(ctx *c) {
    if (!debugEval(c, false, runText)) runText(c, false);
}

void evalRoCommand(ctx *c) {
    if (!debugEval(c, true, runText)) runText(c, true);
}

/* EVALSHA digest numkeys [key ...] [arg ...] */
void evalshaCommand(ctx *c) { runDigest(c, false); }
void evalshaRoCommand(ctx *c) { runDigest(c, true); }

uint64_t scriptEvalFlags(const ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 2);
    bool by_digest = c->cmd->spec->proc == evalshaCommand || c->cmd->spec->proc == evalshaRoCommand;
    if (by_digest) {
        const script *s = scriptCacheFindDigest(c->argv[1]);
        return scriptFlagsOfCommand(c, s ? s->flags : SCRIPT_NO_HEADER);
    }
    scriptHeader header;
    str error = STR_EMPTY;
    bool valid = scriptHeaderParse(c->argv[1], &header, &error);
    strFree(&error); /* EXEC will reply it */
    return scriptFlagsOfCommand(c, valid ? header.flags : SCRIPT_NO_HEADER);
}

/* SCRIPT LOAD script. Reply: its digest. */
void scriptLoadCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc == 3);
    const script *s = scriptCacheFindText(c->argv[2]);
    if (!s) {
        str error = STR_EMPTY;
        s = scriptCacheAdd(c->argv[2], &error);
        if (!s) replyError(c, strSlice(&error));
        strFree(&error);
        if (!s) return;
    }
    scriptCachePin(s);
    replyBulk(c, sliceMake(s->digest, SCRIPT_DIGEST_LEN));
}

/* SCRIPT EXISTS digest [digest ...]. Reply: an array of 0 and 1. */
void scriptExistsCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 3);
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) replyInteger(c, scriptCacheFindDigest(c->argv[i]) != NULL);
}

/* SCRIPT SHOW digest. Reply: the text of the script. */
void scriptShowCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc == 3);
    const script *s = scriptCacheFindDigest(c->argv[2]);
    if (!s) {
        replyError(c, NO_SCRIPT_TEXT);
        return;
    }
    replyBulk(c, s->body);
}

/* SCRIPT FLUSH [ASYNC | SYNC] */
void scriptFlushCommand(ctx *c) {
    hotCheck(threadIsMain());
    hotCheck(c->argc >= 2);
    bool valid =
        c->argc == 2 || (c->argc == 3 && (ctxArgIs(c, 2, "sync") || ctxArgIs(c, 2, "async")));
    if (!valid) {
        replyError(c, SLICE("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
        return;
    }
    scriptCacheFlush(c->argc == 2 ? keyspaceFlushesLater() : ctxArgIs(c, 2, "async"));
    replyOk(c);
}

/* SCRIPT KILL */
void scriptKillCommand(ctx *c) { scriptRunKill(c, false); }

/* SCRIPT HELP */
void scriptHelpCommand(ctx *c) {
    hotCheck(threadIsMain());
    static const char *const lines[] = {
        "DEBUG (YES|SYNC|NO) [<engine_name>]",
        "    Set the debug mode for subsequent scripts executed of the specified engine.",
        "    Default engine name: 'lua'",
        "EXISTS <sha1> [<sha1> ...]",
        "    Return information about the existence of the scripts in the script cache.",
        "FLUSH [ASYNC|SYNC]",
        "    Flush the Lua scripts cache. Very dangerous on replicas.",
        "    When called without the optional mode argument, the behavior is determined",
        "     by the lazyfree-lazy-user-flush configuration directive. Valid modes are:",
        "    * ASYNC: Asynchronously flush the scripts cache.",
        "    * SYNC: Synchronously flush the scripts cache.",
        "KILL",
        "    Kill the currently executing Lua script.",
        "LOAD <script>",
        "    Load a script into the scripts cache without executing it.",
        "SHOW <sha1>",
        "    Show a script from the scripts cache.",
        NULL};
    replyHelp(c, lines);
}

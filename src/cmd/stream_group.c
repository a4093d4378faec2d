/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XGROUP and XACK. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"
#include "engine/block.h"

/* ------------------------------------------------------------------ finding */

static void replyNoStream(ctx *c) {
    replyError(c, SLICE("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE "
                        "you may want to use the MKSTREAM option to create an empty stream "
                        "automatically."));
}

/* Looks up the stream at argument 2, which must exist. */
static bool findStream(ctx *c, stream **s) {
    if (!streamFindWrite(c, 2, s)) return false;
    if (!*s) replyNoStream(c);
    return *s != NULL;
}

/* Looks up the stream and the group at argument 3. */
static bool findGroup(ctx *c, stream **s, streamGroup **g) {
    if (!findStream(c, s)) return false;
    *g = streamGroupFind(*s, c->argv[3]);
    if (*g) return true;
    replyErrorFormat(c, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
                     (int)c->argv[3].len, c->argv[3].ptr, (int)c->argv[2].len, c->argv[2].ptr);
    return false;
}

/* ------------------------------------------------------------------ CREATE, SETID */

typedef struct groupOptions {
    bool makes_stream;
    int64_t entries_read;
} groupOptions;

/* Parses the options from argument 5 on. */
static bool parseOptions(ctx *c, bool creates, groupOptions *out) {
    *out = (groupOptions){.entries_read = STREAM_UNKNOWN};
    for (int i = 5; i < c->argc; i++) {
        if (creates && ctxArgIs(c, i, "mkstream")) {
            out->makes_stream = true;
        } else if (i + 1 < c->argc && ctxArgIs(c, i, "entriesread")) {
            if (!ctxArgInt(c, ++i, &out->entries_read)) return false;
            if (out->entries_read >= 0 || out->entries_read == STREAM_UNKNOWN) continue;
            replyError(c, SLICE("ERR value for ENTRIESREAD must be positive or -1"));
            return false;
        } else {
            replyErrorSubcommand(c);
            return false;
        }
    }
    return true;
}

/* False: there are more arguments than options, and the error was replied. */
static bool fewWords(ctx *c) {
    enum { WORDS_MAX = 8 };
    if (c->argc > WORDS_MAX) replyErrorSubcommand(c);
    return c->argc <= WORDS_MAX;
}

/* XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]. Reply: OK. */
void xgroupCreateCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    groupOptions p;
    stream *s;
    streamId id = STREAM_ID_MIN;
    if (!parseOptions(c, true, &p)) return;
    if (!streamFindWrite(c, 2, &s)) return;
    if (!s && !p.makes_stream) {
        replyNoStream(c);
        return;
    }
    if (!fewWords(c)) return;
    if (!streamIsWord(c->argv[4], '$')) {
        if (!streamArgId(c, 4, 0, &id)) return;
    } else if (s) {
        id = streamLastId(s);
    }
    bool made = !s;
    if (made) {
        robj *o = streamObjectNew(c->argv[2]);
        s = streamOf(o);
        collectionPlace(c, 2, o);
    }
    if (!streamGroupCreate(s, c->argv[3], id, p.entries_read)) {
        replyError(c, SLICE("BUSYGROUP Consumer Group name already exists"));
        return;
    }
    if (made) {
        ctxKeyChanged(c, c->argv[2], &eventXgroupCreate);
    } else {
        streamGroupChanged(c, c->argv[2], &eventXgroupCreate);
    }
    replyOk(c);
}

/* XGROUP SETID key group id|$ [ENTRIESREAD entries-read]. Reply: OK. */
void xgroupSetidCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    groupOptions p;
    stream *s;
    streamGroup *g;
    streamId id;
    if (!parseOptions(c, false, &p) || !findGroup(c, &s, &g) || !fewWords(c)) return;
    if (streamIsWord(c->argv[4], '$')) {
        id = streamLastId(s);
    } else if (!streamArgIdOrEnd(c, 4, 0, &id)) {
        return;
    }
    streamGroupSetLastId(g, id, p.entries_read);
    streamGroupChanged(c, c->argv[2], &eventXgroupSetid);
    replyOk(c);
}

/* ------------------------------------------------------------------ DESTROY, consumers, HELP */

/* XGROUP DESTROY key group. Reply: 1 if there was one. */
void xgroupDestroyCommand(ctx *c) {
    hotCheck(c->argc == 4);
    stream *s;
    if (!findStream(c, &s)) return;
    streamGroup *g = streamGroupFind(s, c->argv[3]);
    if (g) {
        streamGroupDestroy(s, g);
        streamGroupChanged(c, c->argv[2], &eventXgroupDestroy);
        blockNotifyKey(dbId(c->db), c->argv[2]); /* blocked readers get an error */
    }
    replyInteger(c, g != NULL);
}

/* XGROUP CREATECONSUMER key group consumer. Reply: 1 if there was none of that name. */
void xgroupCreateconsumerCommand(ctx *c) {
    hotCheck(c->argc == 5);
    stream *s;
    streamGroup *g;
    if (!findGroup(c, &s, &g)) return;
    bool created = streamConsumerCreate(g, c->argv[4], c->now_ms) != NULL;
    if (created) streamGroupChanged(c, c->argv[2], &eventXgroupCreateconsumer);
    replyInteger(c, created);
}

/* XGROUP DELCONSUMER key group consumer. Reply: number of pending entries it had. */
void xgroupDelconsumerCommand(ctx *c) {
    hotCheck(c->argc == 5);
    stream *s;
    streamGroup *g;
    if (!findGroup(c, &s, &g)) return;
    streamConsumer *consumer = streamConsumerFind(g, c->argv[4]);
    uint64_t pending = 0;
    if (consumer) {
        pending = streamConsumerRemove(g, consumer);
        streamGroupChanged(c, c->argv[2], &eventXgroupDelconsumer);
    }
    replyInteger(c, (int64_t)pending);
}

/* XGROUP HELP. Reply: lines of text. */
void xgroupHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "CREATE <key> <groupname> <id|$> [option]",
        "    Create a new consumer group. Options are:",
        "    * MKSTREAM",
        "      Create the empty stream if it does not exist.",
        "    * ENTRIESREAD entries_read",
        "      Set the group's entries_read counter (internal use).",
        "CREATECONSUMER <key> <groupname> <consumer>",
        "    Create a new consumer in the specified group.",
        "DELCONSUMER <key> <groupname> <consumer>",
        "    Remove the specified consumer.",
        "DESTROY <key> <groupname>",
        "    Remove the specified group.",
        "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
        "    Set the current group ID and entries_read counter.",
        NULL,
    };
    replyHelp(c, lines);
}

/* ------------------------------------------------------------------ XACK */

/* XACK key group id [id ...]. Reply: number of entries removed from the pending entries. */
void xackCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    stream *s;
    streamId id;
    if (!streamFindWrite(c, 1, &s)) return;
    streamGroup *g = s ? streamGroupFind(s, c->argv[2]) : NULL;
    if (!g) {
        if (!s) ctxKeyEvent(c, c->argv[1], &eventKeymiss); /* Valkey looks it up as a reader */
        if (s && unlikely(streamApplyProducers(c, s))) return;
        replyInteger(c, 0);
        return;
    }
    /* All ids are validated before one is acknowledged; a single id is parsed only once. */
    for (int i = 4; i < c->argc; i++) {
        if (!streamArgId(c, i, 0, &id)) return;
    }
    uint64_t removed = 0;
    for (int i = 3; i < c->argc; i++) {
        if (!streamArgId(c, i, 0, &id)) return;
        removed += streamPendingRemove(g, id);
    }
    if (removed) ctxDatasetChanged(c, removed);
    replyInteger(c, (int64_t)removed);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MIGRATE: moves keys to another server. The client is blocked until the transfer ends. In a
 * transaction or a script a client cannot be blocked, so the whole server waits. Main thread
 * only. */
#include "base/base.h"
#include "base/number.h"
#include "cluster/migrate.h"
#include "cluster/procs.h"
#include "engine/block.h"
#include "engine/ctx.h"
#include "engine/keyspace.h"
#include "engine/reply.h"
#include "store/store.h"

enum { AT_HOST = 1, AT_PORT, AT_KEY, AT_DB, AT_TIMEOUT, AT_OPTIONS, DEFAULT_TIMEOUT_MS = 1000 };

typedef struct moveRequest {
    bool copy, replace;
    slice user, password; /* `ptr` is NULL: none */
    int first_key, key_count;
    int64_t port, db, timeout_ms;
} moveRequest;

/* Index of the argument KEYS, and 0 if there is none. */
static int findKeysWord(const slice *argv, int argc) {
    for (int i = AT_OPTIONS; i < argc; i++) {
        if (sliceIs(argv[i], "keys")) return i;
        if (sliceIs(argv[i], "auth")) i++;
        if (sliceIs(argv[i], "auth2")) i += 2;
    }
    return 0;
}

/* The key at argument 3, or those after KEYS. */
int migrateFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    int first = AT_KEY, count = 1;
    int word = argc > AT_OPTIONS && argv[AT_KEY].len == 0 ? findKeysWord(argv, argc) : 0;
    if (word) {
        first = word + 1;
        count = argc - first;
    }
    for (int i = 0; i < count && i < max; i++)
        out[i] = (keyPosition){first + i, KEY_RW | KEY_ACCESS | KEY_DELETE};
    return count;
}

/* Parses the options. False: the error was replied. */
static bool parseOptions(ctx *c, moveRequest *out) {
    ctxRedactAfter(c, AT_OPTIONS, "auth", 1);
    ctxRedactAfter(c, AT_OPTIONS, "auth2", 2);
    for (int i = AT_OPTIONS; i < c->argc; i++) {
        int more = c->argc - i - 1;
        if (ctxArgIs(c, i, "copy")) {
            out->copy = true;
        } else if (ctxArgIs(c, i, "replace")) {
            out->replace = true;
        } else if (ctxArgIs(c, i, "auth") && more >= 1) {
            out->password = c->argv[++i];
        } else if (ctxArgIs(c, i, "auth2") && more >= 2) {
            out->user = c->argv[++i];
            out->password = c->argv[++i];
        } else if (ctxArgIs(c, i, "keys")) {
            if (c->argv[AT_KEY].len != 0) {
                replyError(c, SLICE("ERR When using MIGRATE KEYS option, the key argument must be "
                                    "set to the empty string"));
                return false;
            }
            out->first_key = i + 1;
            out->key_count = more;
            break;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

static bool parse(ctx *c, moveRequest *out) {
    *out = (moveRequest){.first_key = AT_KEY, .key_count = 1};
    if (!parseOptions(c, out)) return false;
    if (!ctxArgInt(c, AT_TIMEOUT, &out->timeout_ms) || !ctxArgInt(c, AT_DB, &out->db)) return false;
    if (out->timeout_ms <= 0) out->timeout_ms = DEFAULT_TIMEOUT_MS;
    if (!numberParseInt(c->argv[AT_PORT], &out->port) || out->port < 0 || out->port > 65535)
        out->port = 0; /* cannot be connected to */
    return true;
}

/* Deletes the moved keys and replies. */
static void complete(ctx *c, migration *m, bool copy) {
    slice *words = NULL;
    int count = 1, cap = 0, at = 0;
    const str *name;
    while (!copy && (name = migrateNextMoved(m, &at))) {
        slice key = strSlice(name);
        if (!dbDelete(c->db, key, storeHash(key), c->look)) continue;
        if (count >= cap) {
            cap = cap ? cap * 2 : 16;
            words = memRealloc(words, (size_t)cap * sizeof(*words));
        }
        words[count++] = key;
        ctxKeyChanged(c, key, &eventDel);
    }
    if (count > 1) {
        words[0] = SLICE("DEL");
        ctxPropagateAs(c, count, words);
    }
    memFree(words);
    slice error = migrateError(m);
    if (error.len) {
        replyError(c, error);
    } else {
        replyOk(c);
    }
}

/* The state of a blocked MIGRATE. */
typedef struct waiting {
    migration *transfer;
    bool copy;
} waiting;

static void finish(ctx *c) {
    const waiting *w = blockState(c);
    complete(c, w->transfer, w->copy);
}

static void freeWaiting(void *state) {
    waiting *w = state;
    migrateFree(w->transfer);
    memFree(w);
}

static void transferEnded(migration *m, void *arg) {
    (void)m, (void)arg;
    blockNotify(BLOCK_CUSTOM); /* calls isDone() */
}

static bool isDone(const blockQuery *q) {
    const waiting *w = q->state;
    return migrateConclude(w->transfer);
}

/* MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password] [KEYS
 * key...]. */
void migrateCommand(ctx *c) {
    hotCheck(c->argc >= 6);
    moveRequest request;
    if (!parse(c, &request)) return;
    slice *keys = memNewArray(slice, (size_t)request.key_count + 1);
    int count = 0;
    for (int i = 0; i < request.key_count; i++) {
        slice key = c->argv[request.first_key + i];
        if (dbFindQuiet(c->db, key, storeHash(key), c->look)) keys[count++] = key;
    }
    if (count == 0) {
        memFree(keys);
        replyStatus(c, SLICE("NOKEY"));
        return;
    }
    migration *m = migrateNew(&(migrateParams){.host = c->argv[AT_HOST],
                                               .port = (int)request.port,
                                               .source_db = dbId(c->db),
                                               .target_db = (int)request.db,
                                               .timeout_ms = request.timeout_ms,
                                               .copy = request.copy,
                                               .replace = request.replace,
                                               .user = request.user,
                                               .password = request.password,
                                               .keys = keys,
                                               .key_count = count});
    memFree(keys);
    if (blockIsDenied(c)) {
        migrateRun(m);
        complete(c, m, request.copy);
        migrateFree(m);
        return;
    }
    waiting *w = memNew(waiting);
    *w = (waiting){.transfer = m, .copy = request.copy};
    blockStart(c, &(blockParams){.kind = BLOCK_CUSTOM,
                                 .ready = isDone,
                                 .finish = finish,
                                 .state = w,
                                 .free_state = freeWaiting});
    migrateStart(m, transferEnded, w);
}

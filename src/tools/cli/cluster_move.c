/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moving slots: key by key with MIGRATE, or whole with CLUSTER MIGRATESLOTS. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "tools/cli/cluster_priv.h"

/* ------------------------------------------------------------------ owners */

/* True if the reply is not an error. Else the error is in `error`, for a caller that prints it;
 * with NULL it is printed. */
static bool isAccepted(const clusterManager *m, const clusterNode *node, const valkeyReply *reply,
                       const char *command, str *error) {
    if (!error) return managerAccept(m, node, reply);
    if (reply && reply->type != VALKEY_REPLY_ERROR) return true;
    strClear(error);
    if (reply) {
        strAppendText(error, reply->str);
    } else {
        strAppendFormat(error, "%s failed to run", command);
    }
    return false;
}

/* A primary that gave its last slot away has become a replica, and follows by itself. */
static bool isHarmless(const valkeyReply *reply) {
    return replyIsError(reply, "ERR Please use SETSLOT only with") ||
           replyIsError(reply, "UNBLOCKED");
}

/* `error`: as for isAccepted(). */
static bool setOwner(const clusterManager *m, clusterNode *node, const clusterNode *owner, int slot,
                     str *error) {
    enum { TRIES = 3 };
    for (int i = 1;; i++) {
        valkeyReply *reply = managerCommand(node, "CLUSTER SETSLOT %d NODE %s", slot, owner->id);
        /* The replicas have not acknowledged in time: the primary has changed nothing. */
        if (replyIsError(reply, "NOREPLICAS") && i < TRIES) {
            freeReplyObject(reply);
            continue;
        }
        /* Others than the owner are told by it, too, whose claim needs no acknowledgement. */
        bool done =
            reply && (isHarmless(reply) || (node != owner && replyIsError(reply, "NOREPLICAS")) ||
                      isAccepted(m, node, reply, "CLUSTER SETSLOT", error));
        freeReplyObject(reply);
        return done;
    }
}

/* The target first: if it stops in between, the source still sends clients there. */
bool managerAssign(clusterManager *m, clusterNode *owner, clusterNode *previous, int slot,
                   str *error) {
    if (!setOwner(m, owner, owner, slot, error)) return false;
    if (previous && !setOwner(m, previous, owner, slot, error)) return false;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node == owner || node == previous || node->is_replica) continue;
        if (!setOwner(m, node, owner, slot, error)) return false;
    }
    for (int i = 0; i < m->nodes.count; i++) slotSetRemove(&m->nodes.list[i]->slots, slot);
    slotSetAdd(&owner->slots, slot);
    return true;
}

/* ------------------------------------------------------------------ keys */

typedef struct keyMove {
    clusterManager *m;
    clusterNode *source, *target;
    int slot, db, flags;
    bool replace;
    const moveProgress *progress; /* NULL: none */
    str *error;
} keyMove;

/* `slots` have been moved since the count of the caller; what was printed meanwhile may have
 * overwritten a text in the line. */
static void showProgress(const moveProgress *progress, double slots) {
    if (progress) jobProgressWithin(progress->shown, (double)progress->done + slots);
}

static valkeyReply *migrate(const keyMove *move, const valkeyReply *keys) {
    const clusterEnvironment *env = move->m->env;
    enum { WORDS_MAX = 12 };
    size_t count = 0, max = keys->elements + WORDS_MAX;
    const char **words = memNewArray(const char *, max);
    size_t *lens = memNewArray(size_t, max);
    char port[16], db[16], timeout[16];
    snprintf(port, sizeof(port), "%d", move->target->port);
    snprintf(db, sizeof(db), "%d", move->db);
    snprintf(timeout, sizeof(timeout), "%d", move->m->options->timeout_ms);
    words[count++] = "MIGRATE";
    words[count++] = strText(&move->target->host);
    words[count++] = port;
    words[count++] = "";
    words[count++] = db;
    words[count++] = timeout;
    if (move->replace) words[count++] = "REPLACE";
    if (env->password) {
        words[count++] = env->user ? "AUTH2" : "AUTH";
        if (env->user) words[count++] = env->user;
        words[count++] = env->password;
    }
    words[count++] = "KEYS";
    for (size_t i = 0; i < count; i++) lens[i] = strlen(words[i]);
    for (size_t i = 0; i < keys->elements; i++, count++) {
        words[count] = keys->element[i]->str;
        lens[count] = keys->element[i]->len;
    }
    valkeyReply *reply = managerCommandArgv(move->source, (int)count, words, lens);
    memFree(words);
    memFree(lens);
    return reply;
}

static valkeyReply *digests(const keyMove *move, clusterNode *node, const valkeyReply *keys) {
    size_t count = 0;
    const char **words = memNewArray(const char *, keys->elements + 2);
    size_t *lens = memNewArray(size_t, keys->elements + 2);
    words[count++] = "DEBUG";
    words[count++] = "DIGEST-VALUE";
    lens[0] = strlen(words[0]);
    lens[1] = strlen(words[1]);
    for (size_t i = 0; i < keys->elements; i++, count++) {
        words[count] = keys->element[i]->str;
        lens[count] = keys->element[i]->len;
    }
    valkeyReply *reply = managerCommandArgv(node, (int)count, words, lens);
    memFree(words);
    memFree(lens);
    if (reply && reply->type == VALKEY_REPLY_ARRAY && reply->elements == keys->elements)
        return reply;
    const clusterManager *m = move->m;
    managerPrint(m, LEVEL_ERROR, "\n*** Value check failed!\n");
    if (replyIsError(reply, "ERR DEBUG command not allowed.")) {
        managerPrint(m, LEVEL_ERROR,
                     "DEBUG command is not allowed.\n"
                     "You can turn on the enable-debug-command option.\n"
                     "Or you can relaunch the command with --cluster-replace option to force key "
                     "overriding.\n");
    } else if (reply) {
        managerPrint(m, LEVEL_ERROR,
                     "Error getting DIGEST-VALUE from %s:%d, error: %s\n"
                     "You can relaunch the command with --cluster-replace option to force key "
                     "overriding.\n",
                     strText(&node->host), node->port,
                     reply->type == VALKEY_REPLY_ERROR ? reply->str : "unexpected reply");
    }
    freeReplyObject(reply);
    return NULL;
}

static void printConflicts(const keyMove *move, const valkeyReply *keys, const valkeyReply *ours,
                           const valkeyReply *theirs, int count) {
    managerPrint(move->m, LEVEL_ERROR,
                 "*** Found %d key(s) in both source node and target node having different "
                 "values.\n"
                 "    Source node: %s:%d\n    Target node: %s:%d\n    Keys(s):\n",
                 count, strText(&move->source->host), move->source->port,
                 strText(&move->target->host), move->target->port);
    for (size_t i = 0; i < keys->elements; i++) {
        if (!ours->element[i]->str || !theirs->element[i]->str) continue;
        if (strspn(ours->element[i]->str, "0") == ours->element[i]->len ||
            strspn(theirs->element[i]->str, "0") == theirs->element[i]->len ||
            !strcmp(ours->element[i]->str, theirs->element[i]->str))
            continue;
        managerPrint(move->m, LEVEL_ERROR, "    - %s\n", keys->element[i]->str);
    }
    managerPrint(move->m, LEVEL_ERROR,
                 "Please fix the above key(s) manually and try again or relaunch the command \n"
                 "with --cluster-replace option to force key overriding.\n");
}

/* True if no key has different values on both nodes. The digest of a missing key is all zeros. */
static bool valuesMatch(const keyMove *move, const valkeyReply *keys) {
    managerPrint(move->m, LEVEL_WARNING, "*** Checking key values on both nodes...\n");
    valkeyReply *ours = digests(move, move->source, keys);
    valkeyReply *theirs = ours ? digests(move, move->target, keys) : NULL;
    int different = theirs ? 0 : -1;
    for (size_t i = 0; theirs && i < keys->elements; i++) {
        const valkeyReply *a = ours->element[i], *b = theirs->element[i];
        if (!a->str || !b->str) continue;
        if (strspn(a->str, "0") == a->len || strspn(b->str, "0") == b->len) continue;
        if (strcmp(a->str, b->str) != 0) different++;
    }
    if (different > 0) printConflicts(move, keys, ours, theirs, different);
    freeReplyObject(ours);
    freeReplyObject(theirs);
    return different == 0;
}

/* Moves these keys. */
static bool moveKeys(const keyMove *move, const valkeyReply *keys) {
    valkeyReply *reply = migrate(move, keys);
    if (reply && reply->type == VALKEY_REPLY_ERROR && strstr(reply->str, "BUSYKEY")) {
        freeReplyObject(reply);
        reply = NULL;
        managerPrint(move->m, LEVEL_WARNING, "\n*** Target key exists\n");
        if (!move->m->options->replace && !valuesMatch(move, keys)) {
            strClear(move->error);
            strAppendText(move->error, "BUSYKEY Target key name already exists.");
            return false;
        }
        managerPrint(move->m, LEVEL_WARNING, "*** Replacing target keys...\n");
        keyMove again = *move;
        again.replace = true;
        reply = migrate(&again, keys);
    } else if (reply && reply->type == VALKEY_REPLY_ERROR) {
        putchar('\n');
    }
    bool moved = managerAccept(move->m, move->source, reply);
    if (!moved) {
        strClear(move->error);
        strAppendText(move->error, reply ? reply->str : "MIGRATE failed to run");
    } else if (!(move->flags & MOVE_QUIET)) {
        for (size_t i = 0; i < keys->elements; i++) putchar('.');
        fflush(stdout);
    }
    if (moved) showProgress(move->progress, 0);
    freeReplyObject(reply);
    return moved;
}

/* Number of databases of a cluster: 1 before Valkey 9. */
static int countDatabases(clusterNode *node) {
    int count = 1;
    valkeyReply *reply = managerCommand(node, "CONFIG GET cluster-databases");
    if (reply && reply->elements == 2 && reply->element[1]->str)
        count = atoi(reply->element[1]->str);
    freeReplyObject(reply);
    return count > 0 ? count : 1;
}

static bool moveDatabase(const keyMove *move) {
    for (;;) {
        valkeyReply *keys = managerCommand(move->source, "CLUSTER GETKEYSINSLOT %d %d", move->slot,
                                           move->m->options->pipeline);
        bool moved = managerAccept(move->m, move->source, keys);
        bool finished = moved && keys->elements == 0;
        if (moved && !finished) moved = moveKeys(move, keys);
        if (!moved && !move->error->len && keys && keys->str) strAppendText(move->error, keys->str);
        freeReplyObject(keys);
        if (!moved || finished) return moved;
    }
}

static bool moveAllKeys(keyMove *move) {
    int databases = countDatabases(move->source);
    bool moved = true;
    for (move->db = 0; move->db < databases && moved; move->db++) {
        if (move->db > 0) moved = managerRun(move->m, move->source, "SELECT %d", move->db);
        if (moved) moved = moveDatabase(move);
    }
    if (databases > 1 && !managerRun(move->m, move->source, "SELECT 0")) return false;
    return moved;
}

static bool setState(const keyMove *move, clusterNode *node, const char *state,
                     const clusterNode *peer) {
    valkeyReply *reply =
        managerCommand(node, "CLUSTER SETSLOT %d %s %s", move->slot, state, peer->id);
    bool done = isAccepted(move->m, node, reply, "CLUSTER SETSLOT", move->error);
    freeReplyObject(reply);
    return done;
}

bool managerMoveSlot(clusterManager *m, clusterNode *source, clusterNode *target, int slot,
                     int flags, const moveProgress *progress, str *error) {
    keyMove move = {m, source, target, slot, 0, flags, m->options->replace, progress, error};
    strClear(error);
    if (!(flags & MOVE_QUIET)) {
        printf("Moving slot %d from %s:%d to %s:%d", slot, strText(&source->host), source->port,
               strText(&target->host), target->port);
        fflush(stdout);
    }
    bool opened = (flags & MOVE_OPENED) || (setState(&move, target, "IMPORTING", source) &&
                                            setState(&move, source, "MIGRATING", target));
    if (!opened) return false;
    bool moved = moveAllKeys(&move);
    if (!(flags & MOVE_QUIET)) putchar('\n');
    fflush(stdout);
    if (!moved || (flags & MOVE_KEEP_OWNER)) return moved;
    return managerAssign(m, target, source, slot, error);
}

/* ------------------------------------------------------------------ atomic */

/* False also if the node does not tell. */
static bool hasCommand(clusterNode *node, const char *name) {
    valkeyReply *reply = managerCommand(node, "COMMAND INFO %s", name);
    bool found = reply && reply->type == VALKEY_REPLY_ARRAY && reply->elements == 1 &&
                 reply->element[0]->type == VALKEY_REPLY_ARRAY && reply->element[0]->elements > 0;
    freeReplyObject(reply);
    return found;
}

bool managerMovesWhole(const clusterManager *m, clusterNode *source, clusterNode *target) {
    check(source != target);
    if (m->options->atomic) return true;
    if (clusterOptionsMoveKeys(m->options)) return false;
    return hasCommand(source, "cluster|migrateslots") && hasCommand(target, "cluster|syncslots");
}

static valkeyReply *migrateSlots(clusterNode *source, const clusterNode *target,
                                 const slotSet *slots) {
    enum { WORDS_BEFORE = 3, WORDS_AFTER = 2, NUMBER_MAX = 8 };
    size_t count = 0, max = WORDS_BEFORE + WORDS_AFTER;
    int first, last, ranges = 0;
    for (int from = 0; slotSetRange(slots, from, &first, &last); from = last + 1) ranges++;
    max += (size_t)ranges * 2;
    const char **words = memNewArray(const char *, max);
    char *numbers = memAlloc((size_t)ranges * 2 * NUMBER_MAX + 1), *next = numbers;
    words[count++] = "CLUSTER";
    words[count++] = "MIGRATESLOTS";
    words[count++] = "SLOTSRANGE";
    for (int from = 0; slotSetRange(slots, from, &first, &last); from = last + 1) {
        for (int i = 0; i < 2; i++, next += NUMBER_MAX) {
            snprintf(next, NUMBER_MAX, "%d", i == 0 ? first : last);
            words[count++] = next;
        }
    }
    words[count++] = "NODE";
    words[count++] = target->id;
    valkeyReply *reply = managerCommandArgv(source, (int)count, words, NULL);
    memFree(numbers);
    memFree(words);
    return reply;
}

static const char *jobField(const valkeyReply *job, const char *name) {
    for (size_t i = 0; i + 1 < job->elements; i += 2) {
        const char *key = job->element[i]->str, *value = job->element[i + 1]->str;
        if (key && value && !strcmp(key, name)) return value;
    }
    return "";
}

/* How much of the keys has been sent, 0 to 1. Valkey's nodes do not tell. */
static double jobPart(const valkeyReply *job) {
    double sent = 0, total = 0;
    for (size_t i = 0; i + 1 < job->elements; i += 2) {
        const valkeyReply *key = job->element[i], *value = job->element[i + 1];
        if (!key->str || value->type != VALKEY_REPLY_INTEGER) continue;
        if (!strcmp(key->str, "keys_sent")) sent = (double)value->integer;
        if (!strcmp(key->str, "keys_total")) total = (double)value->integer;
    }
    return sent < 0 || total <= 0 ? 0 : sent < total ? sent / total : 1;
}

typedef enum jobState { JOB_RUNNING, JOB_DONE, JOB_FAILED } jobState;

/* The state of the newest job with these slots and target; `*part`: of its keys that was sent,
 * unchanged if it is not known. */
static jobState pollJob(const clusterManager *m, clusterNode *source, const clusterNode *target,
                        const char *ranges, double *part, str *error) {
    valkeyReply *jobs = managerCommand(source, "CLUSTER GETSLOTMIGRATIONS");
    jobState state = JOB_FAILED;
    strClear(error);
    if (!isAccepted(m, source, jobs, "CLUSTER GETSLOTMIGRATIONS", error)) {
        freeReplyObject(jobs);
        return state;
    }
    const valkeyReply *job = NULL;
    for (size_t i = 0; i < jobs->elements && !job; i++) { /* newest first */
        const valkeyReply *each = jobs->element[i];
        if (strcmp(jobField(each, "slot_ranges"), ranges) != 0) continue;
        if (!strcmp(jobField(each, "target_node"), target->id)) job = each;
    }
    const char *text = job ? jobField(job, "state") : "";
    if (!job) {
        strAppendText(error, "Slot migration not found in CLUSTER GETSLOTMIGRATIONS");
    } else if (!strcmp(text, "success")) {
        state = JOB_DONE;
    } else if (!strcmp(text, "cancelled")) {
        strAppendText(error, MOVE_CANCELLED);
    } else if (!strcmp(text, "failed")) {
        strAppendText(error, jobField(job, "message"));
    } else {
        double now = jobPart(job);
        state = JOB_RUNNING;
        if (now > *part) *part = now;
    }
    freeReplyObject(jobs);
    return state;
}

bool managerMoveAtomic(clusterManager *m, clusterNode *source, clusterNode *target,
                       const slotSet *slots, int flags, const moveProgress *progress, str *error) {
    enum { POLL_US = 100 * 1000 };
    str ranges = STR_EMPTY;
    slotSetPrintPlain(slots, &ranges);
    if (!(flags & MOVE_QUIET)) {
        printf("Moving slot range %s from %s:%d to %s:%d via atomic slot migration",
               strText(&ranges), strText(&source->host), source->port, strText(&target->host),
               target->port);
        fflush(stdout);
    }
    strClear(error);
    valkeyReply *reply = migrateSlots(source, target, slots);
    bool started = isAccepted(m, source, reply, "CLUSTER MIGRATESLOTS", error);
    freeReplyObject(reply);
    jobState state = started ? JOB_RUNNING : JOB_FAILED;
    double part = 0;
    while (state == JOB_RUNNING) {
        state = pollJob(m, source, target, strText(&ranges), &part, error);
        if (state != JOB_RUNNING) break;
        if (!(flags & MOVE_QUIET)) putchar('.');
        fflush(stdout);
        showProgress(progress, part * slots->count);
        clockSleepUs(POLL_US);
    }
    if (state == JOB_DONE) {
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            if (slotSetHas(slots, slot)) slotSetRemove(&source->slots, slot);
        }
        slotSetAddAll(&target->slots, slots);
    }
    strFree(&ranges);
    return state == JOB_DONE;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `--cluster reshard` and `rebalance`. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "tools/cli/cluster_priv.h"

/* ------------------------------------------------------------------ reshard: questions */

/* The number of slots to move; 0 at the end of the input. */
static int askSlots(const clusterManager *m) {
    if (m->options->slots > 0) return m->options->slots;
    str question = STR_EMPTY, reply = STR_EMPTY;
    int slots = 0;
    strAppendFormat(&question, "How many slots do you want to move (from 1 to %d)? ", SLOT_COUNT);
    while (managerAsk(strText(&question), &reply)) {
        slots = atoi(strText(&reply));
        if (slots > 0 && slots <= SLOT_COUNT) break;
        slots = 0;
    }
    strFree(&question);
    strFree(&reply);
    return slots;
}

/* The primary with this id; NULL if there is none, which is printed. */
static clusterNode *findPrimary(const clusterManager *m, const char *id) {
    clusterNode *node = clusterNodesFindId(&m->nodes, id);
    if (node && !node->is_replica) return node;
    managerPrint(m, LEVEL_ERROR,
                 "*** The specified node (%s) is not known or not a primary, please retry.\n", id);
    return NULL;
}

static clusterNode *askTarget(const clusterManager *m) {
    if (m->options->to) return findPrimary(m, m->options->to);
    str reply = STR_EMPTY;
    clusterNode *target = NULL;
    if (managerAsk("What is the receiving node ID? ", &reply))
        target = findPrimary(m, strText(&reply));
    strFree(&reply);
    return target;
}

static int addAllSources(const clusterManager *m, const clusterNode *target,
                         clusterNode **sources) {
    int count = 0;
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        if (!node->is_replica && node != target) sources[count++] = node;
    }
    return count;
}

/* Adds a source unless it is the target or was added before. */
static int addSource(const clusterManager *m, clusterNode *node, const clusterNode *target,
                     clusterNode **sources, int count) {
    if (node == target) {
        managerPrint(m, LEVEL_ERROR,
                     "*** It is not possible to use the target node as source node.\n");
        return count;
    }
    for (int i = 0; i < count; i++) {
        if (sources[i] == node) return count;
    }
    sources[count] = node;
    return count + 1;
}

/* The nodes of --cluster-from, "all" or ids separated by commas. -1 if one is not valid. */
static int parseSources(const clusterManager *m, const clusterNode *target, clusterNode **sources) {
    int count = 0;
    const char *rest = m->options->from;
    str id = STR_EMPTY;
    while (*rest && count >= 0) {
        size_t len = strcspn(rest, ",");
        strClear(&id);
        strAppend(&id, rest, len);
        rest += len + (rest[len] == ',');
        if (!strcmp(strText(&id), "all")) {
            count = addAllSources(m, target, sources);
            break;
        }
        clusterNode *node = findPrimary(m, strText(&id));
        count = node ? addSource(m, node, target, sources, count) : -1;
    }
    strFree(&id);
    return count;
}

static int askSources(const clusterManager *m, const clusterNode *target, clusterNode **sources) {
    if (m->options->from) return parseSources(m, target, sources);
    int count = 0;
    str question = STR_EMPTY, reply = STR_EMPTY;
    printf("Please enter all the source node IDs.\n"
           "  Type 'all' to use all the nodes as source nodes for the hash slots.\n"
           "  Type 'done' once you entered all the source nodes IDs.\n");
    for (;;) {
        strClear(&question);
        strAppendFormat(&question, "Source node #%d: ", count + 1);
        if (!managerAsk(strText(&question), &reply)) {
            count = 0; /* the input ended before "done" */
            break;
        }
        if (!strcmp(strText(&reply), "done")) break;
        if (!strcmp(strText(&reply), "all")) {
            count = addAllSources(m, target, sources);
            break;
        }
        clusterNode *node = findPrimary(m, strText(&reply));
        if (!node) {
            count = -1;
            break;
        }
        count = addSource(m, node, target, sources, count);
    }
    strFree(&question);
    strFree(&reply);
    return count;
}

/* ------------------------------------------------------------------ reshard: plan */

static void printPlan(const clusterManager *m, clusterNode *const *sources, int count,
                      const clusterNode *target, int slots) {
    str text = STR_EMPTY;
    (void)m;
    strAppendFormat(&text, "\nReady to move %d slots.\n  Source nodes:\n", slots);
    for (int i = 0; i < count; i++) clusterNodeDescribe(sources[i], 4, true, &text);
    strAppendText(&text, "  Destination node:\n");
    clusterNodeDescribe(target, 4, true, &text);
    strAppendText(&text, "  Resharding plan:\n");
    fputs(strText(&text), stdout);
    strFree(&text);
}

/* The slots of the moves from index `from` on that have the same source; returns the index after
 * them. */
static int collectSlots(const slotMove *moves, int count, int from, slotSet *slots) {
    int at = from;
    *slots = (slotSet){0};
    for (; at < count && moves[at].source == moves[from].source; at++)
        slotSetAdd(slots, moves[at].slot);
    return at;
}

static void printMoves(const slotMove *moves, int count) {
    slotSet slots;
    for (int at = 0; at < count;) {
        const clusterNode *source = moves[at].source;
        str text = STR_EMPTY;
        at = collectSlots(moves, count, at, &slots);
        slotSetPrintPlain(&slots, &text);
        printf("    Moving slot range %s from %s\n", strText(&text), source->id);
        strFree(&text);
    }
}

/* ------------------------------------------------------------------ moving */

static void printMarks(int count) {
    for (int i = 0; i < count; i++) putchar('#');
    fflush(stdout);
}

/* Moves the slots of one source as a whole. `*cancelled`: an operator has ended the move. */
static bool moveWhole(clusterManager *m, clusterNode *source, clusterNode *target,
                      const slotSet *slots, int flags, const moveProgress *progress,
                      bool *cancelled) {
    str error = STR_EMPTY;
    bool moved = managerMoveAtomic(m, source, target, slots, flags, progress, &error);
    if (!moved) managerPrint(m, LEVEL_ERROR, "Atomic slot migration failed: %s\n", strText(&error));
    *cancelled = !strcmp(strText(&error), MOVE_CANCELLED);
    strFree(&error);
    return moved;
}

static bool moveKeys(clusterManager *m, clusterNode *source, clusterNode *target, int slot,
                     int flags, const moveProgress *progress) {
    str error = STR_EMPTY;
    bool moved = managerMoveSlot(m, source, target, slot, flags, progress, &error);
    if (!moved)
        managerPrint(m, LEVEL_ERROR, "clusterManagerMoveSlot failed: %s\n", strText(&error));
    strFree(&error);
    return moved;
}

/* Moves all slots to the target: as a whole if both nodes can. Unless an option asks for that,
 * slots that cannot be moved so are moved key by key, because a target may refuse the login of the
 * source. `progress` counts from `done` on. */
static bool runMoves(clusterManager *m, const slotMove *moves, int count, clusterNode *target,
                     int flags, jobProgress *progress, int done) {
    const clusterNode *asked = NULL; /* the source that `whole` belongs to */
    bool moved = true, whole = false, cancelled = false;
    for (int at = 0; at < count && moved;) {
        clusterNode *source = moves[at].source;
        slotSet slots;
        int next = at + 1;
        const moveProgress so_far = {progress, (uint64_t)(done + at)};
        if (source != asked) whole = managerMovesWhole(m, source, target);
        asked = source;
        if (whole) {
            next = collectSlots(moves, count, at, &slots);
            moved = moveWhole(m, source, target, &slots, flags, &so_far, &cancelled);
            if (!moved && !m->options->atomic && !cancelled) {
                managerPrint(m, LEVEL_WARNING, "Moving the slots key by key instead.\n");
                moved = true;
                whole = false;
                continue;
            }
        } else {
            moved = moveKeys(m, source, target, moves[at].slot, flags, &so_far);
        }
        if (moved) printMarks(next - at);
        at = next;
        if (moved) jobProgressAt(progress, done + at);
    }
    return moved;
}

static bool reshard(clusterManager *m) {
    if (!managerCheck(m, 0)) {
        fputs("*** Please fix your cluster problems before resharding\n", stderr);
        return false;
    }
    clusterNode **sources = memNewArray(clusterNode *, m->nodes.count);
    slotMove *moves = NULL;
    bool accepted = false;
    int count = 0, wanted = askSlots(m);
    clusterNode *target = wanted ? askTarget(m) : NULL;
    int source_count = target ? askSources(m, target, sources) : -1;
    if (source_count == 0) fputs("*** No source nodes given, operation aborted.\n", stderr);
    if (source_count > 0) {
        printPlan(m, sources, source_count, target, wanted);
        count = planReshard(sources, source_count, wanted, &moves);
        printMoves(moves, count);
        str reply = STR_EMPTY;
        accepted = m->options->yes ||
                   (managerAsk("Do you want to proceed with the proposed reshard plan (yes/no)? ",
                               &reply) &&
                    !strcmp(strText(&reply), "yes"));
        strFree(&reply);
    }
    if (accepted) {
        jobProgress progress;
        jobProgressBegin(&progress, m->env->progress, "reshard", "slots", count);
        jobProgressInLine(&progress);
        /* Like Valkey's, the exit status does not tell a failed move: the message does. */
        (void)runMoves(m, moves, count, target, 0, &progress, 0);
        jobProgressEnd(&progress, count);
    }
    memFree(moves);
    memFree(sources);
    return accepted;
}

int clusterReshard(clusterManager *m, int argc, char **argv) {
    return managerLoadFrom(m, argc, argv) && reshard(m) ? 0 : 1;
}

/* ------------------------------------------------------------------ rebalance */

/* The weights of --cluster-weight; false if one is not valid. That of a replica has no effect. */
static bool parseWeights(const clusterManager *m, double *weights) {
    const clusterOptions *o = m->options;
    for (int i = 0; i < m->nodes.count; i++) weights[i] = 1;
    for (int i = 0; i < o->weight_count; i++) {
        const char *text = o->weights[i], *equal = strchr(text, '=');
        double weight = 0;
        bool valid =
            equal && equal > text && numberParseDouble(sliceOf(equal + 1), &weight) && weight >= 0;
        if (!valid) {
            managerPrint(m, LEVEL_ERROR, "*** invalid input %s\n", text);
            return false;
        }
        str id = strNew(sliceMake(text, (size_t)(equal - text)));
        const clusterNode *node = clusterNodesFind(&m->nodes, strText(&id));
        bool found = node != NULL;
        if (!found) managerPrint(m, LEVEL_ERROR, "*** No such primary node %s\n", strText(&id));
        strFree(&id);
        if (!found) return false;
        for (int j = 0; j < m->nodes.count; j++) {
            if (m->nodes.list[j] == node) weights[j] = weight;
        }
    }
    return true;
}

static int firstSlots(clusterNode *source, int wanted, slotMove *moves) {
    int slot = -1;
    for (int i = 0; i < wanted; i++) {
        slot = slotSetNext(&source->slots, slot + 1);
        if (slot < 0) return i;
        moves[i] = (slotMove){source, slot};
    }
    return wanted;
}

/* Takes slots off the view only. */
static void pretendMoves(const slotMove *moves, int count, clusterNode *target) {
    for (int i = 0; i < count; i++) {
        slotSetRemove(&moves[i].source->slots, moves[i].slot);
        slotSetAdd(&target->slots, moves[i].slot);
    }
    printMarks(count);
}

/* Like Valkey's, goes on with the next nodes after a failed move, which was printed. */
static void transferSlots(clusterManager *m, nodeShare *shares, int count) {
    clusterNode *source, *target;
    slotMove *moves = memNewArray(slotMove, SLOT_COUNT);
    int slots, total = 0, done = 0;
    for (int i = 0; i < count; i++) total += shares[i].balance > 0 ? shares[i].balance : 0;
    jobProgress progress;
    jobProgressBegin(&progress, m->env->progress, "rebalance", "slots", total);
    jobProgressInLine(&progress);
    while ((slots = planNextTransfer(shares, count, &source, &target)) > 0) {
        printf("Moving %d slots from %s:%d to %s:%d\n", slots, strText(&source->host), source->port,
               strText(&target->host), target->port);
        int made = firstSlots(source, slots, moves);
        if (m->options->simulate) {
            pretendMoves(moves, made, target);
        } else {
            (void)runMoves(m, moves, made, target, MOVE_QUIET, &progress, done);
        }
        done += made;
        putchar('\n');
    }
    jobProgressEnd(&progress, done);
    memFree(moves);
}

static bool rebalance(clusterManager *m) {
    double *weights = memNewArray(double, m->nodes.count);
    nodeShare *shares = memNewArray(nodeShare, m->nodes.count);
    double total = 0, threshold = m->options->threshold_percent;
    int count = 0;
    bool done = parseWeights(m, weights);
    for (int i = 0; i < m->nodes.count && done; i++) {
        clusterNode *node = m->nodes.list[i];
        if (node->is_replica || (!m->options->use_empty && node->slots.count == 0)) continue;
        shares[count++] = (nodeShare){node, weights[i], 0};
        total += weights[i];
    }
    if (done && !managerCheck(m, CHECK_QUIET)) {
        managerPrint(m, LEVEL_ERROR, "*** Please fix your cluster problems before rebalancing\n");
        done = false;
    }
    if (done && !planBalance(shares, count, threshold)) {
        managerPrint(m, LEVEL_WARNING,
                     "*** No rebalancing needed! All nodes are within the %.2f%% threshold.\n",
                     threshold);
    } else if (done) {
        managerPrint(m, LEVEL_INFO, ">>> Rebalancing across %d nodes. Total weight = %.2f\n", count,
                     total);
        transferSlots(m, shares, count);
    }
    memFree(shares);
    memFree(weights);
    return done;
}

int clusterRebalance(clusterManager *m, int argc, char **argv) {
    return managerLoadFrom(m, argc, argv) && rebalance(m) ? 0 : 1;
}

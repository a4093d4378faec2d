/* SPDX-License-Identifier: BSD-3-Clause */
#include "slot_node.h"

#include "base/base.h"
#include "bus/open_slots.h"
#include "bus/slot_source.h"
#include "bus/slot_target.h"
#include "cluster_data.h"
#include "sim.h"

enum {
    KIND_MOVE = 1, /* of wires */
    JOBS_MAX = 512,
    TICK_MS = 100,
    MANUAL_MS = 1000,
    SILENCE_MS = 3000,
    PAUSE_MS = 300,
};

simSlots sim_slots[SIM_NODES_MAX + 1];
simSlotCounts slot_counts;
void (*slot_node_drops)(const simSlots *s, int slot);

/* ------------------------------------------------------------------ what is sent and recorded */

typedef enum recordKind {
    RECORD_SET, /* key, value */
    RECORD_DROP_SLOT,
    RECORD_DROP_ALL,
    RECORD_BEGIN,    /* job: ESTABLISH */
    RECORD_END,      /* job, value: success */
    RECORD_ORDER,    /* key: a slot, value: a setSlotAction, job: a host */
    RECORD_UNASSIGN, /* key: a slot */
    RECORD_WORD,     /* value: acts */
    RECORD_OK,
    RECORD_ERROR,
} recordKind;

typedef struct record {
    int kind, key, value, job;
} record;

/* What made each version from the one before. */
static record records[VERSIONS_MAX];

/* What a name of a job stands for. */
static struct {
    char name[SLOT_IMPORT_NAME_LEN], source[NODE_ID_LEN];
    slotRanges ranges;
} jobs[JOBS_MAX];
static int job_count;

static int jobNumber(const slotJob *job) {
    for (int i = 0; i < job_count; i++)
        if (!memcmp(jobs[i].name, job->name, SLOT_IMPORT_NAME_LEN)) return i;
    simFail("a job that nobody has begun");
}

static slice nameOf(int job) { return sliceMake(jobs[job].name, SLOT_IMPORT_NAME_LEN); }

int slotNodeHostOf(const char *id) {
    for (int i = 0; i < sim_node_count; i++)
        if (!memcmp(sim_slots[i].id, id, NODE_ID_LEN)) return i;
    return -1;
}

static simSlots *slotsOf(const simNode *n) { return &sim_slots[n->host]; }

/* Brings the machine's time up to date. */
static slotMoves *movesOf(simSlots *s) {
    slotMoves *m = &s->moves;
    m->now_ms = simNodeClock(s->node);
    m->now_s = m->now_ms / 1000;
    m->rules = (slotMovesRules){.pause_ms = PAUSE_MS,
                                .manual_timeout_ms = MANUAL_MS,
                                .node_timeout_ms = SIM_NODE_TIMEOUT_MS,
                                .silence_ms = SILENCE_MS,
                                .is_saving = mapSavesIsPending(&s->node->saves)};
    return m;
}

static bool isIn(const slotJob *job, int slot) {
    return slotRangesHave(&job->ranges, simSlotNumber(slot));
}

/* ------------------------------------------------------------------ the dataset */

bool slotNodeHasKeys(const simSlots *s, int slot) {
    for (int i = 0; i < SIM_KEYS_OF_SLOT; i++)
        if (s->value[slot * SIM_KEYS_OF_SLOT + i]) return true;
    return false;
}

static void dropSlot(simSlots *s, int slot) {
    for (int i = 0; i < SIM_KEYS_OF_SLOT; i++) s->value[slot * SIM_KEYS_OF_SLOT + i] = 0;
}

/* Changes the dataset as a record says. */
static void apply(simSlots *s, const record *r) {
    slotJob *job = r->kind == RECORD_END ? slotLogFind(&s->moves.log, nameOf(r->job)) : NULL;
    switch (r->kind) {
    case RECORD_SET: s->value[r->key] = r->value; break;
    case RECORD_DROP_SLOT: dropSlot(s, r->key); break;
    case RECORD_DROP_ALL: memset(s->value, 0, sizeof(s->value)); break;
    case RECORD_ORDER: slotNodeSetSlot(s, r->key, (setSlotAction)r->value, r->job); break;
    case RECORD_UNASSIGN:
        clusterMapSetOwner(s->moves.map, simSlotNumber(r->key), NULL);
        mapSavesTake(&s->node->saves, s->moves.map, true);
        break;
    case RECORD_BEGIN:
    case RECORD_END: break;
    default: simFail("a record that is none of a dataset");
    }
    if (r->kind == RECORD_BEGIN) {
        slotRanges ranges = slotRangesCopy(jobs[r->job].ranges.items, jobs[r->job].ranges.count);
        (void)slotTargetFollow(movesOf(s), nameOf(r->job), &ranges); /* NULL: known already */
        slotRangesClear(&ranges);
    } else if (job && job->is_import && slotJobIsActive(job)) {
        slotTargetFinish(movesOf(s), job, r->value, SLICE(""));
    }
}

/* A change of a primary, which is applied here already or by `apply`. */
static void append(simSlots *s, record r) {
    s->version = dataAppend(s->node);
    records[s->version] = r;
}

static void change(simSlots *s, record r) {
    apply(s, &r);
    append(s, r);
}

int slotNodeAppendOrder(simSlots *s, int slot, setSlotAction action, int peer) {
    append(s, (record){.kind = RECORD_ORDER, .key = slot, .value = (int)action, .job = peer});
    return s->version;
}

void slotNodeAppendUnassign(simSlots *s, int slot) {
    append(s, (record){.kind = RECORD_UNASSIGN, .key = slot});
}

void slotNodeSetSlot(simSlots *s, int slot, setSlotAction action, int peer) {
    simNode *n = s->node;
    setSlotOrder order = {.action = action,
                          .slot = simSlotNumber(slot),
                          .id = sliceMake(sim_slots[peer].id, NODE_ID_LEN)};
    const clusterNode *from = clusterMapOpenSlot(&n->map, SLOT_IMPORTING, order.slot);
    if (from && action == SET_SLOT_NODE && peer == n->host) {
        s->taken_from[slot] = slotNodeHostOf(from->id);
        s->taken_by_order[slot] = true;
    }
    slice word = setSlotWord(action);
    logDebug("node %d executes SETSLOT %d %.*s node %d", n->host, order.slot, (int)word.len,
             word.ptr, peer);
    busSetSlot(&n->bus, &order, slotNodeHasKeys(s, slot), simNodeClock(n));
    mapSavesTake(&n->saves, &n->map, true);
}

static void advance(simSlots *s, int from, int to) {
    if (to == from) return;
    advance(s, from, dataParent(to));
    apply(s, &records[to]);
}

/* ------------------------------------------------------------------ connections */

/* An end of a connection of a job. */
typedef struct moveLink {
    wire *w;
    wireSide side;
    slotJob *job; /* NULL: the target's, which waits for ESTABLISH */
    str in;
    int64_t heard_ms;
} moveLink;

static moveLink *linkOf(const slotJob *job) { return job->work; }

static void sendRecord(moveLink *l, record r) {
    if (l) wireSend(l->w, l->side, sliceMake((const char *)&r, sizeof(r)));
}

static void freeLink(moveLink *l) {
    if (l->job) l->job->work = NULL;
    l->w->state[l->side] = NULL;
    wireClose(l->w, l->side);
    strFree(&l->in);
    memFree(l);
}

static moveLink *newLink(simSlots *s, wire *w, wireSide side, slotJob *job) {
    moveLink *l = memNew(moveLink);
    *l = (moveLink){.w = w, .side = side, .job = job, .heard_ms = simNodeClock(s->node)};
    w->kind = KIND_MOVE;
    w->state[side] = l;
    if (job) job->work = l;
    return l;
}

wire *slotNodesWire(void) {
    wire *found = NULL;
    unsigned count = 0;
    for (wire *w = wireFirst(); w; w = w->next)
        if (w->kind == KIND_MOVE && randomUniform(++count) == 0) found = w;
    return found;
}

wire *slotNodeWireOf(const slotJob *job) { return job->work ? linkOf(job)->w : NULL; }

int slotNodePeerOf(const slotJob *job) {
    return job->has_nodes ? slotNodeHostOf(job->is_import ? job->source : job->target) : -1;
}

static bool handsOver(slotJobState state) {
    return state == JOB_PAUSED || state == JOB_GRANTED || state == JOB_REQUESTED ||
           state == JOB_TAKING;
}

slotJob *slotNodesJob(bool hands_over, simSlots **s) {
    slotJob *found = NULL;
    unsigned count = 0;
    for (int i = 0; i < 2 * sim_node_count; i++) {
        simSlots *of = &sim_slots[i / 2];
        const slotLog *log = &of->moves.log;
        if (!of->node || !of->node->running || !log->active) continue;
        for (slotJob *job = slotLogNext(log, NULL, i % 2); job;
             job = slotLogNext(log, job, i % 2)) {
            if (handsOver(job->state) != hands_over || randomUniform(++count)) continue;
            found = job;
            *s = of;
        }
    }
    return found;
}

int slotNodeMoving(const simSlots *s) {
    int found = -1;
    unsigned count = 0;
    if (!s->node || !s->node->running) return found;
    for (int i = 0; i < SIM_SLOTS && s->moves.log.active; i++) {
        const slotRange item = {.first = simSlotNumber(i), .last = simSlotNumber(i)};
        slotRanges one = slotRangesCopy(&item, 1);
        if (slotLogOverlapping(&s->moves.log, &one) && randomUniform(++count) == 0) found = i;
        slotRangesClear(&one);
    }
    return found;
}

/* ------------------------------------------------------------------ what the machine asks for */

static void sendActs(void *arg, slotJob *job, uint32_t acts) {
    simSlots *s = arg;
    if (acts & JOB_ACT_SEND_ESTABLISH) {
        sendRecord(linkOf(job), (record){.kind = RECORD_BEGIN, .job = jobNumber(job)});
        slotSourceOn(movesOf(s), job, JOB_SENT);
    } else {
        sendRecord(linkOf(job), (record){.kind = RECORD_WORD, .value = (int)acts});
    }
}

static void closeLink(void *arg, slotJob *job) {
    (void)arg; /* the link knows its end */
    if (job->work) freeLink(linkOf(job));
}

static int64_t heardMs(void *arg, const slotJob *job) {
    (void)arg; /* the link knows */
    return job->work ? linkOf(job)->heard_ms : -1;
}

static void ended(void *arg, slotJob *job) {
    (void)arg; /* counts are those of all nodes */
    check(!job->work);
    slot_counts.failed += job->state == JOB_FAILED;
    slot_counts.cancelled += job->state == JOB_CANCELLED;
}

static void connectJob(void *arg, slotJob *job) {
    simSlots *s = arg;
    const clusterNode *target = slotMovesPeer(&s->moves, job);
    int host = target ? target->tcp_port - 7000 : -1;
    wire *w = host < 0 || host >= sim_node_count
                  ? NULL
                  : wireOpen(s->node->host, s->node, host, &sim_nodes[host]);
    if (w) {
        newLink(s, w, WIRE_CONNECTOR, job);
    } else {
        slotSourceFail(&s->moves, job, "refused");
    }
}

static bool canStream(void *arg, const slotJob *job) {
    (void)job;
    return !((simSlots *)arg)->walked;
}

static void beginStream(void *arg, slotJob *job) {
    simSlots *s = arg;
    s->walked = job;
    slot_counts.walks++;
    memset(s->visited, 0, sizeof(s->visited));
}

static void endStream(void *arg, slotJob *job) {
    simSlots *s = arg;
    if (s->walked == job) s->walked = NULL;
}

static size_t unsent(void *arg, const slotJob *job) {
    (void)arg; /* the link knows */
    const moveLink *l = job->work;
    return l && !oneIn(3) ? l->w->sent[!l->side].len : 0;
}

static uint64_t sentKeys(void *arg, const slotJob *job) {
    (void)arg, (void)job;
    return UINT64_MAX;
}

static int64_t sentMs(void *arg, const slotJob *job) {
    (void)arg;
    return job->work ? linkOf(job)->heard_ms : 0;
}

static void pauseWrites(void *arg) {
    simSlots *s = arg;
    slotMask mask = {{0}};
    s->pause_end_ms = slotSourcePaused(&s->moves, &mask);
    for (int i = 0; i < SIM_SLOTS; i++) s->paused[i] = slotMaskHas(&mask, simSlotNumber(i));
}

static void hideSlots(void *arg, const slotJob *job, bool on) {
    simSlots *s = arg;
    s->takes = !on && job->state == JOB_TAKING;
    for (int i = 0; i < SIM_SLOTS; i++)
        if (isIn(job, i)) s->hidden[i] = on && !clusterMapIsMine(s->moves.map, simSlotNumber(i));
}

static bool clean(void *arg, slotJob *job) {
    simSlots *s = arg;
    for (int i = 0; i < SIM_SLOTS; i++) {
        if (!isIn(job, i) || clusterMapIsMine(s->moves.map, simSlotNumber(i))) continue;
        if (!slotNodeHasKeys(s, i)) continue;
        if (oneIn(2)) return false;
        change(s, (record){.kind = RECORD_DROP_SLOT, .key = i});
    }
    return true;
}

static void tellAll(void *arg) {
    simSlots *s = arg;
    busTellAll(&s->node->bus, simNodeClock(s->node));
}

static bool isStill(void *arg) {
    const simSlots *s = arg;
    return simNodeClock(s->node) < s->node->paused_until_ms;
}

static void markStream(void *arg, slotJob *job) {
    job->run.stream_at = ((simSlots *)arg)->node->data.version;
}

static bool isBehind(void *arg, const slotJob *job) {
    const simSlots *s = arg;
    for (int i = 0; i < sim_node_count; i++) {
        const simNode *n = &sim_nodes[i];
        if (!n->running || n == s->node || n->map.myself->flags & NODE_PRIMARY) continue;
        if (n->data.source != s->node->host || n->data.version == VERSION_NONE) continue;
        if (!dataIncludes(n->data.version, (int)job->run.stream_at)) return true;
    }
    return false;
}

static bool lacksQuorum(void *arg, const slotJob *job) {
    (void)arg, (void)job; /* it is off here */
    return false;
}

/* A node that takes slots has waited for its replicas, if the grant has left time for that. */
static void checkReplicas(simSlots *s, const slotJob *job) {
    int64_t waited_ms = s->moves.now_ms - job->run.since_ms;
    if (waited_ms < slotMovesLease(&s->moves) / 2 && isBehind(s, job))
        simFail("node %d takes slots before its replicas have them", s->node->host);
}

static void finish(void *arg, const slotJob *job) {
    simSlots *s = arg;
    bool success = job->state == JOB_SUCCESS, takes = success && s->takes;
    if (takes) checkReplicas(s, job);
    for (int i = 0; i < SIM_SLOTS; i++) {
        if (takes && isIn(job, i)) {
            s->taken_from[i] = slotNodeHostOf(job->source);
            s->taken_by_order[i] = false;
        }
    }
    slot_counts.taken += success && job->has_nodes;
    append(s, (record){.kind = RECORD_END, .job = jobNumber(job), .value = success});
}

static uint64_t keysOf(void *arg, int slot) {
    const simSlots *s = arg;
    for (int i = 0; i < SIM_SLOTS; i++)
        if (simSlotNumber(i) == slot) return slotNodeHasKeys(s, i);
    return 0;
}

static bool deletes(void *arg) { return ((const simSlots *)arg)->deletes; }

static const slotMovesProcs procs = {.send = sendActs,
                                     .close = closeLink,
                                     .heardMs = heardMs,
                                     .ended = ended,
                                     .connect = connectJob,
                                     .canStream = canStream,
                                     .beginStream = beginStream,
                                     .endStream = endStream,
                                     .unsent = unsent,
                                     .queued = unsent,
                                     .sentKeys = sentKeys,
                                     .sentMs = sentMs,
                                     .pause = pauseWrites,
                                     .hide = hideSlots,
                                     .clean = clean,
                                     .finish = finish,
                                     .tellAll = tellAll,
                                     .isStill = isStill,
                                     .markStream = markStream,
                                     .isBehind = isBehind,
                                     .lacksQuorum = lacksQuorum,
                                     .keys = keysOf,
                                     .deletes = deletes};

/* ------------------------------------------------------------------ the source */

static void sendKey(simSlots *s, slotJob *job, int key, int value) {
    s->visited[key] = true;
    if (value) sendRecord(linkOf(job), (record){.kind = RECORD_SET, .key = key, .value = value});
}

/* Some keys of the walk. */
static void walk(simSlots *s) {
    slotJob *job = s->walked;
    for (int key = 0; key < SIM_KEYS; key++) {
        if (!isIn(job, simSlotOfKey(key)) || s->visited[key]) continue;
        if (oneIn(4)) return;
        sendKey(s, job, key, s->value[key]);
    }
    s->walked = NULL;
    slotSourceOn(movesOf(s), job, JOB_SNAPSHOT_SENT);
}

/* A change of a slot, before it is executed. */
static void forward(simSlots *s, int slot, record r) {
    for (slotJob *job = slotLogNext(&s->moves.log, NULL, false); job;
         job = slotLogNext(&s->moves.log, job, false)) {
        slotChange how = slotSourceTakes(job, simSlotNumber(slot));
        if (how == SLOT_CHANGE_IGNORED) continue;
        if (how == SLOT_CHANGE_LATE) simFail("node %d: a change after a grant", s->node->host);
        for (int i = 0; i < SIM_KEYS_OF_SLOT && how == SLOT_CHANGE_WALKED; i++) {
            int key = slot * SIM_KEYS_OF_SLOT + i;
            bool changes = r.kind == RECORD_DROP_SLOT || key == r.key;
            if (changes && !s->visited[key]) sendKey(s, job, key, s->value[key]);
        }
        sendRecord(linkOf(job), r);
        slot_counts.changes++;
    }
}

bool slotNodeServes(const simSlots *s, int slot, bool is_write) {
    const simNode *n = s->node;
    int64_t now_ms = simNodeClock(n);
    if (!simNodeActs(n) || !clusterNodeVotes(n->map.myself) || !n->state.ok) return false;
    if (n->data.version == VERSION_NONE) return false;
    if (!clusterMapIsMine(&n->map, simSlotNumber(slot))) return false;
    if (!is_write) return true;
    if (!simNodeHasSaved(n, simSlotNumber(slot))) return false;
    return now_ms >= n->paused_until_ms && !(s->paused[slot] && now_ms < s->pause_end_ms);
}

void slotNodeWrite(simSlots *s, int key, int value) {
    record r = {.kind = RECORD_SET, .key = key, .value = value};
    forward(s, simSlotOfKey(key), r);
    change(s, r);
}

void slotNodeFlushSlot(simSlots *s, int slot) {
    record r = {.kind = RECORD_DROP_SLOT, .key = slot};
    forward(s, slot, r);
    change(s, r);
}

bool slotNodeFlushAll(simSlots *s) {
    if (s->pause_end_ms > simNodeClock(s->node) || isStill(s)) return false;
    if (mapSavesUnsaved(&s->node->saves)) return false;
    if (!simNodeActs(s->node) || s->node->map.myself->flags & NODE_REPLICA) return false;
    if (s->node->data.version == VERSION_NONE) return false;
    slotMovesFlushed(movesOf(s));
    change(s, (record){.kind = RECORD_DROP_ALL});
    simNodeFinish(s->node);
    return true;
}

void slotNodeMigrate(simSlots *s, const simNode *to) {
    simNode *n = s->node;
    slotRange items[3];
    if (clusterMapHasOpenSlots(&n->map)) return;
    size_t count = 0;
    if (!simNodeActs(n) || n == to || job_count == JOBS_MAX) return;
    const clusterNode *target =
        to->running ? clusterMapFind(&n->map, clusterNodeId(to->map.myself)) : NULL;
    if (!target || target->flags & NODE_REPLICA || n->map.myself->flags & NODE_REPLICA) return;
    for (int i = 0; i < SIM_SLOTS && count < COUNT_OF(items); i++) {
        int slot = simSlotNumber(i);
        if (!clusterMapIsMine(&n->map, slot) || oneIn(2)) continue;
        items[count++] = (slotRange){.first = slot, .last = slot};
    }
    if (!count) return;
    slotRanges ranges = slotRangesCopy(items, count);
    if (!slotLogOverlapping(&s->moves.log, &ranges)) {
        slotJob *job = slotSourceBegin(movesOf(s), &ranges, target);
        int number = job_count++;
        memcpy(jobs[number].name, job->name, SLOT_IMPORT_NAME_LEN);
        memcpy(jobs[number].source, job->source, NODE_ID_LEN);
        jobs[number].ranges = slotRangesCopy(items, count);
        slot_counts.jobs++;
    }
    slotRangesClear(&ranges);
}

void slotNodeCancel(simSlots *s) {
    if (simNodeActs(s->node)) (void)slotSourceCancelAll(movesOf(s));
}

/* ------------------------------------------------------------------ the target */

static void establish(simSlots *s, moveLink *l, int number) {
    reason why;
    clusterMap *map = s->moves.map;
    slotRanges ranges = slotRangesCopy(jobs[number].ranges.items, jobs[number].ranges.count);
    const clusterNode *owner = clusterMapOwner(map, ranges.items[0].first);
    slice source = sliceMake(jobs[number].source, NODE_ID_LEN);
    if (map->myself->flags & NODE_PRIMARY && !clusterMapHasOpenSlots(map) &&
        s->node->data.version != VERSION_NONE && owner && slotRangesAreOf(&ranges, map, owner) &&
        slotTargetCheck(movesOf(s), source, nameOf(number), &ranges, owner, &why) == OK) {
        l->job = slotTargetBegin(movesOf(s), source, nameOf(number), &ranges);
        l->job->work = l;
        append(s, (record){.kind = RECORD_BEGIN, .job = number});
        sendRecord(l, (record){.kind = RECORD_OK});
    } else {
        slot_counts.refused++;
        sendRecord(l, (record){.kind = RECORD_ERROR});
    }
    slotRangesClear(&ranges);
}

static const struct {
    uint32_t act;
    slotJobEvent event;
} words[] = {
    {JOB_ACT_SEND_ACK, JOB_ACK},
    {JOB_ACT_SEND_EOF, JOB_SNAPSHOT_EOF},
    {JOB_ACT_SEND_REQUEST_PAUSE, JOB_REQUEST_PAUSE},
    {JOB_ACT_SEND_PAUSED, JOB_PAUSED_WORD},
    {JOB_ACT_SEND_REQUEST_FAILOVER, JOB_REQUEST_FAILOVER},
    {JOB_ACT_SEND_GRANTED, JOB_GRANTED_WORD},
};

static void takeWord(simSlots *s, slotJob *job, uint32_t acts) {
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!(acts & words[i].act)) continue;
        if (job->is_import) {
            slotTargetOn(movesOf(s), job, words[i].event);
        } else {
            slotSourceOn(movesOf(s), job, words[i].event);
        }
        return;
    }
    simFail("a word that does not exist");
}

/* False: the link is gone. */
static bool takeRecord(simSlots *s, moveLink *l, const record *r) {
    wire *w = l->w;
    wireSide side = l->side;
    slotJob *job = l->job;
    switch (r->kind) {
    case RECORD_BEGIN: establish(s, l, r->job); break;
    case RECORD_OK: slotSourceOn(movesOf(s), job, JOB_REPLIED_OK); break;
    case RECORD_ERROR: slotSourceFail(movesOf(s), job, "refused"); break;
    case RECORD_WORD: takeWord(s, job, (uint32_t)r->value); break;
    default: change(s, *r); break;
    }
    return w->state[side] == l;
}

static void lost(simSlots *s, moveLink *l) {
    slotJob *job = l->job;
    freeLink(l);
    if (!job) return;
    if (job->is_import) {
        slotTargetFail(movesOf(s), job, "lost");
    } else {
        slotSourceLost(movesOf(s), job, "lost");
    }
}

static void stepLink(simSlots *s, wire *w, wireSide side) {
    moveLink *l = w->state[side];
    if (!wireIsEstablished(w)) {
        if (l && wireIsEnded(w, side)) lost(s, l);
        return;
    }
    if (!l) l = newLink(s, w, side, NULL);
    bool is_import = l->job && l->job->is_import;
    if (is_import && isStill(s)) return;                                 /* as a whole */
    if (is_import && s->moves.map->myself->flags & NODE_REPLICA) return; /* it is closed soon */
    if (l->job && l->job->state == JOB_CONNECTING) slotSourceOn(movesOf(s), l->job, JOB_OPENED);
    str got = wireReceive(w, side);
    if (got.len) l->heard_ms = simNodeClock(s->node);
    strAppendSlice(&l->in, strSlice(&got));
    strFree(&got);
    str in = l->in;
    l->in = STR_EMPTY;
    size_t at = 0;
    bool has_link = true;
    for (record r; has_link && in.len - at >= sizeof(r); at += sizeof(r)) {
        memcpy(&r, in.ptr + at, sizeof(r));
        has_link = takeRecord(s, l, &r);
    }
    if (has_link) strAppend(&l->in, in.ptr + at, in.len - at);
    strFree(&in);
    if (has_link && wireIsEnded(w, side)) lost(s, l);
}

/* ------------------------------------------------------------------ a node */

void slotNodeDeleteNow(simSlots *s, int slot) {
    const clusterMap *m = &s->node->map;
    bool is_open = clusterMapOpenSlot(m, SLOT_IMPORTING, simSlotNumber(slot));
    if (!s->deletes || m->myself->flags & NODE_REPLICA || is_open || s->hidden[slot]) return;
    if (clusterMapIsMine(m, simSlotNumber(slot)) || !slotNodeHasKeys(s, slot)) return;
    slot_node_drops(s, slot);
    change(s, (record){.kind = RECORD_DROP_SLOT, .key = slot});
}

/* Keys of slots that others own are deleted, some at a time. */
static void deleteLost(simSlots *s, bool all) {
    const clusterMap *m = s->moves.map;
    s->deletes = false;
    for (int i = 0; i < SIM_SLOTS && m->myself->flags & NODE_PRIMARY; i++) {
        const clusterNode *owner = clusterMapOwner(m, simSlotNumber(i));
        if (!owner || owner == m->myself || s->hidden[i] || !slotNodeHasKeys(s, i)) continue;
        if (clusterMapOpenSlot(m, SLOT_IMPORTING, simSlotNumber(i))) continue;
        if (all || oneIn(20)) {
            slot_node_drops(s, i);
            change(s, (record){.kind = RECORD_DROP_SLOT, .key = i});
        } else {
            s->deletes = true;
        }
    }
}

/* A side that has heard nothing for too long gives up; but for the source after the grant. */
static void checkSilence(const simSlots *s) {
    for (int i = 0; i < 2; i++) {
        const slotJob *job = slotLogNext(&s->moves.log, NULL, i);
        for (; job; job = slotLogNext(&s->moves.log, job, i)) {
            const moveLink *l = job->work;
            if (!l || job->state == JOB_GRANTED) continue;
            if (s->moves.now_ms - l->heard_ms > SILENCE_MS)
                simFail("node %d still waits for a silent node", s->node->host);
        }
    }
}

/* As clusterSetslotTick(). */
static void tellMarks(simSlots *s) {
    clusterMap *m = &s->node->map;
    setSlotOrder order;
    if (m->myself->flags & NODE_REPLICA || s->node->data.version == VERSION_NONE) return;
    if (isStill(s)) return;
    while (openSlotsNextOrder(m, &order)) {
        for (int i = 0; i < SIM_SLOTS; i++) {
            if (simSlotNumber(i) != order.slot) continue;
            int peer = order.id.ptr ? slotNodeHostOf(order.id.ptr) : s->node->host;
            if (peer >= 0) slotNodeAppendOrder(s, i, order.action, peer);
        }
    }
}

static void step(simNode *n) {
    simSlots *s = slotsOf(n);
    for (wire *w = wireFirst(); w; w = w->next) {
        bool isOurs = w->kind == KIND_MOVE;
        for (int side = 0; side < 2 && isOurs; side++)
            if (w->ends[side] == n) stepLink(s, w, (wireSide)side);
    }
    tellMarks(s);
    if (s->walked) walk(s);
    if (s->deletes && !isStill(s) && !mapSavesIsPending(&n->saves)) deleteLost(s, false);
    slotMovesStep(movesOf(s));
    if (sim_now_ms >= s->next_tick_ms) {
        s->next_tick_ms = sim_now_ms + TICK_MS;
        slotMovesTick(movesOf(s));
        checkSilence(s);
    }
    if (n->map.changed) simNodeFinish(n);
}

static void slotsLost(simNode *n) { slotsOf(n)->deletes = true; }

static void promoted(simNode *n) {
    slotsOf(n)->promotions++;
    slotMovesStep(movesOf(slotsOf(n)));
    deleteLost(slotsOf(n), true);
}

static void advanced(simNode *n, int to) {
    simSlots *s = slotsOf(n);
    advance(s, s->version, to);
    s->version = to;
}

/* Hides the slots of imports that have not ended. */
static void followAll(simSlots *s, const slotLog *log) {
    for (const slotJob *job = slotLogNext(log, NULL, true); job; job = slotLogNext(log, job, true))
        apply(s, &(record){.kind = RECORD_BEGIN, .job = jobNumber(job)});
}

static void copied(simNode *n, const simNode *from) {
    simSlots *s = slotsOf(n);
    slotMovesForget(movesOf(s));
    memset(s->value, 0, sizeof(s->value));
    if (from) {
        memcpy(s->value, slotsOf(from)->value, sizeof(s->value));
        followAll(s, &slotsOf(from)->moves.log);
        str marks = STR_EMPTY;
        openSlotsPrint(&from->map, &marks);
        (void)openSlotsParse(&n->map, strSlice(&marks)); /* it is what was printed */
        strFree(&marks);
    }
    s->version = n->data.version;
}

/* The process ends: its dataset and what the append only file says of jobs remain. */
static void stopping(simNode *n) {
    simSlots *s = slotsOf(n);
    int version = n->data.version;
    s->unfinished_count = 0;
    const slotLog *log = &s->moves.log;
    for (const slotJob *job = slotLogNext(log, NULL, true); job; job = slotLogNext(log, job, true))
        if (s->unfinished_count < (int)COUNT_OF(s->unfinished))
            s->unfinished[s->unfinished_count++] = jobNumber(job);
    /* The map is saved before the end of the job is. */
    const record *last = version > VERSION_EMPTY ? &records[version] : NULL;
    bool is_end = last && last->kind == RECORD_END && last->value;
    bool may_lack = is_end && n->map.myself->flags & NODE_PRIMARY && !s->unfinished_count;
    if (may_lack && n->data.confirmed != version && oneIn(2)) {
        s->unfinished[s->unfinished_count++] = last->job;
        s->version = n->data.version = dataParent(version);
    }
    slotMovesForget(movesOf(s));
    for (wire *w = wireFirst(); w; w = w->next)
        for (int side = 0; side < 2; side++)
            if (w->kind == KIND_MOVE && w->ends[side] == n && w->state[side])
                freeLink(w->state[side]);
}

static void started(simNode *n) {
    simSlots *s = slotsOf(n);
    slotMovesInit(&s->moves, &n->map, &procs, s);
    s->node = n;
    s->walked = NULL;
    s->deletes = false;
    s->pause_end_ms = 0;
    for (int i = 0; i < SIM_SLOTS; i++) s->taken_from[i] = -1; /* what was not saved is lost */
    memset(s->hidden, 0, sizeof(s->hidden));
    memset(s->paused, 0, sizeof(s->paused));
    memcpy(s->id, n->map.myself->id, NODE_ID_LEN);
    if (n->data.version == VERSION_NONE) return;
    for (int i = 0; i < s->unfinished_count; i++)
        apply(s, &(record){.kind = RECORD_BEGIN, .job = s->unfinished[i]});
    slotTargetAfterLoad(movesOf(s));
    deleteLost(s, true);
}

static simNodeParts parts = {.started = started,
                             .stopping = stopping,
                             .step = step,
                             .promoted = promoted,
                             .slotsLost = slotsLost,
                             .advanced = advanced,
                             .copied = copied};

void slotNodesReset(void (*checked)(void)) {
    parts.checked = checked;
    memset(sim_slots, 0, sizeof(sim_slots));
    for (int i = 0; i < (int)COUNT_OF(sim_slots); i++)
        for (int slot = 0; slot < SIM_SLOTS; slot++) sim_slots[i].taken_from[slot] = -1;
    job_count = 0;
    sim_node_parts = &parts;
}

void slotNodesClear(void) {
    for (int i = 0; i < job_count; i++) slotRangesClear(&jobs[i].ranges);
    job_count = 0;
    sim_node_parts = NULL;
}

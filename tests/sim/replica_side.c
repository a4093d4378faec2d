/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated server as a replica: receives and loads datasets, and applies the stream. */
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "resp_words.h"
#include "server_priv.h"
#include "transfer.h"

/* -------------------------------------------------------------- what the state machine asks for */

static linkSettings envSettings(void *arg) {
    const simServer *s = arg;
    return (linkSettings){.host = SLICE("127.0.0.1"),
                          .port = s->follows ? s->follows->port : 0,
                          .announce_port = s->port,
                          .version = "9.1.2",
                          .dual_channel = s->dual_channel,
                          .keeps_data = sim_refuses_empty && s->followed.is_set &&
                                        s->dataset != DATASET_NONE && s->dataset != DATASET_EMPTY,
                          .kept_birth = sliceOf(s->followed.birth),
                          .timeout_ms = 6000,
                          .fack = -1};
}

static void envConnect(void *arg) {
    simServer *s = arg;
    s->wire = wireOpen(s->host, s, s->follows->host, s->follows);
    if (!s->wire) {
        linkFailed(&s->link, "Connection refused", sim_now_ms);
        return;
    }
    linkOpened(&s->link, sim_now_ms);
}

static void envSend(void *arg, slice bytes) {
    const simServer *s = arg;
    if (s->wire) wireSend(s->wire, WIRE_CONNECTOR, bytes);
}

static void closeSecond(simServer *s) {
    if (s->second) wireClose(s->second, WIRE_CONNECTOR);
    s->second = NULL;
}

static void envClose(void *arg) {
    simServer *s = arg;
    if (s->wire) wireClose(s->wire, WIRE_CONNECTOR);
    closeSecond(s);
    s->wire = NULL;
    s->transfers = s->streams = s->collects = s->in_multi = false;
    s->loaded_ms = 0;
    strFree(&s->received);
    strFree(&s->collected);
    strFree(&s->pending);
}

static void envConnectSecond(void *arg) {
    simServer *s = arg;
    s->second = wireOpen(s->host, s, s->follows->host, s->follows);
    if (!s->second) {
        linkSecondLost(&s->link, "Connection refused", sim_now_ms);
        return;
    }
    linkSecondOpened(&s->link, sim_now_ms);
}

static void envSendSecond(void *arg, slice bytes) {
    const simServer *s = arg;
    wireSend(s->second, WIRE_CONNECTOR, bytes);
}

static void envCollect(void *arg, slice received) {
    simServer *s = arg;
    s->collects = true;
    strAppendSlice(&s->collected, received);
}

static void envTransfer(void *arg, const linkTransfer *what, slice received) {
    simServer *s = arg;
    s->transfers = true;
    s->had_data = s->dataset != DATASET_NONE && s->dataset != DATASET_EMPTY;
    s->coming = *what;
    s->flushes_first = randomUniform(2);
    strFree(&s->received);
    strAppendSlice(&s->received, received);
}

/* As the server does: replica.c, followed.c. */
static void noteFollowed(simServer *s, bool from_start) {
    const replBirth *birth = s->link.knows_birth ? &s->link.primary_birth : NULL;
    if (from_start) {
        birthAdopt(&s->state.birth, birth, s->had_data, s->dataset != DATASET_EMPTY);
    } else if (birth) {
        s->state.birth = *birth;
    }
    s->followed = (simFollowed){.is_set = true, .process = s->follows->process};
    if (birth) memcpy(s->followed.birth, birth->id, sizeof(s->followed.birth));
    s->followed_on_disk = s->followed;
}

static void envStream(void *arg, slice received, bool from_start) {
    simServer *s = arg;
    s->streams = true;
    noteFollowed(s, from_start);
    primaryOpenBacklog(&s->primary);
    strFree(&s->received);
    strAppendSlice(&s->received, s->collects ? strSlice(&s->collected) : received);
    if (s->collects || s->second) counts.dual_syncs++;
    closeSecond(s);
    s->collects = false;
    strFree(&s->collected);
    if (from_start) {
        counts.full_syncs++;
    } else {
        counts.partial_syncs++;
    }
}

static void envHistoryChanged(void *arg, linkHistoryChange change) {
    simServer *s = arg;
    if (change == LINK_HISTORY_RENAMED) {
        primaryDropAll(&s->primary);
        simServerMoved(s);
        return;
    }
    primaryRestartStream(&s->primary);
    primaryOpenBacklog(&s->primary);
}

static void envFailoverEnded(void *arg, bool accepted) {
    simServer *s = arg;
    counts.failovers_done += accepted;
    failoverAnswered(&s->failover, accepted);
}

const linkEnv simLinkEnv = {.settings = envSettings,
                            .connect = envConnect,
                            .send = envSend,
                            .close = envClose,
                            .transfer = envTransfer,
                            .stream = envStream,
                            .connect_second = envConnectSecond,
                            .send_second = envSendSecond,
                            .collect = envCollect,
                            .history_changed = envHistoryChanged,
                            .failover_ended = envFailoverEnded};

/* ------------------------------------------------------------------ the transfer */

/* The number of bytes of the whole transfer with its mark, 0 while it is incomplete. */
static size_t transferEnd(const simServer *s) {
    const linkTransfer *t = &s->coming;
    if (t->bytes >= 0) return s->received.len >= (size_t)t->bytes ? (size_t)t->bytes : 0;
    for (size_t end = REPL_ID_LEN; end <= s->received.len; end++)
        if (!memcmp(s->received.ptr + end - REPL_ID_LEN, t->mark, REPL_ID_LEN)) return end;
    return 0;
}

static void loseDataset(simServer *s) {
    s->epoch++;
    s->dataset = DATASET_NONE;
    linkDatasetGone(&s->link);
    primaryDropAll(&s->primary);
}

/* Nothing has ordered to replace the data of a former process of the primary by a dataset that has
 * begun without them, or that process has discarded them by order. */
static void checkKept(const simServer *s, const simTransfer *what) {
    if (!sim_refuses_empty || !s->followed.is_set || !s->had_data) return;
    if (!what->is_fresh || what->origin <= s->origin) return;
    bool obeys = !s->link.keeps_data && s->follows->discarded >= s->followed.process;
    counts.obeyed += obeys;
    if (!obeys && s->follows->process != s->followed.process)
        simFail("%s has got the data of %s, which was started empty", s->name, s->follows->name);
}

static void transferStep(simServer *s) {
    size_t end = transferEnd(s);
    if (!end) return;
    if (!s->loaded_ms) {
        s->loaded_ms = sim_now_ms + (int64_t)randomUniform(300);
        if (s->flushes_first) loseDataset(s);
    }
    if (sim_now_ms < s->loaded_ms) return;
    s->loaded_ms = 0;
    s->transfers = false;
    size_t payload = s->coming.bytes >= 0 ? end : end - REPL_ID_LEN;
    simTransfer what;
    bool good = transferDecode(sliceMake(s->received.ptr, payload), &what);
    int dataset = what.dataset, stream_db = what.stream_db;
    str rest = strNew(sliceMake(s->received.ptr + end, s->received.len - end));
    strFree(&s->received);
    if (good) {
        checkKept(s, &what);
        s->epoch++;
        s->dataset = dataset;
        s->origin = what.origin;
        s->is_fresh = what.is_fresh && !s->had_data;
        s->stream_db = stream_db;
    } else {
        counts.failed_transfers++;
    }
    if (good && s->coming.db >= 0 && stream_db >= 0 && s->coming.db != stream_db)
        simFail("%s: the stream is in database %d, not %d", s->name, stream_db, s->coming.db);
    if (s->collects) closeSecond(s); /* else the primary keeps the stream for it */
    linkTransferEnded(&s->link, good ? LINK_LOADED : LINK_FAILED, strSlice(&rest), sim_now_ms);
    strFree(&rest);
    if (good) simServerMoved(s);
}

/* ------------------------------------------------------------------ the stream */

static void applied(simServer *s) {
    slice span = strSlice(&s->pending);
    primaryAppend(&s->primary, &span, 1);
    strFree(&s->pending);
    simServerMoved(s);
}

static void apply(simServer *s, const words *r) {
    slice name = r->argv[0];
    int64_t db = 0;
    int64_t before = s->state.history.offset;
    int *dataset = s->in_multi ? &s->multi_dataset : &s->dataset;
    int *selected = s->in_multi ? &s->multi_db : &s->stream_db;
    if (sliceIs(name, "multi")) {
        s->in_multi = true;
        s->multi_dataset = s->dataset;
        s->multi_db = s->stream_db;
    } else if (sliceIs(name, "exec")) {
        s->in_multi = false;
        s->dataset = s->multi_dataset;
        s->stream_db = s->multi_db;
    } else if (sliceIs(name, "select")) {
        if (!numberParseInt(r->argv[1], &db)) simFail("SELECT without a number");
        *selected = (int)db;
    } else if (sliceIs(name, "append")) {
        if (*selected < 0) simFail("%s: a write before SELECT", s->name);
        *dataset = oracleApply(*dataset, *selected, r->argv[2]);
    } else if (sliceIs(name, "replconf")) {
        linkNoteGetack(&s->link, r->argv[2]);
        linkAcknowledge(&s->link, before, sim_now_ms);
    } else if (!sliceIs(name, "ping")) {
        simFail("%s: %.*s in the stream", s->name, (int)name.len, name.ptr);
    }
}

static void streamStep(simServer *s) {
    words r;
    while (s->received.len && wordsRead(&s->received, &r)) {
        strAppend(&s->pending, s->received.ptr, r.len);
        apply(s, &r);
        if (!s->in_multi) applied(s);
        memmove(s->received.ptr, s->received.ptr + r.len, s->received.len - r.len);
        strCut(&s->received, s->received.len - r.len);
    }
}

/* ------------------------------------------------------------------ the connections */

/* The second connection of a dual-channel synchronisation. */
static void secondStep(simServer *s) {
    wire *w = s->second;
    if (!w || !s->link.second) return;
    str got = wireReceive(w, WIRE_CONNECTOR);
    if (s->transfers) {
        if (got.len) linkHeard(&s->link, sim_now_ms);
        strAppendSlice(&s->received, strSlice(&got));
    } else if (got.len) {
        linkSecondReceived(&s->link, strSlice(&got), sim_now_ms);
    }
    strFree(&got);
    if (s->second != w || !wireIsEnded(w, WIRE_CONNECTOR)) return;
    if (!s->transfers) {
        linkSecondLost(&s->link, NULL, sim_now_ms);
    } else if (!transferEnd(s)) {
        s->transfers = false;
        linkTransferEnded(&s->link, LINK_CUT, SLICE(""), sim_now_ms);
    }
}

static void firstStep(simServer *s) {
    wire *w = s->wire;
    if (s->collects && s->collected.len >= s->collected_max) return;
    str got = wireReceive(w, WIRE_CONNECTOR);
    bool asks = s->link.main && s->link.main != LINK_CONNECTED;
    if (got.len && !asks && (s->collects || s->transfers || s->streams)) {
        linkHeard(&s->link, sim_now_ms);
        strAppendSlice(s->collects ? &s->collected : &s->received, strSlice(&got));
    } else if (got.len) {
        linkReceived(&s->link, strSlice(&got), sim_now_ms);
    }
    strFree(&got);
}

void simReplicaStep(simServer *s) {
    wire *w = s->wire;
    if (!w) return;
    firstStep(s);
    secondStep(s);
    if (s->transfers) transferStep(s);
    if (s->streams) streamStep(s);
    if (s->wire == w && wireIsEnded(w, WIRE_CONNECTOR)) linkLost(&s->link, NULL, sim_now_ms);
}

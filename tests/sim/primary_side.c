/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated server as a primary: commands of replicas, and the child that saves for them. A
 * dataset is transferred as "<number> <number of bytes> <filling> <checksum>". */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "resp_words.h"
#include "server_priv.h"
#include "transfer.h"

static wire *wireOf(const replPeer *peer) { return peer->owner; }
static simServer *serverOf(const replPrimary *p) { return p->owner; }

/* -------------------------------------------------------------- what the state machine asks for */

static void envSend(replPeer *to, slice bytes) { wireSend(wireOf(to), WIRE_ACCEPTOR, bytes); }

static void envSendShared(replPeer *to, blob *bytes, size_t at, size_t len) {
    wireSend(wireOf(to), WIRE_ACCEPTOR, sliceMake(bytes->bytes + at, len));
}

static size_t envPending(const replPeer *to) { return wireOf(to)->sent[WIRE_CONNECTOR].len; }

static void envClose(replPeer *peer) { peerSideOf(wireOf(peer))->closing = true; }

static void envCloseWhenSent(replPeer *peer) { peerSideOf(wireOf(peer))->close_when_sent = true; }

static void envName(const replPeer *peer, str *out) {
    const simServer *replica = wireOf(peer)->ends[WIRE_CONNECTOR];
    strAppendFormat(out, "127.0.0.1:%d", replica ? replica->port : 0);
}

static uint64_t envId(const replPeer *peer) { return wireOf(peer)->id; }

static status envStartSave(replPrimary *p, const primarySave *save, reason *why) {
    simServer *s = serverOf(p);
    simSave *to = &s->save;
    if (sim_faults && randomUniform(sim_faults * 4) == 0)
        return reasonSet(why, ERR_IO, "fork failed");
    strFree(&to->stream);
    to->running = true;
    to->fails = sim_faults && randomUniform(sim_faults) == 0;
    to->ends_ms = sim_now_ms + 10 + (int64_t)randomUniform(2000);
    const simTransfer what = {.dataset = s->dataset,
                              .stream_db = simServerIsPrimary(s) ? -1 : s->stream_db,
                              .origin = s->origin,
                              .is_fresh = s->is_fresh};
    str payload = transferEncode(&what);
    if (save->to_file) {
        strFree(&to->file);
        to->file = payload;
        return OK;
    }
    char mark[REPL_ID_LEN];
    randomHex(mark, sizeof(mark));
    strAppendFormat(&to->stream, "$EOF:%.*s\r\n", REPL_ID_LEN, mark);
    strAppendSlice(&to->stream, strSlice(&payload));
    strAppend(&to->stream, mark, sizeof(mark));
    strFree(&payload);
    return OK;
}

static void envStopSave(replPrimary *p) {
    serverOf(p)->save.fails = true;
    serverOf(p)->save.ends_ms = sim_now_ms;
}

static bool envIsBusy(replPrimary *p) { return serverOf(p)->save.running; }

static status envSendFile(replPeer *to, reason *why) {
    wire *w = wireOf(to);
    simServer *s = w->ends[WIRE_ACCEPTOR];
    if (sim_faults && randomUniform(sim_faults * 4) == 0)
        return reasonSet(why, ERR_IO, "cannot open");
    str header = STR_EMPTY;
    strAppendFormat(&header, "$%zu\r\n", s->save.file.len);
    wireSend(w, WIRE_ACCEPTOR, strSlice(&header));
    wireSend(w, WIRE_ACCEPTOR, strSlice(&s->save.file));
    strFree(&header);
    return OK;
}

static void envChanged(replPrimary *p) { (void)p; }

/* Until now writes did not count; the id may be one that others have used at this offset. */
static void envBacklogChanged(replPrimary *p) {
    simServer *s = serverOf(p);
    if (s->state.has_backlog && simServerIsPrimary(s)) simServerMoved(s);
}

static int envStreamDb(const replPrimary *p) { return serverOf(p)->stream_db; }

static bool envIsSecure(const replPeer *peer) {
    (void)peer;
    return false;
}

const primaryEnv simPrimaryEnv = {.send = envSend,
                                  .send_shared = envSendShared,
                                  .pending = envPending,
                                  .close = envClose,
                                  .close_when_sent = envCloseWhenSent,
                                  .name = envName,
                                  .id = envId,
                                  .start_save = envStartSave,
                                  .stop_save = envStopSave,
                                  .is_busy = envIsBusy,
                                  .send_file = envSendFile,
                                  .changed = envChanged,
                                  .backlog_changed = envBacklogChanged,
                                  .stream_db = envStreamDb,
                                  .is_secure = envIsSecure};

/* ------------------------------------------------------------------ commands of a replica */

/* The acknowledgement is one of a dataset that the replica has. */
static void checkAck(const wire *w, const simServer *primary, int64_t offset) {
    const simServer *replica = w->ends[WIRE_CONNECTOR];
    if (!replica || replica->wire != w || !replica->streams) return; /* sent before it was lost */
    if (offset > replica->state.history.offset)
        simFail("%s has acknowledged %lld to %s, but applied %lld", replica->name,
                (long long)offset, primary->name, (long long)replica->state.history.offset);
}

static void replconf(simServer *s, wire *w, const words *r) {
    int64_t number = 0;
    if (r->argc > 2) (void)numberParseInt(r->argv[2], &number);
    if (sliceIs(r->argv[1], "ack")) {
        checkAck(w, s, number);
        primaryAck(&s->primary, peerSideOf(w)->peer, number, -1, sim_now_ms);
        return;
    }
    if (sliceIs(r->argv[1], "set-rdb-client-id")) {
        if (!primaryHasDatasetChannel(&s->primary, (uint64_t)number)) {
            wireSend(w, WIRE_ACCEPTOR, SLICE("-ERR Unrecognized RDB client id\r\n"));
            return;
        }
        peerSideOf(w)->peer->dataset_channel = (uint64_t)number;
    }
    bool asks_birth = false;
    bool may_be_dual = s->primary.settings.dual_channel && s->primary.settings.diskless;
    for (int i = 1; i + 1 < r->argc; i += 2) {
        if (sliceIs(r->argv[i + 1], "eof"))
            peerSideOf(w)->peer->capabilities |= PEER_CAN_READ_TO_MARK;
        if (sliceIs(r->argv[i + 1], "psync2"))
            peerSideOf(w)->peer->capabilities |= PEER_CAN_CONTINUE;
        if (sliceIs(r->argv[i + 1], "dual-channel") && may_be_dual)
            peerSideOf(w)->peer->capabilities |= PEER_CAN_DUAL_CHANNEL;
        if (sliceIs(r->argv[i + 1], "birth")) asks_birth = true;
        if (r->argv[i + 1].len > 6 && !memcmp(r->argv[i + 1].ptr, "keeps:", 6)) {
            str *keeps = &peerSideOf(w)->peer->keeps;
            strFree(keeps);
            *keeps = strNew(sliceMake(r->argv[i + 1].ptr + 6, r->argv[i + 1].len - 6));
        }
        if (sliceIs(r->argv[i], "version")) peerSideOf(w)->peer->server_version = 0x090102;
        if (sliceIs(r->argv[i], "rdb-only")) peerSideOf(w)->peer->only_dataset = true;
        if (sliceIs(r->argv[i], "rdb-channel")) peerSideOf(w)->peer->is_dataset_channel = true;
    }
    char birth[BIRTH_TEXT_MAX];
    wireSend(w, WIRE_ACCEPTOR, SLICE("+"));
    wireSend(w, WIRE_ACCEPTOR,
             asks_birth ? sliceMake(birth, birthPrint(&s->state.birth, s->state.process, birth))
                        : SLICE("OK"));
    wireSend(w, WIRE_ACCEPTOR, SLICE("\r\n"));
}

/* PSYNC .. FAILOVER: false if it was refused. */
static bool takeOver(simServer *s, wire *w, slice id) {
    if (simServerIsPrimary(s)) {
        wireSend(w, WIRE_ACCEPTOR, SLICE("-ERR PSYNC FAILOVER can't be sent to a master.\r\n"));
        return false;
    }
    if (!sliceIs(id, s->state.history.id)) {
        wireSend(w, WIRE_ACCEPTOR, SLICE("-ERR PSYNC FAILOVER replid must match my replid.\r\n"));
        return false;
    }
    simServerFollow(s, NULL);
    return true;
}

static void psync(simServer *s, wire *w, const words *r) {
    int64_t from = 0;
    if (r->argc > 3 && !takeOver(s, w, r->argv[1])) return;
    if (s->primary.is_failing_over) {
        wireSend(w, WIRE_ACCEPTOR, SLICE("-NOMASTERLINK Can't SYNC while failing over\r\n"));
        return;
    }
    if (s->primary.is_replica && !s->primary.link_is_up) {
        wireSend(w, WIRE_ACCEPTOR,
                 SLICE("-NOMASTERLINK Can't SYNC while not connected with my master\r\n"));
        return;
    }
    if (!numberParseInt(r->argv[2], &from)) simFail("PSYNC without a number");
    replPeer *peer = peerSideOf(w)->peer;
    if (birthLosesKept(&s->state.birth, &s->state.history, strSlice(&peer->keeps), r->argv[1],
                       from)) {
        counts.refusals++;
        wireSend(w, WIRE_ACCEPTOR, SLICE("-EMPTYPRIMARY lost\r\n"));
        return;
    }
    primaryPsync(&s->primary, peer, r->argv[1], from, sim_now_ms);
}

static void execute(simServer *s, wire *w, const words *r) {
    if (sliceIs(r->argv[0], "ping")) {
        wireSend(w, WIRE_ACCEPTOR, SLICE("+PONG\r\n"));
    } else if (sliceIs(r->argv[0], "replconf")) {
        replconf(s, w, r);
    } else if (sliceIs(r->argv[0], "psync")) {
        psync(s, w, r);
    } else if (sliceIs(r->argv[0], "sync")) {
        primarySync(&s->primary, peerSideOf(w)->peer, sim_now_ms);
    } else {
        simFail("%s receives the command %.*s", s->name, (int)r->argv[0].len, r->argv[0].ptr);
    }
}

void simForgetPeer(simServer *s, wire *w) {
    peerSide *side = peerSideOf(w);
    if (!side) return;
    primaryForget(&s->primary, side->peer, sim_now_ms);
    peerClear(side->peer);
    memFree(side->peer);
    strFree(&side->input);
    memFree(side);
    w->state[WIRE_ACCEPTOR] = NULL;
}

static void serve(simServer *s, wire *w) {
    if (!wireIsEstablished(w)) return;
    peerSide *side = peerSideOf(w);
    if (!side) {
        w->state[WIRE_ACCEPTOR] = side = memNew(peerSide);
        side->peer = memNew(replPeer);
        peerInit(side->peer, w);
    }
    str got = wireReceive(w, WIRE_ACCEPTOR);
    strAppendSlice(&side->input, strSlice(&got));
    strFree(&got);
    words r;
    while (side->input.len && !side->closing && wordsRead(&side->input, &r)) {
        execute(s, w, &r);
        memmove(side->input.ptr, side->input.ptr + r.len, side->input.len - r.len);
        strCut(&side->input, side->input.len - r.len);
    }
    if (side->peer->state == PEER_SENDING_FILE && !envPending(side->peer))
        primaryFileSent(&s->primary, side->peer, sim_now_ms);
    bool ended = side->closing || wireIsEnded(w, WIRE_ACCEPTOR) ||
                 (side->close_when_sent && !envPending(side->peer));
    if (!ended) return;
    simForgetPeer(s, w);
    wireClose(w, WIRE_ACCEPTOR);
}

/* ------------------------------------------------------------------ the child */

/* Hands the next bytes of the pipe to all replicas that wait for them. */
static void pipeStep(simServer *s) {
    str *stream = &s->save.stream;
    if (!stream->len) return;
    size_t n = 1 + randomUniform(stream->len);
    for (wire *w = wireFirst(); w; w = w->next) {
        const peerSide *side = peerSideOf(w);
        if (w->ends[WIRE_ACCEPTOR] == s && side && side->peer->state == PEER_WAITING_END)
            wireSend(w, WIRE_ACCEPTOR, sliceMake(stream->ptr, n));
    }
    memmove(stream->ptr, stream->ptr + n, stream->len - n);
    strCut(stream, stream->len - n);
}

static void childStep(simServer *s) {
    simSave *save = &s->save;
    if (!save->running) return;
    bool to_file = s->primary.save.to_file;
    if (!to_file) pipeStep(s);
    bool ended = sim_now_ms >= save->ends_ms && (to_file || save->fails || !save->stream.len);
    if (!ended) return;
    save->running = false;
    primarySaveEnded(&s->primary, !save->fails, sim_now_ms);
}

void simPrimaryStep(simServer *s) {
    for (wire *w = wireFirst(); w; w = w->next)
        if (w->ends[WIRE_ACCEPTOR] == s) serve(s, w);
    childStep(s);
    primaryStartWaiting(&s->primary, sim_now_ms);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The link of a replica (link.h).
 *
 *   state         event                        next
 *   CONNECT       time to retry                CONNECTING
 *   CONNECTING    open                         PING
 *   PING          +..., -NOAUTH, -NOPERM       AUTH, or the next step that is wanted
 *   AUTH          +OK                          PORT;  an error: CONNECT
 *   PORT..NODE_ID any reply                    the next step that is wanted, at last PSYNC
 *   PSYNC         +CONTINUE                    CONNECTED
 *                 +FULLRESYNC                  ANNOUNCED
 *                 -NOMASTERLINK, -LOADING      CONNECT
 *                 other                        ANNOUNCED, after SYNC
 *                 +DUALCHANNELSYNC             SECOND, ...: see link_dual.c; then ANNOUNCED
 *   ANNOUNCED     $<size>, $EOF:<mark>         TRANSFER
 *   TRANSFER      loaded                       CONNECTED
 *   any           closed, error, timeout       CONNECT
 *
 * Invariant: a connection exists from CONNECTING on; env->close() was called before CONNECT and
 * NONE. */
#include "psync/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "psync/link_priv.h"
#include "resp/resp.h"

enum {
    RETRY_MS = 1000,
    BACK_OFF_MS = 8000, /* longest delay after failed transfers */
    FOREIGN_MS = 60000, /* delay after LINK_FOREIGN */
    ACK_MS = 1000,
};

const char *linkStateName(linkState state) {
    switch (state) {
    case LINK_NONE: return "none";
    case LINK_CONNECT: return "connect";
    case LINK_CONNECTING: return "connecting";
    case LINK_PING:
    case LINK_AUTH:
    case LINK_PORT:
    case LINK_ADDRESS:
    case LINK_CAPABILITIES:
    case LINK_VERSION:
    case LINK_NODE_ID:
    case LINK_PSYNC:
    case LINK_SECOND:
    case LINK_CLIENT_ID:
    case LINK_SECOND_PSYNC: return "handshake";
    case LINK_ANNOUNCED:
    case LINK_TRANSFER: return "sync";
    case LINK_CONNECTED: return "connected";
    }
    return "unknown";
}

/* ------------------------------------------------------------------ transitions */

void linkEnter(replLink *link, linkState state, int64_t now_ms) {
    hotCheck(state <= LINK_CONNECTED);
    link->state = state;
    link->since_ms = link->heard_ms = now_ms;
}

static void disconnect(replLink *link) {
    /* The primary may have taken over: then it refuses the next request, because it is no replica
     * any more. */
    if (link->failover && link->state == LINK_PSYNC) link->unanswered = true;
    strFree(&link->received);
    strFree(&link->second_received);
    link->second = SECOND_NONE;
    link->main = LINK_NONE;
    if (link->state > LINK_CONNECT) link->env->close(link->arg);
}

static void connectNow(replLink *link, int64_t now_ms) {
    hotCheck(link->state == LINK_CONNECT);
    linkSettings s = link->env->settings(link->arg);
    if (!link->reconnects)
        logNotice("Connecting to PRIMARY %.*s:%d", (int)s.host.len, s.host.ptr, s.port);
    link->reconnects = false;
    linkEnter(link, LINK_CONNECTING, now_ms);
    logNotice("PRIMARY <-> REPLICA sync started");
    link->env->connect(link->arg);
}

/* Connects again after `delay_ms`. */
static void retryIn(replLink *link, int64_t delay_ms, int64_t now_ms) {
    hotCheck(delay_ms >= 0);
    /* The data are as old as the last byte heard, also if this server itself stood still. */
    if (link->state == LINK_CONNECTED) link->down_ms = link->heard_ms;
    disconnect(link);
    linkEnter(link, LINK_CONNECT, now_ms);
    link->retry_ms = now_ms + delay_ms;
    hotCheck(link->state == LINK_CONNECT);
}

static void retryAtOnce(replLink *link, bool failed, int64_t now_ms) {
    linkSettings s = link->env->settings(link->arg);
    retryIn(link, 0, now_ms);
    if (link->halted) return;
    logNotice("Reconnecting to PRIMARY %.*s:%d%s", (int)s.host.len, s.host.ptr, s.port,
              failed ? " after failure" : "");
    link->reconnects = true;
}

/* The first failure is followed by another try at once, further ones by longer and longer pauses; a
 * lost connection by another try at once, or after a second. */
void linkRetryTransfer(replLink *link, linkResult result, int64_t now_ms) {
    hotCheck(link->state > LINK_CONNECT);
    int64_t delay_ms = 0;
    if (result == LINK_FOREIGN) {
        retryIn(link, FOREIGN_MS, now_ms);
        logNotice("Next try of a synchronization in %d seconds", FOREIGN_MS / 1000);
        return;
    }
    if (result == LINK_CUT) {
        if (link->cuts++ == 0) {
            retryAtOnce(link, true, now_ms);
        } else {
            retryIn(link, RETRY_MS, now_ms);
        }
        return;
    }
    if (link->failures > 0) delay_ms = (int64_t)RETRY_MS << (link->failures - 1);
    if (delay_ms > BACK_OFF_MS) delay_ms = BACK_OFF_MS;
    if (link->failures < 16) link->failures++;
    if (delay_ms == 0) {
        retryAtOnce(link, true, now_ms);
        return;
    }
    retryIn(link, delay_ms, now_ms);
    if (link->halted) return;
    logNotice("The synchronization has failed %d times in a row: next try in %lld seconds",
              link->failures, (long long)delay_ms / 1000);
}

/* Nothing here is replaced by a dataset that has begun later, unless a user decides so. */
static void refusePrimary(replLink *link, int64_t now_ms) {
    enum { DOUBLINGS_MAX = 3, LOG_MS = 60 * 1000 };
    hotCheck(link->state > LINK_CONNECT);
    hotCheck(link->refusals <= DOUBLINGS_MAX);
    int64_t delay_ms = (int64_t)RETRY_MS << link->refusals;
    if (link->refusals < DOUBLINGS_MAX) link->refusals++;
    link->refuses = true;
    if (link->knows_birth)
        memcpy(link->refused_birth, link->primary_birth.id, sizeof(link->refused_birth));
    if (logIsDue(&link->refusal_told_ms, now_ms, LOG_MS))
        logWarning("The primary was started without the data that are here, or has lost all keys: "
                   "it is not followed, so that the keys here are kept "
                   "(replica-refuse-empty-primary). Restore its data, promote this replica, or "
                   "order it to follow the empty primary: REPLICAOF, CLUSTER REPLICATE, or CONFIG "
                   "SET replica-refuse-empty-primary no");
    retryIn(link, delay_ms, now_ms);
}

static void endRefusal(replLink *link) {
    link->refuses = false;
    link->refusals = 0;
    link->refused_birth[0] = 0;
    link->refusal_told_ms = 0;
}

static void endFailover(replLink *link, bool accepted) {
    if (!link->failover) return;
    link->failover = link->unanswered = false;
    link->env->failover_ended(link->arg, accepted);
}

void linkFollowStream(replLink *link, slice received, bool from_start, int64_t now_ms) {
    hotCheck(link->state != LINK_NONE);
    linkEnter(link, LINK_CONNECTED, now_ms);
    link->failures = link->cuts = 0;
    link->is_discarded = false;
    endRefusal(link);
    link->can_continue = !link->sync_only;
    link->acked_ms = now_ms;
    str rest = strNew(received); /* `received` may be a part of link->received */
    strFree(&link->received);
    link->env->stream(link->arg, strSlice(&rest), from_start);
    strFree(&rest);
    hotCheck(link->state == LINK_CONNECTED || link->state == LINK_CONNECT);
}

/* ------------------------------------------------------------------ handshake */

void linkSendWords(replLink *link, int count, const slice *words) {
    hotCheck(count > 0);
    size_t len;
    char *bytes = respRequest(count, words, &len);
    link->env->send(link->arg, sliceMake(bytes, len));
    memFree(bytes);
}

static void sendOption(replLink *link, slice name, slice value) {
    slice words[] = {SLICE("REPLCONF"), name, value};
    linkSendWords(link, COUNT_OF(words), words);
}

static void sendNumber(replLink *link, slice name, int64_t value) {
    char digits[NUMBER_TEXT_MAX];
    sendOption(link, name, sliceMake(digits, numberPrintInt(digits, value)));
}

int linkAddCodecs(const linkSettings *s, slice *words) {
    int count = 0;
    if (s->lz4) {
        words[count++] = SLICE("capa");
        words[count++] = SLICE("lz4");
    }
    if (s->zstd) {
        words[count++] = SLICE("capa");
        words[count++] = SLICE("zstd");
    }
    return count;
}

static void sendCapabilities(replLink *link, const linkSettings *s) {
    hotCheck(link->state == LINK_CAPABILITIES || link->state >= LINK_PING);
    slice words[25] = {SLICE("REPLCONF"),    SLICE("capa"), SLICE("eof"),       SLICE("capa"),
                       SLICE("psync2"),      SLICE("capa"), SLICE("turn-acks"), SLICE("capa"),
                       SLICE("member-ttls"), SLICE("capa"), SLICE("birth"),     SLICE("capa"),
                       SLICE("path-hashes")};
    int count = 13;
    char keeps[16 + BIRTH_KEPT_MAX];
    if (s->skips_checksum) {
        words[count++] = SLICE("capa");
        words[count++] = SLICE("skip-rdb-checksum");
    }
    if (s->dual_channel) {
        words[count++] = SLICE("capa");
        words[count++] = SLICE("dual-channel");
    }
    count += linkAddCodecs(s, words + count);
    link->told_lz4 = s->lz4;
    link->told_zstd = s->zstd;
    if (s->has_confirmed) {
        words[count++] = SLICE("capa");
        words[count++] = SLICE("confirmed-data");
    }
    link->knows_birth = false;
    link->primary_process[0] = 0;
    link->keeps_data = s->keeps_data && !(link->is_discarded && !s->keeps_discarded);
    if (link->keeps_data) {
        slice birth = s->kept_birth.len ? s->kept_birth : SLICE("?");
        int len = snprintf(keeps, sizeof(keeps), "keeps:%.*s%s%s", (int)birth.len, birth.ptr,
                           link->refused_birth[0] ? "," : "", link->refused_birth);
        words[count++] = SLICE("capa");
        words[count++] = sliceMake(keeps, (size_t)len);
    }
    linkSendWords(link, count, words);
}

static void sendPassword(replLink *link, const linkSettings *s) {
    slice words[3] = {SLICE("AUTH")};
    int count = 1;
    if (s->user.len) words[count++] = s->user;
    words[count++] = s->password;
    linkSendWords(link, count, words);
}

/* Sends what the step sends; false if it is not wanted. */
static bool sendStep(replLink *link, linkState step, const linkSettings *s) {
    hotCheck(step >= LINK_AUTH);
    hotCheck(step < LINK_PSYNC);
    switch (step) {
    case LINK_AUTH:
        if (!s->password.len) return false;
        sendPassword(link, s);
        return true;
    case LINK_PORT: sendNumber(link, SLICE("listening-port"), s->announce_port); return true;
    case LINK_ADDRESS:
        if (!s->announce_address.len) return false;
        sendOption(link, SLICE("ip-address"), s->announce_address);
        return true;
    case LINK_CAPABILITIES: sendCapabilities(link, s); return true;
    case LINK_VERSION: sendOption(link, SLICE("version"), sliceOf(s->version)); return true;
    case LINK_NODE_ID:
        if (!s->node_id.len) return false;
        sendOption(link, SLICE("SET-CLUSTER-NODE-ID"), s->node_id);
        return true;
    default: return false;
    }
}

static bool stepIsWanted(linkState step, const linkSettings *s) {
    if (step == LINK_AUTH) return s->password.len > 0;
    if (step == LINK_ADDRESS) return s->announce_address.len > 0;
    if (step == LINK_NODE_ID) return s->node_id.len > 0;
    return true;
}

static void sendPsync(replLink *link, int64_t now_ms) {
    hotCheck(link->state != LINK_NONE);
    char digits[NUMBER_TEXT_MAX];
    slice words[5] = {SLICE("PSYNC"), SLICE("?"), SLICE("-1"), SLICE("FAILOVER"), SLICE("FORCE")};
    if (link->can_continue) {
        words[1] = sliceMake(historyKnownId(link->history), REPL_ID_LEN);
        words[2] = sliceMake(digits, numberPrintInt(digits, link->history->offset + 1));
        logNotice("Trying a partial resynchronization (request %s:%.*s).", words[1].ptr,
                  (int)words[2].len, words[2].ptr);
    } else {
        logNotice("Partial resynchronization not possible (no cached primary)");
    }
    /* FORCE, the last word, is sent only to servers of this project: only these have told their
     * birth. */
    int count = !link->failover ? 3 : link->forces && link->knows_birth ? 5 : 4;
    linkSendWords(link, count, words);
    linkEnter(link, LINK_PSYNC, now_ms);
}

/* Waits for the reply to the next step that was sent, or asks for the data after the last one. */
static void nextStep(replLink *link, int64_t now_ms) {
    hotCheck(link->state >= LINK_PING);
    hotCheck(link->state < LINK_PSYNC);
    linkSettings s = link->env->settings(link->arg);
    linkState next = (linkState)(link->state + 1);
    while (next < LINK_PSYNC && !stepIsWanted(next, &s)) next = (linkState)(next + 1);
    if (next == LINK_PSYNC) {
        sendPsync(link, now_ms);
    } else {
        linkEnter(link, next, now_ms);
    }
}

bool linkStartsWith(slice line, const char *text) {
    size_t len = strlen(text);
    return line.len >= len && !memcmp(line.ptr, text, len);
}

static void onPingReply(replLink *link, slice line, int64_t now_ms) {
    hotCheck(link->state == LINK_PING);
    bool known = linkStartsWith(line, "+") || linkStartsWith(line, "-NOAUTH") ||
                 linkStartsWith(line, "-NOPERM") ||
                 linkStartsWith(line, "-ERR operation not permitted");
    if (!known) {
        logWarning("Error reply to PING from primary: '%.*s'", (int)line.len, line.ptr);
        retryIn(link, RETRY_MS, now_ms);
        return;
    }
    logNotice("Primary replied to PING, replication can continue...");
    linkSettings s = link->env->settings(link->arg);
    for (linkState step = LINK_AUTH; step < LINK_PSYNC; step = (linkState)(step + 1))
        (void)sendStep(link, step, &s); /* false: not wanted */
    nextStep(link, now_ms);
}

static void onStepReply(replLink *link, slice line, int64_t now_ms) {
    hotCheck(link->state > LINK_PING);
    hotCheck(link->state < LINK_PSYNC);
    static const char *const names[] = {[LINK_PORT] = "REPLCONF listening-port",
                                        [LINK_ADDRESS] = "REPLCONF ip-address",
                                        [LINK_CAPABILITIES] = "REPLCONF capa",
                                        [LINK_VERSION] = "REPLCONF VERSION",
                                        [LINK_NODE_ID] = "REPLCONF SET-CLUSTER-NODE-ID"};
    if (linkStartsWith(line, "-")) {
        if (link->state == LINK_AUTH) {
            logWarning("Unable to AUTH to PRIMARY: %.*s", (int)line.len, line.ptr);
            retryIn(link, RETRY_MS, now_ms);
            return;
        }
        logNotice("(Non critical) Primary does not understand %s: %.*s", names[link->state],
                  (int)line.len, line.ptr);
    }
    if (link->state == LINK_CAPABILITIES)
        link->knows_birth = birthParse(line, &link->primary_birth, link->primary_process);
    nextStep(link, now_ms);
}

/* ------------------------------------------------------------------ PSYNC */

/* "+CONTINUE", "+CONTINUE id" or "+CONTINUE id offset" */
static void onContinue(replLink *link, slice line, slice rest, int64_t now_ms) {
    slice id = line.len > 10 ? sliceMake(line.ptr + 10, line.len - 10) : SLICE("");
    const char *blank = memchr(id.ptr, ' ', id.len);
    link->primary_end = 0;
    if (blank) {
        slice end = sliceMake(blank + 1, id.len - (size_t)(blank + 1 - id.ptr));
        if (!numberParseInt(end, &link->primary_end) || !historyIsOffset(link->primary_end))
            link->primary_end = 0;
        id.len = (size_t)(blank - id.ptr);
    }
    logNotice("Successful partial resynchronization with primary.");
    if (historyIsId(id) && !sliceIs(id, link->history->id)) {
        historyContinueAs(link->history, id);
        logNotice("Primary replication ID changed to %s", link->history->id);
        link->env->history_changed(link->arg, LINK_HISTORY_RENAMED);
    }
    logNotice("PRIMARY <-> REPLICA sync: Primary accepted a Partial Resynchronization.");
    link->sync_only = false;
    linkFollowStream(link, rest, false, now_ms);
}

/* "+FULLRESYNC id offset" */
static void onFullResync(replLink *link, slice line, int64_t now_ms) {
    linkTransfer *t = &link->dataset;
    *t = (linkTransfer){.bytes = -1, .db = -1};
    slice words = sliceMake(line.ptr + 12, line.len > 12 ? line.len - 12 : 0);
    const char *blank = memchr(words.ptr, ' ', words.len);
    size_t id_len = blank ? (size_t)(blank - words.ptr) : 0;
    t->known = historyIsId(sliceMake(words.ptr, id_len)) &&
               numberParseInt(sliceMake(blank + 1, words.len - id_len - 1), &t->offset) &&
               historyIsOffset(t->offset);
    if (t->known) {
        memcpy(t->id, words.ptr, REPL_ID_LEN);
        logNotice("Full resync from primary: %s:%lld", t->id, (long long)t->offset);
    } else {
        logWarning("Primary replied with wrong +FULLRESYNC syntax.");
    }
    link->sync_only = !t->known;
    linkEnter(link, LINK_ANNOUNCED, now_ms);
}

/* A primary that knows no PSYNC. */
static void fallBack(replLink *link, int64_t now_ms) {
    logNotice("Retrying with SYNC...");
    link->dataset = (linkTransfer){.bytes = -1, .db = -1};
    link->sync_only = true;
    link->env->send(link->arg, SLICE("SYNC\r\n"));
    linkEnter(link, LINK_ANNOUNCED, now_ms);
}

static void onPsyncReply(replLink *link, slice line, slice rest, int64_t now_ms) {
    hotCheck(link->state == LINK_PSYNC);
    if (line.len == 0) return; /* a blank line: the primary is busy */
    bool continues = linkStartsWith(line, "+CONTINUE"), full = linkStartsWith(line, "+FULLRESYNC");
    bool dual = linkStartsWith(line, "+DUALCHANNELSYNC");
    if (link->failover) {
        bool was_done =
            link->unanswered && linkStartsWith(line, "-ERR PSYNC FAILOVER can't be sent");
        bool taken = continues || full || dual;
        if (!taken && !was_done) /* endFailover() may free the line */
            logWarning("The replica does not take over: %.*s", (int)line.len, line.ptr);
        endFailover(link, taken || was_done);
        if (was_done) retryAtOnce(link, false, now_ms);
        if (was_done) return;
        if (!taken) {
            if (link->state == LINK_PSYNC) retryIn(link, RETRY_MS, now_ms);
            return;
        }
    }
    if (linkStartsWith(line, "-EMPTYPRIMARY")) {
        refusePrimary(link, now_ms);
    } else if (continues) {
        onContinue(link, line, rest, now_ms);
    } else if (full) {
        onFullResync(link, line, now_ms);
    } else if (dual) {
        linkBeginDual(link, now_ms);
    } else if (linkStartsWith(line, "-NOMASTERLINK") || linkStartsWith(line, "-LOADING")) {
        logNotice("Primary is currently unable to PSYNC but should be in the future: %.*s",
                  (int)line.len, line.ptr);
        retryIn(link, RETRY_MS, now_ms);
    } else if (linkStartsWith(line, "-ERR")) {
        logNotice("Primary does not support PSYNC or is in error state (reply: %.*s)",
                  (int)line.len, line.ptr);
        fallBack(link, now_ms);
    } else {
        logWarning("Unexpected reply to PSYNC from primary: %.*s", (int)line.len, line.ptr);
        fallBack(link, now_ms);
    }
}

/* "$<size>" or "$EOF:<mark>" */
void linkOnAnnouncement(replLink *link, slice line, slice rest, int64_t now_ms) {
    linkTransfer *t = &link->dataset;
    if (line.len == 0) return; /* the primary prepares the dataset */
    if (line.ptr[0] == '-') {
        logWarning("PRIMARY aborted replication with an error: %.*s", (int)line.len - 1,
                   line.ptr + 1);
        linkRetryTransfer(link, LINK_FAILED, now_ms);
        return;
    }
    bool marked = linkStartsWith(line, "$EOF:") && line.len == 5 + REPL_ID_LEN;
    bool sized = !marked && line.ptr[0] == '$' &&
                 numberParseInt(sliceMake(line.ptr + 1, line.len - 1), &t->bytes) && t->bytes >= 0;
    if (!marked && !sized) {
        logWarning("Bad protocol from PRIMARY, the first byte is not '$' (we received '%.*s'), are "
                   "you sure the host and port are right?",
                   (int)line.len, line.ptr);
        linkRetryTransfer(link, LINK_FAILED, now_ms);
        return;
    }
    if (marked) {
        t->bytes = -1;
        memcpy(t->mark, line.ptr + 5, REPL_ID_LEN);
    }
    /* A server that tells its birth has refused by itself, and a stream that is here, too, is that
     * of a process which has lost nothing. */
    bool same = t->known && sliceIs(sliceMake(t->id, REPL_ID_LEN), link->history->id);
    t->needs_key = link->keeps_data && !link->knows_birth && !same;
    linkEnter(link, LINK_TRANSFER, now_ms);
    str first = strNew(rest);
    strFree(link->second ? &link->second_received : &link->received);
    link->env->transfer(link->arg, t, strSlice(&first));
    strFree(&first);
}

static void onLine(replLink *link, slice line, slice rest, int64_t now_ms) {
    if (link->main) {
        linkOnDualLine(link, line, rest, now_ms);
        return;
    }
    switch (link->state) {
    case LINK_PING: onPingReply(link, line, now_ms); return;
    case LINK_PSYNC: onPsyncReply(link, line, rest, now_ms); return;
    case LINK_SECOND: linkOnDualLine(link, line, rest, now_ms); return;
    case LINK_ANNOUNCED: linkOnAnnouncement(link, line, rest, now_ms); return;
    default: onStepReply(link, line, now_ms); return;
    }
}

slice linkNextLine(const str *from, size_t *at, slice *rest) {
    hotCheck(*at <= from->len);
    const char *begin = from->ptr + *at;
    size_t left = from->len - *at;
    const char *end = left ? memchr(begin, '\n', left) : NULL;
    if (!end) return (slice){NULL, 0};
    size_t len = (size_t)(end - begin);
    *at += len + 1;
    *rest = sliceMake(end + 1, left - len - 1);
    if (len && begin[len - 1] == '\r') len--;
    return sliceMake(begin, len);
}

void linkDropLines(str *from, size_t at) {
    if (!from->len) return; /* it was handed over */
    memmove(from->ptr, from->ptr + at, from->len - at);
    strCut(from, from->len - at);
}

static bool readsLines(const replLink *link) {
    if (link->main) return link->main != LINK_CONNECTED;
    return link->state >= LINK_PING && link->state <= LINK_ANNOUNCED;
}

void linkReceived(replLink *link, slice bytes, int64_t now_ms) {
    check(readsLines(link));
    link->heard_ms = now_ms;
    strAppendSlice(&link->received, bytes);
    size_t at = 0;
    slice rest;
    while (readsLines(link)) {
        slice line = linkNextLine(&link->received, &at, &rest);
        if (!line.ptr) break;
        onLine(link, line, rest, now_ms);
    }
    linkDropLines(&link->received, at);
    if (link->received.len > LINK_LINE_MAX && readsLines(link)) {
        logWarning("The primary sends a line of more than %d bytes", LINK_LINE_MAX);
        retryIn(link, RETRY_MS, now_ms);
    }
}

/* ------------------------------------------------------------------ the connection */

void linkInit(replLink *link, replHistory *history, const linkEnv *env, void *arg) {
    *link = (replLink){.history = history, .env = env, .arg = arg, .down_ms = -1};
}

void linkClear(replLink *link) {
    strFree(&link->received);
    strFree(&link->second_received);
}

void linkStart(replLink *link, int64_t now_ms) {
    disconnect(link);
    linkEnter(link, LINK_CONNECT, now_ms);
    link->retry_ms = now_ms;
    link->down_ms = -1;
    link->failures = link->cuts = 0;
    link->halted = link->is_discarded = false;
    endRefusal(link);
    hotCheck(link->state == LINK_CONNECT);
}

void linkStop(replLink *link) {
    disconnect(link);
    link->state = LINK_NONE;
    link->failover = link->unanswered = link->is_discarded = false;
    endRefusal(link);
    hotCheck(link->state == LINK_NONE);
}

void linkRestart(replLink *link, bool continues, int64_t now_ms) {
    if (!continues) link->can_continue = false;
    link->halted = false;
    retryAtOnce(link, false, now_ms);
}

void linkHalt(replLink *link, bool keeps_position) {
    check(link->state != LINK_NONE);
    if (!keeps_position) link->can_continue = false;
    link->halted = true;
}

void linkSetContinuable(replLink *link, bool yes) { link->can_continue = yes; }

void linkOpened(replLink *link, int64_t now_ms) {
    check(link->state == LINK_CONNECTING);
    logNotice("Non blocking connect for SYNC fired the event.");
    linkEnter(link, LINK_PING, now_ms);
    slice words[] = {SLICE("PING")};
    linkSendWords(link, 1, words);
}

void linkFailed(replLink *link, const char *why, int64_t now_ms) {
    logWarning("Error condition on socket for SYNC: %s", why);
    retryIn(link, RETRY_MS, now_ms);
}

void linkNoteGetack(replLink *link, slice value) {
    size_t len = strlen(DISCARDS_PREFIX);
    if (likely(!linkStartsWith(value, DISCARDS_PREFIX)) || link->state != LINK_CONNECTED) return;
    slice process = sliceMake(value.ptr + len, value.len - len);
    if (!process.len || !sliceIs(process, link->primary_process)) return;
    link->is_discarded = true;
    logNotice("The primary is shut down by order and saves nothing: it is followed if it comes "
              "back without data, unless replica-refuse-empty-primary is 'always'");
}

void linkHeard(replLink *link, int64_t now_ms) { link->heard_ms = now_ms; }

void linkLost(replLink *link, const char *why, int64_t now_ms) {
    if (link->state == LINK_CONNECTED) {
        logNotice("Connection with primary lost.");
        if (link->can_continue) logNotice("Caching the disconnected primary state.");
        retryAtOnce(link, false, now_ms);
    } else if (link->state >= LINK_ANNOUNCED) {
        logWarning("I/O error trying to sync with PRIMARY: %s", why ? why : "connection lost");
        linkRetryTransfer(link, LINK_CUT, now_ms);
    } else {
        logWarning("Failed to read response from the server: %s",
                   why ? why : "the primary has closed the connection");
        retryIn(link, RETRY_MS, now_ms);
    }
}

void linkDatasetGone(replLink *link) {
    if (link->can_continue) logNotice("Discarding previously cached primary state.");
    link->can_continue = false;
}

void linkTransferEnded(replLink *link, linkResult result, slice received, int64_t now_ms) {
    check(link->state == LINK_TRANSFER);
    if (result == LINK_NO_KEY) {
        refusePrimary(link, now_ms);
        return;
    }
    if (result != LINK_LOADED) {
        linkRetryTransfer(link, result, now_ms);
        return;
    }
    const linkTransfer *t = &link->dataset;
    if (t->known) {
        historyAdopt(link->history, sliceMake(t->id, REPL_ID_LEN), t->offset);
    } else {
        historyRenew(link->history);
    }
    link->env->history_changed(link->arg, LINK_HISTORY_REPLACED);
    link->held_from = 0; /* an offset of another stream */
    link->second = SECOND_NONE;
    if (link->main) {
        linkOnDualLoaded(link, now_ms);
        return;
    }
    link->primary_end = 0;
    linkFollowStream(link, received, true, now_ms);
    linkAcknowledge(link, link->history->offset, now_ms);
}

/* ------------------------------------------------------------------ time */

void linkHoldAcks(replLink *link, bool on, int64_t from) {
    if (on && !link->holds_acks) link->held_from = from;
    link->holds_acks = on;
}

static void limitAck(const replLink *link, int64_t *offset) {
    if (link->holds_acks && *offset > link->held_from) *offset = link->held_from;
}

void linkAcknowledge(replLink *link, int64_t offset, int64_t now_ms) {
    hotCheck(offset >= 0);
    if (link->state != LINK_CONNECTED || link->sync_only) return;
    link->acked_ms = now_ms;
    linkSettings s = link->env->settings(link->arg);
    limitAck(link, &offset);
    limitAck(link, &s.fack);
    char digits[NUMBER_TEXT_MAX], fack[NUMBER_TEXT_MAX];
    slice words[5] = {SLICE("REPLCONF"), SLICE("ACK"),
                      sliceMake(digits, numberPrintInt(digits, offset)), SLICE("FACK")};
    if (s.fack >= 0) words[4] = sliceMake(fack, numberPrintInt(fack, s.fack));
    linkSendWords(link, s.fack >= 0 ? 5 : 3, words);
}

static void onTimeout(replLink *link, int64_t now_ms) {
    hotCheck(link->state > LINK_CONNECT);
    if (link->state == LINK_CONNECTED) {
        logWarning("PRIMARY timeout: no data nor PING received...");
        linkLost(link, NULL, now_ms);
    } else if (link->state >= LINK_ANNOUNCED) {
        logWarning("Timeout receiving bulk data from PRIMARY... If the problem persists try to set "
                   "the 'repl-timeout' parameter in valkey.conf to a larger value.");
        linkRetryTransfer(link, LINK_CUT, now_ms);
    } else {
        logWarning("Timeout connecting to the PRIMARY...");
        retryAtOnce(link, true, now_ms);
    }
}

void linkTick(replLink *link, int64_t now_ms) {
    if (link->state == LINK_NONE) return;
    if (link->state == LINK_CONNECT) {
        if (now_ms >= link->retry_ms && !link->halted) connectNow(link, now_ms);
        return;
    }
    linkSettings s = link->env->settings(link->arg);
    if (now_ms - link->heard_ms > s.timeout_ms) {
        onTimeout(link, now_ms);
    } else if (now_ms - link->acked_ms >= ACK_MS) {
        linkAcknowledge(link, link->history->offset, now_ms);
    }
}

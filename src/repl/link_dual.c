/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dual-channel synchronisation: the dataset comes over a second connection, while the first one has
 * the stream already, which is collected until the dataset is loaded.
 *
 *   first         second       event                                   next
 *   PSYNC         -            first: +DUALCHANNELSYNC                 SECOND, CONNECTING
 *   SECOND        CONNECTING   open: sends AUTH, REPLCONF              REPLIES
 *   SECOND        REPLIES      the last reply: sends SYNC              END
 *   SECOND        END          $ENDOFF: first sends its client id      CLIENT_ID, WAITS
 *   CLIENT_ID     WAITS        +OK: first sends PSYNC                  SECOND_PSYNC, WAITS
 *   SECOND_PSYNC  WAITS        +CONTINUE: the stream is collected      ANNOUNCED, ANNOUNCED
 *   ANNOUNCED     ANNOUNCED    second: $EOF:<mark>                     TRANSFER
 *
 * The loss of either connection ends both. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "repl/link_priv.h"
#include "resp/resp.h"

static void fail(replLink *link, linkResult result, const char *why, int64_t now_ms) {
    logWarning("Dual channel sync failed with error %s", why);
    logNotice("Dual channel replication: Aborting dual channel sync");
    linkRetryTransfer(link, result, now_ms);
}

static void failWithLine(replLink *link, slice line, int64_t now_ms) {
    char why[256];
    snprintf(why, sizeof(why), "%.*s", (int)line.len, line.ptr);
    fail(link, LINK_FAILED, why, now_ms);
}

void linkBeginDual(replLink *link, int64_t now_ms) {
    logNotice("Dual channel replication: PSYNC is not possible, initialize RDB channel.");
    linkEnter(link, LINK_SECOND, now_ms);
    link->second = SECOND_CONNECTING;
    link->env->connect_second(link->arg);
    hotCheck(link->state == LINK_SECOND || link->second != SECOND_CONNECTING);
}

/* ------------------------------------------------------------------ the second connection */

static void sendSecond(replLink *link, int count, const slice *words) {
    hotCheck(count > 0);
    hotCheck(link->second != SECOND_NONE);
    size_t len;
    char *bytes = respRequest(count, words, &len);
    link->env->send_second(link->arg, sliceMake(bytes, len));
    memFree(bytes);
    link->second_replies++;
}

void linkSecondOpened(replLink *link, int64_t now_ms) {
    check(link->second == SECOND_CONNECTING);
    linkSettings s = link->env->settings(link->arg);
    link->second = SECOND_REPLIES;
    link->second_replies = 0;
    link->heard_ms = now_ms;
    if (s.password.len) {
        slice words[3] = {SLICE("AUTH")};
        int count = 1;
        if (s.user.len) words[count++] = s.user;
        words[count++] = s.password;
        sendSecond(link, count, words);
    }
    char port[NUMBER_TEXT_MAX];
    slice words[] = {SLICE("REPLCONF"),
                     SLICE("capa"),
                     SLICE("eof"),
                     SLICE("capa"),
                     SLICE("member-ttls"),
                     SLICE("rdb-only"),
                     SLICE("1"),
                     SLICE("rdb-channel"),
                     SLICE("1"),
                     SLICE("listening-port"),
                     sliceMake(port, numberPrintInt(port, s.announce_port)),
                     SLICE("version"),
                     sliceOf(s.version)};
    sendSecond(link, COUNT_OF(words), words);
    if (s.announce_address.len) {
        slice address[] = {SLICE("REPLCONF"), SLICE("ip-address"), s.announce_address};
        sendSecond(link, COUNT_OF(address), address);
    }
}

static void onSecondReply(replLink *link, slice line, int64_t now_ms) {
    hotCheck(link->second == SECOND_REPLIES);
    hotCheck(link->second_replies > 0);
    if (linkStartsWith(line, "-")) {
        failWithLine(link, line, now_ms);
        return;
    }
    logDebug("Dual channel replication: Received first reply from primary using rdb connection.");
    if (--link->second_replies > 0) return;
    link->second = SECOND_END;
    link->env->send_second(link->arg, SLICE("SYNC\r\n"));
}

/* "$ENDOFF:<offset> <id> <db> <client id>" */
static bool parseEnd(slice line, linkTransfer *t, int64_t *client_id) {
    slice words[4];
    if (!linkStartsWith(line, "$ENDOFF:")) return false;
    const char *at = line.ptr + 8, *end = line.ptr + line.len;
    for (int i = 0; i < 4; i++) {
        const char *stop = i < 3 ? memchr(at, ' ', (size_t)(end - at)) : end;
        if (!stop) return false;
        words[i] = sliceMake(at, (size_t)(stop - at));
        at = i < 3 ? stop + 1 : end;
    }
    int64_t db;
    if (!numberParseInt(words[0], &t->offset) || !historyIsOffset(t->offset) ||
        !historyIsId(words[1]) || !numberParseInt(words[2], &db) || db < -1 || db > INT32_MAX ||
        !numberParseInt(words[3], client_id))
        return false;
    memcpy(t->id, words[1].ptr, REPL_ID_LEN);
    t->id[REPL_ID_LEN] = 0;
    t->db = (int)db;
    t->known = true;
    return true;
}

static void onEnd(replLink *link, slice line, int64_t now_ms) {
    hotCheck(link->second == SECOND_END);
    int64_t client_id;
    if (line.len == 0) return; /* the primary prepares the dataset */
    link->dataset = (linkTransfer){.bytes = -1};
    if (!parseEnd(line, &link->dataset, &client_id)) {
        logWarning("Dual channel replication: Received unexpected $ENDOFF response: %.*s",
                   (int)line.len, line.ptr);
        fail(link, LINK_FAILED, "unexpected $ENDOFF response", now_ms);
        return;
    }
    link->second = SECOND_WAITS;
    linkEnter(link, LINK_CLIENT_ID, now_ms);
    char id[NUMBER_TEXT_MAX];
    slice words[] = {SLICE("REPLCONF"), SLICE("set-rdb-client-id"),
                     sliceMake(id, numberPrintInt(id, client_id))};
    linkSendWords(link, COUNT_OF(words), words);
}

static void onSecondLine(replLink *link, slice line, slice rest, int64_t now_ms) {
    if (link->second == SECOND_REPLIES) {
        onSecondReply(link, line, now_ms);
    } else if (link->second == SECOND_END) {
        onEnd(link, line, now_ms);
    } else {
        linkOnAnnouncement(link, line, rest, now_ms);
    }
}

void linkSecondReceived(replLink *link, slice bytes, int64_t now_ms) {
    link->heard_ms = now_ms;
    strAppendSlice(&link->second_received, bytes);
    size_t at = 0;
    slice rest;
    while (link->second && link->second != SECOND_WAITS && link->state < LINK_TRANSFER) {
        slice line = linkNextLine(&link->second_received, &at, &rest);
        if (!line.ptr) break;
        onSecondLine(link, line, rest, now_ms);
    }
    linkDropLines(&link->second_received, at);
    bool reads = link->second && link->second != SECOND_WAITS && link->state < LINK_TRANSFER;
    if (reads && link->second_received.len > LINK_LINE_MAX)
        fail(link, LINK_FAILED, "a line is too long", now_ms);
}

void linkSecondLost(replLink *link, const char *why, int64_t now_ms) {
    fail(link, LINK_CUT, why ? why : "connection lost", now_ms);
}

/* ------------------------------------------------------------------ the first connection */

static void sendPsync(replLink *link, int64_t now_ms) {
    hotCheck(link->state == LINK_CLIENT_ID);
    char digits[NUMBER_TEXT_MAX];
    const linkTransfer *t = &link->dataset;
    if (link->env->save_started) link->env->save_started(link->arg);
    slice words[] = {SLICE("PSYNC"), sliceMake(t->id, REPL_ID_LEN),
                     sliceMake(digits, numberPrintInt(digits, t->offset + 1))};
    logNotice("Dual channel replication: Trying a partial resynchronization using main channel "
              "(request %s:%lld).",
              t->id, (long long)t->offset + 1);
    linkSendWords(link, COUNT_OF(words), words);
    linkEnter(link, LINK_SECOND_PSYNC, now_ms);
}

void linkOnDualLine(replLink *link, slice line, slice rest, int64_t now_ms) {
    if (line.len == 0) return; /* a sign of life */
    if (link->state == LINK_CLIENT_ID && linkStartsWith(line, "+")) {
        sendPsync(link, now_ms);
        return;
    }
    if (link->state != LINK_SECOND_PSYNC || !linkStartsWith(line, "+CONTINUE")) {
        failWithLine(link, line, now_ms);
        return;
    }
    logNotice("Dual channel replication: PRIMARY <-> REPLICA sync: Primary accepted a Partial "
              "Resynchronization, RDB load in background.");
    link->sync_only = false;
    /* The primary may have been promoted since it began to save: what follows is in its new
     * history. */
    slice id = sliceMake(line.ptr + 10, line.len - sizeMin(line.len, 10));
    if (line.len > 10 && historyIsId(id)) memcpy(link->dataset.id, id.ptr, REPL_ID_LEN);
    linkEnter(link, LINK_ANNOUNCED, now_ms);
    link->second = SECOND_ANNOUNCED;
    str first = strNew(rest);
    strFree(&link->received);
    link->env->collect(link->arg, strSlice(&first));
    strFree(&first);
    linkSecondReceived(link, SLICE(""), now_ms); /* what came while it waited */
}

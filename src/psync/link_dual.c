/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dual-channel synchronisation: the dataset comes over a second connection, while the first one
 * gets the stream, which is collected until the dataset is loaded. Neither waits for the other.
 *
 *   state         second       event                                   next
 *   PSYNC         -            first: +DUALCHANNELSYNC                 SECOND, CONNECTING
 *   SECOND        CONNECTING   open: sends AUTH, REPLCONF              REPLIES
 *   SECOND        REPLIES      the last reply: sends SYNC              END
 *   SECOND        END          $ENDOFF                                 ANNOUNCED, ANNOUNCED
 *   ANNOUNCED     ANNOUNCED    second: $EOF:<mark>                     TRANSFER
 *   TRANSFER      ANNOUNCED    loaded, main is CONNECTED               CONNECTED
 *   TRANSFER      ANNOUNCED    loaded, main is not                     that of main
 *
 *   main          event                                                next
 *   -             $ENDOFF: sends the client id of the second           CLIENT_ID
 *   CLIENT_ID     +OK: sends PSYNC                                     SECOND_PSYNC
 *   SECOND_PSYNC  +CONTINUE: the stream is collected, or applied       CONNECTED
 *                 if the dataset is loaded
 *
 * The loss of either connection ends both, until the dataset is loaded. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "psync/link_priv.h"
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
    enum { WORDS = 15, CODEC_WORDS = 4 };
    char port[NUMBER_TEXT_MAX];
    slice words[WORDS + CODEC_WORDS] = {SLICE("REPLCONF"),
                                        SLICE("capa"),
                                        SLICE("eof"),
                                        SLICE("capa"),
                                        SLICE("member-ttls"),
                                        SLICE("capa"),
                                        SLICE("path-hashes"),
                                        SLICE("rdb-only"),
                                        SLICE("1"),
                                        SLICE("rdb-channel"),
                                        SLICE("1"),
                                        SLICE("listening-port"),
                                        sliceMake(port, numberPrintInt(port, s.announce_port)),
                                        SLICE("version"),
                                        sliceOf(s.version)};
    int count = WORDS + linkAddCodecs(&s, words + WORDS);
    sendSecond(link, count, words);
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
    link->second = SECOND_ANNOUNCED;
    link->main = LINK_CLIENT_ID;
    linkEnter(link, LINK_ANNOUNCED, now_ms);
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
    while (link->second && link->state < LINK_TRANSFER) {
        slice line = linkNextLine(&link->second_received, &at, &rest);
        if (!line.ptr) break;
        onSecondLine(link, line, rest, now_ms);
    }
    linkDropLines(&link->second_received, at);
    if (link->second && link->state < LINK_TRANSFER && link->second_received.len > LINK_LINE_MAX)
        fail(link, LINK_FAILED, "a line is too long", now_ms);
}

void linkSecondLost(replLink *link, const char *why, int64_t now_ms) {
    fail(link, LINK_CUT, why ? why : "connection lost", now_ms);
}

/* ------------------------------------------------------------------ the first connection */

static void sendPsync(replLink *link) {
    hotCheck(link->main == LINK_CLIENT_ID);
    char digits[NUMBER_TEXT_MAX];
    const linkTransfer *t = &link->dataset;
    if (link->env->save_started) link->env->save_started(link->arg);
    slice words[] = {SLICE("PSYNC"), sliceMake(t->id, REPL_ID_LEN),
                     sliceMake(digits, numberPrintInt(digits, t->offset + 1))};
    logNotice("Dual channel replication: Trying a partial resynchronization using main channel "
              "(request %s:%lld).",
              t->id, (long long)t->offset + 1);
    linkSendWords(link, COUNT_OF(words), words);
    link->main = LINK_SECOND_PSYNC;
    if (link->state < LINK_ANNOUNCED) link->state = link->main;
}

static void follow(replLink *link, slice received, int64_t now_ms) {
    hotCheck(link->main == LINK_CONNECTED);
    link->main = LINK_NONE;
    link->primary_end = 0;
    logDebug("Dual channel replication: Psync established after rdb load");
    linkFollowStream(link, received, true, now_ms);
    logNotice("Dual channel replication: Successfully streamed replication data into memory");
    linkAcknowledge(link, link->history->offset, now_ms);
}

/* The stream comes after the dataset was loaded. */
static void continueLoaded(replLink *link, slice id, slice rest, int64_t now_ms) {
    if (!sliceIs(id, link->history->id)) {
        historyContinueAs(link->history, id);
        link->env->history_changed(link->arg, LINK_HISTORY_RENAMED);
    }
    follow(link, rest, now_ms);
}

void linkOnDualLine(replLink *link, slice line, slice rest, int64_t now_ms) {
    if (line.len == 0) return; /* a sign of life */
    if (link->main == LINK_CLIENT_ID && linkStartsWith(line, "+")) {
        sendPsync(link);
        return;
    }
    if (link->main != LINK_SECOND_PSYNC || !linkStartsWith(line, "+CONTINUE")) {
        failWithLine(link, line, now_ms);
        return;
    }
    logNotice("Dual channel replication: PRIMARY <-> REPLICA sync: Primary accepted a Partial "
              "Resynchronization, RDB load in background.");
    link->sync_only = false;
    /* The primary may have been promoted since it began to save: what follows is in its new
     * history. */
    slice id = sliceMake(line.ptr + 10, line.len - sizeMin(line.len, 10));
    if (line.len <= 10 || !historyIsId(id)) id = sliceMake(link->dataset.id, REPL_ID_LEN);
    link->main = LINK_CONNECTED;
    if (link->state < LINK_ANNOUNCED) {
        continueLoaded(link, id, rest, now_ms);
        return;
    }
    memmove(link->dataset.id, id.ptr, REPL_ID_LEN);
    str first = strNew(rest);
    strFree(&link->received);
    link->env->collect(link->arg, strSlice(&first));
    strFree(&first);
}

void linkOnDualLoaded(replLink *link, int64_t now_ms) {
    check(link->dataset.known);
    if (link->main == LINK_CONNECTED) {
        follow(link, SLICE(""), now_ms); /* and what was collected */
        return;
    }
    /* If the first connection is lost now, the next one asks for the stream from here. */
    link->sync_only = false;
    link->can_continue = true;
    linkEnter(link, link->main, now_ms);
}

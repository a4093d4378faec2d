/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The link of a replica, without sockets: what it does is recorded as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/log.h"
#include "psync/link.h"

#define ID1 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID2 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
/* Of a start of the primary. */
#define PROCESS1 "cccccccccccccccccccccccccccccccccccccccc"
#define PROCESS2 "dddddddddddddddddddddddddddddddddddddddd"

static replLink l;
static replHistory history;
static linkSettings settings;
static str done; /* what the link has done since the last check */
static int64_t now_ms;

static linkSettings getSettings(void *arg) {
    (void)arg;
    return settings;
}

static void note(const char *text) {
    if (done.len) strAppendText(&done, " ");
    strAppendText(&done, text);
}

static void onConnect(void *arg) {
    (void)arg;
    note("connect");
}

/* The words of a request; an inline one is kept as it is. */
static void noteRequest(const char *prefix, slice bytes) {
    str words = STR_EMPTY;
    strAppendText(&words, prefix);
    const char *at = bytes.ptr, *end = bytes.ptr + bytes.len;
    if (*at != '*') strAppend(&words, at, bytes.len - 2);
    for (bool word = false; *at == '*' || word || at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (*bytes.ptr != '*' || !stop) break;
        if (word) {
            strAppendText(&words, words.len > strlen(prefix) ? "_" : "");
            strAppend(&words, at, (size_t)(stop - at) - 1);
        }
        word = *at == '$' && !word;
        at = stop + 1;
        if (at >= end) break;
    }
    note(strText(&words));
    strFree(&words);
}

static void onSend(void *arg, slice bytes) {
    (void)arg;
    noteRequest("", bytes);
}

static void onSendSecond(void *arg, slice bytes) {
    (void)arg;
    noteRequest("2:", bytes);
}

static void onClose(void *arg) {
    (void)arg;
    note("close");
}

static void onTransfer(void *arg, const linkTransfer *what, slice received) {
    (void)arg;
    char text[128];
    snprintf(text, sizeof(text), "transfer(%lld,%.*s)", (long long)what->bytes, (int)received.len,
             received.ptr);
    note(text);
}

static void onStream(void *arg, slice received, bool from_start) {
    (void)arg;
    char text[128];
    snprintf(text, sizeof(text), "stream(%.*s,%d)", (int)received.len, received.ptr, from_start);
    note(text);
}

static void onHistory(void *arg, linkHistoryChange change) {
    (void)arg;
    note(change == LINK_HISTORY_REPLACED ? "replaced" : "renamed");
}

static void onConnectSecond(void *arg) {
    (void)arg;
    note("connect2");
}

static void onCollect(void *arg, slice received) {
    (void)arg;
    char text[64];
    snprintf(text, sizeof(text), "collect(%.*s)", (int)received.len, received.ptr);
    note(text);
}

static void onFailover(void *arg, bool accepted) {
    (void)arg;
    note(accepted ? "accepted" : "rejected");
}

static const linkEnv env = {.settings = getSettings,
                            .connect = onConnect,
                            .send = onSend,
                            .close = onClose,
                            .transfer = onTransfer,
                            .stream = onStream,
                            .connect_second = onConnectSecond,
                            .send_second = onSendSecond,
                            .collect = onCollect,
                            .history_changed = onHistory,
                            .failover_ended = onFailover};

static void expect(const char *want) {
    assert_string_equal(strText(&done), want);
    strClear(&done);
}

/* Sends a line piece by piece. */
static void receive(const char *text) {
    for (const char *at = text; *at; at++) linkReceived(&l, sliceMake(at, 1), now_ms);
}

static int setup(void **state) {
    (void)state;
    logSetLevel(LOG_NOTHING);
    settings = (linkSettings){.host = SLICE("h"),
                              .port = 1,
                              .announce_port = 7,
                              .version = "9.1.2",
                              .timeout_ms = 60000,
                              .fack = -1};
    historyInit(&history);
    historyAdopt(&history, SLICE(ID1), 100);
    now_ms = 1000000;
    linkInit(&l, &history, &env, NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    linkClear(&l);
    strFree(&done);
    return 0;
}

static void toPsync(void) {
    linkStart(&l, now_ms);
    linkTick(&l, now_ms);
    linkOpened(&l, now_ms);
    receive("+PONG\r\n");
    strClear(&done);
    receive("+OK\r\n+OK\r\n+OK\r\n");
    assert_int_equal(l.state, LINK_PSYNC);
}

static void the_handshake_sends_what_is_configured(void **state) {
    (void)state;
    settings.password = SLICE("pw");
    settings.user = SLICE("me");
    settings.announce_address = SLICE("1.2.3.4");
    settings.dual_channel = settings.skips_checksum = true;
    linkStart(&l, now_ms);
    assert_string_equal(linkStateName(l.state), "connect");
    linkTick(&l, now_ms);
    expect("connect");
    assert_string_equal(linkStateName(l.state), "connecting");
    linkOpened(&l, now_ms);
    expect("PING");
    receive("-NOAUTH Authentication required.\r\n");
    expect(
        "AUTH_me_pw REPLCONF_listening-port_7 REPLCONF_ip-address_1.2.3.4 "
        "REPLCONF_capa_eof_capa_psync2_capa_turn-acks_capa_member-ttls_capa_birth_capa_path-hashes_"
        "capa_skip-rdb-checksum_capa_dual-channel REPLCONF_version_9.1.2");
    receive("+OK\r\n+OK\r\n-ERR unknown option\r\n+OK\r\n");
    assert_string_equal(linkStateName(l.state), "handshake");
    expect("");
    receive("+OK\r\n");
    expect("PSYNC_?_-1");
}

static void a_refused_password_or_ping_is_tried_again_after_a_second(void **state) {
    (void)state;
    settings.password = SLICE("pw");
    linkStart(&l, now_ms);
    linkTick(&l, now_ms);
    linkOpened(&l, now_ms);
    receive("+PONG\r\n");
    strClear(&done);
    receive("-WRONGPASS no\r\n");
    expect("close");
    linkTick(&l, now_ms + 999);
    expect("");
    linkTick(&l, now_ms += 1000);
    expect("connect");
    linkOpened(&l, now_ms);
    receive("-ERR foo\r\n");
    expect("PING close");
}

static void a_partial_resynchronisation_continues_after_the_history(void **state) {
    (void)state;
    linkSetContinuable(&l, true);
    toPsync();
    expect("PSYNC_" ID1 "_101");
    linkReceived(&l, SLICE("\n+CONTINUE " ID1 "\r\nabc"), now_ms);
    expect("stream(abc,0)");
    assert_int_equal(l.state, LINK_CONNECTED);
    linkLost(&l, NULL, now_ms);
    linkTick(&l, now_ms);
    linkOpened(&l, now_ms);
    receive("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n");
    strClear(&done);
    receive("+CONTINUE " ID2 "\r\n");
    expect("renamed stream(,0)");
    assert_string_equal(history.id, ID2);
    assert_string_equal(history.id2, ID1);
    assert_int_equal(history.second_offset, 101);
}

static void a_primary_may_tell_the_end_of_its_stream_with_continue(void **state) {
    (void)state;
    linkSetContinuable(&l, true);
    toPsync();
    strClear(&done);
    linkReceived(&l, SLICE("+CONTINUE " ID2 " 4711\r\n"), now_ms);
    expect("renamed stream(,0)");
    assert_string_equal(history.id, ID2);
    assert_int_equal(l.primary_end, 4711);
}

static void a_full_synchronisation_replaces_the_history(void **state) {
    (void)state;
    toPsync();
    strClear(&done);
    linkReceived(&l, SLICE("+FULLRESYNC " ID2 " 55\r\n\n\n$6\r\nRED"), now_ms);
    expect("transfer(6,RED)");
    assert_string_equal(linkStateName(l.state), "sync");
    linkTransferEnded(&l, LINK_LOADED, SLICE("rest"), now_ms);
    expect("replaced stream(rest,1) REPLCONF_ACK_55");
    assert_string_equal(history.id, ID2);
    assert_int_equal(history.offset, 55);
    linkTick(&l, now_ms += 1000);
    expect("REPLCONF_ACK_55");
    settings.fack = 50;
    linkTick(&l, now_ms += 1000);
    expect("REPLCONF_ACK_55_FACK_50");
}

/* Offsets that no stream has are no offsets, nor are texts that no server has as its id. */
static void an_id_and_an_offset_that_cannot_be_right_are_not_taken_over(void **state) {
    (void)state;
    static const char *const told[] = {ID2 " 9223372036854775807", ID2 " -1", ID2 " x",
                                       "bbbbbbbbbbbbbbbbbbbb\001bbbbbbbbbbbbbbbbbbb 55"};
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        char line[128];
        toPsync();
        (void)snprintf(line, sizeof(line), "+FULLRESYNC %s\r\n", told[i]);
        receive(line);
        assert_false(l.dataset.known);
        assert_true(l.sync_only);
        assert_string_equal(history.id, ID1);
        linkStop(&l);
        linkSetContinuable(&l, false);
        linkStart(&l, now_ms);
    }
    linkSetContinuable(&l, true);
    toPsync();
    receive("+CONTINUE " ID1 " 9223372036854775807\r\n");
    assert_int_equal(l.primary_end, 0);
}

/* The offset from which on nothing is acknowledged was one of the former stream. */
static void in_a_new_stream_nothing_is_acknowledged_while_it_is_held(void **state) {
    (void)state;
    linkHoldAcks(&l, true, 100);
    toPsync();
    receive("+FULLRESYNC " ID2 " 55\r\n$6\r\n");
    strClear(&done);
    linkTransferEnded(&l, LINK_LOADED, SLICE(""), now_ms);
    expect("replaced stream(,1) REPLCONF_ACK_0");
    linkHoldAcks(&l, true, 55);
    linkTick(&l, now_ms += 1000);
    expect("REPLCONF_ACK_0");
    linkHoldAcks(&l, false, 0);
    linkTick(&l, now_ms += 1000);
    expect("REPLCONF_ACK_55");
}

static void a_primary_without_psync_is_asked_by_sync_and_gets_no_acknowledgements(void **state) {
    (void)state;
    toPsync();
    strClear(&done);
    receive("-ERR unknown command\r\n");
    expect("SYNC");
    receive("$4\r\n");
    linkTransferEnded(&l, LINK_LOADED, SLICE(""), now_ms);
    expect("transfer(4,) replaced stream(,1)");
    assert_string_not_equal(history.id, ID1);
    linkTick(&l, now_ms += 5000);
    expect("");
}

static void failed_transfers_are_repeated_more_and_more_slowly(void **state) {
    (void)state;
    static const int64_t delays_ms[] = {0, 1000, 2000, 4000, 8000, 8000};
    linkStart(&l, now_ms);
    for (size_t i = 0; i < COUNT_OF(delays_ms); i++) {
        linkTick(&l, now_ms);
        linkOpened(&l, now_ms);
        receive("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " ID2 " 1\r\n");
        if (i % 2) {
            receive("-ERR no\r\n");
        } else {
            receive("$1\r\n");
            linkTransferEnded(&l, LINK_FAILED, SLICE(""), now_ms);
        }
        strClear(&done);
        if (delays_ms[i]) linkTick(&l, now_ms + delays_ms[i] - 1);
        expect("");
        now_ms += delays_ms[i];
    }
    linkTick(&l, now_ms);
    expect("connect");
}

static void a_cut_connection_is_opened_again_within_a_second(void **state) {
    (void)state;
    linkStart(&l, now_ms);
    for (int i = 0; i < 6; i++) {
        linkTick(&l, now_ms);
        linkOpened(&l, now_ms);
        receive("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " ID2 " 1\r\n$1\r\n");
        if (i % 2) {
            linkLost(&l, NULL, now_ms);
        } else {
            linkTransferEnded(&l, LINK_CUT, SLICE(""), now_ms);
        }
        assert_int_equal(l.state, LINK_CONNECT);
        assert_true(l.retry_ms <= now_ms + 1000);
        now_ms = l.retry_ms;
    }
    assert_int_equal(l.failures, 0);
}

static void silence_ends_every_state(void **state) {
    (void)state;
    linkSetContinuable(&l, true);
    linkStart(&l, now_ms);
    linkTick(&l, now_ms);
    linkTick(&l, now_ms += 60001);
    expect("connect close");
    toPsync();
    strClear(&done);
    linkTick(&l, now_ms += 60001);
    expect("close");
    toPsync();
    receive("+FULLRESYNC " ID2 " 1\r\n$9\r\n");
    strClear(&done);
    linkHeard(&l, now_ms += 50000);
    linkTick(&l, now_ms += 50000);
    expect("");
    linkTick(&l, now_ms += 10001);
    expect("close");
    toPsync();
    receive("+CONTINUE\r\n");
    strClear(&done);
    linkTick(&l, now_ms += 60001);
    expect("close");
    assert_true(l.can_continue);
}

/* The time during which the server itself stood still counts, whatever ends the link. */
static void the_data_are_as_old_as_the_last_byte_that_was_heard(void **state) {
    (void)state;
    linkSetContinuable(&l, true);
    for (int silent = 0; silent < 2; silent++) {
        toPsync();
        receive("+CONTINUE\r\n");
        linkHeard(&l, now_ms += 500);
        int64_t heard_ms = now_ms;
        now_ms += 70000;
        if (silent) {
            linkTick(&l, now_ms);
        } else {
            linkLost(&l, NULL, now_ms);
        }
        assert_int_not_equal(l.state, LINK_CONNECTED);
        assert_int_equal(l.down_ms, heard_ms);
        linkTick(&l, now_ms);
        linkLost(&l, NULL, now_ms += 1000); /* an attempt that fails is no news from the primary */
        assert_int_equal(l.down_ms, heard_ms);
    }
}

static void a_failover_asks_the_primary_to_take_over(void **state) {
    (void)state;
    linkSetContinuable(&l, true);
    l.failover = true;
    toPsync();
    expect("PSYNC_" ID1 "_101_FAILOVER");
    receive("-ERR PSYNC FAILOVER replid must match my replid.\r\n");
    expect("rejected close");
    l.failover = true;
    toPsync();
    strClear(&done);
    receive("+CONTINUE " ID2 "\r\n");
    expect("accepted renamed stream(,0)");
    assert_false(l.failover);
}

static void a_primary_that_has_lost_the_data_is_asked_again_later_and_later(void **state) {
    (void)state;
    settings.keeps_data = true;
    settings.kept_birth = SLICE(ID1);
    linkStart(&l, now_ms);
    for (int delay_ms = 1000, tries = 0; tries < 6; tries++) {
        linkTick(&l, now_ms);
        linkOpened(&l, now_ms);
        receive("+PONG\r\n");
        bool again = strstr(strText(&done), "keeps:" ID1 "," ID2);
        assert_int_equal(again, tries > 0);
        receive("+OK\r\n+OK " ID2 " 1 " PROCESS1 "\r\n+OK\r\n");
        assert_true(l.knows_birth);
        strClear(&done);
        receive("-EMPTYPRIMARY lost\r\n");
        expect("close");
        assert_true(l.refuses);
        linkTick(&l, now_ms + delay_ms - 1);
        expect("");
        now_ms += delay_ms;
        if (delay_ms < 8000) delay_ms *= 2;
    }
    /* It was restored. */
    linkTick(&l, now_ms);
    linkOpened(&l, now_ms);
    receive("+PONG\r\n+OK\r\n+OK - 0 " PROCESS1 "\r\n+OK\r\n+CONTINUE\r\n");
    assert_int_equal(l.state, LINK_CONNECTED);
    assert_false(l.refuses);
}

/* Connects; true if it tells the primary that it keeps data. */
static bool keepsData(const char *process) {
    linkTick(&l, now_ms);
    linkOpened(&l, now_ms);
    strClear(&done);
    receive("+PONG\r\n");
    bool keeps = strstr(strText(&done), "keeps:");
    receive("+OK\r\n+OK");
    if (process[0]) receive(" - 0 ");
    receive(process);
    receive("\r\n+OK\r\n");
    return keeps;
}

/* The connection is lost after this value of REPLCONF GETACK in the stream. */
static void endWith(const char *value) {
    if (l.state == LINK_PSYNC) receive("+CONTINUE\r\n");
    linkNoteGetack(&l, sliceOf(value));
    linkLost(&l, NULL, now_ms);
}

static void a_primary_that_discards_its_data_by_order_is_obeyed_once(void **state) {
    (void)state;
    settings.keeps_data = true;
    settings.kept_birth = SLICE(ID1);
    linkSetContinuable(&l, true);
    linkStart(&l, now_ms);
    assert_true(keepsData(PROCESS1));
    endWith("discards:" PROCESS1);
    assert_true(l.is_discarded);
    /* It is not there at once. */
    linkTick(&l, now_ms);
    linkFailed(&l, "refused", now_ms);
    now_ms += 1000;
    assert_false(keepsData(PROCESS2));
    /* Its stream is followed again: nothing is ordered any more. */
    endWith("*");
    assert_false(l.is_discarded);
    assert_true(keepsData(PROCESS2));
    endWith("discards:" PROCESS2);
    settings.keeps_discarded = true; /* replica-refuse-empty-primary always */
    assert_true(keepsData(PROCESS2));
    linkStart(&l, now_ms); /* another primary */
    assert_false(l.is_discarded);
}

static void the_order_of_another_server_discards_nothing(void **state) {
    (void)state;
    static const char *const values[] = {
        "*", "discards:", "discards:" PROCESS2, "discards:" PROCESS1 "c", "discards", "TURN", ""};
    settings.keeps_data = true;
    linkSetContinuable(&l, true);
    linkStart(&l, now_ms);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_true(keepsData(PROCESS1));
        endWith(values[i]);
        assert_false(l.is_discarded);
    }
    /* A released server, whose primary may be one of ours. */
    assert_true(keepsData(""));
    endWith("discards:" PROCESS1);
    assert_true(keepsData(""));
    endWith("discards:");
    assert_false(l.is_discarded);
    /* Before the stream is followed. */
    assert_true(keepsData(PROCESS1));
    linkNoteGetack(&l, SLICE("discards:" PROCESS1));
    assert_false(l.is_discarded);
}

static void of_other_primaries_a_dataset_without_keys_is_refused(void **state) {
    (void)state;
    settings.keeps_data = true;
    toPsync();
    assert_false(l.knows_birth);
    receive("+FULLRESYNC " ID2 " 5\r\n$9\r\n");
    assert_int_equal(l.state, LINK_TRANSFER);
    assert_true(l.dataset.needs_key);
    strClear(&done);
    linkTransferEnded(&l, LINK_NO_KEY, SLICE(""), now_ms);
    expect("close");
    assert_true(l.refuses);
    /* The stream that is here is no other one. */
    toPsync();
    receive("+FULLRESYNC " ID1 " 5\r\n$9\r\n");
    assert_false(l.dataset.needs_key);
    settings.keeps_data = false;
    toPsync();
    receive("+FULLRESYNC " ID2 " 5\r\n$9\r\n");
    assert_false(l.dataset.needs_key);
}

static void a_dual_channel_synchronisation_collects_the_stream(void **state) {
    (void)state;
    settings.password = SLICE("pw");
    linkStart(&l, now_ms);
    linkTick(&l, now_ms);
    linkOpened(&l, now_ms);
    receive("+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    strClear(&done);
    receive("+DUALCHANNELSYNC\r\n");
    expect("connect2");
    linkSecondOpened(&l, now_ms);
    expect(
        "2:AUTH_pw 2:REPLCONF_capa_eof_capa_member-ttls_capa_path-hashes_rdb-only_1_rdb-channel_1_listening-port_7_version_9.1.2");
    linkSecondReceived(&l, SLICE("+OK\r\n+OK\r\n"), now_ms);
    expect("2:SYNC");
    linkSecondReceived(&l, SLICE("\n$ENDOFF:55 " ID2 " 3 10\r\n$EOF:"), now_ms);
    expect("REPLCONF_set-rdb-client-id_10");
    receive("+OK\r\n");
    expect("PSYNC_" ID2 "_56");
    linkReceived(&l, SLICE("+CONTINUE " ID2 "\r\nlive"), now_ms);
    expect("collect(live)");
    linkSecondReceived(&l, SLICE(ID1 "\r\nRED"), now_ms);
    expect("transfer(-1,RED)");
    assert_int_equal(l.dataset.db, 3);
    assert_string_equal(history.id, ID1);
    linkTransferEnded(&l, LINK_LOADED, SLICE(""), now_ms);
    expect("replaced stream(,1) REPLCONF_ACK_55");
    assert_int_equal(history.offset, 55);
}

/* The dataset was saved under the old id; the stream that follows is the one of the new id. */
static void a_dual_channel_synchronisation_takes_the_id_of_a_primary_promoted_meanwhile(
    void **state) {
    (void)state;
    const char *promoted = "3333333333333333333333333333333333333333";
    toPsync();
    receive("+DUALCHANNELSYNC\r\n");
    linkSecondOpened(&l, now_ms);
    linkSecondReceived(&l, SLICE("+OK\r\n$ENDOFF:55 " ID2 " 3 10\r\n"), now_ms);
    receive("+OK\r\n");
    receive("+CONTINUE 3333333333333333333333333333333333333333\r\n");
    linkSecondReceived(&l, SLICE("$EOF:" ID1 "\r\n"), now_ms);
    linkTransferEnded(&l, LINK_LOADED, SLICE(""), now_ms);
    assert_int_equal(l.state, LINK_CONNECTED);
    assert_string_equal(history.id, promoted);
    assert_int_equal(history.offset, 55);
}

/* The primary stands still after it has started the child that sends the dataset. */
static void a_dual_channel_dataset_is_loaded_before_the_stream_comes(void **state) {
    (void)state;
    for (int stage = 0; stage < 2; stage++) {
        historyAdopt(&history, SLICE(ID1), 100);
        toPsync();
        receive("+DUALCHANNELSYNC\r\n");
        linkSecondOpened(&l, now_ms);
        linkSecondReceived(&l, SLICE("+OK\r\n$ENDOFF:55 " ID2 " 3 10\r\n"), now_ms);
        if (stage == 1) receive("+OK\r\n");
        strClear(&done);
        linkSecondReceived(&l, SLICE("$EOF:" ID1 "\r\nRED"), now_ms);
        expect("transfer(-1,RED)");
        linkTransferEnded(&l, LINK_LOADED, SLICE(""), now_ms);
        expect("replaced");
        assert_int_equal(l.state, stage == 1 ? LINK_SECOND_PSYNC : LINK_CLIENT_ID);
        if (stage == 0) {
            receive("+OK\r\n");
            expect("PSYNC_" ID2 "_56");
        }
        linkReceived(&l, SLICE("+CONTINUE 3333333333333333333333333333333333333333\r\nlive"),
                     now_ms);
        expect("renamed stream(live,1) REPLCONF_ACK_55");
        assert_int_equal(l.state, LINK_CONNECTED);
        assert_string_equal(history.id, "3333333333333333333333333333333333333333");
        assert_string_equal(history.id2, ID2);
        linkStop(&l);
    }
}

static void a_first_connection_that_is_lost_after_the_load_is_opened_again_for_the_rest(
    void **state) {
    (void)state;
    toPsync();
    receive("+DUALCHANNELSYNC\r\n");
    linkSecondOpened(&l, now_ms);
    linkSecondReceived(&l, SLICE("+OK\r\n$ENDOFF:55 " ID2 " 3 10\r\n$EOF:" ID1 "\r\n"), now_ms);
    linkTransferEnded(&l, LINK_LOADED, SLICE(""), now_ms);
    linkLost(&l, NULL, now_ms);
    assert_int_equal(l.state, LINK_CONNECT);
    assert_true(l.can_continue);
    assert_int_equal(l.main, LINK_NONE);
    assert_int_equal(history.offset, 55);
    assert_string_equal(history.id, ID2);
}

static void the_loss_of_the_second_connection_ends_both(void **state) {
    (void)state;
    toPsync();
    strClear(&done);
    receive("+DUALCHANNELSYNC\r\n");
    linkSecondOpened(&l, now_ms);
    linkSecondReceived(&l, SLICE("+OK\r\n$ENDOFF:5 short 0 1\r\n"), now_ms);
    assert_int_equal(l.state, LINK_CONNECT);
    assert_int_equal(l.second, SECOND_NONE);
    toPsync();
    receive("+DUALCHANNELSYNC\r\n");
    linkSecondOpened(&l, now_ms);
    linkSecondReceived(&l, SLICE("+OK\r\n$ENDOFF:9223372036854775807 " ID2 " 0 1\r\n"), now_ms);
    assert_int_equal(l.state, LINK_CONNECT);
}

static void a_line_without_end_on_the_second_connection_is_not_collected(void **state) {
    (void)state;
    char bytes[1100];
    memset(bytes, 'x', sizeof(bytes));
    for (int stage = 0; stage < 2; stage++) {
        toPsync();
        receive("+DUALCHANNELSYNC\r\n");
        linkSecondOpened(&l, now_ms);
        if (stage == 1) linkSecondReceived(&l, SLICE("+OK\r\n"), now_ms);
        linkSecondReceived(&l, sliceMake(bytes, 1000), now_ms);
        assert_int_equal(l.state, LINK_SECOND);
        linkSecondReceived(&l, sliceMake(bytes, 100), now_ms);
        assert_int_equal(l.state, LINK_CONNECT);
        assert_int_equal(l.second, SECOND_NONE);
        assert_int_equal(l.second_received.len, 0);
    }
}

int test_link(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_handshake_sends_what_is_configured, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refused_password_or_ping_is_tried_again_after_a_second,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_partial_resynchronisation_continues_after_the_history,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_primary_may_tell_the_end_of_its_stream_with_continue,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_synchronisation_replaces_the_history, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_id_and_an_offset_that_cannot_be_right_are_not_taken_over,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(in_a_new_stream_nothing_is_acknowledged_while_it_is_held,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_primary_without_psync_is_asked_by_sync_and_gets_no_acknowledgements, setup, teardown),
        cmocka_unit_test_setup_teardown(failed_transfers_are_repeated_more_and_more_slowly, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_cut_connection_is_opened_again_within_a_second, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(silence_ends_every_state, setup, teardown),
        cmocka_unit_test_setup_teardown(the_data_are_as_old_as_the_last_byte_that_was_heard, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_failover_asks_the_primary_to_take_over, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_primary_that_has_lost_the_data_is_asked_again_later_and_later, setup, teardown),
        cmocka_unit_test_setup_teardown(a_primary_that_discards_its_data_by_order_is_obeyed_once,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_order_of_another_server_discards_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(of_other_primaries_a_dataset_without_keys_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_dual_channel_synchronisation_collects_the_stream, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_dual_channel_synchronisation_takes_the_id_of_a_primary_promoted_meanwhile, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_line_without_end_on_the_second_connection_is_not_collected, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dual_channel_dataset_is_loaded_before_the_stream_comes,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_first_connection_that_is_lost_after_the_load_is_opened_again_for_the_rest, setup,
            teardown),
        cmocka_unit_test_setup_teardown(the_loss_of_the_second_connection_ends_both, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

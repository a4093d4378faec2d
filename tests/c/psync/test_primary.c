/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The primary's state machine, with an environment that records what it is asked to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "psync/primary.h"
#include "psync/primary_peer.h"

enum { PEERS_MAX = 4 };

/* A connection as the environment sees it. */
typedef struct fake {
    replPeer peer;
    str out;
    size_t blocked; /* bytes reported as pending */
    bool closed;
    uint64_t id;
} fake;

static struct {
    replServer stream;
    replPrimary primary;
    fake peers[PEERS_MAX];
    int saves, stops, files;
    bool busy, fork_fails;
    primarySave save;
} t;

static fake *fakeOf(const replPeer *peer) { return peer->owner; }

static void envSend(replPeer *to, slice bytes) { strAppendSlice(&fakeOf(to)->out, bytes); }
static void envSendShared(replPeer *to, blob *bytes, size_t at, size_t len) {
    strAppend(&fakeOf(to)->out, bytes->bytes + at, len);
}
static size_t envPending(const replPeer *to) { return fakeOf(to)->blocked; }
static void envClose(replPeer *peer) { fakeOf(peer)->closed = true; }
static void envName(const replPeer *peer, str *out) {
    strAppendFormat(out, "peer:%d", (int)fakeOf(peer)->id);
}
static uint64_t envId(const replPeer *peer) { return fakeOf(peer)->id; }
static status envStartSave(replPrimary *p, const primarySave *save, reason *why) {
    (void)p;
    if (t.fork_fails) return reasonSet(why, ERR_IO, "no fork");
    t.saves++;
    t.save = *save;
    t.busy = true;
    return OK;
}
static void envStopSave(replPrimary *p) {
    (void)p;
    t.stops++;
}
static bool envIsBusy(replPrimary *p) {
    (void)p;
    return t.busy;
}
static status envSendFile(replPeer *to, reason *why) {
    (void)to, (void)why;
    t.files++;
    return OK;
}
static void envNothing(replPrimary *p) { (void)p; }
static int envStreamDb(const replPrimary *p) {
    (void)p;
    return 7;
}
static bool envIsSecure(const replPeer *peer) {
    (void)peer;
    return false;
}

static const primaryEnv env = {.send = envSend,
                               .send_shared = envSendShared,
                               .pending = envPending,
                               .close = envClose,
                               .close_when_sent = envClose,
                               .name = envName,
                               .id = envId,
                               .start_save = envStartSave,
                               .stop_save = envStopSave,
                               .is_busy = envIsBusy,
                               .send_file = envSendFile,
                               .changed = envNothing,
                               .backlog_changed = envNothing,
                               .stream_db = envStreamDb,
                               .is_secure = envIsSecure};

static int setup(void **state) {
    (void)state;
    memset(&t, 0, sizeof(t));
    historyInit(&t.stream.history);
    primaryInit(&t.primary, &env, &t.stream, NULL);
    t.primary.settings = (primarySettings){.diskless = true,
                                           .dual_channel = true,
                                           .ping_period_s = 10,
                                           .timeout_s = 60,
                                           .backlog_limit = 16 * 1024,
                                           .backlog_ttl_s = 3600,
                                           .dataset_grace_s = 5};
    for (int i = 0; i < PEERS_MAX; i++) {
        fake *f = &t.peers[i];
        peerInit(&f->peer, f);
        f->id = (uint64_t)i + 1;
        f->peer.capabilities = PEER_CAN_READ_TO_MARK | PEER_CAN_CONTINUE;
        f->peer.server_version = 0x090102;
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < PEERS_MAX; i++) {
        primaryForget(&t.primary, &t.peers[i].peer, 0);
        peerClear(&t.peers[i].peer);
        strFree(&t.peers[i].out);
    }
    primaryClear(&t.primary);
    return 0;
}

static replPeer *peer(int i) { return &t.peers[i].peer; }
static const char *sent(int i) { return strText(&t.peers[i].out); }
static void psyncFully(int i, int64_t now_ms) {
    primaryPsync(&t.primary, peer(i), SLICE("?"), -1, now_ms);
}
static void childEnds(bool success, int64_t now_ms) {
    t.busy = false;
    primarySaveEnded(&t.primary, success, now_ms);
}
static void append(const char *text) {
    slice span = sliceOf(text);
    primaryAppend(&t.primary, &span, 1);
}

static void test_stream_begins_with_the_first_ack(void **state) {
    (void)state;
    psyncFully(0, 1000);
    assert_int_equal(t.saves, 1);
    assert_int_equal(peer(0)->state, PEER_WAITING_END);
    assert_int_equal(strncmp(sent(0), "+FULLRESYNC ", 12), 0);
    primarySelect(&t.primary, 0);
    append("data");
    childEnds(true, 2000);
    assert_int_equal(peer(0)->state, PEER_ONLINE);
    strClear(&t.peers[0].out);
    primaryFeed(&t.primary);
    assert_string_equal(sent(0), "");
    primaryAck(&t.primary, peer(0), 0, -1, 3000);
    primaryFeed(&t.primary);
    assert_string_equal(sent(0), "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\ndata");
}

static void test_ack_before_the_child_has_ended_counts(void **state) {
    (void)state;
    psyncFully(0, 1000);
    primaryAck(&t.primary, peer(0), 0, -1, 1500);
    childEnds(true, 2000);
    assert_true(peer(0)->streams);
}

static void test_continues_with_both_ids_up_to_their_offsets(void **state) {
    (void)state;
    char old[REPL_ID_LEN + 1];
    primaryOpenBacklog(&t.primary);
    append("12345");
    memcpy(old, t.stream.history.id, sizeof(old));
    historyBranch(&t.stream.history);
    append("678");
    primaryPsync(&t.primary, peer(0), sliceOf(old), 6, 0);
    assert_int_equal(peer(0)->state, PEER_ONLINE);
    primaryPsync(&t.primary, peer(1), sliceOf(old), 7, 0);
    assert_int_equal(peer(1)->state, PEER_WAITING_END);
    primaryPsync(&t.primary, peer(2), sliceOf(t.stream.history.id), 9, 0);
    assert_int_equal(peer(2)->state, PEER_ONLINE);
    primaryFeed(&t.primary);
    assert_non_null(strstr(sent(0), "\r\n678"));
    assert_int_equal(t.primary.partial_syncs, 2);
    assert_int_equal(t.primary.refused_partial_syncs, 1);
    assert_int_equal(t.primary.full_syncs, 1);
}

static void test_a_replica_that_connects_again_counts_once_for_a_quorum(void **state) {
    (void)state;
    primaryOpenBacklog(&t.primary);
    append("12345");
    slice id = sliceOf(t.stream.history.id);
    for (int i = 0; i < 3; i++) {
        peer(i)->capabilities |= PEER_CAN_ACK_TURNS;
        peer(i)->port = 6379;
    }
    t.peers[1].id = 1; /* the address of the first one */
    for (int i = 0; i < 3; i++) {
        primaryPsync(&t.primary, peer(i), id, 1, 0);
        primaryAck(&t.primary, peer(i), 5 - i, -1, 0);
    }
    assert_true(peer(0)->is_former);
    assert_int_equal(primaryQuorumOffset(&t.primary, 1, false), 4);
    assert_int_equal(primaryQuorumOffset(&t.primary, 2, false), 3);
    assert_int_equal(primaryQuorumOffset(&t.primary, 3, false), 0);
    /* Its kind is told where the stream ends. */
    assert_non_null(strstr(sent(2), " 5\r\n"));
}

static void test_delay_and_number_of_replicas(void **state) {
    (void)state;
    t.primary.settings.diskless_delay_s = 5;
    t.primary.settings.diskless_max_replicas = 3;
    psyncFully(0, 1000);
    psyncFully(1, 2000);
    primaryTick(&t.primary, 5900);
    assert_int_equal(t.saves, 0);
    primaryTick(&t.primary, 6000);
    assert_int_equal(t.saves, 1);
    assert_int_equal(peer(1)->state, PEER_WAITING_END);
    psyncFully(2, 7000); /* the next child */
    assert_int_equal(peer(2)->state, PEER_WAITING_START);
    childEnds(true, 8000);
    assert_int_equal(t.saves, 1);
    primaryTick(&t.primary, 12000);
    assert_int_equal(t.saves, 2);
}

static void test_file_is_shared_with_equal_replicas_only(void **state) {
    (void)state;
    t.primary.settings.diskless = false;
    psyncFully(0, 1000);
    assert_true(t.save.to_file);
    append("during");
    psyncFully(1, 1100);
    assert_int_equal(peer(1)->state, PEER_WAITING_END);
    assert_int_equal(peer(1)->sync_offset, peer(0)->sync_offset);
    peer(2)->server_version = 0x080100;
    psyncFully(2, 1200);
    assert_int_equal(peer(2)->state, PEER_WAITING_START);
    childEnds(true, 2000);
    assert_int_equal(t.files, 2);
    assert_int_equal(t.saves, 2); /* for the older one, at once */
    assert_false(t.save.to_file);
    assert_int_equal(t.save.rdb_version, 11);
    primaryFileSent(&t.primary, peer(0), 3000);
    strClear(&t.peers[0].out);
    primaryFeed(&t.primary);
    assert_string_equal(sent(0), "during");
}

/* Replicas that know path hashes get version 81, in a file too; others 80, which cannot be saved,
 * and no share of the file. Without path hashes all are the same. */
static void test_path_hashes_are_for_replicas_that_know_them(void **state) {
    (void)state;
    t.primary.settings.diskless = false;
    t.primary.settings.path_hashes = true;
    peer(0)->server_version = 0x090200;
    psyncFully(0, 1000);
    assert_true(t.save.to_file);
    assert_int_equal(t.save.rdb_version, 81);
    peer(1)->capabilities |= PEER_KNOWS_PATH_HASHES;
    psyncFully(1, 1100);
    assert_int_equal(peer(1)->state, PEER_WAITING_END);
    psyncFully(2, 1200);
    assert_int_equal(peer(2)->state, PEER_WAITING_START);
    childEnds(true, 2000);
    assert_int_equal(t.saves, 2);
    assert_false(t.save.to_file);
    assert_int_equal(t.save.rdb_version, 80);
    childEnds(false, 3000);
    assert_true(t.peers[2].closed);
    primaryForget(&t.primary, peer(2), 3000);
    t.primary.settings.path_hashes = false;
    psyncFully(3, 4000);
    assert_true(t.save.to_file);
    assert_int_equal(t.save.rdb_version, 80);
}

static void test_failures_close_what_they_concern(void **state) {
    (void)state;
    t.fork_fails = true;
    psyncFully(0, 1000);
    assert_true(t.peers[0].closed);
    primaryForget(&t.primary, peer(0), 1000);
    t.fork_fails = false;
    psyncFully(1, 1000);
    psyncFully(2, 1000); /* waits for the next one */
    childEnds(false, 2000);
    assert_true(t.peers[1].closed);
    assert_false(t.peers[2].closed);
    assert_int_equal(t.saves, 2);
    primaryForget(&t.primary, peer(1), 2000);
    assert_int_equal(t.stops, 0);
    primaryForget(&t.primary, peer(2), 2000);
    assert_int_equal(t.stops, 1);
}

static void test_slow_replica_keeps_its_part_of_the_backlog(void **state) {
    (void)state;
    char kilobyte[1025];
    memset(kilobyte, 'x', 1024);
    kilobyte[1024] = 0;
    primaryOpenBacklog(&t.primary);
    for (int i = 0; i < 2; i++) {
        slice id = sliceOf(t.stream.history.id);
        primaryPsync(&t.primary, peer(i), id, 1, 0);
    }
    t.peers[0].blocked = 1 << 20;
    for (int i = 0; i < 200; i++) {
        append(kilobyte);
        primaryFeed(&t.primary);
    }
    int64_t blocks;
    assert_true(peerHeld(&t.primary, peer(0), &blocks) >= 200 * 1024);
    assert_true(peerHeld(&t.primary, peer(1), &blocks) <= 32 * 1024);
    t.peers[0].blocked = 0;
    primaryFeed(&t.primary);
    assert_int_equal(t.peers[0].out.len, t.peers[1].out.len);
    append(kilobyte);
    assert_true(t.stream.backlog.memory < 80 * 1024);
}

static void test_timeouts_pings_and_time_to_live(void **state) {
    (void)state;
    t.primary.settings.backlog_ttl_s = 100;
    primaryOpenBacklog(&t.primary);
    primaryPsync(&t.primary, peer(0), sliceOf(t.stream.history.id), 1, 1000);
    primaryTick(&t.primary, 2000); /* the first period of PING begins */
    primaryTick(&t.primary, 20000);
    primaryFeed(&t.primary);
    assert_non_null(strstr(sent(0), "*1\r\n$4\r\nping\r\n"));
    t.primary.is_paused = true;
    int64_t offset = t.stream.history.offset;
    primaryTick(&t.primary, 40000);
    assert_int_equal(t.stream.history.offset, offset);
    primaryTick(&t.primary, 62000);
    assert_true(t.peers[0].closed);
    primaryForget(&t.primary, peer(0), 62000);
    char id[REPL_ID_LEN + 1];
    memcpy(id, t.stream.history.id, sizeof(id));
    primaryTick(&t.primary, 162000);
    assert_true(t.stream.has_backlog);
    primaryTick(&t.primary, 162001);
    assert_false(t.stream.has_backlog);
    assert_string_not_equal(id, t.stream.history.id);
}

static void test_a_clock_that_is_set_back_stops_no_periods(void **state) {
    (void)state;
    primaryOpenBacklog(&t.primary);
    primaryPsync(&t.primary, peer(0), sliceOf(t.stream.history.id), 1, 9000000);
    primaryTick(&t.primary, 9000000);
    primaryTick(&t.primary, 5000);
    primaryTick(&t.primary, 20000);
    primaryFeed(&t.primary);
    assert_non_null(strstr(sent(0), "*1\r\n$4\r\nping\r\n"));
    primaryTick(&t.primary, 65000);
    assert_false(t.peers[0].closed);
    primaryTick(&t.primary, 65001);
    assert_true(t.peers[0].closed);
}

static void test_ack_beyond_the_end_of_the_stream_counts_nothing_and_closes(void **state) {
    (void)state;
    primaryOpenBacklog(&t.primary);
    append("12345");
    int64_t end = t.stream.history.offset;
    for (int i = 0; i < 3; i++) {
        primaryPsync(&t.primary, peer(i), sliceOf(t.stream.history.id), 1, 1000);
        primaryAck(&t.primary, peer(i), end, end, 3000);
        assert_false(t.peers[i].closed);
    }
    assert_int_equal(primaryCountAcked(&t.primary, end), 3);
    primaryAck(&t.primary, peer(0), end + 1, -1, 3000);
    primaryAck(&t.primary, peer(1), INT64_MAX, -1, 3000);
    primaryAck(&t.primary, peer(2), end, end + 1, 3000);
    for (int i = 0; i < 3; i++) assert_true(t.peers[i].closed);
    append("6789");
    assert_int_equal(primaryCountAcked(&t.primary, end + 1), 0);
    assert_int_equal(primaryCountFsynced(&t.primary, end + 1), 0);
}

static void test_a_reader_of_a_backup_gets_the_stream_and_counts_for_nothing(void **state) {
    (void)state;
    primaryOpenBacklog(&t.primary);
    append("12345");
    int64_t end = t.stream.history.offset;
    for (int i = 0; i < 2; i++) {
        peer(i)->is_backup = i == 0;
        peer(i)->capabilities |= PEER_CAN_ACK_TURNS;
        primaryPsync(&t.primary, peer(i), sliceOf(t.stream.history.id), 1, 1000);
        primaryAck(&t.primary, peer(i), end, end, 1000);
        primaryFeed(&t.primary);
        assert_non_null(strstr(sent(i), "12345"));
    }
    assert_int_equal(primaryCountAcked(&t.primary, end), 1);
    assert_int_equal(primaryCountFsynced(&t.primary, end), 1);
    assert_int_equal(primaryCountGood(&t.primary, 10, 1000), 1);
    assert_int_equal(primaryReplicaCount(&t.primary), 1);
    assert_int_equal(primaryQuorumOffset(&t.primary, 1, false), end);
    assert_int_equal(primaryQuorumOffset(&t.primary, 2, false), 0);
}

static void test_dual_channel_holds_the_stream_for_the_main_channel(void **state) {
    (void)state;
    peer(0)->capabilities |= PEER_CAN_DUAL_CHANNEL;
    psyncFully(0, 1000);
    assert_string_equal(sent(0), "+DUALCHANNELSYNC\r\n");
    assert_int_equal(peer(0)->state, PEER_NONE);
    peer(1)->is_dataset_channel = peer(1)->only_dataset = true;
    primarySync(&t.primary, peer(1), 1000);
    primaryStartSoon(&t.primary, 1000);
    assert_int_equal(strncmp(sent(1), "$ENDOFF:0 ", 10), 0);
    assert_true(primaryHasDatasetChannel(&t.primary, 2));
    append("since");
    peer(0)->dataset_channel = 2;
    strClear(&t.peers[0].out);
    primaryPsync(&t.primary, peer(0), sliceOf(t.stream.history.id), 1, 1500);
    assert_int_equal(peer(0)->state, PEER_MAIN_CHANNEL);
    assert_false(primaryHasDatasetChannel(&t.primary, 2));
    primaryFeed(&t.primary);
    assert_non_null(strstr(sent(0), "since"));
    childEnds(true, 2000);
    assert_int_equal(peer(1)->state, PEER_TRANSMITTED);
    assert_true(t.peers[1].closed);
    primaryAck(&t.primary, peer(0), 5, -1, 3000);
    assert_int_equal(peer(0)->state, PEER_ONLINE);
    assert_int_equal(primaryCountAcked(&t.primary, 5), 1);
}

static void test_chained_primary_tells_the_database_of_its_stream(void **state) {
    (void)state;
    primarySetRole(&t.primary, true, true);
    peer(1)->is_dataset_channel = peer(1)->only_dataset = true;
    primarySync(&t.primary, peer(1), 1000);
    primaryStartSoon(&t.primary, 1000);
    str expected = STR_EMPTY;
    strAppendFormat(&expected, "$ENDOFF:0 %s 7 2\r\n", t.stream.history.id);
    assert_string_equal(sent(1), strText(&expected));
    strFree(&expected);
}

static void test_dataset_channel_without_main_channel_is_closed(void **state) {
    (void)state;
    peer(1)->is_dataset_channel = peer(1)->only_dataset = true;
    primarySync(&t.primary, peer(1), 1000);
    primaryStartSoon(&t.primary, 1000);
    childEnds(true, 2000);
    primaryTick(&t.primary, 6900);
    assert_false(t.peers[1].closed);
    primaryTick(&t.primary, 7000);
    assert_true(t.peers[1].closed);
}

int test_primary(void) {
    logSetLevel(LOG_NOTHING);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_reader_of_a_backup_gets_the_stream_and_counts_for_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stream_begins_with_the_first_ack, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ack_before_the_child_has_ended_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_continues_with_both_ids_up_to_their_offsets, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_replica_that_connects_again_counts_once_for_a_quorum,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_delay_and_number_of_replicas, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file_is_shared_with_equal_replicas_only, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_path_hashes_are_for_replicas_that_know_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_failures_close_what_they_concern, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_replica_keeps_its_part_of_the_backlog, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_timeouts_pings_and_time_to_live, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_clock_that_is_set_back_stops_no_periods, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_ack_beyond_the_end_of_the_stream_counts_nothing_and_closes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dual_channel_holds_the_stream_for_the_main_channel,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_chained_primary_tells_the_database_of_its_stream,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_dataset_channel_without_main_channel_is_closed, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("primary", tests, NULL, NULL);
}

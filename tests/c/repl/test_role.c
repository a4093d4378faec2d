/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The role of a server as other subsystems change and query it (repl/role.h), with the features of
 * a server, a listener of its events, and sessions on socket pairs as replicas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "config/config.h"
#include "engine/engine.h"
#include "engine/execute.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"
#include "engine/pause.h"
#include "engine/server_event.h"
#include "engine/transaction.h"
#include "net/net.h"
#include "persist/persist.h"
#include "repl/procs.h"
#include "repl/repl.h"
#include "repl/repl_priv.h"
#include "repl/replicas.h"
#include "repl/role.h"
#include "repl/server_state.h"
#include "store/store.h"

static str heard = STR_EMPTY;

static void onEvent(const serverEvent *e) {
    if (e->kind == SERVER_ROLE) {
        strAppendFormat(&heard, "role %d %.*s %d;", e->role.is_replica, (int)e->role.host.len,
                        e->role.host.ptr, e->role.port);
    } else if (e->kind == SERVER_REPLICA) {
        strAppendFormat(&heard, "replica %d;", e->replica.online);
    } else {
        strAppendFormat(&heard, "link %d;", e->link.up);
    }
}

static void expectHeard(const char *want) {
    assert_string_equal(strText(&heard), want);
    strClear(&heard);
}

static loop *test_loop;

static int setUp(void **state) {
    (void)state;
    static const feature *const features[] = {&engineFeature, &memoryFeature,  &keyspaceFeature,
                                              &netFeature,    &persistFeature, &replFeature};
    static const gate *const gates[] = {
        &noMultiGate,         &replicaStreamGate,   &replicaDiskGate,
        &replicaRedirectGate, &loadingGate,         &asyncLoadingGate,
        &snapshotErrorGate,   &aofErrorGate,        &minReplicasGate,
        &replicaKeyspaceGate, &replicaReadOnlyGate, &replicaStaleGate,
        &memoryGate,          &pauseGate,           &queueGate};
    const configOption *tables[] = {engineFeature.options, netFeature.options,
                                    persistFeature.options, replFeature.options};
    clockInit();
    hooksInstall(features, COUNT_OF(features), gates, COUNT_OF(gates));
    configInstall(tables, COUNT_OF(tables));
    storeInit(1, false);
    executeNewTurn();
    test_loop = loopNew("poll", NULL);
    netSetLoop(test_loop);
    engineSetLoop(test_loop);
    reason why;
    for (size_t i = 0; i < COUNT_OF(features); i++) {
        if (features[i]->init && features[i]->init(&why) != OK) return 1;
    }
    serverEventsListen(onEvent, 1u << SERVER_ROLE | 1u << SERVER_REPLICA | 1u << SERVER_LINK);
    return 0;
}

static int tearDown(void **state) {
    (void)state;
    serverEventsListen(onEvent, 0);
    replStop();
    netCloseAll();
    loopFree(test_loop);
    configUninstall();
    hooksUninstall();
    storeShutdown();
    strFree(&heard);
    return 0;
}

static void following_and_promotion_change_the_role_and_are_signalled(void **state) {
    (void)state;
    replLinkInfo link;
    assert_false(replIsReplica());
    replLinkRead(&link);
    assert_int_equal(link.phase, REPL_LINK_NONE);
    assert_int_equal(replLinkAgeMs(), 0);
    /* Nothing listens at port 1. */
    assert_true(replFollow(SLICE("127.0.0.1"), 1));
    assert_true(replIsReplica());
    assert_string_equal(replRole(), "replica");
    expectHeard("role 1 127.0.0.1 1;");
    replLinkRead(&link);
    assert_int_equal(link.phase, REPL_LINK_CONNECTING);
    assert_true(sliceIs(link.host, "127.0.0.1"));
    assert_int_equal(link.port, 1);
    assert_int_equal(link.down_ms, -1);
    assert_int_equal(replLinkAgeMs(), -1);
    assert_false(replFollow(SLICE("127.0.0.1"), 1));
    expectHeard("");
    char id[41];
    strcpy(id, replId());
    replPromote();
    assert_false(replIsReplica());
    expectHeard("role 0  0;");
    /* What it had of its own can be continued: the id of before is the second one. */
    assert_string_equal(replSecondId(), id);
    assert_string_not_equal(replId(), id);
    assert_int_equal(replSecondOffset(), replOffset() + 1);
    replPromote();
    expectHeard("");
}

static bool count(const replPeerInfo *peer, void *arg) {
    assert_true(peer->online);
    assert_true(sliceIs(peer->ip, "10.1.2.3"));
    assert_int_equal(peer->port, 7000);
    assert_string_equal(peer->state, "online");
    assert_int_equal(peer->offset, *(int64_t *)arg);
    (*(int64_t *)arg)++;
    return false; /* there is one more, which is not visited */
}

static void replicas_are_listed_with_address_offset_and_state(void **state) {
    (void)state;
    session who[2];
    slice bytes = SLICE("1234567");
    primaryOpenBacklog(replicasThis());
    primaryAppend(replicasThis(), &bytes, 1);
    for (int i = 0; i < 2; i++) {
        sessionInit(&who[i], NULL, SESSION_LOCAL);
        replPeer *peer = replicasPeer(&who[i]);
        peer->ip = strNew(SLICE("10.1.2.3"));
        peer->port = 7000;
        replicasEnlist(&who[i]);
        primaryPsync(replicasThis(), peer, sliceOf(replId()), replOffset() + 1, 0);
        assert_int_equal(peer->state, PEER_ONLINE);
        primaryAck(replicasThis(), peer, 7, -1, 0);
    }
    expectHeard("replica 1;replica 1;");
    int64_t offset = 7;
    replPeersEach(count, &offset);
    assert_int_equal(offset, 8);
    for (int i = 0; i < 2; i++) sessionClear(&who[i]);
    expectHeard("replica 0;replica 0;");
}

static void a_held_stream_gets_nothing_that_is_not_a_write(void **state) {
    (void)state;
    session who;
    sessionInit(&who, NULL, SESSION_LOCAL);
    replPeer *peer = replicasPeer(&who);
    primaryOpenBacklog(replicasThis());
    replicasEnlist(&who);
    primaryPsync(replicasThis(), peer, sliceOf(replId()), replOffset() + 1, 0);
    replHoldStream(true);
    int64_t before = replOffset();
    primaryWantAcks(replicasThis());
    primaryFeed(replicasThis());
    assert_int_equal(replOffset(), before);
    replHoldStream(false);
    primaryFeed(replicasThis());
    assert_true(replOffset() > before); /* the GETACK */
    sessionClear(&who);
    strClear(&heard);
}

static void forward(int db_id, const char *bytes, int db_after) {
    slice span = sliceOf(bytes);
    replForward(db_id, &span, 1, db_after);
}

static void bytes_of_other_streams_are_forwarded_with_their_database(void **state) {
    (void)state;
    char tail[256];
    primaryOpenBacklog(replicasThis());
    replicasThis()->stream_db = -1;
    int64_t before = replOffset();
    forward(0, "FIRST;", 0);
    forward(-1, "SELECT 3;", 3); /* continues, and selects within */
    forward(0, "SECOND;", 0);    /* of another stream */
    forward(0, "THIRD;", 0);
    size_t len = backlogTail(&replThis()->backlog, tail, (size_t)(replOffset() - before));
    tail[len] = 0;
#define SELECT_0 "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
    assert_string_equal(tail, SELECT_0 "FIRST;SELECT 3;" SELECT_0 "SECOND;THIRD;");
}

int test_role(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(following_and_promotion_change_the_role_and_are_signalled),
        cmocka_unit_test(replicas_are_listed_with_address_offset_and_state),
        cmocka_unit_test(bytes_of_other_streams_are_forwarded_with_their_database),
        cmocka_unit_test(a_held_stream_gets_nothing_that_is_not_a_write),
    };
    return cmocka_run_group_tests_name("repl/role", tests, setUp, tearDown);
}

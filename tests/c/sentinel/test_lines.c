/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sentinel/lines.h: what is written is read back to the same state. */
#include "sentinel_test.h"

enum { RUNS = 300 };

typedef struct lineList {
    str lines[256];
    int count;
} lineList;

static void keep(void *arg, slice line, bool is_default) {
    if (is_default) return;
    lineList *l = arg;
    assert_true(l->count < 256);
    l->lines[l->count++] = strNew(line);
}

static void freeLines(lineList *l) {
    for (int i = 0; i < l->count; i++) strFree(&l->lines[i]);
    l->count = 0;
}

/* Reads the lines into an empty view, in the order of their ranks. */
static void readBack(const lineList *l) {
    sentinelViewClear(&view);
    beginView();
    memset(view.id, 0, sizeof(view.id));
    for (int rank = 0; rank < SENTINEL_LINE_RANKS; rank++) {
        for (int i = 0; i < l->count; i++) {
            str *words;
            slice first;
            int count;
            assert_true(strSplitWords(strSlice(&l->lines[i]), &words, &count));
            first = strSlice(&words[0]);
            if (sentinelLineRank(&first, 1) == rank) takeLine(strText(&l->lines[i]), OK);
            strFreeWords(words, count);
        }
    }
}

static void assert_survives(void) {
    lineList before = {.count = 0}, after = {.count = 0};
    sentinelLinesWrite(&view, keep, &before);
    readBack(&before);
    sentinelLinesWrite(&view, keep, &after);
    assert_int_equal(before.count, after.count);
    for (int i = 0; i < before.count; i++)
        assert_string_equal(strText(&before.lines[i]), strText(&after.lines[i]));
    freeLines(&before);
    freeLines(&after);
}

static str randomText(const char *letters) {
    str text = STR_EMPTY;
    for (uint64_t n = 1 + randomUniform(12); n; n--)
        strAppendByte(&text, letters[randomUniform(strlen(letters))]);
    return text;
}

static void addRandomPrimary(void) {
    sentinelInstance *primary, *other;
    str name = randomText("ab '\"\\#:-x\xc3"), secret = randomText("a \"'\\#\t\n\xff");
    if (sentinelAddPrimary(&view, strSlice(&name), SLICE("10.0.0.2"), (int64_t)randomUniform(65536),
                           1 + (int64_t)randomUniform(5), &primary) == OK) {
        primary->down_after_ms = 1 + (int64_t)randomUniform(SENTINEL_TIME_MAX_MS);
        primary->failover_timeout_ms = 1 + (int64_t)randomUniform(SENTINEL_TIME_MAX_MS);
        primary->parallel_syncs = (int64_t)randomUniform(3);
        primary->refused_after_ms = (int64_t)randomUniform(3);
        primary->reboot_down_after_ms = (int64_t)randomUniform(3);
        primary->config_epoch = randomUniform(SENTINEL_EPOCH_MAX);
        primary->leader_epoch = randomUniform(SENTINEL_EPOCH_MAX);
        if (randomUniform(2)) primary->leader = strNew(sliceOf(peer_id));
        if (primary->config_epoch > view.current_epoch) view.current_epoch = primary->config_epoch;
        primary->auth_pass = strNew(strSlice(&secret));
        sentinelRename(primary, SLICE("PING"), strSlice(&secret));
        for (int i = 0; i < 3; i++) {
            /* Some are there already. */
            (void)!sentinelAddReplica(&view, primary, SLICE("::1"), (int64_t)randomUniform(3),
                                      &other);
            (void)!sentinelAddPeer(&view, primary, SLICE("10.0.0.9"), (int64_t)randomUniform(3),
                                   randomUniform(2) ? sliceOf(peer_id) : sliceOf(third_id), &other);
        }
    }
    strFree(&name);
    strFree(&secret);
}

static void random_states_are_read_back(void **state) {
    (void)state;
    randomSeed(7);
    for (int run = 0; run < RUNS; run++) {
        beginView();
        for (uint64_t n = randomUniform(4); n; n--) addRandomPrimary();
        view.announce_port = (int)randomUniform(3);
        view.announce_hostnames = randomUniform(2);
        view.resolve_hostnames = randomUniform(2);
        view.deny_scripts = randomUniform(2);
        view.pass = randomText("a \"'\\#\n");
        view.user = randomText("a \"'\\#\n");
        assert_survives();
        endView();
    }
}

static void a_host_without_an_address_is_written_by_its_name(void **state) {
    (void)state;
    sentinelInstance *primary;
    beginView();
    view.resolve_hostnames = true;
    assert_int_equal(sentinelAddPrimary(&view, SLICE("a b"), SLICE("no.such.host"), 1, 1, &primary),
                     OK);
    assert_survives();
    assert_non_null(sentinelFindPrimaryAt(&view, SLICE("no.such.host"), 1));
    endView();
}

static void names_that_get_the_same_address_are_written_once(void **state) {
    (void)state;
    sentinelInstance *primary, *other;
    beginView();
    primary = addPrimary();
    view.resolve_hostnames = true;
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("one.name"), 1, &other), OK);
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.5"), 1, &other), OK);
    SENTINEL_EACH(i, &primary->replicas) memcpy(i->addr.ip, "10.0.0.5", 9);
    for (int hostnames = 0; hostnames < 2; hostnames++) {
        view.announce_hostnames = hostnames;
        lineList lines = {.count = 0};
        sentinelLinesWrite(&view, keep, &lines);
        int count = 0;
        for (int i = 0; i < lines.count; i++)
            count += !strncmp(strText(&lines.lines[i]), "known-replica", 13);
        assert_int_equal(count, 1);
        freeLines(&lines);
    }
    endView();
}

static void values_are_written_though_they_are_the_defaults_of_debug(void **state) {
    (void)state;
    sentinelInstance *primary;
    beginView();
    view.periods.down_after = 1234;
    view.periods.failover_timeout = 4321;
    assert_int_equal(sentinelAddPrimary(&view, SLICE("m"), SLICE("10.0.0.2"), 1, 1, &primary), OK);
    assert_survives();
    primary = sentinelFindPrimary(&view, SLICE("m"));
    assert_int_equal(primary->down_after_ms, 1234);
    assert_int_equal(primary->failover_timeout_ms, 4321);
    endView();
}

static void a_promotion_is_written_as_done(void **state) {
    (void)state;
    lineList lines = {.count = 0};
    beginView();
    sentinelInstance *primary = addPrimary(), *replica;
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.3"), 6379, &replica), OK);
    primary->promoted = replica;
    primary->flags |= INSTANCE_FAILOVER;
    primary->step = FAILOVER_RECONF_REPLICAS;
    sentinelLinesWrite(&view, keep, &lines);
    readBack(&lines);
    assert_non_null(sentinelFindPrimaryAt(&view, SLICE("10.0.0.3"), 6379));
    primary = sentinelFindPrimary(&view, SLICE("mym"));
    assert_non_null(sentinelFindReplica(primary, SLICE("10.0.0.2"), 6379));
    assert_int_equal(primary->replicas.count, 1);
    freeLines(&lines);
    endView();
}

/* A replica that was promoted during a restart is not taken for an old primary. */
static void a_vote_is_written_with_those_that_followed_while_it_matters(void **state) {
    (void)state;
    sentinelInstance *replica, *other;
    beginView();
    sentinelInstance *primary = addPrimary();
    assert_int_equal(
        sentinelAddPeer(&view, primary, SLICE("10.0.0.8"), 1, sliceOf(peer_id), &other), OK);
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.3"), 6379, &replica), OK);
    assert_int_equal(sentinelAddReplica(&view, primary, SLICE("10.0.0.4"), 6379, &other), OK);
    sentinelInfo(&view, replica,
                 SLICE("run_id:4444444444444444444444444444444444444444\r\n"
                       "role:slave\r\nmaster_host:10.0.0.2\r\nmaster_port:6379\r\n"));
    sentinelVote(&view, primary, 3, sliceOf(peer_id));
    assert_survives();
    primary = sentinelFindPrimary(&view, SLICE("mym"));
    assert_string_equal(strText(&primary->leader), peer_id);
    replica = sentinelFindReplica(primary, SLICE("10.0.0.3"), 6379);
    other = sentinelFindReplica(primary, SLICE("10.0.0.4"), 6379);
    assert_true(replica->was_replica);
    assert_false(other->was_replica);
    sentinelInfo(&view, replica,
                 SLICE("run_id:4444444444444444444444444444444444444444\r\nrole:master\r\n"));
    sentinelInfo(&view, other, SLICE("role:master\r\n"));
    assert_true(sentinelIsUnfinished(&view, replica));
    assert_false(sentinelIsUnfinished(&view, other));
    /* Released programs refuse these lines. */
    lineList lines = {.count = 0};
    primary->config_epoch = 3;
    sentinelLinesWrite(&view, keep, &lines);
    for (int i = 0; i < lines.count; i++) {
        assert_null(strstr(strText(&lines.lines[i]), "leader-vote"));
        assert_null(strstr(strText(&lines.lines[i]), "follower"));
    }
    freeLines(&lines);
    endView();
}

static void wrong_lines_are_refused(void **state) {
    (void)state;
    beginView();
    (void)addPrimary();
    takeLine("monitor mym 10.0.0.3 1 1", ERR_EXISTS);
    takeLine("monitor other 10.0.0.3 1 0", ERR_RANGE);
    takeLine("monitor other 10.0.0.3 65536 1", ERR_RANGE);
    takeLine("monitor other not.literal 1 1", ERR_NOT_FOUND);
    takeLine("monitor \"\" 10.0.0.3 1 1", ERR_SYNTAX);
    takeLine("monitor a,b 10.0.0.3 1 1", ERR_SYNTAX);
    takeLine("down-after-milliseconds mym 0", ERR_RANGE);
    takeLine("down-after-milliseconds another 1", ERR_NOT_FOUND);
    takeLine("down-after-milliseconds other 1", OK); /* the error of its monitor line is enough */
    takeLine("down-after-milliseconds mym", ERR_SYNTAX);
    takeLine("notification-script mym /no/such/file", ERR_NOT_FOUND);
    takeLine("known-replica mym 10.0.0.4 1", OK);
    takeLine("known-replica mym 10.0.0.4 1", ERR_EXISTS);
    takeLine("rename-command mym PING PONG", OK);
    takeLine("rename-command mym ping PANG", ERR_EXISTS);
    takeLine("current-epoch 99999999999999999999", OK);
    assert_int_equal(view.current_epoch, 0);
    takeLine("config-epoch mym 7", OK);
    assert_int_equal(view.current_epoch, 7);
    endView();
}

int test_lines(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_states_are_read_back),
        cmocka_unit_test(a_host_without_an_address_is_written_by_its_name),
        cmocka_unit_test(names_that_get_the_same_address_are_written_once),
        cmocka_unit_test(values_are_written_though_they_are_the_defaults_of_debug),
        cmocka_unit_test(a_promotion_is_written_as_done),
        cmocka_unit_test(a_vote_is_written_with_those_that_followed_while_it_matters),
        cmocka_unit_test(wrong_lines_are_refused),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}

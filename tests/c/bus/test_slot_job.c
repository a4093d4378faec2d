/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/slot_ranges.h and bus/slot_job.h: words, the table of states, the log of jobs. */
#include "bus_test.h"

#include "bus/slot_job.h"

static clusterMap map;
static clusterNode *other;
static slotLog log_;

static int setup(void **state) {
    clusterMapInit(&map, 0);
    other = addNode(&map, 1);
    for (int slot = 0; slot < 100; slot++) clusterMapSetOwner(&map, slot, map.myself);
    for (int slot = 100; slot < 200; slot++) clusterMapSetOwner(&map, slot, other);
    slotLogInit(&log_);
    return 0;
}

static int teardown(void **state) {
    slotLogClear(&log_);
    clusterMapClear(&map);
    return 0;
}

/* ------------------------------------------------------------------ ranges */

/* Parses words separated by blanks; the error, "" if there is none. */
static const char *parse(const char *text, slotRanges *out, int *used, clusterNode **owner) {
    static reason why;
    static char words[256];
    slice argv[16];
    int argc = 0;
    snprintf(words, sizeof(words), "%s", text);
    for (char *at = strtok(words, " "); at; at = strtok(NULL, " ")) argv[argc++] = sliceOf(at);
    status st = slotRangesParse(out, &map, argc, argv, used, owner, &why);
    return st == OK ? "" : why.text;
}

static void assert_error(const char *text, const char *error) {
    slotRanges r;
    int used;
    clusterNode *owner;
    assert_string_equal(parse(text, &r, &used, &owner), error);
    slotRangesClear(&r);
}

static void ranges_are_read_up_to_the_first_other_word(void **state) {
    slotRanges r;
    int used;
    clusterNode *owner;
    str text = STR_EMPTY;
    assert_string_equal(parse("0 5 7 7 NODE x", &r, &used, &owner), "");
    assert_int_equal(used, 4);
    assert_ptr_equal(owner, map.myself);
    slotRangesPrint(&r, &text);
    assert_string_equal(strText(&text), "0-5 7-7");
    assert_true(slotRangesHave(&r, 5));
    assert_false(slotRangesHave(&r, 6));
    assert_true(slotRangesAreOf(&r, &map, map.myself));
    clusterMapSetOwner(&map, 3, other);
    assert_false(slotRangesAreOf(&r, &map, map.myself));
    slotMask mask = {{0}};
    slotRangesAddTo(&r, &mask);
    assert_true(slotMaskHas(&mask, 7));
    assert_false(slotMaskHas(&mask, 6));
    strFree(&text);
    slotRangesClear(&r);
}

static void errors_are_those_of_the_released_server(void **state) {
    assert_error("", "No slot ranges specified");
    assert_error("x 1", "No slot ranges specified");
    assert_error("5 x", "Invalid or out of range slot");
    assert_error("5 99999", "Invalid or out of range slot");
    assert_error("-1 5", "Invalid or out of range slot");
    assert_error("5", "No end slot for final slot range");
    assert_error("1 5 7", "No end slot for final slot range");
    assert_error("5 3", "Start slot number 5 is greater than end slot number 3.");
    assert_error("5 5 200 300", "Slot 200 has no node served.");
    assert_error("5 5 150 151", "Requested slots span multiple shards");
    assert_error("99 100", "Requested slots span multiple shards");
    assert_error("1 5 3 6", "Slot range 3-6 overlaps with previous range 1-5.");
}

static void words_end_at_a_nul(void **state) {
    assert_true(slotWordIs(SLICE("slotsRange"), "slotsrange"));
    assert_true(slotWordIs(sliceMake("SLOTSRANGE\0", 11), "slotsrange"));
    assert_false(slotWordIs(SLICE("slotsranges"), "slotsrange"));
    assert_false(slotWordIs(SLICE(""), "slotsrange"));
}

/* ------------------------------------------------------------------ states */

typedef struct expected {
    slotJobState state;
    slotJobEvent event;
    slotJobState next;
    uint32_t acts;
} expected;

/* Every transition there is, in the order of the life of a job. */
static const expected life[] = {
    {JOB_CONNECTING, JOB_OPENED, JOB_SENDING_ESTABLISH, JOB_ACT_SEND_ESTABLISH},
    {JOB_SENDING_AUTH, JOB_SENT, JOB_READING_AUTH, 0},
    {JOB_READING_AUTH, JOB_REPLIED_OK, JOB_SENDING_ESTABLISH, JOB_ACT_SEND_ESTABLISH},
    {JOB_SENDING_ESTABLISH, JOB_SENT, JOB_READING_ESTABLISH, 0},
    {JOB_READING_ESTABLISH, JOB_REPLIED_OK, JOB_WAITING_SNAPSHOT, JOB_ACT_SEND_ACK},
    {JOB_WAITING_SNAPSHOT, JOB_SNAPSHOT_BEGINS, JOB_SNAPSHOTTING, 0},
    {JOB_SNAPSHOTTING, JOB_SNAPSHOT_SENT, JOB_REPLICATING, JOB_ACT_SEND_EOF},
    {JOB_REPLICATING, JOB_REQUEST_PAUSE, JOB_WAITING_PAUSE, 0},
    {JOB_WAITING_PAUSE, JOB_DRAINED, JOB_PAUSED, JOB_ACT_PAUSE | JOB_ACT_SEND_PAUSED},
    {JOB_PAUSED, JOB_REQUEST_FAILOVER, JOB_GRANTED, JOB_ACT_PAUSE | JOB_ACT_SEND_GRANTED},
    {JOB_GRANTED, JOB_OWNER_SEEN, JOB_SUCCESS, JOB_ACT_END},
    {JOB_WAITING_ACK, JOB_ACK, JOB_RECEIVING, 0},
    {JOB_RECEIVING, JOB_SNAPSHOT_EOF, JOB_WAITING_PAUSED, JOB_ACT_SEND_REQUEST_PAUSE},
    {JOB_WAITING_PAUSED, JOB_PAUSED_WORD, JOB_REQUESTED, JOB_ACT_SEND_REQUEST_FAILOVER},
    {JOB_REQUESTED, JOB_GRANTED_WORD, JOB_TAKING, JOB_ACT_TAKE},
    {JOB_TAKING, JOB_TAKEN, JOB_SUCCESS, JOB_ACT_END},
    {JOB_CLEANING, JOB_CLEANED, JOB_FAILED, JOB_ACT_END},
};

static const expected *expectedOf(slotJobState state, slotJobEvent event) {
    for (size_t i = 0; i < sizeof(life) / sizeof(life[0]); i++) {
        if (life[i].state == state && life[i].event == event) return &life[i];
    }
    return NULL;
}

static void each_event_in_each_state_is_a_row_of_the_table_or_an_error(void **state) {
    for (int s = 0; s < JOB_STATES; s++) {
        for (int e = 0; e <= JOB_CLEANED; e++) {
            const expected *row = expectedOf((slotJobState)s, (slotJobEvent)e);
            bool heeds = e == JOB_ACK && s < JOB_ON_PRIMARY;
            slotJobState next;
            uint32_t acts;
            assert_int_equal(slotJobOn((slotJobState)s, (slotJobEvent)e, false, &next, &acts),
                             row != NULL || heeds);
            assert_int_equal(next, row ? (int)row->next : s);
            assert_int_equal(acts, row ? row->acts : 0);
        }
    }
}

static void a_password_is_sent_first(void **state) {
    slotJobState next;
    uint32_t acts;
    assert_true(slotJobOn(JOB_CONNECTING, JOB_OPENED, true, &next, &acts));
    assert_int_equal(next, JOB_SENDING_AUTH);
    assert_int_equal(acts, JOB_ACT_SEND_AUTH);
}

/* ------------------------------------------------------------------ the log */

static slotJob *addJob(int first, int last) {
    const slotRange range = {first, last};
    slotRanges r = slotRangesCopy(&range, 1);
    return slotLogAdd(&log_, false, SLICE(""), &r, 100);
}

static void jobs_are_found_by_name_and_by_slots_while_they_are_active(void **state) {
    slotJob *a = addJob(0, 5), *b = addJob(10, 20);
    const slotRange range = {5, 10};
    slotRanges both = slotRangesCopy(&range, 1);
    assert_ptr_equal(slotJobOf(listFirst(&log_.jobs)), b);
    assert_ptr_equal(slotLogFind(&log_, sliceMake(a->name, 40)), a);
    assert_null(slotLogFind(&log_, sliceMake(a->name, 39)));
    assert_ptr_equal(slotLogOverlapping(&log_, &both), b);
    slotLogSetState(&log_, b, JOB_SUCCESS, 101);
    assert_ptr_equal(slotLogOverlapping(&log_, &both), a);
    assert_int_equal(log_.active, 1);
    slotLogSetState(&log_, a, JOB_CANCELLED, 102);
    assert_null(slotLogOverlapping(&log_, &both));
    assert_int_equal(a->updated_s, 102);
    assert_int_equal(log_.active, 0);
    slotRangesClear(&both);
}

static void the_oldest_ended_jobs_are_removed_and_active_ones_stay(void **state) {
    slotJob *jobs[4];
    for (int i = 0; i < 4; i++) jobs[i] = addJob(i, i);
    slotLogSetState(&log_, jobs[1], JOB_FAILED, 101);
    slotLogSetState(&log_, jobs[2], JOB_SUCCESS, 101);
    slotLogTrim(&log_, 3);
    assert_int_equal(log_.jobs.count, 3);
    assert_ptr_equal(slotJobOf(listFirst(&log_.jobs)), jobs[3]);
    assert_ptr_equal(slotJobOf(log_.jobs.head.prev), jobs[0]);
    slotLogTrim(&log_, 0);
    assert_int_equal(log_.jobs.count, 2);
    assert_int_equal(log_.active, 2);
}

int test_slot_job(void);
int test_slot_job(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(ranges_are_read_up_to_the_first_other_word),
        CASE(errors_are_those_of_the_released_server),
        CASE(words_end_at_a_nul),
        CASE(each_event_in_each_state_is_a_row_of_the_table_or_an_error),
        CASE(a_password_is_sent_first),
        CASE(jobs_are_found_by_name_and_by_slots_while_they_are_active),
        CASE(the_oldest_ended_jobs_are_removed_and_active_ones_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

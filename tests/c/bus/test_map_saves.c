/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/map_saves.h: what waits for which save of the map. */
#include "bus_test.h"

#include "base/base.h"
#include "bus/map_saves.h"

static clusterMap map;
static mapSaves saves;
static saveMarks marks;
static bool flush;

static int setup(void **state) {
    clusterMapInit(&map, 0);
    clusterMapSetId(&map, map.myself, idOf(1).text);
    clusterMapSetOwner(&map, 1, map.myself);
    map.changed = 0;
    mapSavesInit(&saves, &map);
    memset(&marks, 0, sizeof(marks));
    return 0;
}

static int teardown(void **state) {
    clusterMapClear(&map);
    return 0;
}

static void vote(uint64_t epoch) {
    clusterMapSetEpochs(&map, epoch, epoch);
    mapSavesTake(&saves, &map, false);
    assert_int_equal(map.changed & (CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC), 0);
}

static bool isUnsaved(int slot) {
    const uint64_t *unsaved = mapSavesUnsaved(&saves);
    return unsaved && unsaved[slot / 64] >> slot % 64 & 1;
}

static void a_change_that_nothing_depends_on_is_saved_without_a_flush(void **state) {
    clusterMapSetText(&map, &map.myself->hostname, SLICE("name.example"));
    mapSavesTake(&saves, &map, false);
    assert_false(mapSavesIsPending(&saves));
    assert_true(mapSavesBegin(&saves, &map, 5, &flush));
    assert_false(flush);
    mapSavesEnd(&saves, &map, true);
    assert_false(mapSavesBegin(&saves, &map, 6, &flush));
}

static void one_save_runs_and_the_next_has_all_that_came_meanwhile(void **state) {
    vote(2);
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    assert_true(flush);
    vote(3);
    vote(4);
    assert_false(mapSavesBegin(&saves, &map, 2, &flush));
    mapSavesEnd(&saves, &map, true);
    assert_true(mapSavesIsPending(&saves));
    assert_true(mapSavesBegin(&saves, &map, 3, &flush));
    mapSavesEnd(&saves, &map, true);
    assert_false(mapSavesIsPending(&saves));
    assert_false(mapSavesBegin(&saves, &map, 4, &flush));
}

static void output_waits_for_the_save_of_what_preceded_it(void **state) {
    saveMarksAdd(&marks, &saves, 10); /* nothing has changed */
    assert_int_equal(saveMarksFree(&marks, &saves), 10);
    vote(2);
    saveMarksAdd(&marks, &saves, 30);
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    assert_int_equal(saveMarksFree(&marks, &saves), 10);
    saveMarksSent(&marks, 4);
    assert_int_equal(saveMarksFree(&marks, &saves), 6);
    vote(3);
    saveMarksAdd(&marks, &saves, 50);
    mapSavesEnd(&saves, &map, true);
    assert_int_equal(saveMarksFree(&marks, &saves), 26); /* the vote in epoch 2, not that in 3 */
    assert_true(mapSavesBegin(&saves, &map, 2, &flush));
    mapSavesEnd(&saves, &map, true);
    assert_int_equal(saveMarksFree(&marks, &saves), 50);
    saveMarksSent(&marks, 50);
    saveMarksAdd(&marks, &saves, 7);
    assert_int_equal(saveMarksFree(&marks, &saves), 7);
}

/* However many changes there are, output waits for the running save and the next one. */
static void output_waits_for_two_saves_at_most(void **state) {
    vote(2);
    saveMarksAdd(&marks, &saves, 10);
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    for (uint64_t epoch = 3; epoch < 9; epoch++) {
        vote(epoch);
        saveMarksAdd(&marks, &saves, 10 * (size_t)epoch);
    }
    mapSavesEnd(&saves, &map, true);
    assert_int_equal(saveMarksFree(&marks, &saves), 10);
    assert_true(mapSavesBegin(&saves, &map, 2, &flush));
    mapSavesEnd(&saves, &map, true);
    assert_int_equal(saveMarksFree(&marks, &saves), 80);
}

static void a_slot_is_unsaved_until_a_save_has_its_claim(void **state) {
    clusterMapSetOwner(&map, 7, map.myself);
    mapSavesTake(&saves, &map, false);
    assert_true(isUnsaved(7));
    assert_false(isUnsaved(1));
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    clusterMapSetOwner(&map, 8, map.myself); /* not in the save that runs */
    mapSavesTake(&saves, &map, false);
    mapSavesEnd(&saves, &map, true);
    assert_false(isUnsaved(7));
    assert_true(isUnsaved(8));
    assert_true(mapSavesBegin(&saves, &map, 2, &flush));
    mapSavesEnd(&saves, &map, true);
    assert_null(mapSavesUnsaved(&saves));
}

/* The file has it with the epoch of the first time. */
static void a_slot_that_was_lost_and_came_back_is_unsaved(void **state) {
    clusterMapSetOwner(&map, 1, NULL);
    mapSavesTake(&saves, &map, false);
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    clusterMapSetOwner(&map, 1, map.myself);
    mapSavesTake(&saves, &map, false);
    assert_true(isUnsaved(1));
    mapSavesEnd(&saves, &map, true);
    assert_true(isUnsaved(1));
    assert_true(mapSavesBegin(&saves, &map, 2, &flush));
    clusterMapSetOwner(&map, 1, NULL); /* the save that runs has the claim, which is outdated */
    mapSavesTake(&saves, &map, false);
    clusterMapSetOwner(&map, 1, map.myself);
    mapSavesTake(&saves, &map, false);
    mapSavesEnd(&saves, &map, true);
    assert_true(isUnsaved(1));
}

static void a_failed_save_is_made_up_for_by_the_next_one(void **state) {
    vote(2);
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    mapSavesEnd(&saves, &map, false);
    assert_false(mapSavesIsPending(&saves)); /* nobody waits for it */
    clusterMapSetText(&map, &map.myself->hostname, SLICE("name.example"));
    mapSavesTake(&saves, &map, false);
    assert_true(mapSavesBegin(&saves, &map, 2, &flush));
    assert_true(flush);
    mapSavesEnd(&saves, &map, true);
}

static void replies_to_commands_wait_for_the_save_that_has_their_changes(void **state) {
    vote(2);
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    assert_false(mapSavesHasOrders(&saves)); /* no command has voted */
    mapSavesTake(&saves, &map, true);        /* a command that changes nothing */
    assert_false(mapSavesHasOrders(&saves));
    clusterMapSetText(&map, &map.myself->hostname, SLICE("name.example"));
    mapSavesTake(&saves, &map, true);
    vote(3); /* which must not make it forget the command */
    assert_true(mapSavesHasOrders(&saves));
    mapSavesEnd(&saves, &map, true); /* it has begun before the command */
    assert_true(mapSavesHasOrders(&saves));
    assert_true(mapSavesBegin(&saves, &map, 2, &flush));
    assert_true(mapSavesHasOrders(&saves));
    mapSavesEnd(&saves, &map, true);
    assert_false(mapSavesHasOrders(&saves));
}

static void nothing_waits_for_a_save_that_was_given_up(void **state) {
    vote(2);
    clusterMapSetOwner(&map, 7, map.myself);
    mapSavesTake(&saves, &map, false);
    saveMarksAdd(&marks, &saves, 10);
    assert_true(mapSavesBegin(&saves, &map, 1, &flush));
    mapSavesGiveUp(&saves, &map);
    assert_int_equal(saveMarksFree(&marks, &saves), 10);
    assert_false(isUnsaved(7));
    vote(3);
    assert_false(isUnsaved(7)); /* it is not waited for again */
    assert_true(mapSavesIsPending(&saves));
    mapSavesEnd(&saves, &map, true);
    assert_true(mapSavesBegin(&saves, &map, 2, &flush));
    mapSavesEnd(&saves, &map, true);
    assert_false(mapSavesIsPending(&saves));
}

int test_map_saves(void);
int test_map_saves(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_change_that_nothing_depends_on_is_saved_without_a_flush,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(one_save_runs_and_the_next_has_all_that_came_meanwhile,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(output_waits_for_the_save_of_what_preceded_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(output_waits_for_two_saves_at_most, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slot_is_unsaved_until_a_save_has_its_claim, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_slot_that_was_lost_and_came_back_is_unsaved, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_failed_save_is_made_up_for_by_the_next_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            replies_to_commands_wait_for_the_save_that_has_their_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_waits_for_a_save_that_was_given_up, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

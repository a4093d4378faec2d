/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/set_slot.h and bus/open_slots.h: orders, their refusals, how they are undone, and
 * what becomes of the marks. */
#include "bus_test.h"

#include "bus/open_slots.h"
#include "bus/set_slot.h"

static clusterMap map;
static clusterNode *a, *b, *replica_of_a;
static uint8_t claim[SLOT_BYTES];
static busRules rules;
static bool tells;

/* This node and a with slots 0-9 and 10-19 and epochs 1 and 2, b without slots, a replica of a. */
static int setup(void **state) {
    clusterMapInit(&map, 1000);
    clusterMapSetId(&map, map.myself, idOf(5).text);
    a = addNode(&map, 1);
    b = addNode(&map, 9);
    replica_of_a = addNode(&map, 2);
    clusterMapSetPrimary(&map, replica_of_a, a);
    for (int slot = 0; slot < 20; slot++)
        clusterMapSetOwner(&map, slot, slot < 10 ? map.myself : a);
    clusterMapSetNodeEpoch(&map, map.myself, 1);
    clusterMapSetNodeEpoch(&map, a, 2);
    clusterMapSetEpochs(&map, 2, 0);
    memset(claim, 0, sizeof(claim));
    rules.replica_migration = true;
    return 0;
}

static int teardown(void **state) {
    assert_map_valid(&map);
    clusterMapClear(&map);
    return 0;
}

static topologyActs order(setSlotAction action, int slot, const clusterNode *n, bool has_keys) {
    const setSlotOrder o = {action, slot, n ? clusterNodeId(n) : SLICE("")};
    return setSlotApply(&map, &o, has_keys, &rules, &tells);
}

static const char *refusal(setSlotAction action, int slot, slice id, bool has_keys) {
    static reason why;
    const setSlotOrder o = {action, slot, id};
    return setSlotIsRefused(&map, &o, has_keys, &why) ? why.text : "";
}

static topologyActs receive(clusterNode *from, const clusterNode *primary, uint64_t epoch) {
    const messageHeader h = {.sender = from->id,
                             .primary = primary ? primary->id : NULL,
                             .epoch = epoch,
                             .current_epoch = epoch,
                             .slots = claim};
    return topologyHeader(&map, from, &h, &rules);
}

static void claimSlots(int first, int last) {
    for (int slot = first; slot <= last; slot++) claim[slot / 8] |= (uint8_t)(1 << slot % 8);
}

#define MARK(kind, slot) clusterMapOpenSlot(&map, SLOT_##kind, slot)

static void wrong_orders_are_refused(void **state) {
    const slice me = clusterNodeId(map.myself), other = clusterNodeId(a), nobody = SLICE("x");
    assert_string_equal(refusal(SET_SLOT_MIGRATING, 10, nobody, false),
                        "I'm not the owner of hash slot 10");
    assert_string_equal(refusal(SET_SLOT_MIGRATING, 0, nobody, false), "I don't know about node x");
    assert_string_equal(refusal(SET_SLOT_MIGRATING, 0, me, false), "Target node is myself");
    assert_string_equal(refusal(SET_SLOT_MIGRATING, 0, clusterNodeId(replica_of_a), false),
                        "Target node is not a master");
    assert_string_equal(refusal(SET_SLOT_IMPORTING, 0, other, false),
                        "I'm already the owner of hash slot 0");
    assert_string_equal(refusal(SET_SLOT_IMPORTING, 10, me, false), "Target node is myself");
    assert_string_equal(refusal(SET_SLOT_NODE, 0, nobody, false), "Unknown node x");
    assert_string_equal(refusal(SET_SLOT_NODE, 0, clusterNodeId(replica_of_a), false),
                        "Target node is not a master");
    assert_string_equal(refusal(SET_SLOT_NODE, 0, other, true),
                        "Can't assign hashslot 0 to a different node while I still hold keys for "
                        "this hash slot.");
    assert_string_equal(refusal(SET_SLOT_NODE, 0, other, false), "");
    assert_string_equal(refusal(SET_SLOT_NODE, 0, me, true), "");
    assert_string_equal(refusal(SET_SLOT_STABLE, 10, SLICE(""), true), "");
}

static void marks_are_set_and_cleared(void **state) {
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    assert_ptr_equal(MARK(MIGRATING, 0), a);
    assert_ptr_equal(MARK(IMPORTING, 10), a);
    assert_false(clusterMapIsSettled(&map, 0));
    assert_true(clusterMapIsSettled(&map, 1));
    (void)order(SET_SLOT_STABLE, 0, NULL, true);
    (void)order(SET_SLOT_STABLE, 10, NULL, true);
    assert_false(clusterMapHasOpenSlots(&map));
    assert_true(clusterMapIsSettled(&map, 0));
}

static void the_source_keeps_its_mark_while_it_has_keys(void **state) {
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_NODE, 0, map.myself, true);
    assert_ptr_equal(MARK(MIGRATING, 0), a);
    topologyActs acts = order(SET_SLOT_NODE, 0, a, false);
    assert_null(MARK(MIGRATING, 0));
    assert_true(acts.lost_slots);
    assert_null(acts.follow);
    assert_ptr_equal(clusterMapOwner(&map, 0), a);
}

static void the_target_takes_the_greatest_epoch(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    topologyActs acts = order(SET_SLOT_NODE, 10, map.myself, true);
    assert_true(tells);
    assert_false(acts.lost_slots);
    assert_int_equal(map.myself->epoch, 3);
    assert_null(MARK(IMPORTING, 10));
    /* Without a mark it is an assignment only. */
    (void)order(SET_SLOT_NODE, 11, map.myself, false);
    assert_false(tells);
    assert_int_equal(map.myself->epoch, 3);
}

static void who_loses_the_last_slot_follows_or_is_empty(void **state) {
    for (int slot = 1; slot < 10; slot++) clusterMapSetOwner(&map, slot, a);
    rules.replica_migration = false;
    topologyActs acts = order(SET_SLOT_NODE, 0, a, false);
    assert_true(acts.is_emptied);
    assert_null(acts.follow);
    clusterMapSetOwner(&map, 0, map.myself);
    rules.replica_migration = true;
    acts = order(SET_SLOT_NODE, 0, a, false);
    assert_ptr_equal(acts.follow, a);
    assert_ptr_equal(map.myself->primary, a);
}

static void a_replica_takes_no_epoch_and_follows_nobody_yet(void **state) {
    for (int slot = 0; slot < 20; slot++) clusterMapSetOwner(&map, slot, slot ? a : b);
    topologyFollow(&map, b);
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    (void)order(SET_SLOT_NODE, 10, b, true);
    assert_false(tells);
    assert_null(MARK(IMPORTING, 10));
    assert_ptr_equal(clusterMapOwner(&map, 10), b);
    assert_int_equal(map.current_epoch, 2);
    (void)order(SET_SLOT_NODE, 10, a, true);
    topologyActs acts = order(SET_SLOT_NODE, 0, a, false);
    assert_true(acts.lost_slots);
    assert_null(acts.follow);
    assert_ptr_equal(map.myself->primary, b);
}

/* This node is a replica of b, whose only slot is 0. */
static void follow_an_owner_of_one_slot(void) {
    for (int slot = 0; slot < 20; slot++) clusterMapSetOwner(&map, slot, slot ? a : b);
    topologyFollow(&map, b);
    clusterMapSetNodeEpoch(&map, b, 1);
    claimSlots(1, 19);
}

static void a_replica_follows_the_new_owner_when_its_primary_has_given_the_last_slot(void **state) {
    follow_an_owner_of_one_slot();
    topologyActs acts = order(SET_SLOT_NODE, 0, a, false);
    assert_null(acts.follow);
    acts = receive(a, NULL, 2);
    assert_null(acts.follow); /* it does not claim it */
    memset(claim, 0, sizeof(claim));
    acts = receive(b, NULL, 1);
    assert_ptr_equal(acts.follow, a);
    assert_ptr_equal(map.myself->primary, a);
}

static void it_follows_the_new_owner_when_that_claims_the_slot(void **state) {
    follow_an_owner_of_one_slot();
    (void)order(SET_SLOT_NODE, 0, a, false);
    claimSlots(0, 0);
    topologyActs acts = receive(a, NULL, 2);
    assert_ptr_equal(acts.follow, a);
}

static void it_stays_if_that_was_undone_or_is_not_allowed(void **state) {
    follow_an_owner_of_one_slot();
    (void)order(SET_SLOT_NODE, 0, a, false);
    (void)order(SET_SLOT_NODE, 0, b, false);
    claimSlots(0, 0);
    topologyActs acts = receive(a, NULL, 1);
    assert_null(acts.follow);
    (void)order(SET_SLOT_NODE, 0, a, false);
    rules.replica_migration = false;
    acts = receive(a, NULL, 2);
    assert_null(acts.follow);
    rules.replica_migration = true;
    acts = receive(a, NULL, 2);
    assert_null(acts.follow);
    assert_ptr_equal(map.myself->primary, b);
}

/* Applied to the state before, an order and its undoing orders change nothing. */
static void an_order_is_undone(void **state) {
    static const setSlotAction actions[] = {SET_SLOT_MIGRATING, SET_SLOT_IMPORTING, SET_SLOT_STABLE,
                                            SET_SLOT_NODE};
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]) * 2; i++) {
        int slot = i % 2 ? 10 : 0;
        const setSlotOrder o = {actions[i / 2], slot, clusterNodeId(b)};
        setSlotOrder back[SET_SLOT_UNDO_MAX];
        bool unassign;
        str before = STR_EMPTY, after = STR_EMPTY;
        openSlotsPrint(&map, &before);
        const clusterNode *owner = clusterMapOwner(&map, slot);
        int count = setSlotUndo(&map, &o, back, &unassign);
        assert_false(unassign);
        (void)order(o.action, slot, b, false);
        for (int k = 0; k < count; k++)
            (void)order(back[k].action, slot, clusterMapFind(&map, back[k].id), true);
        openSlotsPrint(&map, &after);
        assert_string_equal(strText(&after), strText(&before));
        assert_ptr_equal(clusterMapOwner(&map, slot), owner);
        strFree(&before);
        strFree(&after);
    }
}

static void an_unassigned_slot_is_unassigned_again(void **state) {
    const setSlotOrder o = {SET_SLOT_NODE, 100, clusterNodeId(a)};
    setSlotOrder back[SET_SLOT_UNDO_MAX];
    bool unassign;
    assert_int_equal(setSlotUndo(&map, &o, back, &unassign), 1);
    assert_true(unassign);
    assert_int_equal(back[0].action, SET_SLOT_STABLE);
}

/* ------------------------------------------------------------------ other nodes */

static void a_failover_of_the_other_side_moves_the_marks(void **state) {
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    claimSlots(10, 19);
    (void)receive(replica_of_a, NULL, 3);
    assert_ptr_equal(clusterMapOwner(&map, 10), replica_of_a);
    assert_ptr_equal(MARK(MIGRATING, 0), replica_of_a);
    assert_ptr_equal(MARK(IMPORTING, 10), replica_of_a);
}

static void so_does_the_old_primary_if_it_tells_first(void **state) {
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    claimSlots(10, 19);
    (void)receive(a, replica_of_a, 3);
    assert_ptr_equal(clusterMapOwner(&map, 10), replica_of_a);
    assert_ptr_equal(MARK(MIGRATING, 0), replica_of_a);
    assert_ptr_equal(MARK(IMPORTING, 10), replica_of_a);
}

static void the_claim_of_the_target_ends_migrating(void **state) {
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_MIGRATING, 1, a, true);
    claimSlots(10, 19);
    claimSlots(0, 0);
    topologyActs acts = receive(a, NULL, 3);
    assert_true(acts.lost_slots);
    assert_null(MARK(MIGRATING, 0));
    assert_ptr_equal(MARK(MIGRATING, 1), a);
}

/* The target has taken the epoch that this node has taken at the same time. */
static void so_does_its_claim_with_the_same_epoch(void **state) {
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_MIGRATING, 1, b, true);
    clusterMapSetNodeEpoch(&map, map.myself, 2);
    claimSlots(10, 19);
    claimSlots(0, 1);
    (void)receive(a, NULL, 2);
    assert_ptr_equal(clusterMapOwner(&map, 0), a);
    assert_ptr_equal(clusterMapOwner(&map, 1), map.myself);
    assert_null(MARK(MIGRATING, 0));
    assert_ptr_equal(MARK(MIGRATING, 1), b);
}

/* Slot 10 was taken from a and goes back to it: a claim of a from before must not end the move, as
 * this node has the keys. The one with a greater epoch is new. */
static void a_late_claim_of_the_former_source_does_not_end_the_way_back(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    (void)order(SET_SLOT_NODE, 10, map.myself, false);
    assert_ptr_equal(clusterMapOwner(&map, 10), map.myself);
    assert_ptr_equal(MARK(TAKEN, 10), a);
    (void)order(SET_SLOT_MIGRATING, 10, a, true);
    claimSlots(10, 19);
    clusterMapSetNodeEpoch(&map, map.myself, 3);
    (void)receive(a, NULL, 3);
    assert_ptr_equal(clusterMapOwner(&map, 10), map.myself);
    assert_ptr_equal(MARK(MIGRATING, 10), a);
    (void)receive(a, NULL, 4);
    assert_ptr_equal(clusterMapOwner(&map, 10), a);
    assert_null(MARK(MIGRATING, 10));
    assert_null(MARK(IMPORTING, 10));
}

static void a_slot_that_goes_elsewhere_is_not_imported(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    (void)order(SET_SLOT_IMPORTING, 11, a, false);
    claimSlots(10, 10);
    (void)receive(b, NULL, 3);
    assert_null(MARK(IMPORTING, 10));
    assert_ptr_equal(MARK(IMPORTING, 11), a);
}

/* An UPDATE about this node from the source of a move. */
static topologyActs receiveOffer(clusterNode *from) {
    message m = {.type = MESSAGE_UPDATE, .epoch = map.myself->epoch, .slots = claim};
    m.id = map.myself->id;
    m.header.current_epoch = map.current_epoch;
    return topologyUpdate(&map, from, &m, &rules);
}

static void a_slot_that_the_source_gives_to_this_node_is_taken(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    claimSlots(10, 11);
    assert_false(receiveOffer(b).has_taken); /* not the owner */
    assert_true(receiveOffer(a).has_taken);
    assert_ptr_equal(clusterMapOwner(&map, 10), map.myself);
    assert_null(MARK(IMPORTING, 10));
    assert_int_equal(map.myself->epoch, 3);         /* greater than that of the source */
    assert_ptr_equal(clusterMapOwner(&map, 11), a); /* is not imported */
    assert_false(receiveOffer(a).has_taken);
}

/* It may have granted it to a third one. */
static void a_slot_that_the_source_does_not_claim_is_not_taken(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    claimSlots(12, 19);
    assert_false(receive(a, NULL, 2).has_taken);
    assert_ptr_equal(clusterMapOwner(&map, 10), a);
    assert_ptr_equal(MARK(IMPORTING, 10), a);
}

/* A node that does not claim what it has got is told. */
static void who_does_not_claim_its_slots_is_told(void **state) {
    claimSlots(11, 19);
    assert_ptr_equal(receive(a, NULL, 2).update, a);
    assert_ptr_equal(receive(a, NULL, 2).update, a); /* the first one may be lost */
    claimSlots(10, 10);
    assert_null(receive(a, NULL, 2).update);
}

static void a_taken_slot_that_the_source_keeps_is_imported_again(void **state) {
    setSlotOrder o;
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    (void)order(SET_SLOT_NODE, 10, map.myself, true);
    assert_false(openSlotsNextOrder(&map, &o)); /* the replicas have had it */
    claimSlots(10, 19);
    (void)receive(a, NULL, 7);
    assert_ptr_equal(clusterMapOwner(&map, 10), a);
    assert_ptr_equal(MARK(IMPORTING, 10), a);
    assert_true(openSlotsNextOrder(&map, &o));
    assert_int_equal(o.action, SET_SLOT_IMPORTING);
    assert_int_equal(o.slot, 10);
    assert_true(sliceEqual(o.id, clusterNodeId(a)));
    assert_false(openSlotsNextOrder(&map, &o));
}

/* The source had not claimed it for a time, and this node has not heard yet that it does again. */
static void so_is_one_that_the_source_did_not_claim(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    clusterMapSetClaimed(&map, 10, false);
    (void)order(SET_SLOT_NODE, 10, map.myself, true);
    claimSlots(10, 19);
    (void)receive(a, NULL, 7);
    assert_ptr_equal(clusterMapOwner(&map, 10), a);
    assert_ptr_equal(MARK(IMPORTING, 10), a);
}

static void a_taken_slot_is_not_imported_again_when_it_was_granted(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    (void)order(SET_SLOT_NODE, 10, map.myself, true);
    clusterMapSetClaimed(&map, 10, false);
    claimSlots(10, 19);
    (void)receive(a, NULL, 7);
    assert_ptr_equal(clusterMapOwner(&map, 10), a);
    assert_false(clusterMapHasOpenSlots(&map));
}

static void taken_slots_are_forgotten_when_the_source_is_silent_about_them(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    (void)order(SET_SLOT_NODE, 10, map.myself, true);
    openSlotsTick(&map, 100, 1000);
    claimSlots(10, 19);
    (void)receive(a, NULL, 2); /* it claims it still */
    openSlotsTick(&map, 100, 1200);
    assert_ptr_equal(MARK(TAKEN, 10), a);
    memset(claim, 0, sizeof(claim));
    claimSlots(11, 19);
    (void)receive(a, NULL, 2);
    openSlotsTick(&map, 100, 1250);
    assert_ptr_equal(MARK(TAKEN, 10), a);
    openSlotsTick(&map, 100, 1301);
    assert_null(MARK(TAKEN, 10));
}

static void replicas_are_told_of_ends(void **state) {
    setSlotOrder o;
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    claimSlots(10, 19);
    claimSlots(0, 0);
    (void)receive(a, NULL, 3);
    assert_true(openSlotsNextOrder(&map, &o));
    assert_int_equal(o.action, SET_SLOT_STABLE);
    assert_int_equal(o.slot, 0);
    assert_false(openSlotsNextOrder(&map, &o));
}

/* The stream and the bus have different delays. */
static void a_replica_waits_for_the_stream(void **state) {
    for (int slot = 0; slot < 10; slot++) clusterMapSetOwner(&map, slot, b);
    topologyFollow(&map, b);
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    claimSlots(10, 19);
    claimSlots(0, 0);
    (void)receive(a, NULL, 3);
    assert_ptr_equal(clusterMapOwner(&map, 0), a);
    assert_ptr_equal(MARK(MIGRATING, 0), a);
    openSlotsTick(&map, 100, 1000);
    openSlotsTick(&map, 100, 1100);
    assert_ptr_equal(MARK(MIGRATING, 0), a);
    openSlotsTick(&map, 100, 1101);
    assert_null(MARK(MIGRATING, 0));
}

static void a_promoted_replica_drops_marks_that_do_not_fit(void **state) {
    for (int slot = 0; slot < 10; slot++) clusterMapSetOwner(&map, slot, b);
    topologyFollow(&map, b);
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_MIGRATING, 1, a, true);
    claimSlots(10, 19);
    claimSlots(0, 0);
    (void)receive(a, NULL, 3);
    topologyPromote(&map, 4);
    assert_null(MARK(MIGRATING, 0));
    assert_ptr_equal(MARK(MIGRATING, 1), a);
}

/* It knows the role of the node later than its primary does. */
static void an_order_gives_no_slot_to_a_replica(void **state) {
    for (int slot = 0; slot < 10; slot++) clusterMapSetOwner(&map, slot, b);
    topologyFollow(&map, b);
    (void)order(SET_SLOT_NODE, 10, replica_of_a, false);
    assert_ptr_equal(clusterMapOwner(&map, 10), a);
    assert_int_equal(replica_of_a->slot_count, 0);
}

static void who_imports_keeps_its_keys_when_it_loses_its_last_slot(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    for (int slot = 1; slot < 10; slot++) clusterMapSetOwner(&map, slot, a);
    topologyActs acts = order(SET_SLOT_NODE, 0, a, false);
    assert_null(acts.follow);
    assert_true(acts.is_emptied);
    clusterMapSetOwner(&map, 0, map.myself);
    claimSlots(0, 19);
    acts = receive(a, NULL, 7);
    assert_null(acts.follow);
    assert_true(acts.is_emptied);
    assert_ptr_equal(MARK(IMPORTING, 10), a);
}

static void a_promoted_replica_goes_on_with_the_marks(void **state) {
    clusterMapSetOwner(&map, 0, b);
    for (int slot = 1; slot < 10; slot++) clusterMapSetOwner(&map, slot, a);
    topologyFollow(&map, b);
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    topologyPromote(&map, 3);
    assert_ptr_equal(MARK(MIGRATING, 0), a);
    assert_ptr_equal(MARK(IMPORTING, 10), a);
    assert_false(clusterMapIsSettled(&map, 0));
}

static void who_joins_another_shard_has_no_marks(void **state) {
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    for (int slot = 0; slot < 10; slot++) clusterMapSetOwner(&map, slot, a);
    topologyFollow(&map, b);
    assert_false(clusterMapHasOpenSlots(&map));
}

/* ------------------------------------------------------------------ text */

static void the_text_has_all_marks(void **state) {
    (void)order(SET_SLOT_MIGRATING, 0, a, true);
    (void)order(SET_SLOT_MIGRATING, 9, b, true);
    (void)order(SET_SLOT_IMPORTING, 10, a, false);
    str text = STR_EMPTY, again = STR_EMPTY;
    openSlotsPrint(&map, &text);
    openSlotsClear(&map);
    assert_true(openSlotsParse(&map, strSlice(&text)));
    openSlotsPrint(&map, &again);
    assert_string_equal(strText(&again), strText(&text));
    assert_memory_equal(text.ptr, "10<1111", 7);
    strFree(&text);
    strFree(&again);
    /* Nodes that are not known are left out, and so is this one. */
    const char *others =
        "1>3333333333333333333333333333333333333333,2>5555555555555555555555555555555555555555,"
        "3>9999999999999999999999999999999999999999";
    assert_true(openSlotsParse(&map, sliceOf(others)));
    assert_null(MARK(MIGRATING, 1));
    assert_null(MARK(MIGRATING, 2));
    assert_ptr_equal(MARK(MIGRATING, 3), b);
}

static void wrong_texts_are_refused(void **state) {
    static const char *const texts[] = {"x",
                                        ",",
                                        "1>",
                                        "1>999999999999999999999999999999999999999",
                                        "1=9999999999999999999999999999999999999999",
                                        "16384>9999999999999999999999999999999999999999",
                                        "-1>9999999999999999999999999999999999999999",
                                        ">9999999999999999999999999999999999999999",
                                        "1>999999999999999999999999999999999999999X",
                                        "1>9999999999999999999999999999999999999999,,"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        (void)order(SET_SLOT_MIGRATING, 0, a, true);
        assert_false(openSlotsParse(&map, sliceOf(texts[i])));
        assert_false(clusterMapHasOpenSlots(&map));
    }
    assert_true(openSlotsParse(&map, SLICE("")));
}

int test_set_slot(void);
int test_set_slot(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(wrong_orders_are_refused),
        T(marks_are_set_and_cleared),
        T(the_source_keeps_its_mark_while_it_has_keys),
        T(the_target_takes_the_greatest_epoch),
        T(who_loses_the_last_slot_follows_or_is_empty),
        T(a_replica_takes_no_epoch_and_follows_nobody_yet),
        T(a_replica_follows_the_new_owner_when_its_primary_has_given_the_last_slot),
        T(it_follows_the_new_owner_when_that_claims_the_slot),
        T(it_stays_if_that_was_undone_or_is_not_allowed),
        T(an_order_is_undone),
        T(an_unassigned_slot_is_unassigned_again),
        T(a_failover_of_the_other_side_moves_the_marks),
        T(so_does_the_old_primary_if_it_tells_first),
        T(the_claim_of_the_target_ends_migrating),
        T(so_does_its_claim_with_the_same_epoch),
        T(a_late_claim_of_the_former_source_does_not_end_the_way_back),
        T(a_slot_that_goes_elsewhere_is_not_imported),
        T(a_slot_that_the_source_gives_to_this_node_is_taken),
        T(a_slot_that_the_source_does_not_claim_is_not_taken),
        T(who_does_not_claim_its_slots_is_told),
        T(a_taken_slot_that_the_source_keeps_is_imported_again),
        T(so_is_one_that_the_source_did_not_claim),
        T(a_taken_slot_is_not_imported_again_when_it_was_granted),
        T(taken_slots_are_forgotten_when_the_source_is_silent_about_them),
        T(replicas_are_told_of_ends),
        T(a_replica_waits_for_the_stream),
        T(a_promoted_replica_drops_marks_that_do_not_fit),
        T(an_order_gives_no_slot_to_a_replica),
        T(who_imports_keeps_its_keys_when_it_loses_its_last_slot),
        T(a_promoted_replica_goes_on_with_the_marks),
        T(who_joins_another_shard_has_no_marks),
        T(the_text_has_all_marks),
        T(wrong_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

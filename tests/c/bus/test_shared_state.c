/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus/shared_state.h: which version is chosen, merging in any order, and entries as bytes. */
#include "bus_test.h"

#include "bus/shared_state.h"

enum { NODES = 5 };

static const char *idText(int node) {
    static testId ids[16];
    ids[node] = idOf(node);
    return ids[node].text;
}

static void writeAt(sharedState *s, int node, const char *name, sharedForm form, const char *body,
                    bool takes, int64_t now_ms) {
    sharedWrite(s, SHARED_USER, sliceOf(name), form, sliceOf(body), takes, idText(node), now_ms);
}

static void mergeAll(sharedState *to, const sharedState *from) {
    for (int i = 0; i < from->count; i++) (void)sharedMerge(to, from->list[i]);
}

static void copyTo(sharedState *to, const sharedState *from) {
    *to = (sharedState){0};
    mergeAll(to, from);
}

static const char *chosenBody(const sharedState *s, const char *name) {
    const sharedEntry *e = sharedFind(s, SHARED_USER, sliceOf(name));
    if (!e) return "none";
    return sharedChosen(e)->form == SHARED_DELETED ? "deleted" : strText(&sharedChosen(e)->body);
}

static void assert_same(const sharedState *a, const sharedState *b) {
    str x = STR_EMPTY, y = STR_EMPTY;
    sharedStatePrint(a, &x);
    sharedStatePrint(b, &y);
    assert_int_equal(x.len, y.len);
    assert_memory_equal(x.ptr, y.ptr, x.len);
    assert_true(sharedDigest(a) == sharedDigest(b));
    assert_int_equal(a->deleted, b->deleted);
    strFree(&x);
    strFree(&y);
}

/* ------------------------------------------------------------------ what is chosen */

/* Two nodes that had the same user change it apart, and meet. */
typedef struct apart {
    sharedState a, b;
} apart;

static apart begin(void) {
    apart p;
    memset(&p, 0, sizeof(p));
    writeAt(&p.a, 0, "u", SHARED_ON, "first", false, 1000);
    copyTo(&p.b, &p.a);
    return p;
}

static void meet(apart *p, const char *expected) {
    sharedState before;
    copyTo(&before, &p->a);
    mergeAll(&p->a, &p->b);
    mergeAll(&p->b, &before);
    assert_same(&p->a, &p->b);
    assert_string_equal(chosenBody(&p->a, "u"), expected);
    sharedClear(&before);
}

static void end(apart *p) {
    sharedClear(&p->a);
    sharedClear(&p->b);
}

static void the_later_of_two_grants_is_chosen(void **state) {
    apart p = begin();
    writeAt(&p.a, 0, "u", SHARED_ON, "more a", false, 2000);
    writeAt(&p.b, 1, "u", SHARED_ON, "more b", false, 3000);
    meet(&p, "more b");
    const sharedEntry *e = sharedFind(&p.a, SHARED_USER, SLICE("u"));
    assert_int_equal(e->count, 2);
    assert_true(sharedIsConflict(e));
    /* The next change has seen both. */
    writeAt(&p.a, 0, "u", SHARED_ON, "settled", false, 1);
    mergeAll(&p.b, &p.a);
    assert_string_equal(chosenBody(&p.b, "u"), "settled");
    assert_int_equal(sharedFind(&p.b, SHARED_USER, SLICE("u"))->count, 1);
    end(&p);
}

static void a_revocation_wins_over_later_grants(void **state) {
    apart p = begin();
    writeAt(&p.a, 0, "u", SHARED_ON, "less", true, 2000);
    for (int i = 0; i < 5; i++) writeAt(&p.b, 1, "u", SHARED_ON, "more", false, 3000 + i);
    meet(&p, "less");
    end(&p);
}

static void a_revocation_before_a_grant_of_the_same_node_counts(void **state) {
    apart p = begin();
    writeAt(&p.a, 0, "u", SHARED_ON, "less", true, 2000);
    writeAt(&p.a, 0, "u", SHARED_ON, "less, but that", false, 2001);
    writeAt(&p.b, 1, "u", SHARED_ON, "more", false, 3000);
    meet(&p, "less, but that");
    end(&p);
}

static void a_grant_by_an_author_who_knew_of_the_revocation_wins(void **state) {
    apart p = begin();
    writeAt(&p.a, 0, "u", SHARED_ON, "less", true, 2000);
    mergeAll(&p.b, &p.a);
    writeAt(&p.b, 1, "u", SHARED_ON, "more again", false, 10); /* its clock is late */
    meet(&p, "more again");
    assert_int_equal(sharedFind(&p.a, SHARED_USER, SLICE("u"))->count, 1);
    end(&p);
}

static void of_revocations_the_one_that_allows_least_wins(void **state) {
    apart p = begin();
    writeAt(&p.a, 0, "u", SHARED_DELETED, "", true, 2000);
    writeAt(&p.b, 1, "u", SHARED_OFF, "off", true, 3000);
    meet(&p, "deleted");
    end(&p);
    p = begin();
    writeAt(&p.a, 0, "u", SHARED_OFF, "off", true, 2000);
    writeAt(&p.b, 1, "u", SHARED_ON, "less", true, 3000);
    meet(&p, "off");
    end(&p);
    p = begin(); /* a user that was deleted and created again is not more than one that is off */
    writeAt(&p.a, 0, "u", SHARED_DELETED, "", true, 2000);
    writeAt(&p.a, 0, "u", SHARED_ON, "again", false, 4000);
    writeAt(&p.b, 1, "u", SHARED_OFF, "off", true, 3000);
    meet(&p, "off");
    end(&p);
}

static void a_node_that_was_away_does_not_bring_a_deleted_user_back(void **state) {
    apart p = begin();
    writeAt(&p.a, 0, "u", SHARED_DELETED, "", true, 2000);
    assert_int_equal(p.a.deleted, 1);
    meet(&p, "deleted");
    /* Created again, it lives. */
    writeAt(&p.b, 1, "u", SHARED_ON, "new", false, 1500);
    meet(&p, "new");
    assert_int_equal(p.a.deleted, 0);
    end(&p);
}

static void what_nodes_had_before_is_the_oldest_version(void **state) {
    apart p;
    memset(&p, 0, sizeof(p));
    sharedSeed(&p.a, SHARED_USER, SLICE("u"), SHARED_ON, SLICE("on nopass"));
    sharedSeed(&p.b, SHARED_USER, SLICE("u"), SHARED_ON, SLICE("on #12"));
    sharedSeed(&p.b, SHARED_USER, SLICE("u"), SHARED_ON, SLICE("ignored"));
    meet(&p, "on #12");
    assert_int_equal(sharedFind(&p.a, SHARED_USER, SLICE("u"))->count, 1);
    writeAt(&p.a, 0, "u", SHARED_ON, "on #34", false, 5);
    meet(&p, "on #34");
    /* One that starts with its old file later changes nothing. */
    sharedState late = {0};
    sharedSeed(&late, SHARED_USER, SLICE("u"), SHARED_OFF, SLICE("off"));
    mergeAll(&p.a, &late);
    assert_string_equal(chosenBody(&p.a, "u"), "on #34");
    sharedClear(&late);
    end(&p);
}

static void a_merge_tells_what_is_new(void **state) {
    apart p = begin();
    assert_int_equal(sharedMerge(&p.b, p.a.list[0]), SHARED_KNOWN);
    p.b.list[0]->is_applied = true;
    assert_int_equal(sharedMerge(&p.b, p.a.list[0]), SHARED_KNOWN);
    assert_true(p.b.list[0]->is_applied);
    writeAt(&p.a, 0, "u", SHARED_ON, "more", false, 2000);
    assert_int_equal(sharedMerge(&p.b, p.a.list[0]), SHARED_CHANGED);
    assert_false(p.b.list[0]->is_applied);
    writeAt(&p.b, 1, "u", SHARED_ON, "x", false, 2001);
    writeAt(&p.a, 0, "u", SHARED_ON, "y", false, 2001);
    assert_int_equal(sharedMerge(&p.b, p.a.list[0]), SHARED_CONFLICT);
    end(&p);
}

static void equal_changes_are_no_conflict(void **state) {
    apart p = begin();
    writeAt(&p.a, 0, "u", SHARED_ON, "same", false, 2000);
    writeAt(&p.b, 1, "u", SHARED_ON, "same", false, 2001);
    meet(&p, "same");
    assert_false(sharedIsConflict(p.a.list[0]));
    end(&p);
}

static void numbers_grow_although_clocks_go_back(void **state) {
    sharedState s = {0};
    uint64_t last = 0;
    for (int64_t now_ms = 1000; now_ms > 990; now_ms--) {
        writeAt(&s, 0, "u", SHARED_ON, "x", false, now_ms);
        assert_true(sharedChosen(s.list[0])->number > last);
        last = sharedChosen(s.list[0])->number;
    }
    sharedClear(&s);
}

/* ------------------------------------------------------------------ bounds */

static void the_oldest_deletions_are_forgotten(void **state) {
    sharedState s = {0};
    char name[16];
    for (int i = 0; i < SHARED_DELETED_MAX + 10; i++) {
        snprintf(name, sizeof(name), "u%d", i);
        writeAt(&s, 0, name, SHARED_DELETED, "", true, 1000 + i);
    }
    assert_int_equal(s.deleted, SHARED_DELETED_MAX);
    assert_int_equal(s.count, SHARED_DELETED_MAX);
    assert_null(sharedFind(&s, SHARED_USER, SLICE("u9")));
    assert_non_null(sharedFind(&s, SHARED_USER, SLICE("u10")));
    sharedClear(&s);
}

static void versions_and_writers_are_bounded(void **state) {
    sharedState s = {0}, first = {0};
    char id[NODE_ID_LEN + 1];
    writeAt(&first, 0, "u", SHARED_ON, "first", false, 1);
    for (int i = 0; i < 100; i++) { /* a hundred nodes that do not know of each other */
        sharedState one;
        copyTo(&one, &first);
        snprintf(id, sizeof(id), "%040x", i + 1);
        sharedWrite(&one, SHARED_USER, SLICE("u"), i == 3 ? SHARED_OFF : SHARED_ON, SLICE("x"),
                    i == 3, id, 1000 + i);
        mergeAll(&s, &one);
        sharedClear(&one);
    }
    assert_int_equal(s.list[0]->count, SHARED_VERSIONS_MAX);
    assert_int_equal(sharedChosen(s.list[0])->form, SHARED_OFF);
    for (int i = 0; i < 100; i++) { /* and a hundred, one after the other */
        snprintf(id, sizeof(id), "%040x", i + 1);
        sharedWrite(&s, SHARED_USER, SLICE("u"), SHARED_ON, SLICE("y"), false, id, 2000 + i);
    }
    assert_int_equal(s.list[0]->count, 1);
    assert_int_equal(sharedChosen(s.list[0])->seen_count, SHARED_WRITERS_MAX);
    mergeAll(&s, &first);
    assert_int_equal(s.list[0]->count <= 2, true);
    sharedClear(&s);
    sharedClear(&first);
}

/* ------------------------------------------------------------------ directives */

static void writeDirective(sharedState *s, int node, const char *value, int64_t now_ms) {
    sharedWrite(s, SHARED_DIRECTIVE, SLICE("u"), SHARED_ON, sliceOf(value), false, idText(node),
                now_ms);
}

static slice directiveOf(const sharedState *s) {
    return strSlice(&sharedChosen(sharedFind(s, SHARED_DIRECTIVE, SLICE("u")))->body);
}

/* Its name may be that of a user. */
static void a_directive_has_the_value_of_the_later_change(void **state) {
    apart p = begin();
    (void)state;
    writeDirective(&p.a, 0, "100", 2000);
    writeDirective(&p.b, 1, "200", 3000);
    writeAt(&p.a, 0, "u", SHARED_DELETED, "", true, 1500);
    sharedState a, b;
    copyTo(&a, &p.a);
    mergeAll(&a, &p.b);
    copyTo(&b, &p.b);
    mergeAll(&b, &p.a);
    assert_same(&a, &b);
    assert_true(sliceEqual(directiveOf(&a), SLICE("200")));
    assert_string_equal(chosenBody(&a, "u"), "deleted");
    /* An author who has seen both, whatever its clock. */
    writeDirective(&a, 2, "300", 5);
    mergeAll(&b, &a);
    assert_true(sliceEqual(directiveOf(&b), SLICE("300")));
    assert_int_equal(sharedFind(&b, SHARED_DIRECTIVE, SLICE("u"))->count, 1);
    sharedClear(&a);
    sharedClear(&b);
    end(&p);
}

/* ------------------------------------------------------------------ random orders */

static uint64_t seed_now = 88172645463325252ull;

static unsigned below(unsigned limit) {
    seed_now ^= seed_now << 13;
    seed_now ^= seed_now >> 7;
    seed_now ^= seed_now << 17;
    return (unsigned)(seed_now >> 33) % limit;
}

static void randomWrite(sharedState *s, int node, int64_t now_ms) {
    static const char *const names[] = {"u", "v", "w"};
    char body[16];
    sharedKind kind = (sharedKind)below(SHARED_KINDS);
    sharedForm form = (sharedForm)below(SHARED_FORMS);
    snprintf(body, sizeof(body), "%u", below(1000));
    /* A directive has a value or none, and no rights that could be taken away. */
    bool has_rights = kind != SHARED_DIRECTIVE;
    if (!has_rights && form == SHARED_OFF) form = SHARED_ON;
    bool takes = has_rights && (form != SHARED_ON || below(2));
    sharedWrite(s, kind, sliceOf(names[below(3)]), form, sliceOf(body), takes, idText(node),
                now_ms);
}

/* Nodes write, and meet at random. */
static void randomHistory(sharedState nodes[NODES]) {
    for (int i = 0; i < NODES; i++) nodes[i] = (sharedState){0};
    int64_t now_ms = 1000;
    for (int step = 0; step < 30; step++) {
        int a = (int)below(NODES), b = (int)below(NODES);
        now_ms += below(3);
        if (below(3)) {
            randomWrite(&nodes[a], a, now_ms - below(20)); /* clocks differ */
        } else if (a != b) {
            mergeAll(&nodes[a], &nodes[b]);
        }
    }
}

/* Commutative, associative, idempotent: what comes out does not depend on who met whom first. */
static void any_order_of_merges_has_the_same_result(void **state) {
    for (int round = 0; round < 2000; round++) {
        sharedState nodes[NODES], results[3];
        randomHistory(nodes);
        for (int r = 0; r < 3; r++) {
            results[r] = (sharedState){0};
            int order[2 * NODES];
            for (int i = 0; i < 2 * NODES; i++) order[i] = i % NODES; /* each twice */
            for (int i = 2 * NODES - 1; i > 0; i--) {
                int k = (int)below((unsigned)i + 1), was = order[i];
                order[i] = order[k];
                order[k] = was;
            }
            for (int i = 0; i < 2 * NODES; i++) mergeAll(&results[r], &nodes[order[i]]);
        }
        assert_same(&results[0], &results[1]);
        assert_same(&results[0], &results[2]);
        /* In pairs: (a b) (c d), then both with e. */
        sharedState left, right;
        copyTo(&left, &nodes[0]);
        mergeAll(&left, &nodes[1]);
        copyTo(&right, &nodes[2]);
        mergeAll(&right, &nodes[3]);
        mergeAll(&right, &left);
        mergeAll(&right, &nodes[4]);
        assert_same(&results[0], &right);
        sharedClear(&left);
        sharedClear(&right);
        for (int r = 0; r < 3; r++) sharedClear(&results[r]);
        for (int i = 0; i < NODES; i++) sharedClear(&nodes[i]);
    }
}

/* No version that is chosen allows something whose revocation its author had not seen, while a
 * version remains that has seen it and allows less. */
static void no_revocation_is_lost(void **state) {
    for (int round = 0; round < 2000; round++) {
        sharedState a = {0}, b;
        writeAt(&a, 0, "u", SHARED_ON, "first", false, 1000);
        copyTo(&b, &a);
        unsigned revoker_writes = 1 + below(4), granter_writes = 1 + below(6);
        unsigned revoked_at = below(revoker_writes);
        for (unsigned i = 0; i < revoker_writes; i++)
            writeAt(&a, 0, "u", SHARED_ON, "revoked", i == revoked_at, 1000 + below(50));
        for (unsigned i = 0; i < granter_writes; i++)
            writeAt(&b, 1, "u", SHARED_ON, "granted", false, 1000 + below(50));
        mergeAll(&b, &a);
        assert_string_equal(chosenBody(&b, "u"), "revoked");
        sharedClear(&a);
        sharedClear(&b);
    }
}

/* ------------------------------------------------------------------ bytes */

static void a_state_is_printed_and_parsed(void **state) {
    sharedState nodes[NODES], all = {0}, again = {0};
    randomHistory(nodes);
    for (int i = 0; i < NODES; i++) mergeAll(&all, &nodes[i]);
    sharedWrite(&all, SHARED_LIBRARY, SLICE("l"), SHARED_ON, SLICE("#!lua\n\0x"), false, idText(3),
                7);
    sharedWrite(&all, SHARED_ROLE, SLICE("r"), SHARED_ON, SLICE(""), false, idText(3), 7);
    str text = STR_EMPTY;
    sharedStatePrint(&all, &text);
    assert_int_equal(sharedStateParse(&again, strSlice(&text)), OK);
    assert_same(&all, &again);
    sharedClear(&again);
    for (size_t len = 0; len < text.len; len++) {
        assert_int_equal(sharedStateParse(&again, sliceMake(text.ptr, len)), ERR_SYNTAX);
        assert_int_equal(again.count, 0);
    }
    text.ptr[text.len / 2] ^= 1;
    assert_int_equal(sharedStateParse(&again, strSlice(&text)), ERR_SYNTAX);
    strFree(&text);
    sharedClear(&all);
    for (int i = 0; i < NODES; i++) sharedClear(&nodes[i]);
}

static void damaged_entries_are_refused_or_valid(void **state) {
    sharedState s = {0};
    writeAt(&s, 1, "user", SHARED_ON, "on nopass", false, 1000);
    writeAt(&s, 2, "user", SHARED_ON, "on nopass", true, 1001);
    str good = STR_EMPTY;
    sharedEntryAppend(s.list[0], &good);
    int refused = 0;
    for (size_t at = 0; at < good.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            str bad = strNew(strSlice(&good));
            bad.ptr[at] ^= (char)(1 << bit);
            slice bytes = strSlice(&bad);
            sharedEntry e;
            sharedState other = {0};
            if (sharedEntryTake(&bytes, &e) == OK) {
                (void)sharedMerge(&other, &e);
                mergeAll(&other, &s);
                sharedEntryClear(&e);
            } else {
                refused++;
                assert_int_equal(bytes.len, good.len);
            }
            sharedClear(&other);
            strFree(&bad);
        }
        slice cut = sliceMake(good.ptr, at);
        sharedEntry e;
        assert_int_equal(sharedEntryTake(&cut, &e), ERR_SYNTAX);
    }
    assert_true(refused > 20);
    strFree(&good);
    sharedClear(&s);
}

static void a_summary_lists_what_a_node_has(void **state) {
    sharedState a = {0}, b = {0};
    char name[16];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "u%d", i);
        writeAt(&a, 0, name, SHARED_ON, "x", false, 1000);
    }
    copyTo(&b, &a);
    writeAt(&b, 1, "u7", SHARED_ON, "y", false, 1001);
    writeAt(&b, 1, "new", SHARED_ON, "y", false, 1001);
    str summary = STR_EMPTY;
    sharedSummaryAppend(&a, &summary);
    assert_int_equal(summary.len, 50 * 8);
    int lacking = 0;
    for (int i = 0; i < b.count; i++) lacking += !sharedSummaryHas(strSlice(&summary), b.list[i]);
    assert_int_equal(lacking, 2);
    assert_false(sharedSummaryHas(SLICE(""), b.list[0]));
    strFree(&summary);
    sharedClear(&a);
    sharedClear(&b);
}

int test_shared_state(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_later_of_two_grants_is_chosen),
        cmocka_unit_test(a_revocation_wins_over_later_grants),
        cmocka_unit_test(a_revocation_before_a_grant_of_the_same_node_counts),
        cmocka_unit_test(a_grant_by_an_author_who_knew_of_the_revocation_wins),
        cmocka_unit_test(of_revocations_the_one_that_allows_least_wins),
        cmocka_unit_test(a_node_that_was_away_does_not_bring_a_deleted_user_back),
        cmocka_unit_test(what_nodes_had_before_is_the_oldest_version),
        cmocka_unit_test(a_merge_tells_what_is_new),
        cmocka_unit_test(equal_changes_are_no_conflict),
        cmocka_unit_test(numbers_grow_although_clocks_go_back),
        cmocka_unit_test(the_oldest_deletions_are_forgotten),
        cmocka_unit_test(versions_and_writers_are_bounded),
        cmocka_unit_test(a_directive_has_the_value_of_the_later_change),
        cmocka_unit_test(any_order_of_merges_has_the_same_result),
        cmocka_unit_test(no_revocation_is_lost),
        cmocka_unit_test(a_state_is_printed_and_parsed),
        cmocka_unit_test(damaged_entries_are_refused_or_valid),
        cmocka_unit_test(a_summary_lists_what_a_node_has),
    };
    return cmocka_run_group_tests_name("bus/shared_state", tests, NULL, NULL);
}

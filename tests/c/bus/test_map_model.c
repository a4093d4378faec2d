/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two maps side by side against models: arrays of who owns which slot and who follows whom, under
 * random changes. */
#include "bus_test.h"

#include <stdlib.h>

#include "base/random.h"

enum { IDS = 15, STEPS = 6000, CHECK_EVERY = 50 };

typedef struct model {
    clusterMap map;
    int owner[SLOT_COUNT]; /* number of the node; -1: none; IDS: this node */
    bool known[IDS];
    int primary[IDS]; /* -1: none */
} model;

static clusterNode *nodeOf(model *m, int number) {
    if (number == IDS) return m->map.myself;
    if (number < 0) return NULL;
    testId id = idOf(number);
    return clusterMapFind(&m->map, sliceMake(id.text, NODE_ID_LEN));
}

static int anyKnown(const model *m) {
    int number = (int)randomUniform(IDS + 1);
    return number == IDS || m->known[number] ? number : IDS;
}

static void addOrForget(model *m, int number) {
    if (!m->known[number]) {
        addNode(&m->map, number);
        m->known[number] = true;
        m->primary[number] = -1;
        return;
    }
    clusterMapRemove(&m->map, nodeOf(m, number));
    m->known[number] = false;
    m->primary[number] = -1;
    for (int i = 0; i < IDS; i++)
        if (m->primary[i] == number) m->primary[i] = -1;
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (m->owner[slot] == number) m->owner[slot] = -1;
}

static void moveSlots(model *m) {
    int to = randomUniform(5) ? anyKnown(m) : -1;
    int first = (int)randomUniform(SLOT_COUNT);
    int last = first + (int)randomUniform(randomUniform(3) ? 10 : 3000);
    for (int slot = first; slot <= last && slot < SLOT_COUNT; slot++) {
        clusterMapSetOwner(&m->map, slot, nodeOf(m, to));
        m->owner[slot] = to;
    }
}

static void changeRole(model *m, int number) {
    int primary = anyKnown(m);
    if (!m->known[number]) return;
    if (randomUniform(3) == 0 || primary == number) {
        clusterMapMakePrimary(&m->map, nodeOf(m, number));
        m->primary[number] = -1;
        return;
    }
    clusterMapSetPrimary(&m->map, nodeOf(m, number), nodeOf(m, primary));
    m->primary[number] = primary;
}

static void reset(model *m) {
    clusterMapReset(&m->map, randomUniform(2));
    for (int i = 0; i < IDS; i++) {
        m->known[i] = false;
        m->primary[i] = -1;
    }
    memset(m->owner, 0xff, sizeof(m->owner));
}

static void compare(model *m) {
    int known = 1;
    assert_map_valid(&m->map);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        assert_ptr_equal(clusterMapOwner(&m->map, slot), nodeOf(m, m->owner[slot]));
        assert_int_equal(clusterMapIsMine(&m->map, slot), m->owner[slot] == IDS);
    }
    for (int i = 0; i < IDS; i++) {
        clusterNode *n = nodeOf(m, i);
        assert_int_equal(n != NULL, m->known[i]);
        if (n) assert_ptr_equal(n->primary, nodeOf(m, m->primary[i]));
        known += m->known[i];
    }
    assert_int_equal(m->map.node_count, known);
}

/* Prints the map, reads it and compares: another way to see that all is in it. */
static void comparePrinted(model *m) {
    clusterMap again;
    reason why;
    str first = STR_EMPTY, second = STR_EMPTY;
    clusterMapPrint(&m->map, false, &first);
    assert_int_equal(clusterMapParse(&again, strSlice(&first), false, 1, &why), OK);
    assert_map_valid(&again);
    assert_int_equal(again.slots_assigned, m->map.slots_assigned);
    clusterMapPrint(&again, false, &second);
    assert_int_equal(first.len, second.len);
    clusterMapClear(&again);
    strFree(&first);
    strFree(&second);
}

static void random_changes_keep_maps_and_models_equal(void **state) {
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 35;
    print_message("seed %llu\n", (unsigned long long)seed);
    randomSeed(seed);
    model *models = memNewArray(model, 2);
    for (int i = 0; i < 2; i++) {
        clusterMapInit(&models[i].map, 1);
        reset(&models[i]);
    }
    for (int step = 1; step <= STEPS; step++) {
        model *m = &models[randomUniform(2)];
        int what = (int)randomUniform(400);
        if (what < 60) {
            addOrForget(m, (int)randomUniform(IDS));
        } else if (what < 100) {
            changeRole(m, (int)randomUniform(IDS));
        } else if (what < 399) {
            moveSlots(m);
        } else {
            reset(m);
        }
        if (step % CHECK_EVERY) continue;
        for (int i = 0; i < 2; i++) compare(&models[i]);
        comparePrinted(m);
    }
    for (int i = 0; i < 2; i++) clusterMapClear(&models[i].map);
    memFree(models);
}

int test_map_model(void);
int test_map_model(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_keep_maps_and_models_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

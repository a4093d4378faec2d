/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounds of what unknown senders may cause on the bus (bus/bus_links.c, bus_receive.c). */
#include "bus_test.h"

#include "bus/bus_priv.h"
#include "bus/message_layout.h"

enum { NOW_MS = 1000, TIMEOUT_MS = 2000 };

static clusterMap map;
static clusterState map_state;
static clusterBus bus;
static int closed;

static void noteClosed(void *arg, busLink *l) {
    (void)arg, (void)l;
    closed++;
}

static void noteSent(void *arg, busLink *l, const str *bytes) { (void)arg, (void)l, (void)bytes; }

static int64_t offset(void *arg) {
    (void)arg;
    return 0;
}

static bool isLinked(void *arg) {
    (void)arg;
    return false;
}

static int published, from_modules;

static void notePublished(void *arg, bool shard, slice channel, slice text) {
    (void)arg, (void)shard, (void)channel, (void)text;
    published++;
}

static void noteModule(void *arg, const busLink *l, clusterNode *sender, const message *m) {
    (void)arg, (void)l, (void)m;
    assert_non_null(sender);
    from_modules++;
}

static const busProcs procs = {.close = noteClosed,
                               .send = noteSent,
                               .offset = offset,
                               .isLinked = isLinked,
                               .publish = notePublished,
                               .module = noteModule};

static int setup(void **state) {
    (void)state;
    clusterMapInit(&map, 0);
    busInit(&bus, &map, &map_state, &procs, NULL, NOW_MS);
    bus.rules.timeout_ms = TIMEOUT_MS;
    closed = published = from_modules = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    busClear(&bus);
    clusterMapClear(&map);
    return 0;
}

static busLink *accept(void) {
    busLink *l = busAccepted(&bus, NULL, bus.now_ms);
    memcpy(l->peer_ip, "127.0.0.1", 10);
    return l;
}

/* A MEET of an unknown node whose bus port is `port`, and whose id is that number. */
static void meet(busLink *l, int port, int64_t now_ms) {
    static const uint8_t slots[SLOT_BYTES];
    char id[NODE_ID_LEN + 1];
    str bytes = STR_EMPTY;
    (void)snprintf(id, sizeof(id), "%040d", port);
    messageHeader h = {.port = (uint16_t)port,
                       .bus_port = (uint16_t)port,
                       .node_flags = NODE_PRIMARY,
                       .sender = id,
                       .slots = slots};
    messageWriter w = messageBegin(&bytes, MESSAGE_MEET, &h);
    messageEnd(&w);
    busReceived(&bus, l, strSlice(&bytes), now_ms);
    strFree(&bytes);
}

static int countHandshakes(void) {
    int count = 0;
    for (int i = 0; i < map.node_count; i++) count += (map.nodes[i]->flags & NODE_HANDSHAKE) != 0;
    return count;
}

static void one_connection_begins_one_handshake_at_a_time(void **state) {
    (void)state;
    busLink *l = accept();
    for (int i = 1; i <= 100; i++) meet(l, i, NOW_MS);
    assert_int_equal(countHandshakes(), 1);
    meet(l, 101, NOW_MS + TIMEOUT_MS);
    assert_int_equal(countHandshakes(), 1);
    meet(l, 102,
         NOW_MS + TIMEOUT_MS + 1); /* the first one is over, as it would be without an answer */
    assert_int_equal(countHandshakes(), 2);
    meet(accept(), 103, NOW_MS + TIMEOUT_MS + 1);
    assert_int_equal(countHandshakes(), 3);
}

static void pending_handshakes_are_bounded_but_not_those_of_users(void **state) {
    (void)state;
    for (int i = 1; i <= 1100; i++) meet(accept(), i, NOW_MS);
    assert_int_equal(countHandshakes(), 1000);
    assert_true(busMeet(&bus, SLICE("127.0.0.1"), 2000, 2000, NOW_MS));
    assert_int_equal(countHandshakes(), 1001);
}

/* The beginning of a message that is said to be `size` bytes long. */
static void begin(busLink *l, size_t size, size_t sent) {
    char *bytes = memAlloc(sent);
    memset(bytes, 0, sent);
    memcpy(bytes, "RCmb", 4);
    storeBig32(bytes + AT_LENGTH, (uint32_t)size);
    storeBig16(bytes + AT_VERSION, 1);
    busReceived(&bus, l, sliceMake(bytes, sent), NOW_MS);
    memFree(bytes);
}

static void unfinished_messages_of_unknown_senders_are_bounded(void **state) {
    (void)state;
    const size_t most = 32 << 20, whole = 1 << 20;
    busLink *small = accept();
    begin(small, whole, 3000);
    for (int i = 0; i < 100; i++) {
        begin(accept(), whole, whole - 1);
        assert_true(bus.held <= most);
    }
    assert_in_range(closed, 60, 99);
    assert_true(bus.held > most / 2);
    assert_int_equal(small->input.len, 3000); /* the largest ones were closed */
    busDropIf(&bus, NULL);
    assert_int_equal(bus.held, 0);
}

/* ------------------------------------------------------------------ the first message of a link */

static messageHeader headerOf(const char id[NODE_ID_LEN]) {
    static const uint8_t slots[SLOT_BYTES];
    return (messageHeader){
        .port = 7000, .bus_port = 17000, .node_flags = NODE_PRIMARY, .sender = id, .slots = slots};
}

/* Writes a message of any type but MEET; `h` NULL: with a light header. */
static void writeAny(str *out, messageType type, const messageHeader *h, const char *about) {
    static const uint64_t slots[SLOT_WORDS];
    messageWriter w;
    switch (type) {
    case MESSAGE_PUBLISH:
    case MESSAGE_PUBLISH_SHARD: messageWritePublish(out, type, h, SLICE("c"), SLICE("t")); break;
    case MESSAGE_MODULE: messageWriteModule(out, h, 1, 1, SLICE("p")); break;
    case MESSAGE_FAIL: messageWriteFail(out, h, about); break;
    case MESSAGE_UPDATE: messageWriteUpdate(out, h, 1, about, slots); break;
    case MESSAGE_AUTH_NACK: messageWriteNack(out, h, 1, (enum nackReason)1); break;
    case MESSAGE_PING:
    case MESSAGE_PONG:
        w = messageBegin(out, type, h);
        messageEnd(&w);
        break;
    default: messageWriteEmpty(out, type, h); break;
    }
}

static void take(busLink *l, messageType type, const messageHeader *h, const char *about) {
    str bytes = STR_EMPTY;
    writeAny(&bytes, type, h, about);
    busReceived(&bus, l, strSlice(&bytes), NOW_MS);
    strFree(&bytes);
}

static void any_full_message_may_be_the_first_one_of_a_link(void **state) {
    (void)state;
    const char *sender = addNode(&map, 1)->id, *about = addNode(&map, 2)->id;
    messageHeader h = headerOf(sender);
    for (int type = 0; type < MESSAGE_TYPES; type++) {
        if (type == MESSAGE_MEET) continue;
        busLink *l = accept();
        int before = closed;
        take(l, (messageType)type, &h, about);
        /* That of the link before it, which the new one replaces. */
        assert_int_equal(closed - before, type > 0);
        assert_ptr_equal(l->node, clusterMapFind(&map, sliceMake(sender, NODE_ID_LEN)));
        take(l, MESSAGE_PUBLISH, NULL, about);
    }
    assert_int_equal(published, 2 + MESSAGE_TYPES - 1);
    assert_int_equal(from_modules, 1);
}

static void light_messages_after_the_handshake_are_those_of_the_node(void **state) {
    (void)state;
    const messageType types[] = {MESSAGE_PUBLISH, MESSAGE_PUBLISH_SHARD, MESSAGE_MODULE};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        testId id = idOf((int)i + 1);
        messageHeader h = headerOf(id.text);
        busLink *l = accept();
        take(l, MESSAGE_PING, &h, NULL); /* this node has not heard of the sender */
        take(l, types[i], NULL, NULL);
        assert_null(l->node);
        assert_int_equal(published + from_modules, (int)i);
        clusterNode *n = addNode(&map, (int)i + 1);
        take(l, types[i], NULL, NULL);
        assert_ptr_equal(l->node, n);
        assert_int_equal(published + from_modules, (int)i + 1);
    }
    assert_int_equal(closed, 0);
    /* Another link of that node is not replaced by a message that does not name its sender. */
    testId id = idOf(4);
    messageHeader h = headerOf(id.text);
    busLink *first = accept(), *second = accept();
    take(second, MESSAGE_PING, &h, NULL);
    clusterNode *n = addNode(&map, 4);
    take(first, MESSAGE_PING, &h, NULL);
    take(second, MESSAGE_PUBLISH, NULL, NULL);
    assert_null(second->node);
    assert_ptr_equal(first->node, n);
    assert_int_equal(closed, 0);
}

static void a_light_message_before_any_full_one_ends_the_link(void **state) {
    (void)state;
    (void)addNode(&map, 1);
    take(accept(), MESSAGE_PUBLISH, NULL, NULL);
    assert_int_equal(closed, 1);
    assert_int_equal(published, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int test_bus_links(void) {
    const struct CMUnitTest tests[] = {
        T(one_connection_begins_one_handshake_at_a_time),
        T(pending_handshakes_are_bounded_but_not_those_of_users),
        T(unfinished_messages_of_unknown_senders_are_bounded),
        T(any_full_message_may_be_the_first_one_of_a_link),
        T(light_messages_after_the_handshake_are_those_of_the_node),
        T(a_light_message_before_any_full_one_ends_the_link),
    };
    return cmocka_run_group_tests_name("bus/bus_links", tests, NULL, NULL);
}

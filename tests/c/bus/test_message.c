/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of the cluster bus. tests/assets/bus has messages that nodes of Valkey 9.1.2 sent to
 * each other: all are read and written again to the same bytes. */
#include "bus_test.h"

#include <dirent.h>

#include "base/base.h"
#include "bus/message_layout.h"

#define RECORDED "tests/assets/bus/"

static uint8_t slots[SLOT_BYTES];
static testId sender, other;

static messageHeader headerOf(void) {
    return (messageHeader){.port = 6379,
                           .bus_port = 16379,
                           .node_flags = 0x1c11,
                           .flags = MESSAGE_HAS_EXTENSIONS,
                           .current_epoch = 7,
                           .epoch = 6,
                           .offset = 1234567890123,
                           .stream = UINT64_C(0x8877665544332211),
                           .sender = sender.text,
                           .slots = slots,
                           .ip = SLICE("10.0.0.1")};
}

static int setup(void **state) {
    memset(slots, 0, sizeof(slots));
    slots[0] = 5;
    slots[SLOT_BYTES - 1] = 0x80;
    sender = idOf(1);
    other = idOf(2);
    return 0;
}

static void readWhole(const str *bytes, message *m) {
    size_t size;
    reason why;
    assert_int_equal(messagePeek(strSlice(bytes), &size), OK);
    assert_int_equal(size, bytes->len);
    assert_int_equal(messageRead(strSlice(bytes), m, &why), OK);
}

/* ------------------------------------------------------------------ recorded messages */

static str recorded(const char *name) {
    char path[256];
    str bytes = STR_EMPTY;
    snprintf(path, sizeof(path), RECORDED "%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof(part), file)) > 0;) strAppend(&bytes, part, n);
    fclose(file);
    return bytes;
}

static void writeAgain(const message *m, str *out) {
    const messageHeader *h = m->is_light ? NULL : &m->header;
    if (m->type <= MESSAGE_MEET) {
        messageExtensions e;
        messageWriter w = m->is_short ? messageBeginShort(out, (messageType)m->type, h)
                                      : messageBegin(out, (messageType)m->type, h);
        char id[NODE_ID_LEN];
        size_t at = 0;
        for (int i = 0; i < m->gossip_count; i++) {
            gossipEntry g = messageNextGossip(m, &at, id);
            messageAddGossip(&w, &g);
        }
        messageReadExtensions(m, &e);
        assert_int_equal(e.unknown_type, -1);
        messageAddExtensions(&w, &e);
        messageEnd(&w);
    } else if (m->type == MESSAGE_FAIL) {
        messageWriteFail(out, h, m->id);
    } else if (m->type == MESSAGE_UPDATE) {
        messageWriteUpdate(out, h, m->epoch, m->id, m->slots);
    } else if (messageMayBeLight(m->type)) {
        messageWritePublish(out, (messageType)m->type, h, m->channel, m->text);
    } else {
        messageWriteEmpty(out, (messageType)m->type, h);
    }
}

static void recorded_messages_are_written_again_byte_by_byte(void **state) {
    int count = 0;
    DIR *folder = opendir(RECORDED);
    assert_non_null(folder);
    for (const struct dirent *f; (f = readdir(folder));) {
        if (f->d_name[0] == '.') continue;
        message m;
        str bytes = recorded(f->d_name), again = STR_EMPTY;
        readWhole(&bytes, &m);
        writeAgain(&m, &again);
        assert_int_equal(again.len, bytes.len);
        assert_memory_equal(again.ptr, bytes.ptr, bytes.len);
        strFree(&bytes);
        strFree(&again);
        count++;
    }
    closedir(folder);
    assert_true(count >= 10);
}

static void recorded_ping_has_all_nine_extensions(void **state) {
    message m;
    messageExtensions e;
    str bytes = recorded("ping_nine_extensions");
    readWhole(&bytes, &m);
    assert_int_equal(m.type, MESSAGE_PING);
    assert_int_equal(m.gossip_count, 3);
    assert_int_equal(m.extension_count, 9);
    assert_int_equal(m.header.bus_port - m.header.port, 200);
    messageReadExtensions(&m, &e);
    assert_true(sliceEqual(e.hostname, SLICE("host-a.example")));
    assert_true(sliceEqual(e.human_name, SLICE("node-a")));
    assert_true(sliceEqual(e.availability_zone, SLICE("zone-1")));
    assert_true(sliceEqual(e.client_ipv4, SLICE("10.1.2.3")));
    assert_true(sliceEqual(e.client_ipv6, SLICE("fd00::1")));
    assert_int_equal(e.client_tcp_port, 7001);
    assert_int_equal(e.client_tls_port, 7002);
    assert_int_equal(e.forgotten_count, 1);
    assert_in_range(e.forgotten[0].ttl_s, 1, 60);
    assert_non_null(e.shard_id);
    char id[NODE_ID_LEN];
    size_t at = 0;
    for (int i = 0; i < m.gossip_count; i++) {
        gossipEntry g = messageNextGossip(&m, &at, id);
        assert_true(sliceEqual(g.ip, SLICE("127.0.0.1")));
        assert_int_equal(g.bus_port - g.port, 200);
        assert_false(g.node_flags & NODE_MYSELF);
    }
    strFree(&bytes);
}

static void recorded_message_of_each_type_has_its_data(void **state) {
    message m;
    str bytes = recorded("fail");
    readWhole(&bytes, &m);
    assert_int_equal(m.type, MESSAGE_FAIL);
    assert_non_null(m.id);
    strFree(&bytes);
    bytes = recorded("update");
    readWhole(&bytes, &m);
    assert_true(m.epoch > m.header.epoch || m.epoch == m.header.current_epoch);
    assert_int_equal(m.slots[0] | m.slots[SLOT_BYTES / 2], 0xff);
    strFree(&bytes);
    bytes = recorded("auth-req");
    readWhole(&bytes, &m);
    assert_non_null(m.header.primary);
    assert_true(m.header.node_flags & NODE_REPLICA);
    strFree(&bytes);
    bytes = recorded("publish");
    readWhole(&bytes, &m);
    assert_true(m.is_light);
    assert_true(sliceEqual(m.channel, SLICE("channel")));
    strFree(&bytes);
}

/* ------------------------------------------------------------------ written messages */

static void header_is_read_as_written(void **state) {
    message m;
    str bytes = STR_EMPTY;
    messageHeader h = headerOf();
    h.primary = other.text;
    h.other_port = 6380;
    h.state = 1;
    h.flags = MESSAGE_FORCE_ACK;
    messageWriteEmpty(&bytes, MESSAGE_AUTH_REQUEST, &h);
    readWhole(&bytes, &m);
    assert_int_equal(m.header.port, 6379);
    assert_int_equal(m.header.other_port, 6380);
    assert_int_equal(m.header.bus_port, 16379);
    assert_int_equal(m.header.node_flags, 0x1c11);
    assert_int_equal(m.header.state, 1);
    assert_int_equal(m.header.flags, MESSAGE_FORCE_ACK);
    assert_int_equal(m.header.current_epoch, 7);
    assert_int_equal(m.header.epoch, 6);
    assert_int_equal(m.header.offset, 1234567890123);
    assert_int_equal(m.header.stream, UINT64_C(0x8877665544332211));
    assert_memory_equal(m.header.sender, sender.text, NODE_ID_LEN);
    assert_memory_equal(m.header.primary, other.text, NODE_ID_LEN);
    assert_memory_equal(m.header.slots, slots, SLOT_BYTES);
    assert_true(sliceEqual(m.header.ip, SLICE("10.0.0.1")));
    strFree(&bytes);
}

static void several_messages_follow_each_other(void **state) {
    str bytes = STR_EMPTY;
    messageHeader h = headerOf();
    messageWriteFail(&bytes, &h, other.text);
    messageWriteModule(&bytes, NULL, 0x1122334455667788, 9, SLICE("payload"));
    messageWriteModule(&bytes, &h, 1, 2, SLICE(""));
    messageWritePublish(&bytes, MESSAGE_PUBLISH, &h, SLICE("c"), SLICE("text"));
    static const size_t sizes[] = {2296, 36, 2269, 2264 + 5};
    size_t at = 0, size;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        message m;
        slice rest = sliceMake(bytes.ptr + at, bytes.len - at);
        assert_int_equal(messagePeek(rest, &size), OK);
        assert_int_equal(size, sizes[i]);
        assert_int_equal(messageRead(sliceMake(rest.ptr, size), &m, NULL), OK);
        if (i == 1) {
            assert_int_equal(m.module_id, 0x1122334455667788);
            assert_int_equal(m.module_type, 9);
            assert_true(sliceEqual(m.payload, SLICE("payload")));
        }
        if (i == 3) assert_true(sliceEqual(m.text, SLICE("text")));
        at += size;
    }
    assert_int_equal(at, bytes.len);
    strFree(&bytes);
}

/* ------------------------------------------------------------------ invalid messages */

static void assertRefused(str *bytes, status expected, const char *text) {
    message m;
    reason why;
    storeBig32(bytes->ptr + AT_LENGTH, (uint32_t)bytes->len);
    assert_int_equal(messageRead(strSlice(bytes), &m, &why), expected);
    assert_string_equal(why.text, text);
}

static void what_is_no_message_is_refused_after_14_bytes(void **state) {
    size_t size;
    str bytes = STR_EMPTY;
    messageHeader h = headerOf();
    messageWriteEmpty(&bytes, MESSAGE_PING, &h);
    assert_int_equal(messagePeek(sliceMake(bytes.ptr, 13), &size), ERR_AGAIN);
    assert_int_equal(messagePeek(sliceMake(bytes.ptr, 14), &size), OK);
    storeBig32(bytes.ptr + AT_LENGTH, MESSAGE_HEADER_BYTES - 1);
    assert_int_equal(messagePeek(strSlice(&bytes), &size), ERR_SYNTAX);
    storeBig16(bytes.ptr + AT_TYPE, MESSAGE_PUBLISH | MESSAGE_LIGHT_BIT);
    assert_int_equal(messagePeek(strSlice(&bytes), &size), OK);
    storeBig32(bytes.ptr + AT_LENGTH, MESSAGE_LIGHT_BYTES - 1);
    assert_int_equal(messagePeek(strSlice(&bytes), &size), ERR_SYNTAX);
    bytes.ptr[0] = 'r';
    assert_int_equal(messagePeek(strSlice(&bytes), &size), ERR_SYNTAX);
    strFree(&bytes);
}

static void invalid_messages_have_the_texts_of_valkey(void **state) {
    str bytes = STR_EMPTY;
    messageHeader h = headerOf();
    messageWriteEmpty(&bytes, MESSAGE_PING, &h);
    storeBig16(bytes.ptr + AT_COUNT, 5);
    assertRefused(&bytes, ERR_SYNTAX,
                  "Received invalid ping packet with gossip count 5 that exceeds total packet "
                  "length (2256)");
    storeBig16(bytes.ptr + AT_COUNT, 0);
    storeBig16(bytes.ptr + AT_EXTENSIONS, 1);
    assertRefused(&bytes, ERR_SYNTAX,
                  "Received invalid ping packet with extension data that exceeds total packet "
                  "length (2256)");
    strAppend(&bytes, "\0\0\0\11\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    assertRefused(&bytes, ERR_SYNTAX, "Received a ping packet without proper padding (9 bytes)");
    storeBig32(bytes.ptr + MESSAGE_HEADER_BYTES, 8);
    assertRefused(&bytes, ERR_SYNTAX,
                  "Received invalid ping packet of length 2272 but expected length 2264");
    storeBig16(bytes.ptr + AT_TYPE, MESSAGE_PING | MESSAGE_LIGHT_BIT);
    assertRefused(&bytes, ERR_SYNTAX,
                  "Packet of type 'ping' (0) does not support light cluster header. Marking packet "
                  "as invalid.");
    storeBig16(bytes.ptr + AT_TYPE, MESSAGE_PING);
    storeBig16(bytes.ptr + AT_VERSION, 2);
    assertRefused(&bytes, ERR_DENIED, "");
    strClear(&bytes);
    messageWriteFail(&bytes, &h, other.text);
    strAppendByte(&bytes, 0);
    assertRefused(&bytes, ERR_SYNTAX,
                  "Received invalid fail packet of length 2297 but expected length 2296");
    strClear(&bytes);
    messageWritePublish(&bytes, MESSAGE_PUBLISH, NULL, SLICE("ab"), SLICE("cd"));
    storeBig32(bytes.ptr + MESSAGE_LIGHT_BYTES, 5);
    assertRefused(&bytes, ERR_SYNTAX,
                  "Received invalid publish packet with channel length that exceeds total packet "
                  "length (28)");
    storeBig32(bytes.ptr + MESSAGE_LIGHT_BYTES, 2);
    storeBig32(bytes.ptr + MESSAGE_LIGHT_BYTES + 4, UINT32_MAX);
    assertRefused(&bytes, ERR_SYNTAX,
                  "Received invalid publish packet with message length that exceeds total packet "
                  "length (28)");
    strFree(&bytes);
}

static void unknown_types_and_extensions_are_left_to_the_receiver(void **state) {
    message m;
    messageExtensions e;
    str bytes = STR_EMPTY;
    messageHeader h = headerOf();
    messageWriteEmpty(&bytes, MESSAGE_PING, &h);
    storeBig16(bytes.ptr + AT_TYPE, 50);
    readWhole(&bytes, &m);
    assert_int_equal(m.type, 50);
    assert_string_equal(messageTypeName(m.type), "unknown");
    storeBig16(bytes.ptr + AT_TYPE, MESSAGE_PONG);
    storeBig16(bytes.ptr + AT_EXTENSIONS, 1);
    strAppend(&bytes, "\0\0\0\10\0\77\0\0", 8);
    storeBig32(bytes.ptr + AT_LENGTH, (uint32_t)bytes.len);
    readWhole(&bytes, &m);
    messageReadExtensions(&m, &e);
    assert_int_equal(e.unknown_type, 63);
    strFree(&bytes);
}

/* As Valkey 9.2 has it: 16 bytes, no more and no fewer. */
static void refused_vote_is_read_as_written(void **state) {
    message m;
    reason why;
    str bytes = STR_EMPTY;
    messageHeader h = headerOf();
    messageWriteNack(&bytes, &h, 0x0102030405060708, NACK_STALE_CONFIG);
    assert_int_equal(loadBig16(bytes.ptr + AT_TYPE), 11);
    assert_int_equal(bytes.len, MESSAGE_HEADER_BYTES + 16);
    assert_memory_equal(bytes.ptr + MESSAGE_HEADER_BYTES, "\1\2\3\4\5\6\7\10\7\0\0\0\0\0\0\0", 16);
    readWhole(&bytes, &m);
    assert_int_equal(m.type, MESSAGE_AUTH_NACK);
    assert_string_equal(messageTypeName(m.type), "auth-nack");
    assert_int_equal(m.epoch, 0x0102030405060708);
    assert_int_equal(m.nack, 7);
    for (size_t len = MESSAGE_HEADER_BYTES; len <= MESSAGE_HEADER_BYTES + 24; len++) {
        char copy[MESSAGE_HEADER_BYTES + 24] = {0};
        memcpy(copy, bytes.ptr, sizeMin(len, bytes.len));
        storeBig32(copy + AT_LENGTH, (uint32_t)len);
        status expected = len == bytes.len ? OK : ERR_SYNTAX;
        assert_int_equal(messageRead(sliceMake(copy, len), &m, &why), expected);
    }
    assert_string_equal(
        why.text, "Received invalid auth-nack packet of length 2280 but expected length 2272");
    strFree(&bytes);
}

/* Each recorded message, cut at every byte, with a length that fits the rest: an error, or a valid
 * shorter message; never a read beyond the end, which sanitizers and the copy of exact size would
 * notice. */
static void messages_cut_at_every_byte(void **state) {
    static const char *const names[] = {"ping_nine_extensions", "fail", "update", "publish",
                                        "auth-req"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        str bytes = recorded(names[i]);
        size_t least = loadBig16(bytes.ptr + AT_TYPE) & MESSAGE_LIGHT_BIT ? MESSAGE_LIGHT_BYTES
                                                                          : MESSAGE_HEADER_BYTES;
        for (size_t len = least; len < bytes.len; len++) {
            message m;
            reason why;
            char *copy = memDup(bytes.ptr, len);
            storeBig32(copy + AT_LENGTH, (uint32_t)len);
            assert_int_equal(messageRead(sliceMake(copy, len), &m, &why), ERR_SYNTAX);
            memFree(copy);
        }
        strFree(&bytes);
    }
}

/* ------------------------------------------------------------------ the short form */

/* A PONG with all extensions, entries with and without an address. */
static str shortMessage(void) {
    str bytes = STR_EMPTY;
    testId sender = idOf(10), primary = idOf(11), other = idOf(12);
    messageHeader h = {.sender = sender.text,
                       .primary = primary.text,
                       .port = 7000,
                       .other_port = 7001,
                       .bus_port = 17000,
                       .node_flags = NODE_REPLICA | NODE_HAS_EXTENSIONS,
                       .state = 1,
                       .flags = MESSAGE_HAS_EXTENSIONS,
                       .own_flags = MESSAGE_TAKES_SHORT | MESSAGE_WANTS_FULL,
                       .current_epoch = 9,
                       .epoch = 8,
                       .offset = 12345,
                       .stream = UINT64_C(0x8877665544332211),
                       .slots_hash = UINT64_C(0x1122334455667788),
                       .ip = SLICE("10.0.0.1")};
    const gossipEntry with = {.id = other.text,
                              .ping_sent_s = 5,
                              .pong_s = 6,
                              .ip = SLICE("fd00::1"),
                              .port = 1,
                              .other_port = 2,
                              .bus_port = 3,
                              .node_flags = NODE_PRIMARY | NODE_FAILED};
    gossipEntry without = with;
    without.ip = SLICE("");
    const messageExtensions e = {
        .hostname = SLICE("host.example"), .client_tcp_port = 80, .shard_id = sender.text};
    messageWriter w = messageBeginShort(&bytes, MESSAGE_PONG, &h);
    messageAddGossip(&w, &without);
    messageAddGossip(&w, &with);
    messageAddGossip(&w, &without);
    messageAddExtensions(&w, &e);
    messageEnd(&w);
    return bytes;
}

static void the_short_form_is_read_as_written(void **state) {
    message m;
    messageExtensions e;
    str bytes = shortMessage(), again = STR_EMPTY;
    testId other = idOf(12);
    char id[NODE_ID_LEN];
    size_t at = 0;
    assert_in_range(bytes.len, MESSAGE_SHORT_BYTES, 512);
    readWhole(&bytes, &m);
    assert_true(m.is_short);
    assert_int_equal(m.type, MESSAGE_PONG);
    assert_null(m.header.slots);
    assert_int_equal(m.header.slots_hash, UINT64_C(0x1122334455667788));
    assert_int_equal(m.header.own_flags, MESSAGE_TAKES_SHORT | MESSAGE_WANTS_FULL);
    assert_int_equal(m.header.bus_port, 17000);
    assert_int_equal(m.header.other_port, 7001);
    assert_int_equal(m.header.offset, 12345);
    assert_int_equal(m.header.stream, UINT64_C(0x8877665544332211));
    assert_int_equal(m.header.state, 1);
    assert_true(sliceEqual(m.header.ip, SLICE("10.0.0.1")));
    assert_int_equal(m.gossip_count, 3);
    for (int i = 0; i < 3; i++) {
        gossipEntry g = messageNextGossip(&m, &at, id);
        assert_memory_equal(g.id, other.text, NODE_ID_LEN);
        assert_int_equal(g.pong_s, 6);
        assert_int_equal(g.node_flags, NODE_PRIMARY | NODE_FAILED);
        assert_true(sliceEqual(g.ip, i == 1 ? SLICE("fd00::1") : SLICE("")));
        assert_int_equal(g.bus_port, i == 1 ? 3 : 0);
    }
    messageReadExtensions(&m, &e);
    assert_true(sliceEqual(e.hostname, SLICE("host.example")));
    assert_int_equal(e.client_tcp_port, 80);
    writeAgain(&m, &again);
    assert_true(sliceEqual(strSlice(&again), strSlice(&bytes)));
    strFree(&bytes);
    strFree(&again);
}

static void the_short_form_cut_at_every_byte_is_refused(void **state) {
    str bytes = shortMessage();
    for (size_t len = 0; len < bytes.len; len++) {
        message m;
        reason why;
        size_t size;
        char *copy = memDup(bytes.ptr, len);
        if (len >= MESSAGE_PEEK_BYTES) storeBig32(copy + AT_LENGTH, (uint32_t)len);
        status st = messagePeek(sliceMake(copy, len), &size);
        assert_int_equal(st, len < MESSAGE_PEEK_BYTES    ? ERR_AGAIN
                             : len < MESSAGE_SHORT_BYTES ? ERR_SYNTAX
                                                         : OK);
        if (st == OK) assert_int_equal(messageRead(sliceMake(copy, len), &m, &why), ERR_SYNTAX);
        memFree(copy);
    }
    strFree(&bytes);
}

/* The bit means nothing with other types, which Valkey would not know with it, either. */
static void other_types_have_no_short_form(void **state) {
    for (unsigned type = MESSAGE_MEET; type < MESSAGE_TYPES; type++) {
        size_t size;
        str bytes = shortMessage();
        storeBig16(bytes.ptr + AT_TYPE, (uint16_t)(type | MESSAGE_SHORT_BIT));
        assert_int_equal(messagePeek(strSlice(&bytes), &size), ERR_SYNTAX);
        assert_int_equal(messageTypeOf(strSlice(&bytes)), type | MESSAGE_SHORT_BIT);
        strFree(&bytes);
    }
}

static void the_hash_tells_sets_of_slots_apart(void **state) {
    uint8_t slots[SLOT_BYTES] = {0};
    uint64_t none = messageHashSlots(slots);
    for (int i = 0; i < SLOT_COUNT; i++) {
        slots[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_not_equal(messageHashSlots(slots), none);
        slots[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    assert_int_equal(messageHashSlots(slots), none);
}

int test_message(void);
int test_message(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_messages_are_written_again_byte_by_byte),
        cmocka_unit_test(recorded_ping_has_all_nine_extensions),
        cmocka_unit_test(recorded_message_of_each_type_has_its_data),
        cmocka_unit_test(the_short_form_is_read_as_written),
        cmocka_unit_test(the_short_form_cut_at_every_byte_is_refused),
        cmocka_unit_test(other_types_have_no_short_form),
        cmocka_unit_test(the_hash_tells_sets_of_slots_apart),
        cmocka_unit_test_setup(header_is_read_as_written, setup),
        cmocka_unit_test_setup(several_messages_follow_each_other, setup),
        cmocka_unit_test_setup(what_is_no_message_is_refused_after_14_bytes, setup),
        cmocka_unit_test_setup(invalid_messages_have_the_texts_of_valkey, setup),
        cmocka_unit_test_setup(unknown_types_and_extensions_are_left_to_the_receiver, setup),
        cmocka_unit_test(refused_vote_is_read_as_written),
        cmocka_unit_test(messages_cut_at_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

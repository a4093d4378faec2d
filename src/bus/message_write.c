/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builds messages of the bus. Bytes of a message that have no meaning are zero. */
#include "base/base.h"
#include "base/hash.h"
#include "bus/message_layout.h"

/* `size` zeroed bytes at the end of the message. */
static char *extend(messageWriter *w, size_t size) {
    check(w->out->len >= w->start);
    char *at = strReserve(w->out, size);
    memset(at, 0, size);
    strGrow(w->out, size);
    return at;
}

static void putBytes(char *to, slice bytes) {
    if (bytes.len) memcpy(to, bytes.ptr, bytes.len);
}

static void putText(char *to, size_t size, slice text) {
    check(text.len < size); /* a NUL follows */
    putBytes(to, text);
}

static void putHeader(char *to, const messageHeader *h, bool is_short) {
    const size_t before = AT_PRIMARY;
    char *tail = to + before - (is_short ? SHORT_SHIFT : 0);
    storeBig16(to + AT_PORT, h->port);
    storeBig16(tail + (AT_OTHER_PORT - before), h->other_port);
    storeBig16(tail + (AT_BUS_PORT - before), h->bus_port);
    storeBig16(tail + (AT_NODE_FLAGS - before), h->node_flags);
    tail[AT_STATE - before] = (char)h->state;
    tail[AT_FLAGS - before] = (char)h->flags;
    storeU16(tail + (AT_OWN_FLAGS - before), h->own_flags);
    storeBig64(to + AT_CURRENT_EPOCH, h->current_epoch);
    storeBig64(to + AT_EPOCH, h->epoch);
    storeBig64(to + AT_OFFSET, h->offset);
    storeBig64(tail + (AT_STREAM - before), h->stream);
    memcpy(to + AT_SENDER, h->sender, NODE_ID_LEN);
    if (h->primary) memcpy(tail, h->primary, NODE_ID_LEN);
    if (is_short) {
        storeBig64(to + AT_SLOTS, h->slots_hash);
    } else {
        memcpy(to + AT_SLOTS, h->slots, SLOT_BYTES);
    }
    putText(tail + (AT_IP - before), NODE_IP_MAX, h->ip);
    storeBig64(tail + (AT_VOTERS_TERM - before), h->voters.term);
    storeBig32(tail + (AT_VOTERS_VERSION - before), h->voters.version);
}

static char *beginBytes(messageWriter *w, unsigned type, size_t header) {
    char *to = extend(w, header);
    memcpy(to, MESSAGE_SIGNATURE, 4);
    storeBig16(to + AT_VERSION, MESSAGE_VERSION);
    storeBig16(to + AT_TYPE, (uint16_t)type);
    return to;
}

/* `h` NULL: a light header. */
static messageWriter begin(str *out, messageType type, const messageHeader *h) {
    check(type < MESSAGE_TYPES);
    messageWriter w = {.out = out, .start = out->len};
    if (h) {
        putHeader(beginBytes(&w, type, MESSAGE_HEADER_BYTES), h, false);
    } else {
        check(messageMayBeLight(type));
        (void)beginBytes(&w, type | MESSAGE_LIGHT_BIT, MESSAGE_LIGHT_BYTES); /* that is all */
    }
    return w;
}

messageWriter messageBeginShort(str *out, messageType type, const messageHeader *h) {
    check(messageMayBeShort(type));
    messageWriter w = {.out = out, .start = out->len, .is_short = true};
    putHeader(beginBytes(&w, type | MESSAGE_SHORT_BIT, MESSAGE_SHORT_BYTES), h, true);
    return w;
}

uint64_t messageHashSlots(const void *slots) {
    static const uint8_t key[16] = "slots of a node";
    check(slots);
    return hashSip13(slots, SLOT_BYTES, key);
}

messageWriter messageBegin(str *out, messageType type, const messageHeader *h) {
    check(h);
    return begin(out, type, h);
}

void messageEnd(messageWriter *w) {
    char *header = w->out->ptr + w->start;
    size_t size = w->out->len - w->start;
    check(size >= MESSAGE_LIGHT_BYTES);
    check(size <= UINT32_MAX);
    storeBig32(header + AT_LENGTH, (uint32_t)size);
    if (w->gossip_count) storeBig16(header + AT_COUNT, w->gossip_count);
    size_t at = AT_EXTENSIONS - (w->is_short ? SHORT_SHIFT : 0);
    if (w->extension_count) storeBig16(header + at, w->extension_count);
}

static uint8_t hexValue(char digit) {
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10) & 15;
}

static void packId(char *to, const char id[NODE_ID_LEN]) {
    for (int i = 0; i < NODE_ID_LEN / 2; i++)
        to[i] = (char)(hexValue(id[2 * i]) << 4 | hexValue(id[2 * i + 1]));
}

static void addPacked(messageWriter *w, const gossipEntry *g) {
    check(!(g->node_flags & PACKED_HAS_ADDRESS));
    check(g->ip.len < NODE_IP_MAX);
    char *to = extend(w, g->ip.len ? PACKED_ADDRESS_BYTES + g->ip.len : PACKED_BYTES);
    packId(to, g->id);
    storeBig32(to + PACKED_AT_PING, g->ping_sent_s);
    storeBig32(to + PACKED_AT_PONG, g->pong_s);
    storeBig16(to + PACKED_AT_FLAGS, g->node_flags | (g->ip.len ? PACKED_HAS_ADDRESS : 0));
    if (!g->ip.len) return;
    storeBig16(to + PACKED_AT_PORT, g->port);
    storeBig16(to + PACKED_AT_BUS_PORT, g->bus_port);
    storeBig16(to + PACKED_AT_OTHER_PORT, g->other_port);
    to[PACKED_AT_IP_LEN] = (char)g->ip.len;
    putBytes(to + PACKED_ADDRESS_BYTES, g->ip);
}

void messageAddGossip(messageWriter *w, const gossipEntry *g) {
    check(w->extension_count == 0);
    check(w->gossip_count < UINT16_MAX);
    w->gossip_count++;
    if (w->is_short) {
        addPacked(w, g);
        return;
    }
    char *to = extend(w, GOSSIP_BYTES);
    memcpy(to, g->id, NODE_ID_LEN);
    storeBig32(to + GOSSIP_AT_PING, g->ping_sent_s);
    storeBig32(to + GOSSIP_AT_PONG, g->pong_s);
    putText(to + GOSSIP_AT_IP, NODE_IP_MAX, g->ip);
    storeBig16(to + GOSSIP_AT_PORT, g->port);
    storeBig16(to + GOSSIP_AT_OTHER_PORT, g->other_port);
    storeBig16(to + GOSSIP_AT_BUS_PORT, g->bus_port);
    storeBig16(to + GOSSIP_AT_FLAGS, g->node_flags);
}

/* ------------------------------------------------------------------ extensions */

/* An extension with zeroed data of `size` bytes, rounded up. */
static char *addExtension(messageWriter *w, enum extensionType type, size_t size) {
    check(size > 0);
    check(w->extension_count < UINT16_MAX);
    size_t whole = sizeRoundUp(EXTENSION_BYTES + size, 8);
    char *to = extend(w, whole);
    storeBig32(to, (uint32_t)whole);
    storeBig16(to + 4, (uint16_t)type);
    w->extension_count++;
    return to + EXTENSION_BYTES;
}

static void addText(messageWriter *w, enum extensionType type, slice text) {
    if (!text.len) return;
    putText(addExtension(w, type, text.len + 1), text.len + 1, text);
}

static void addPort(messageWriter *w, enum extensionType type, uint16_t port) {
    if (port) storeBig16(addExtension(w, type, 2), port);
}

/* In the order in which Valkey sends them. */
void messageAddExtensions(messageWriter *w, const messageExtensions *e) {
    addText(w, EXTENSION_HOSTNAME, e->hostname);
    addText(w, EXTENSION_HUMAN_NAME, e->human_name);
    addText(w, EXTENSION_CLIENT_IPV4, e->client_ipv4);
    addText(w, EXTENSION_CLIENT_IPV6, e->client_ipv6);
    addPort(w, EXTENSION_CLIENT_TCP_PORT, e->client_tcp_port);
    addPort(w, EXTENSION_CLIENT_TLS_PORT, e->client_tls_port);
    addText(w, EXTENSION_ZONE, e->availability_zone);
    check(e->forgotten_count <= MESSAGE_FORGOTTEN_MAX);
    for (int i = 0; i < e->forgotten_count; i++) {
        char *to = addExtension(w, EXTENSION_FORGOTTEN, FORGOTTEN_BYTES);
        memcpy(to, e->forgotten[i].id, NODE_ID_LEN);
        storeBig64(to + NODE_ID_LEN, e->forgotten[i].ttl_s);
    }
    check(e->replica_priority >= 0);
    if (e->replica_priority)
        storeBig32(addExtension(w, EXTENSION_REPLICA_PRIORITY, 4), (uint32_t)e->replica_priority);
    if (e->shard_id)
        memcpy(addExtension(w, EXTENSION_SHARD_ID, NODE_ID_LEN), e->shard_id, NODE_ID_LEN);
}

void messageAddVoters(messageWriter *w, const voterSet *set) {
    size_t size = VOTERS_BYTES + (size_t)set->count * VOTER_BYTES;
    char *to = addExtension(w, EXTENSION_VOTERS, size);
    storeBig64(to, set->stamp.term);
    storeBig32(to + VOTERS_AT_VERSION, set->stamp.version);
    storeBig32(to + VOTERS_AT_RULE, set->rule);
    storeBig32(to + VOTERS_AT_COUNT, (uint32_t)set->count);
    for (int i = 0; i < set->count; i++)
        packId(to + VOTERS_BYTES + (size_t)i * VOTER_BYTES, set->ids[i]);
}

/* ------------------------------------------------------------------ the other types */

void messageWriteFail(str *out, const messageHeader *h, const char *id) {
    messageWriter w = messageBegin(out, MESSAGE_FAIL, h);
    memcpy(extend(&w, NODE_ID_LEN), id, NODE_ID_LEN);
    messageEnd(&w);
}

void messageWriteUpdate(str *out, const messageHeader *h, uint64_t epoch, const char *id,
                        const void *slots) {
    messageWriter w = messageBegin(out, MESSAGE_UPDATE, h);
    char *to = extend(&w, UPDATE_BYTES);
    storeBig64(to, epoch);
    memcpy(to + 8, id, NODE_ID_LEN);
    memcpy(to + 8 + NODE_ID_LEN, slots, SLOT_BYTES);
    messageEnd(&w);
}

void messageWriteNack(str *out, const messageHeader *h, uint64_t epoch, enum nackReason why) {
    messageWriter w = messageBegin(out, MESSAGE_AUTH_NACK, h);
    char *to = extend(&w, NACK_BYTES);
    check(why != NACK_NONE && why < NACK_REASONS);
    storeBig64(to, epoch);
    to[NACK_AT_REASON] = (char)why;
    messageEnd(&w);
}

void messageWriteEmpty(str *out, messageType type, const messageHeader *h) {
    messageWriter w = messageBegin(out, type, h);
    messageEnd(&w);
}

void messageWritePublish(str *out, messageType type, const messageHeader *h, slice channel,
                         slice text) {
    messageWriter w = begin(out, type, h);
    char *to = extend(&w, PUBLISH_BYTES + channel.len + text.len);
    storeBig32(to, (uint32_t)channel.len);
    storeBig32(to + 4, (uint32_t)text.len);
    putBytes(to + PUBLISH_BYTES, channel);
    putBytes(to + PUBLISH_BYTES + channel.len, text);
    messageEnd(&w);
}

void messageWriteModule(str *out, const messageHeader *h, uint64_t module_id, uint8_t type,
                        slice payload) {
    messageWriter w = begin(out, MESSAGE_MODULE, h);
    char *to = extend(&w, MODULE_BYTES + payload.len);
    storeU64(to, module_id);
    storeBig32(to + 8, (uint32_t)payload.len);
    to[12] = (char)type;
    putBytes(to + MODULE_BYTES, payload);
    messageEnd(&w);
}

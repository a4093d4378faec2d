/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses messages of the bus. A length that a message states is compared with the number of bytes
 * received before it is used. */
#include "base/base.h"
#include "bus/message_layout.h"

const char *messageTypeName(unsigned type) {
    static const char *const names[MESSAGE_TYPES] = {
        "ping",     "pong",   "meet",    "fail",   "publish",      "auth-req",
        "auth-ack", "update", "mfstart", "module", "publishshard", "auth-nack"};
    return type < MESSAGE_TYPES ? names[type] : "unknown";
}

static bool isLight(slice bytes) { return loadBig16(bytes.ptr + AT_TYPE) & MESSAGE_LIGHT_BIT; }

static bool isShort(slice bytes) {
    unsigned type = loadBig16(bytes.ptr + AT_TYPE);
    return type & MESSAGE_SHORT_BIT && messageMayBeShort(type & ~(unsigned)MESSAGE_SHORT_BIT);
}

unsigned messageTypeOf(slice bytes) {
    check(bytes.len >= MESSAGE_PEEK_BYTES);
    unsigned form = isShort(bytes) ? MESSAGE_SHORT_BIT : MESSAGE_LIGHT_BIT;
    return loadBig16(bytes.ptr + AT_TYPE) & ~form;
}

static size_t headerBytes(slice bytes) {
    if (isShort(bytes)) return MESSAGE_SHORT_BYTES;
    return isLight(bytes) ? MESSAGE_LIGHT_BYTES : MESSAGE_HEADER_BYTES;
}

status messagePeek(slice bytes, size_t *size) {
    if (bytes.len < MESSAGE_PEEK_BYTES) return ERR_AGAIN;
    if (memcmp(bytes.ptr, MESSAGE_SIGNATURE, 4) != 0) return ERR_SYNTAX;
    uint32_t length = loadBig32(bytes.ptr + AT_LENGTH);
    if (length < headerBytes(bytes)) return ERR_SYNTAX;
    *size = length;
    return OK;
}

/* ------------------------------------------------------------------ the header */

/* A text in a field of fixed size, which a NUL ends unless it fills the field. */
static slice textIn(const char *field, size_t size) {
    return sliceMake(field, strnlen(field, size));
}

static void readHeader(const char *from, bool is_short, messageHeader *h) {
    static const char none[NODE_ID_LEN];
    const size_t before = AT_PRIMARY; /* offsets of the fields from here on are of the full form */
    const char *tail = from + before - (is_short ? SHORT_SHIFT : 0);
    h->port = loadBig16(from + AT_PORT);
    h->other_port = loadBig16(tail + (AT_OTHER_PORT - before));
    h->bus_port = loadBig16(tail + (AT_BUS_PORT - before));
    h->node_flags = loadBig16(tail + (AT_NODE_FLAGS - before));
    h->state = (uint8_t)tail[AT_STATE - before];
    h->flags = (uint8_t)tail[AT_FLAGS - before];
    h->own_flags = loadU16(tail + (AT_OWN_FLAGS - before));
    h->current_epoch = loadBig64(from + AT_CURRENT_EPOCH);
    h->epoch = loadBig64(from + AT_EPOCH);
    h->offset = loadBig64(from + AT_OFFSET);
    h->stream = loadBig64(tail + (AT_STREAM - before));
    h->sender = from + AT_SENDER;
    h->primary = memcmp(tail, none, NODE_ID_LEN) ? tail : NULL;
    h->slots = is_short ? NULL : (const uint8_t *)from + AT_SLOTS;
    h->slots_hash = is_short ? loadBig64(from + AT_SLOTS) : 0;
    h->ip = textIn(tail + (AT_IP - before), NODE_IP_MAX);
    h->voters = (voterStamp){0, 0};
    if (!(h->own_flags & MESSAGE_TELLS_VOTERS)) return;
    h->voters.term = loadBig64(tail + (AT_VOTERS_TERM - before));
    h->voters.version = loadBig32(tail + (AT_VOTERS_VERSION - before));
}

/* ------------------------------------------------------------------ data by type */

static size_t wholeBytes(const message *m) {
    if (m->is_short) return m->body.len + MESSAGE_SHORT_BYTES;
    return m->body.len + (m->is_light ? MESSAGE_LIGHT_BYTES : MESSAGE_HEADER_BYTES);
}

static status invalid(const message *m, const char *what, reason *why) {
    return reasonSet(why, ERR_SYNTAX,
                     "Received invalid %s packet with %s that exceeds total packet length (%zu)",
                     messageTypeName(m->type), what, wholeBytes(m));
}

static status expectLength(const message *m, size_t expected, reason *why) {
    if (m->body.len == expected) return OK;
    return reasonSet(
        why, ERR_SYNTAX, "Received invalid %s packet of length %zu but expected length %zu",
        messageTypeName(m->type), wholeBytes(m), wholeBytes(m) - m->body.len + expected);
}

/* The least size of the data of an extension. */
static size_t extensionDataMin(unsigned type) {
    switch (type) {
    case EXTENSION_FORGOTTEN: return FORGOTTEN_BYTES;
    case EXTENSION_SHARD_ID: return NODE_ID_LEN;
    case EXTENSION_VOTERS: return VOTERS_BYTES;
    case EXTENSION_REPLICA_PRIORITY: return 4;
    case EXTENSION_CLIENT_TCP_PORT:
    case EXTENSION_CLIENT_TLS_PORT: return 2;
    default: return 0;
    }
}

static status checkExtensions(const message *m, size_t at, reason *why) {
    for (int i = 0; i < m->extension_count; i++) {
        size_t left = m->body.len - at;
        if (left < EXTENSION_BYTES) return invalid(m, "extension data", why);
        uint32_t size = loadBig32(m->body.ptr + at);
        if (size % 8)
            return reasonSet(why, ERR_SYNTAX,
                             "Received a %s packet without proper padding (%u bytes)",
                             messageTypeName(m->type), size);
        unsigned type = loadBig16(m->body.ptr + at + 4);
        if (size < EXTENSION_BYTES + extensionDataMin(type) || size > left)
            return invalid(m, "extension data", why);
        at += size;
    }
    if (at == m->body.len) return OK;
    return expectLength(m, at, why);
}

/* The size of the entry at `at` of the short form; 0: it is cut, or invalid. */
static size_t packedBytes(const message *m, size_t at) {
    size_t left = m->body.len - at;
    check(m->is_short);
    if (left < PACKED_BYTES) return 0;
    const char *from = m->body.ptr + at;
    if (!(loadBig16(from + PACKED_AT_FLAGS) & PACKED_HAS_ADDRESS)) return PACKED_BYTES;
    if (left < PACKED_ADDRESS_BYTES) return 0;
    size_t ip = (uint8_t)from[PACKED_AT_IP_LEN];
    return ip < NODE_IP_MAX && ip <= left - PACKED_ADDRESS_BYTES ? PACKED_ADDRESS_BYTES + ip : 0;
}

/* More than the body if an entry is not whole. */
static size_t gossipBytes(const message *m) {
    if (!m->is_short) return (size_t)m->gossip_count * GOSSIP_BYTES;
    size_t at = 0;
    for (int i = 0; i < m->gossip_count; i++) {
        size_t size = packedBytes(m, at);
        if (!size) return m->body.len + 1;
        at += size;
    }
    check(at <= m->body.len);
    return at;
}

static status readGossip(message *m, const char *from, reason *why) {
    m->gossip_count = loadBig16(from + AT_COUNT);
    size_t size = m->gossip_bytes = gossipBytes(m);
    if (size > m->body.len)
        return reasonSet(
            why, ERR_SYNTAX,
            "Received invalid %s packet with gossip count %d that exceeds total packet "
            "length (%zu)",
            messageTypeName(m->type), m->gossip_count, wholeBytes(m));
    if (m->header.flags & MESSAGE_HAS_EXTENSIONS)
        m->extension_count = loadBig16(from + AT_EXTENSIONS - (m->is_short ? SHORT_SHIFT : 0));
    return checkExtensions(m, size, why);
}

static status readPublish(message *m, reason *why) {
    if (m->body.len < PUBLISH_BYTES) return invalid(m, "channel length", why);
    uint32_t channel = loadBig32(m->body.ptr), text = loadBig32(m->body.ptr + 4);
    size_t left = m->body.len - PUBLISH_BYTES;
    if (channel > left) return invalid(m, "channel length", why);
    if (text > left - channel) return invalid(m, "message length", why);
    m->channel = sliceMake(m->body.ptr + PUBLISH_BYTES, channel);
    m->text = sliceMake(m->channel.ptr + channel, text);
    size_t header = m->is_light ? MESSAGE_LIGHT_BYTES : MESSAGE_HEADER_BYTES;
    if (text == left - channel) return OK;
    return reasonSet(
        why, ERR_SYNTAX, "Received invalid %s packet of length %zu but expected length %zu",
        messageTypeName(m->type), m->body.len + header, header + PUBLISH_BYTES + channel + text);
}

static status readModule(message *m, reason *why) {
    if (m->body.len < MODULE_BYTES) return invalid(m, "module payload length", why);
    m->module_id = loadU64(m->body.ptr);
    m->module_type = (uint8_t)m->body.ptr[12];
    uint32_t size = loadBig32(m->body.ptr + 8);
    if (size > m->body.len - MODULE_BYTES) return invalid(m, "module payload length", why);
    m->payload = sliceMake(m->body.ptr + MODULE_BYTES, size);
    return OK;
}

static status readUpdate(message *m, reason *why) {
    status st = expectLength(m, UPDATE_BYTES, why);
    if (st != OK) return st;
    m->epoch = loadBig64(m->body.ptr);
    m->id = m->body.ptr + 8;
    m->slots = (const uint8_t *)m->id + NODE_ID_LEN;
    return OK;
}

static status readNack(message *m, reason *why) {
    status st = expectLength(m, NACK_BYTES, why);
    if (st != OK) return st;
    m->epoch = loadBig64(m->body.ptr);
    m->nack = (uint8_t)m->body.ptr[NACK_AT_REASON];
    return OK;
}

static status readData(message *m, const char *from, reason *why) {
    status st;
    switch (m->type) {
    case MESSAGE_PING:
    case MESSAGE_PONG:
    case MESSAGE_MEET: return readGossip(m, from, why);
    case MESSAGE_FAIL:
        st = expectLength(m, NODE_ID_LEN, why);
        if (st == OK) m->id = m->body.ptr;
        return st;
    case MESSAGE_PUBLISH:
    case MESSAGE_PUBLISH_SHARD: return readPublish(m, why);
    case MESSAGE_AUTH_REQUEST:
    case MESSAGE_AUTH_ACK:
    case MESSAGE_MANUAL_FAILOVER: return expectLength(m, 0, why);
    case MESSAGE_AUTH_NACK: return readNack(m, why);
    case MESSAGE_UPDATE: return readUpdate(m, why);
    case MESSAGE_MODULE: return readModule(m, why);
    default: return OK; /* the receiver logs that it does not know the type */
    }
}

status messageRead(slice bytes, message *out, reason *why) {
    size_t size;
    memset(out, 0, sizeof(*out));
    check(messagePeek(bytes, &size) == OK);
    check(size == bytes.len);
    if (why) why->text[0] = 0;
    out->type = (uint16_t)messageTypeOf(bytes);
    out->is_light = isLight(bytes);
    if (out->is_light && !messageMayBeLight(out->type))
        return reasonSet(why, ERR_SYNTAX,
                         "Packet of type '%s' (%u) does not support light cluster header. Marking "
                         "packet as invalid.",
                         messageTypeName(out->type), out->type);
    if (loadBig16(bytes.ptr + AT_VERSION) != MESSAGE_VERSION) return ERR_DENIED;
    size_t header = headerBytes(bytes);
    out->is_short = isShort(bytes);
    out->body = sliceMake(bytes.ptr + header, size - header);
    if (!out->is_light) readHeader(bytes.ptr, out->is_short, &out->header);
    return readData(out, bytes.ptr, why);
}

/* ------------------------------------------------------------------ gossip and extensions */

static gossipEntry packedGossip(const message *m, size_t *at, char id[NODE_ID_LEN]) {
    const char *from = m->body.ptr + *at;
    gossipEntry entry = {.id = id, .ip = SLICE("")};
    uint16_t flags = loadBig16(from + PACKED_AT_FLAGS);
    *at += packedBytes(m, *at);
    hexPrint(id, from, NODE_ID_LEN / 2);
    entry.ping_sent_s = loadBig32(from + PACKED_AT_PING);
    entry.pong_s = loadBig32(from + PACKED_AT_PONG);
    entry.node_flags = flags & (uint16_t)~PACKED_HAS_ADDRESS;
    if (!(flags & PACKED_HAS_ADDRESS)) return entry;
    entry.port = loadBig16(from + PACKED_AT_PORT);
    entry.bus_port = loadBig16(from + PACKED_AT_BUS_PORT);
    entry.other_port = loadBig16(from + PACKED_AT_OTHER_PORT);
    entry.ip = textIn(from + PACKED_ADDRESS_BYTES, (uint8_t)from[PACKED_AT_IP_LEN]);
    return entry;
}

gossipEntry messageNextGossip(const message *m, size_t *at, char id[NODE_ID_LEN]) {
    check(*at < m->gossip_bytes);
    if (m->is_short) return packedGossip(m, at, id);
    const char *from = m->body.ptr + *at;
    *at += GOSSIP_BYTES;
    return (gossipEntry){.id = from,
                         .ping_sent_s = loadBig32(from + GOSSIP_AT_PING),
                         .pong_s = loadBig32(from + GOSSIP_AT_PONG),
                         .ip = textIn(from + GOSSIP_AT_IP, NODE_IP_MAX),
                         .port = loadBig16(from + GOSSIP_AT_PORT),
                         .other_port = loadBig16(from + GOSSIP_AT_OTHER_PORT),
                         .bus_port = loadBig16(from + GOSSIP_AT_BUS_PORT),
                         .node_flags = loadBig16(from + GOSSIP_AT_FLAGS)};
}

static void readForgotten(const char *data, messageExtensions *out) {
    if (out->forgotten_count == MESSAGE_FORGOTTEN_MAX) return;
    out->forgotten[out->forgotten_count++] = (forgottenNode){data, loadBig64(data + NODE_ID_LEN)};
}

/* Reads a priority. A number that the directive cannot have is read as 0. */
static int readPriority(const char *data) {
    uint32_t priority = loadBig32(data);
    return priority <= INT32_MAX ? (int)priority : 0;
}

static void readExtension(unsigned type, const char *data, size_t size, messageExtensions *out) {
    switch (type) {
    case EXTENSION_HOSTNAME: out->hostname = textIn(data, size); break;
    case EXTENSION_HUMAN_NAME: out->human_name = textIn(data, size); break;
    case EXTENSION_ZONE: out->availability_zone = textIn(data, size); break;
    case EXTENSION_CLIENT_IPV4: out->client_ipv4 = textIn(data, size); break;
    case EXTENSION_CLIENT_IPV6: out->client_ipv6 = textIn(data, size); break;
    case EXTENSION_CLIENT_TCP_PORT: out->client_tcp_port = loadBig16(data); break;
    case EXTENSION_CLIENT_TLS_PORT: out->client_tls_port = loadBig16(data); break;
    case EXTENSION_FORGOTTEN: readForgotten(data, out); break;
    case EXTENSION_SHARD_ID: out->shard_id = data; break;
    case EXTENSION_REPLICA_PRIORITY: out->replica_priority = readPriority(data); break;
    case EXTENSION_VOTERS: out->voters = sliceMake(data, size); break;
    default: out->unknown_type = (int)type;
    }
}

void messageReadExtensions(const message *m, messageExtensions *out) {
    memset(out, 0, sizeof(*out));
    out->unknown_type = -1;
    out->hostname = out->human_name = out->availability_zone = SLICE("");
    out->client_ipv4 = out->client_ipv6 = out->voters = SLICE("");
    const char *at = m->body.ptr + m->gossip_bytes;
    for (int i = 0; i < m->extension_count; i++) {
        uint32_t size = loadBig32(at); /* messageRead() has checked it */
        readExtension(loadBig16(at + 4), at + EXTENSION_BYTES, size - EXTENSION_BYTES, out);
        at += size;
    }
    check(at <= m->body.ptr + m->body.len);
}

bool messageReadVoters(slice bytes, voterSet *out) {
    check(bytes.len >= VOTERS_BYTES); /* messageRead() has checked it */
    uint32_t rule = loadBig32(bytes.ptr + VOTERS_AT_RULE);
    uint32_t count = loadBig32(bytes.ptr + VOTERS_AT_COUNT);
    const char *from = bytes.ptr + VOTERS_BYTES;
    if (rule >= VOTER_RULES || count > (bytes.len - VOTERS_BYTES) / VOTER_BYTES) return false;
    if ((rule == VOTERS_OWNERS) != (count == 0)) return false;
    for (uint32_t i = 1; i < count; i++) /* in order, and each one once */
        if (memcmp(from + (i - 1) * VOTER_BYTES, from + i * VOTER_BYTES, VOTER_BYTES) >= 0)
            return false;
    *out = (voterSet){.stamp = {loadBig64(bytes.ptr), loadBig32(bytes.ptr + VOTERS_AT_VERSION)},
                      .rule = (voterRule)rule,
                      .ids = count ? memAlloc((size_t)count * NODE_ID_LEN) : NULL,
                      .count = (int)count};
    for (uint32_t i = 0; i < count; i++) hexPrint(out->ids[i], from + i * VOTER_BYTES, VOTER_BYTES);
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Offsets of the fields of a message, and access to big-endian numbers. */
#ifndef BUS_MESSAGE_LAYOUT_H
#define BUS_MESSAGE_LAYOUT_H

#include "base/bytes.h"
#include "bus/message.h"

#define MESSAGE_SIGNATURE "RCmb"

enum {
    MESSAGE_VERSION = 1,
    MESSAGE_LIGHT_BIT = 0x8000, /* of the type */
    MESSAGE_SHORT_BIT = 0x4000, /* the same, with PING and PONG */

    AT_LENGTH = 4,
    AT_VERSION = 8,
    AT_PORT = 10,
    AT_TYPE = 12,
    AT_COUNT = 14, /* of gossip entries */
    AT_CURRENT_EPOCH = 16,
    AT_EPOCH = 24,
    AT_OFFSET = 32,
    AT_SENDER = 40,
    AT_SLOTS = 80,
    AT_PRIMARY = 2128,
    AT_IP = 2168,
    AT_EXTENSIONS = 2214, /* their number */
    AT_STREAM = 2216,     /* where Valkey has zeros */
    AT_VOTERS_TERM = 2224,
    AT_VOTERS_VERSION = 2232,
    AT_OTHER_PORT = 2246,
    AT_BUS_PORT = 2248,
    AT_NODE_FLAGS = 2250,
    AT_STATE = 2252,
    AT_FLAGS = 2253,
    AT_OWN_FLAGS = 2254, /* the low byte; the other one follows it */

    /* In the short form a number is where the slots begin, and what follows them is before its
     * usual offset by so much. */
    SHORT_SHIFT = SLOT_BYTES - 8,
    /* Its gossip entries: without an address, and what an address has before its text. */
    PACKED_AT_PING = NODE_ID_LEN / 2,
    PACKED_AT_PONG = PACKED_AT_PING + 4,
    PACKED_AT_FLAGS = PACKED_AT_PONG + 4,
    PACKED_BYTES = PACKED_AT_FLAGS + 2,
    PACKED_HAS_ADDRESS = 0x8000, /* of the flags */
    PACKED_AT_PORT = PACKED_BYTES,
    PACKED_AT_BUS_PORT = PACKED_AT_PORT + 2,
    PACKED_AT_OTHER_PORT = PACKED_AT_BUS_PORT + 2,
    PACKED_AT_IP_LEN = PACKED_AT_OTHER_PORT + 2,
    PACKED_ADDRESS_BYTES = PACKED_AT_IP_LEN + 1,

    /* In a gossip entry. */
    GOSSIP_AT_PING = 40,
    GOSSIP_AT_PONG = 44,
    GOSSIP_AT_IP = 48,
    GOSSIP_AT_PORT = 94,
    GOSSIP_AT_BUS_PORT = 96,
    GOSSIP_AT_FLAGS = 98,
    GOSSIP_AT_OTHER_PORT = 100,

    /* In the data of messages. */
    UPDATE_BYTES = 8 + NODE_ID_LEN + SLOT_BYTES,
    NACK_BYTES = 16, /* the epoch, the reason, zeros */
    NACK_AT_REASON = 8,
    PUBLISH_BYTES = 8,   /* before channel and text */
    MODULE_BYTES = 13,   /* before the payload */
    EXTENSION_BYTES = 8, /* before its data */
    FORGOTTEN_BYTES = NODE_ID_LEN + 8,
    VOTERS_AT_VERSION = 8, /* after the term */
    VOTERS_AT_RULE = 12,
    VOTERS_AT_COUNT = 16,
    VOTERS_BYTES = 20, /* before the ids, of which each has: */
    VOTER_BYTES = NODE_ID_LEN / 2,
};
_Static_assert(AT_SLOTS + SLOT_BYTES == AT_PRIMARY,
               "the slots end where the id of the primary begins");
_Static_assert(AT_IP + NODE_IP_MAX == AT_EXTENSIONS, "the address ends where the counts begin");
_Static_assert(AT_FLAGS + 3 == MESSAGE_HEADER_BYTES, "three bytes of flags end the header");
_Static_assert(GOSSIP_AT_OTHER_PORT + 4 == GOSSIP_BYTES, "two zeros end an entry");

/* In the order of their numbers; messages have them in another order. */
enum extensionType {
    EXTENSION_HOSTNAME,
    EXTENSION_HUMAN_NAME,
    EXTENSION_FORGOTTEN,
    EXTENSION_SHARD_ID,
    EXTENSION_CLIENT_IPV4,
    EXTENSION_CLIENT_IPV6,
    EXTENSION_CLIENT_TCP_PORT,
    EXTENSION_CLIENT_TLS_PORT,
    EXTENSION_ZONE,
    EXTENSION_TYPES,
    EXTENSION_VOTERS = 0x4000, /* of this project */
    /* Also of this project: the extension of Valkey 9.2 for the priority has another number, which
     * is not known here. It is sent only to nodes that have announced that they understand it;
     * nodes of Valkey 9.1 would skip it. */
    EXTENSION_REPLICA_PRIORITY = 0x4001,
};

static inline uint16_t loadBig16(const void *p) { return __builtin_bswap16(loadU16(p)); }
static inline uint32_t loadBig32(const void *p) { return __builtin_bswap32(loadU32(p)); }
static inline uint64_t loadBig64(const void *p) { return __builtin_bswap64(loadU64(p)); }
static inline void storeBig16(void *p, uint16_t v) { storeU16(p, __builtin_bswap16(v)); }
static inline void storeBig32(void *p, uint32_t v) { storeU32(p, __builtin_bswap32(v)); }
static inline void storeBig64(void *p, uint64_t v) { storeU64(p, __builtin_bswap64(v)); }

static inline bool messageMayBeShort(unsigned type) {
    return type == MESSAGE_PING || type == MESSAGE_PONG;
}
static inline bool messageMayBeLight(unsigned type) {
    return type == MESSAGE_PUBLISH || type == MESSAGE_PUBLISH_SHARD || type == MESSAGE_MODULE;
}

#endif

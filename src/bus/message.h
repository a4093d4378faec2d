/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of the cluster bus as bytes. Reading validates everything before anything is used and
 * copies nothing: a parsed message refers to its bytes. Writing appends to a str. Neither knows
 * nodes, links or the map. ANY_THREAD.
 *
 * A message has a full header of 2256 bytes, then gossip entries and extensions (PING, PONG, MEET)
 * or data of its type; or, for what clients and modules send, a light header of 16 bytes. All
 * numbers are big-endian.
 *
 * PING and PONG also have a short form, which Valkey does not know: it is sent to nodes that have
 * told that they understand it. A hash of the slots replaces their bitmap, and entries of gossip
 * are packed, and need no address. A receiver that does not know the same slots of the sender asks
 * for the full form. */
#ifndef BUS_MESSAGE_H
#define BUS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "bus/protocol.h"

/* True if the slot is in the set of a message. */
static inline bool messageHasSlot(const uint8_t *slots, int slot) {
    return slots[slot / 8] >> slot % 8 & 1;
}

/* 64 slots of the set, from 64 * word on. */
static inline uint64_t messageSlotWord(const uint8_t *slots, int word) {
    return loadU64(slots + 8 * word);
}
/* Takes the lowest slot out of a part of a set that begins with slot 64 * word. */
static inline int messageTakeSlot(uint64_t *part, int word) {
    int slot = word * 64 + __builtin_ctzll(*part);
    *part &= *part - 1;
    return slot;
}

typedef enum messageType {
    MESSAGE_PING,
    MESSAGE_PONG,
    MESSAGE_MEET,
    MESSAGE_FAIL,
    MESSAGE_PUBLISH,
    MESSAGE_AUTH_REQUEST, /* a replica asks for votes */
    MESSAGE_AUTH_ACK,
    MESSAGE_UPDATE,
    MESSAGE_MANUAL_FAILOVER, /* a replica asks its primary to pause writes */
    MESSAGE_MODULE,
    MESSAGE_PUBLISH_SHARD,
    MESSAGE_AUTH_NACK, /* a vote is refused; only to nodes with NODE_TAKES_NACK */
    MESSAGE_TYPES
} messageType;

/* Reasons for refusing a vote, with their numbers in an AUTH_NACK. Other nodes may send further
 * numbers. */
enum nackReason {
    NACK_NONE,
    NACK_NOT_SAFE, /* also sent for reasons that Valkey does not have */
    NACK_EPOCH_OLD,
    NACK_ALREADY_VOTED,
    NACK_IS_PRIMARY,
    NACK_NO_PRIMARY,
    NACK_PRIMARY_UP,
    NACK_STALE_CONFIG,
    NACK_REASONS
};

enum messageFlag {
    MESSAGE_PAUSED = 1u << 0, /* the sender, a primary, has paused writes for a manual failover */
    MESSAGE_FORCE_ACK = 1u << 1,      /* votes are wanted though the primary is up */
    MESSAGE_HAS_EXTENSIONS = 1u << 2, /* the sender understands them */
};

/* Also flags, which Valkey ignores. */
enum messageOwnFlag {
    MESSAGE_TAKES_SHORT = 1u << 0,    /* the sender understands the short form */
    MESSAGE_WANTS_FULL = 1u << 1,     /* it needs the full form: it does not know the claims */
    MESSAGE_UNCLAIMS = 1u << 2,       /* it does not claim slots that it has granted */
    MESSAGE_REPLICAS_VOTE = 1u << 3,  /* cluster-replicas-vote */
    MESSAGE_TELLS_VOTERS = 1u << 4,   /* it understands sets of voters and tells its own's stamp */
    MESSAGE_ABOUT_VOTERS = 1u << 5,   /* AUTH_REQUEST: of a node that makes a new set of voters */
    MESSAGE_TAKES_PRIORITY = 1u << 6, /* it understands the extension with that of a replica */
    MESSAGE_TAKES_CAPA = 1u << 7,     /* it understands CAPA of SYNCSLOTS ESTABLISH */
    MESSAGE_SHARES_ACL = 1u << 8,     /* cluster-shared-acl */
    MESSAGE_SHARES_FUNCTIONS = 1u << 9, /* cluster-shared-functions */
    MESSAGE_SHARES_CONFIG = 1u << 10,   /* cluster-shared-config */
};

enum {
    MESSAGE_HEADER_BYTES = 2256,
    MESSAGE_SHORT_BYTES = MESSAGE_HEADER_BYTES - SLOT_BYTES + 8, /* a header of the short form */
    MESSAGE_LIGHT_BYTES = 16,
    MESSAGE_PEEK_BYTES = 14, /* what messagePeek() needs */
    GOSSIP_BYTES = 104,
    MESSAGE_FORGOTTEN_MAX = 64, /* nodes named in one message; others are ignored */
};

/* The fields of a full header. */
typedef struct messageHeader {
    uint16_t port,
        other_port; /* for clients: that of tls-cluster or the plain one, and the other; 0: none */
    uint16_t bus_port;
    uint16_t node_flags; /* enum nodeFlag */
    uint8_t state;       /* 0: the cluster is ok, 1: it is not */
    uint8_t flags;       /* enum messageFlag */
    uint16_t own_flags;  /* enum messageOwnFlag */
    uint64_t current_epoch;
    uint64_t epoch;       /* of the slots: a replica sends its primary's epoch and slots */
    uint64_t offset;      /* of replication */
    uint64_t stream;      /* of that offset, a number for its id; 0: not told. Valkey ignores it */
    const char *sender;   /* NODE_ID_LEN bytes */
    const char *primary;  /* the same; NULL: the sender is a primary */
    const uint8_t *slots; /* SLOT_BYTES; NULL in a message of the short form */
    uint64_t slots_hash;  /* of the short form: messageHashSlots() */
    voterStamp voters;    /* with MESSAGE_TELLS_VOTERS; zeros: no set, or not told */
    slice ip;             /* empty: the address of the connection */
} messageHeader;

/* What a message tells about a third node. */
typedef struct gossipEntry {
    const char *id;
    uint32_t ping_sent_s, pong_s; /* seconds; 0: none */
    slice ip;
    uint16_t port, other_port, bus_port;
    uint16_t node_flags;
} gossipEntry;

typedef struct forgottenNode {
    const char *id;
    uint64_t ttl_s;
} forgottenNode;

/* What the sender tells about itself. Empty or 0: nothing. */
typedef struct messageExtensions {
    slice hostname, human_name, availability_zone, client_ipv4, client_ipv6;
    uint16_t client_tcp_port, client_tls_port;
    int replica_priority; /* cluster-replica-priority; the receiver must understand it */
    const char *shard_id; /* NULL: none */
    forgottenNode forgotten[MESSAGE_FORGOTTEN_MAX];
    int forgotten_count;
    slice voters;     /* for messageReadVoters(); empty: none */
    int unknown_type; /* of an extension that is not known; -1: none */
} messageExtensions;

/* A message that was read. Pointers and slices refer to its bytes. */
typedef struct message {
    uint16_t type; /* messageType, or larger: a type that is not known */
    bool is_light, is_short;
    messageHeader header; /* unless it is light */
    int gossip_count;
    size_t gossip_bytes;
    int extension_count;
    slice body;           /* after the header */
    const char *id;       /* FAIL: the failed node; UPDATE: the node that it is about */
    uint64_t epoch;       /* UPDATE; AUTH_NACK: of the request that is refused */
    uint8_t nack;         /* AUTH_NACK: enum nackReason, or a number that is not known */
    const uint8_t *slots; /* UPDATE */
    slice channel, text;  /* PUBLISH, PUBLISH_SHARD */
    uint64_t module_id;   /* MODULE, in the byte order of the sender */
    uint8_t module_type;
    slice payload;
} message;

/* The word for a type in logs and statistics: "ping", "auth-req", ...; "unknown". */
const char *messageTypeName(unsigned type);

/* ---- reading ---- */

/* The length of the message that begins with these bytes, in *size. ERR_AGAIN: fewer than
 * MESSAGE_PEEK_BYTES bytes; ERR_SYNTAX: they are no message, so the connection is of no use any
 * more. */
status messagePeek(slice bytes, size_t *size) MUST_USE;
/* Reads a whole message. ERR_SYNTAX: it is invalid, `why` says how; ERR_DENIED: it has another
 * version of the protocol, and is ignored without a word. */
status messageRead(slice bytes, message *out, reason *why) MUST_USE;
/* The type of a message that messagePeek() accepted. */
unsigned messageTypeOf(slice bytes);
/* The entry at *at of a PING, PONG or MEET, and moves *at, which begins with 0, to the next one; to
 * be called `gossip_count` times. The entry may refer to `id`. */
gossipEntry messageNextGossip(const message *m, size_t *at, char id[NODE_ID_LEN]);
/* The extensions of a PING, PONG or MEET. */
void messageReadExtensions(const message *m, messageExtensions *out);
/* A set of voters, whose ids are to be freed; false: it is invalid, nothing is allocated. */
bool messageReadVoters(slice bytes, voterSet *out);

/* ---- writing ---- */

/* A message that is being appended to a str. */
typedef struct messageWriter {
    str *out;
    size_t start;
    bool is_short;
    uint16_t gossip_count, extension_count;
} messageWriter;

messageWriter messageBegin(str *out, messageType type, const messageHeader *h);
/* A PING or PONG in the short form; `slots_hash` is used, and `slots` not. */
messageWriter messageBeginShort(str *out, messageType type, const messageHeader *h);
/* Two sets of slots have the same number only if they are equal, for all that can happen by
 * chance. All nodes compute the same one. `slots`: SLOT_BYTES as in messages. */
uint64_t messageHashSlots(const void *slots);
/* In the short form an entry without `ip` takes least. The id must be one of hex digits. */
void messageAddGossip(messageWriter *w, const gossipEntry *g);
/* Adds all extensions that are set. Gossip cannot follow. */
void messageAddExtensions(messageWriter *w, const messageExtensions *e);
/* For nodes that have told MESSAGE_TELLS_VOTERS only. Gossip cannot follow. */
void messageAddVoters(messageWriter *w, const voterSet *set);
/* Sets the length and the counts; every message ends with it. */
void messageEnd(messageWriter *w);

void messageWriteFail(str *out, const messageHeader *h, const char *id);
void messageWriteUpdate(str *out, const messageHeader *h, uint64_t epoch, const char *id,
                        const void *slots);
void messageWriteNack(str *out, const messageHeader *h, uint64_t epoch, enum nackReason why);
/* AUTH_REQUEST, AUTH_ACK, MANUAL_FAILOVER: a header alone. */
void messageWriteEmpty(str *out, messageType type, const messageHeader *h);
/* `h` NULL: with a light header, for receivers that support it. */
void messageWritePublish(str *out, messageType type, const messageHeader *h, slice channel,
                         slice text);
void messageWriteModule(str *out, const messageHeader *h, uint64_t module_id, uint8_t type,
                        slice payload);

#endif

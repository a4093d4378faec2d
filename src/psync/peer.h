/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica as its primary sees it (primary.h), and what it has announced. */
#ifndef PSYNC_PEER_H
#define PSYNC_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "ds/list.h"
#include "psync/backlog.h"

typedef enum peerState {
    PEER_NONE,
    PEER_WAITING_START,
    PEER_WAITING_END,
    PEER_SENDING_FILE,
    PEER_MAIN_CHANNEL,
    PEER_TRANSMITTED,
    PEER_ONLINE,
    PEER_STATES
} peerState;

/* What a replica has announced with REPLCONF capa. */
enum peerCapability {
    PEER_CAN_READ_TO_MARK = 1, /* eof: a dataset of unknown length, between marks */
    PEER_CAN_CONTINUE = 2,     /* psync2: +CONTINUE with an id */
    PEER_CAN_DUAL_CHANNEL = 4,
    PEER_CAN_SKIP_CHECKSUM = 8,
    PEER_CAN_ACK_TURNS = 16,      /* turn-acks: REPLCONF GETACK TURN, see quorum.h */
    PEER_KNOWS_MEMBER_TTLS = 32,  /* member-ttls: the types of sets whose members have TTLs */
    PEER_HAS_CONFIRMED = 64,      /* confirmed-data: all that was sent, before a restart, too */
    PEER_IS_REDIS_8 = 256,        /* rdb-channel-repl: a Redis from 8.0 on */
    PEER_ASKS_BIRTH = 128,        /* birth: told with the reply (birth.h) */
    PEER_KNOWS_PATH_HASHES = 512, /* path-hashes */
    PEER_CAN_LZ4 = 1024,          /* lz4: a compressed dataset and stream */
    PEER_CAN_ZSTD = 2048,         /* zstd: the same; it sends lz4, too */
};

/* How the dataset and the stream are compressed on the way to a replica; the numbers are those of
 * io/compress.h. */
typedef enum peerCodec { PEER_PLAIN = 0, PEER_LZ4 = 1, PEER_ZSTD = 2 } peerCodec;

/* Parts of the dataset that a replica does not want. */
enum peerFilter { PEER_NO_KEYS = 1, PEER_NO_FUNCTIONS = 2 };

/* One replica, or a connection that may become one. */
typedef struct replPeer {
    listNode node; /* in the list of replicas unless PEER_NONE */
    void *owner;   /* of the environment */
    peerState state;
    /* What it announced. */
    int64_t port;
    str ip;      /* empty: the address of the connection */
    str node_id; /* in a cluster; empty: not told */
    str keeps;   /* the birth of the data that it keeps; "?": unknown; empty: it keeps none */
    uint32_t capabilities, filter;
    int server_version;                               /* 0x090102 for 9.1.2; 0: unknown */
    bool only_dataset, is_dataset_channel, is_backup; /* peerIsReplica() */
    bool ordered_hold; /* hold-acks: it may promote this server only as ack_hold.h says */
    /* For a main channel: the id of the connection that gets the dataset. */
    uint64_t dataset_channel;
    /* The synchronisation. */
    bool is_sync; /* asked with SYNC: no +FULLRESYNC, no acknowledgements expected */
    int64_t waiting_since_ms;
    int64_t sync_offset;   /* offset of the dataset that it gets */
    bool waits_for_main;   /* a dataset channel whose main channel has not asked to continue */
    bool waits_for_stream; /* a dataset channel at whose offset the stream has no byte yet */
    int64_t close_at_ms;   /* a dataset channel that has all: when it is closed; 0: not set */
    /* The stream. */
    peerCodec codec;        /* of dataset and stream, from its PSYNC on */
    backlogPosition at;     /* next byte to hand over; open from the fork on */
    bool streams;           /* bytes are handed over */
    bool starts_with_ack;   /* they will be after the first acknowledgement */
    bool acked_dataset;     /* which has come already, before the child has ended */
    int64_t acked, fsynced; /* offsets reported by the replica; 0: none */
    bool is_former;         /* the replica has connected again: this connection will end */
    bool is_outsider_told;  /* the log says that it confirms nothing */
    int64_t heard_ms;       /* when something was received from it last */
    char end_why[100];      /* a sentence: why its connection ends; "" if it is not known */
} replPeer;

#endif

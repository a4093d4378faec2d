/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers of the RDB format, versions 80 and 81: value types, opcodes, encodings. All integers are
 * little-endian unless a comment says otherwise. */
#ifndef FORMAT_RDB_FORMAT_H
#define FORMAT_RDB_FORMAT_H

#include <stdbool.h>

enum {
    RDB_VERSION = 80,             /* what this server writes, if there is no path hash */
    RDB_VERSION_REDIS_MAX = 11,   /* the last version shared with Redis: magic REDIS0011 */
    RDB_VERSION_REDIS_TIMES = 12, /* of Redis 7.4 and later: the first with fields that expire */
    RDB_VERSION_FOREIGN_MIN = 12, /* 12 to 79 are versions of other servers */
    RDB_VERSION_FOREIGN_MAX = 79,
    RDB_VERSION_FOREIGN_KNOWN = 16, /* the last of them that is known: Redis 7.4 to 8.10 */
    RDB_VERSION_VALKEY_92 = 81,     /* of Valkey 9.2: has path hashes, updates */
    RDB_VERSION_VALKEY_KNOWN = RDB_VERSION_VALKEY_92,
    RDB_VERSION_CHECKSUM_MIN = 5, /* older files have no checksum */
    RDB_MAGIC_LEN = 9,
    RDB_CHECKSUM_LEN = 8,
};

/* True for versions of other servers, in which types and opcodes may mean something else. */
static inline bool rdbVersionIsForeign(int version) {
    return version >= RDB_VERSION_FOREIGN_MIN && version <= RDB_VERSION_FOREIGN_MAX;
}

/* True for the versions whose content this server knows; others are read only on demand
 * (rdb-version-check relaxed). */
static inline bool rdbVersionIsKnown(int version) {
    return version >= 1 && version <= RDB_VERSION_VALKEY_KNOWN &&
           (!rdbVersionIsForeign(version) || version <= RDB_VERSION_FOREIGN_KNOWN);
}

/* True for the versions that have RDB_TYPE_PATHHASH and RDB_OP_UPDATE. */
static inline bool rdbVersionIsOf92(int version) { return version >= RDB_VERSION_VALKEY_92; }

/* The latest expiry time of a field that Redis takes, in ms: in the year 4199. It refuses a file
 * with a later one, and a command. */
#define RDB_REDIS_FIELD_TIME_MAX ((INT64_C(1) << 46) - 1)

/* Types of values. */
typedef enum rdbType {
    RDB_TYPE_STRING = 0,
    RDB_TYPE_LIST = 1,
    RDB_TYPE_SET = 2,
    RDB_TYPE_ZSET = 3, /* scores as text */
    RDB_TYPE_HASH = 4,
    RDB_TYPE_ZSET_2 = 5, /* scores as 8 bytes */
    RDB_TYPE_MODULE_PRE_GA = 6,
    RDB_TYPE_MODULE_2 = 7,
    RDB_TYPE_HASH_ZIPMAP = 9,
    RDB_TYPE_LIST_ZIPLIST = 10,
    RDB_TYPE_SET_INTSET = 11,
    RDB_TYPE_ZSET_ZIPLIST = 12,
    RDB_TYPE_HASH_ZIPLIST = 13,
    RDB_TYPE_LIST_QUICKLIST = 14, /* ziplists */
    RDB_TYPE_STREAM = 15,
    RDB_TYPE_HASH_LISTPACK = 16,
    RDB_TYPE_ZSET_LISTPACK = 17,
    RDB_TYPE_LIST_QUICKLIST_2 = 18, /* listpacks and single elements */
    RDB_TYPE_STREAM_2 = 19,
    RDB_TYPE_SET_LISTPACK = 20,
    RDB_TYPE_STREAM_3 = 21,
    RDB_TYPE_HASH_2 = 22,   /* fields with expiry times */
    RDB_TYPE_PATHHASH = 23, /* of RDB_VERSION_VALKEY_92 */
    RDB_TYPE_COUNT = 24,
    RDB_TYPE_FOREIGN_MIN =
        22, /* in a foreign version: types and opcodes with another meaning there */
    RDB_TYPE_HASH_REDIS = 24, /* the same in RDB_VERSION_REDIS_TIMES (rdb_redis.h) */
    /* Types of this server, which no Valkey reads: members with expiry times. Written only for
     * values that have such members. */
    RDB_TYPE_SET_TIMED = 224,
    RDB_TYPE_ZSET_TIMED = 225,
    RDB_TYPE_FOREIGN_MAX = 243,
} rdbType;

/* Opcodes that may occur instead of a value's type. */
enum rdbOpcode {
    RDB_OP_UPDATE = 242, /* of RDB_VERSION_VALKEY_92: a command, in a full sync of 9.2 only */
    RDB_OP_SLOT_IMPORT = 243,
    RDB_OP_SLOT_INFO = 244,
    RDB_OP_FUNCTION_2 = 245,
    RDB_OP_FUNCTION_PRE_GA = 246,
    RDB_OP_MODULE_AUX = 247,
    RDB_OP_IDLE = 248,
    RDB_OP_FREQUENCY = 249,
    RDB_OP_AUX = 250,
    RDB_OP_RESIZE_DB = 251,
    RDB_OP_EXPIRE_MS = 252,
    RDB_OP_EXPIRE_S = 253,
    RDB_OP_SELECT_DB = 254,
    RDB_OP_EOF = 255,
};

/* The first byte of a length: a class in its two highest bits, or one of two complete values. */
enum rdbLengthClass {
    RDB_LENGTH_6_BIT = 0,
    RDB_LENGTH_14_BIT = 1, /* big-endian */
    RDB_LENGTH_WIDE = 2,
    RDB_LENGTH_ENCODED = 3,        /* not a length: an encoded string follows */
    RDB_LENGTH_32_BIT_BYTE = 0x80, /* big-endian */
    RDB_LENGTH_64_BIT_BYTE = 0x81, /* big-endian */
};

/* Encodings of strings, for RDB_LENGTH_ENCODED. */
enum rdbStringEncoding {
    RDB_STRING_INT8 = 0,
    RDB_STRING_INT16 = 1,
    RDB_STRING_INT32 = 2,
    RDB_STRING_LZF = 3,
};

/* Kinds of nodes in RDB_TYPE_LIST_QUICKLIST_2. */
enum rdbListContainer { RDB_NODE_PLAIN = 1, RDB_NODE_PACKED = 2 };

/* Parts of RDB_TYPE_MODULE_2 and of module aux data. */
enum rdbModuleOpcode {
    RDB_MODULE_EOF = 0,
    RDB_MODULE_SIGNED = 1,
    RDB_MODULE_UNSIGNED = 2,
    RDB_MODULE_FLOAT = 3,
    RDB_MODULE_DOUBLE = 4,
    RDB_MODULE_STRING = 5,
};

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files and payloads of Redis 7.4 and later, RDB versions 12 to 16. Their types and opcodes from 22
 * on mean something else than in the versions of Valkey, so a reader must know the version before
 * the first of them: `redis` of the rdbReader.
 *
 * The formats were found by watching Redis 7.4 to 8.8; those of 8.10 are known from public
 * descriptions only. All bytes are untrusted. Main thread. */
#ifndef FORMAT_RDB_REDIS_H
#define FORMAT_RDB_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/rdb_module.h"
#include "format/rdb_reader.h"

/* Types with a meaning of their own in these versions. */
enum rdbRedisType {
    RDB_REDIS_HASH_TIMES_RC = 22,     /* of a release candidate: as RDB_TYPE_HASH_2 */
    RDB_REDIS_HASH_LISTPACK_RC = 23,  /* the same, packed */
    RDB_REDIS_HASH_TIMES = 24,        /* times relative to the least one */
    RDB_REDIS_HASH_LISTPACK = 25,     /* a listpack of field, value, time */
    RDB_REDIS_STREAM_4 = 26,          /* with ids of producers */
    RDB_REDIS_STREAM_5 = 27,          /* with released entries, too */
    RDB_REDIS_ARRAY = 28,             /* no type here */
    RDB_REDIS_NAMED_LISTPACK = 29,    /* hash: its names, then a listpack of the values */
    RDB_REDIS_TEMPLATE_LISTPACK = 30, /* hash: a listpack of the template's id and the values */
    RDB_REDIS_NAMED_VALUES = 31,      /* hash: its names, then the values */
    RDB_REDIS_TEMPLATE_VALUES = 32,   /* hash: the template's id, then the values */
    RDB_REDIS_GCRA = 33,              /* no type here */
};

/* Records before a key. */
enum rdbRedisOpcode {
    RDB_REDIS_OP_TEMPLATE = 0xf2, /* names of fields, for the hashes that give its id */
    RDB_REDIS_OP_METADATA = 0xf3, /* data of modules that belong to the following key */
};

/* The name of such a type in messages; NULL if there is none. */
const char *rdbRedisTypeName(int type);

/* Skips the value of a type that is not a module's and that this server has not: an array, or a
 * rate limit. ERR_NOT_FOUND: there is no such type. */
status rdbSkipRedisValue(rdbReader *r, int type) MUST_USE;

/* ---- records of files ---- */

/* Starts and ends the collection of a file's templates. */
void rdbTemplatesBegin(rdbReader *r);
void rdbTemplatesEnd(rdbReader *r);
/* Reads a record of RDB_REDIS_OP_TEMPLATE, after the opcode. */
status rdbReadTemplate(rdbReader *r) MUST_USE;
/* Reads a record of RDB_REDIS_OP_METADATA, after the opcode, and drops it. *needed is the name of
 * the first class that its writer does not allow to leave out, "" if there is none. */
status rdbSkipMetadata(rdbReader *r, char needed[RDB_METADATA_NAME_SIZE]) MUST_USE;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the commands and of value encodings. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "cmd/cmd.h"
#include "cmd/cmd_priv.h"
#include "format/rdb_settings.h"
#include "store/shape.h"
#include "store/type_zset.h"

cmdConfig cmdConf;

bool cmdNamesRedis(void) { return cmdConf.extended_redis_compatibility; }

static size_t limitOf(int64_t value) { return value < 0 ? 0 : (size_t)value; }

/* Readers of files and payloads keep to the same limits. */
static status applyLimits(reason *why) {
    (void)why; /* cannot fail */
    const rdbLimits limits = {
        .hash = {limitOf(cmdConf.hash_max_listpack_entries),
                 limitOf(cmdConf.hash_max_listpack_value)},
        .zset = {limitOf(cmdConf.zset_max_listpack_entries),
                 limitOf(cmdConf.zset_max_listpack_value)},
        .set = {.packed = {limitOf(cmdConf.set_max_listpack_entries),
                           limitOf(cmdConf.set_max_listpack_value)},
                .ints = limitOf(cmdConf.set_max_intset_entries)},
        .list = {.fill = cmdConf.list_max_listpack_size, .depth = cmdConf.list_compress_depth},
        .stream = {(uint64_t)cmdConf.stream_node_max_bytes,
                   (uint64_t)cmdConf.stream_node_max_entries}};
    rdbSetLimits(&limits);
    return OK;
}

_Static_assert(SHAPES_MAX == 65535, "as in the table below");
_Static_assert(SHAPE_FIELDS_MAX == 255, "as in the table below");
_Static_assert(SHAPE_NAMES_MAX == 65535, "as in the table below");

static status applyShapes(reason *why) {
    (void)why; /* cannot fail */
    const shapeLimits limits = {.shapes = (unsigned)cmdConf.hash_max_shapes,
                                .fields = (unsigned)cmdConf.hash_max_shape_fields,
                                .names_bytes = (unsigned)cmdConf.hash_max_shape_names};
    shapeSetLimits(&limits);
    return OK;
}

static const configWord zset_words[] = {
    {"skiplist", ZSET_NAME_SKIPLIST}, {"btree", ZSET_NAME_BTREE}, {NULL, 0}};

static status applyZsetName(reason *why) {
    (void)why; /* cannot fail */
    zsetNameLarge(cmdConf.zset_encoding_name == ZSET_NAME_BTREE ? "btree" : "skiplist");
    return OK;
}

static const configWord increx_words[] = {
    {"pair", INCREX_REPLY_PAIR}, {"single", INCREX_REPLY_SINGLE}, {NULL, 0}};

const configOption cmdOptions[] = {
    /* Limits of the packed encodings. */
    CONFIG_INT("hash-max-listpack-entries", cmdConf.hash_max_listpack_entries, 512, 0, INT64_MAX,
               .alias = "hash-max-ziplist-entries", .flags = CONFIG_APPLY_AT_START,
               .apply = applyLimits),
    CONFIG_MEMORY("hash-max-listpack-value", cmdConf.hash_max_listpack_value, 64, 0, INT64_MAX,
                  .alias = "hash-max-ziplist-value", .flags = CONFIG_APPLY_AT_START,
                  .apply = applyLimits),
    CONFIG_INT("hash-max-shapes", cmdConf.hash_max_shapes, 4096, 0, 65535,
               .flags = CONFIG_APPLY_AT_START, .apply = applyShapes),
    CONFIG_INT("hash-max-shape-fields", cmdConf.hash_max_shape_fields, 128, 0, 255,
               .flags = CONFIG_APPLY_AT_START, .apply = applyShapes),
    CONFIG_MEMORY("hash-max-shape-names", cmdConf.hash_max_shape_names, 4096, 0, 65535,
                  .flags = CONFIG_APPLY_AT_START, .apply = applyShapes),
    CONFIG_INT("list-max-listpack-size", cmdConf.list_max_listpack_size, -2, INT_MIN, INT_MAX,
               .alias = "list-max-ziplist-size", .flags = CONFIG_APPLY_AT_START,
               .apply = applyLimits),
    CONFIG_INT("list-compress-depth", cmdConf.list_compress_depth, 0, 0, INT_MAX,
               .flags = CONFIG_IN_CRASH_REPORT | CONFIG_APPLY_AT_START, .apply = applyLimits),
    CONFIG_INT("set-max-intset-entries", cmdConf.set_max_intset_entries, 512, 0, INT64_MAX,
               .flags = CONFIG_APPLY_AT_START, .apply = applyLimits),
    CONFIG_INT("set-max-listpack-entries", cmdConf.set_max_listpack_entries, 128, 0, INT64_MAX,
               .flags = CONFIG_APPLY_AT_START, .apply = applyLimits),
    CONFIG_INT("set-max-listpack-value", cmdConf.set_max_listpack_value, 64, 0, INT64_MAX,
               .flags = CONFIG_APPLY_AT_START, .apply = applyLimits),
    CONFIG_INT("zset-max-listpack-entries", cmdConf.zset_max_listpack_entries, 128, 0, INT64_MAX,
               .alias = "zset-max-ziplist-entries", .flags = CONFIG_APPLY_AT_START,
               .apply = applyLimits),
    CONFIG_MEMORY("zset-max-listpack-value", cmdConf.zset_max_listpack_value, 64, 0, INT64_MAX,
                  .alias = "zset-max-ziplist-value", .flags = CONFIG_APPLY_AT_START,
                  .apply = applyLimits),
    CONFIG_MEMORY("hll-sparse-max-bytes", cmdConf.hll_sparse_max_bytes, 3000, 0, INT64_MAX),
    CONFIG_MEMORY("stream-node-max-bytes", cmdConf.stream_node_max_bytes, 4096, 0, INT64_MAX,
                  .flags = CONFIG_APPLY_AT_START, .apply = applyLimits),
    CONFIG_INT("stream-node-max-entries", cmdConf.stream_node_max_entries, 100, 0, INT64_MAX,
               .flags = CONFIG_APPLY_AT_START, .apply = applyLimits),
    /* Behaviour of commands. */
    CONFIG_BOOL("pathhash-keep-empty", cmdConf.pathhash_keep_empty, false),
    CONFIG_BOOL("lazyfree-lazy-user-del", cmdConf.lazyfree_lazy_user_del, true,
                .flags = CONFIG_IN_CRASH_REPORT),
    CONFIG_BOOL("extended-redis-compatibility", cmdConf.extended_redis_compatibility, false),
    CONFIG_ENUM("zset-encoding-name", cmdConf.zset_encoding_name, zset_words, ZSET_NAME_SKIPLIST,
                .flags = CONFIG_APPLY_AT_START, .apply = applyZsetName),
    CONFIG_BOOL("zset-refuse-empty-bounds", cmdConf.zset_refuse_empty_bounds, false),
    CONFIG_ENUM("increx-reply", cmdConf.increx_reply, increx_words, INCREX_REPLY_PAIR),
    CONFIG_END,
};

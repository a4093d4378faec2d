/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the commands and of value encodings. Each field is named after its directive; only
 * the configuration registry writes them. */
#ifndef CMD_CMD_PRIV_H
#define CMD_CMD_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "engine/ctx.h"
#include "engine/hooks.h"
#include "engine/options.h"

enum zsetEncodingName { ZSET_NAME_SKIPLIST, ZSET_NAME_BTREE };
enum increxReply { INCREX_REPLY_PAIR, INCREX_REPLY_SINGLE };

typedef struct cmdConfig {
    /* Limits of the packed encodings: number of entries, bytes of the largest entry. */
    int64_t hash_max_listpack_entries, hash_max_listpack_value;
    int hash_max_shapes, hash_max_shape_fields; /* store/shape.h */
    int64_t hash_max_shape_names;
    int list_max_listpack_size; /* entries, or -1..-5: 4..64 KB per node */
    int list_compress_depth;    /* uncompressed nodes at each end; 0: no compression */
    int64_t set_max_intset_entries, set_max_listpack_entries, set_max_listpack_value;
    int64_t zset_max_listpack_entries, zset_max_listpack_value;
    int64_t hll_sparse_max_bytes;
    int64_t stream_node_max_bytes, stream_node_max_entries;
    /* Behaviour of commands. */
    bool pathhash_keep_empty; /* a key is kept without its last path */
    bool lazyfree_lazy_user_del, extended_redis_compatibility;
    int increx_reply; /* enum increxReply */
    /* Sorted sets. */
    int zset_encoding_name; /* enum zsetEncodingName */
    bool zset_refuse_empty_bounds;
} cmdConfig;

extern cmdConfig cmdConf;
extern const configOption cmdOptions[];

#endif

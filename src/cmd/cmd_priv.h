/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of commands and of how values are kept. A field is called as its directive; only the
 * registry writes them. */
#ifndef CMD_CMD_PRIV_H
#define CMD_CMD_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

typedef struct cmdConfig {
    /* Up to where a value is kept packed: entries, bytes of the largest one. */
    int64_t hash_max_listpack_entries, hash_max_listpack_value;
    int list_max_listpack_size; /* entries, or -1..-5: 4..64 KB */
    int list_compress_depth;    /* nodes at each end that stay uncompressed; 0 = all */
    int64_t set_max_intset_entries, set_max_listpack_entries, set_max_listpack_value;
    int64_t zset_max_listpack_entries, zset_max_listpack_value;
    int64_t hll_sparse_max_bytes;
    int64_t stream_node_max_bytes, stream_node_max_entries;
    /* Commands. */
    bool lazyfree_lazy_user_del, lazyfree_lazy_user_flush, extended_redis_compatibility;
} cmdConfig;

extern cmdConfig cmdConf;
extern const configOption cmdOptions[];

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of replies (reply_map.h). */
#include "tools/cli/reply_map.h"

#include <string.h>

const valkeyReply *replyMapField(const valkeyReply *map, const char *name) {
    if (map->type != VALKEY_REPLY_ARRAY && map->type != VALKEY_REPLY_MAP) return NULL;
    for (size_t i = 0; i + 1 < map->elements; i += 2) {
        if (map->element[i]->str && !strcmp(map->element[i]->str, name)) return map->element[i + 1];
    }
    return NULL;
}

slice replyMapSlice(const valkeyReply *map, const char *name) {
    const valkeyReply *value = replyMapField(map, name);
    return value && value->str ? sliceMake(value->str, value->len) : sliceOf("");
}

const char *replyMapText(const valkeyReply *map, const char *name) {
    return replyMapSlice(map, name).ptr;
}

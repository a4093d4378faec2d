/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ids of nodes that were forgotten. Until a time that is stored with each id, the node must not
 * be added again, because other nodes still tell of it in gossip. After that time the id stays in
 * the list, so that the node is not added merely because it sends a message itself. The id is
 * removed when the node is added again. The list is in the configuration file.
 *
 * The list is searched only for unknown nodes, so an array is fast enough. Each id is in it once,
 * the oldest first. */
#include "bus/map_blacklist.h"

#include "base/base.h"

enum { FORGOTTEN_MAX = 200 }; /* of those that are not forbidden any more */

typedef struct forbiddenNode {
    char id[NODE_ID_LEN];
    int64_t until_ms;
} forbiddenNode;

static forbiddenNode *findForbidden(const clusterMap *m, slice id) {
    for (int i = 0; i < m->forbidden_count; i++) {
        if (memcmp(m->forbidden[i].id, id.ptr, NODE_ID_LEN) == 0) return &m->forbidden[i];
    }
    return NULL;
}

static void removeAt(clusterMap *m, int at) {
    check(at >= 0);
    check(at < m->forbidden_count);
    int rest = --m->forbidden_count - at;
    memmove(m->forbidden + at, m->forbidden + at + 1, (size_t)rest * sizeof(*m->forbidden));
}

void clusterMapForbid(clusterMap *m, slice id, int64_t until_ms) {
    check(id.len == NODE_ID_LEN);
    forbiddenNode *f = findForbidden(m, id);
    m->changed |= CLUSTER_MAP_SAVE;
    if (!f) {
        size_t count = (size_t)m->forbidden_count + 1;
        m->forbidden = memRealloc(m->forbidden, count * sizeof(*m->forbidden));
        f = &m->forbidden[m->forbidden_count++];
        memcpy(f->id, id.ptr, NODE_ID_LEN);
    }
    f->until_ms = until_ms;
}

bool clusterMapIsForbidden(clusterMap *m, slice id, int64_t now_ms) {
    if (id.len != NODE_ID_LEN) return false;
    int past = 0;
    for (int i = m->forbidden_count - 1; i >= 0; i--)
        if (m->forbidden[i].until_ms <= now_ms && ++past > FORGOTTEN_MAX) removeAt(m, i);
    const forbiddenNode *f = findForbidden(m, id);
    return f && f->until_ms > now_ms;
}

bool clusterMapWasForgotten(const clusterMap *m, slice id) {
    return id.len == NODE_ID_LEN && findForbidden(m, id);
}

void clusterMapTakeBack(clusterMap *m, slice id, int64_t now_ms) {
    const forbiddenNode *f = findForbidden(m, id);
    if (f && f->until_ms <= now_ms) removeAt(m, (int)(f - m->forbidden));
}

const char *clusterMapForbidden(const clusterMap *m, int index, int64_t now_ms, int64_t *left_ms) {
    check(index >= 0);
    check(index < m->forbidden_count);
    *left_ms = m->forbidden[index].until_ms - now_ms;
    return m->forbidden[index].id;
}

void clusterMapForbidNone(clusterMap *m) {
    memFree(m->forbidden);
    m->forbidden = NULL;
    m->forbidden_count = 0;
}

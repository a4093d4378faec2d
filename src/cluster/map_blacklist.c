/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ids of nodes that were forgotten and must not be added again, as others still tell of them.
 * Searched only when a node is unknown, so a list suffices. Each id is in it once. */
#include "base/base.h"
#include "cluster/map.h"

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

void clusterMapForbid(clusterMap *m, slice id, int64_t until_ms) {
    check(id.len == NODE_ID_LEN);
    forbiddenNode *f = findForbidden(m, id);
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
    for (int i = m->forbidden_count - 1; i >= 0; i--) {
        if (m->forbidden[i].until_ms <= now_ms)
            m->forbidden[i] = m->forbidden[--m->forbidden_count];
    }
    return findForbidden(m, id) != NULL;
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

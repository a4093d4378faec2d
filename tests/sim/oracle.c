/* SPDX-License-Identifier: BSD-3-Clause */
#include "oracle.h"

#include <string.h>

#include "base/base.h"
#include "sim.h"

enum { DATASETS_MAX = 1 << 16, POINTS_MAX = 1 << 18, IDS_MAX = 1 << 12 };

typedef struct dataset {
    int parent, depth;
    uint64_t command; /* hash of it and its database */
} dataset;

typedef struct point {
    int id; /* 0: unused */
    int64_t offset;
    int dataset;
} point;

static struct {
    dataset datasets[DATASETS_MAX];
    int dataset_count;
    int children[DATASETS_MAX * 2]; /* hash table of datasets by parent and command; 0: unused */
    point points[POINTS_MAX];       /* hash table */
    char ids[IDS_MAX][41];
    int id_count;
} oracle;

void oracleReset(void) {
    memset(&oracle, 0, sizeof(oracle));
    oracle.dataset_count = oracle.id_count = 1;
}

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static uint64_t hashCommand(int db, slice command) {
    uint64_t hash = mix((uint64_t)db + 1);
    for (size_t i = 0; i < command.len; i++) hash = mix(hash ^ (uint8_t)command.ptr[i]);
    return hash;
}

int oracleApply(int from, int db, slice command) {
    uint64_t hash = hashCommand(db, command);
    uint64_t slot = mix(hash ^ (uint64_t)from);
    for (;; slot++) {
        int *child = &oracle.children[slot % COUNT_OF(oracle.children)];
        if (*child == 0) {
            if (oracle.dataset_count == DATASETS_MAX) simFail("too many datasets");
            *child = oracle.dataset_count++;
            oracle.datasets[*child] = (dataset){from, oracle.datasets[from].depth + 1, hash};
            return *child;
        }
        const dataset *d = &oracle.datasets[*child];
        if (d->parent == from && d->command == hash) return *child;
    }
}

bool oracleIncludes(int later, int earlier) {
    if (later == DATASET_NONE) return false;
    while (oracle.datasets[later].depth > oracle.datasets[earlier].depth)
        later = oracle.datasets[later].parent;
    return later == earlier;
}

static int idNumber(const char *id) {
    for (int i = 1; i < oracle.id_count; i++)
        if (!strcmp(oracle.ids[i], id)) return i;
    if (oracle.id_count == IDS_MAX) simFail("too many ids");
    memcpy(oracle.ids[oracle.id_count], id, sizeof(oracle.ids[0]));
    return oracle.id_count++;
}

void oracleAt(const char *id, int64_t offset, int dataset, const char *who) {
    int number = idNumber(id);
    uint64_t slot = mix((uint64_t)offset ^ (uint64_t)number << 40);
    for (uint64_t tries = 0; tries < POINTS_MAX; tries++, slot++) {
        point *p = &oracle.points[slot % POINTS_MAX];
        if (p->id == 0) {
            *p = (point){number, offset, dataset};
            return;
        }
        if (p->id != number || p->offset != offset) continue;
        if (p->dataset != dataset)
            simFail("%s has dataset %d at %s:%lld, but it was %d there", who, dataset, id,
                    (long long)offset, p->dataset);
        return;
    }
    simFail("too many positions");
}

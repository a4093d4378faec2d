/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The object of /memory.json: memory of keys by type and by prefix, estimated like MEMORY EXPLAIN,
 * from a smaller sample, because other clients wait meanwhile (about 2 ms). Prefixes are parts of
 * keys, and omitted if the server has a password. */
#include "base/base.h"
#include "metrics/metrics_priv.h"
#include "store/memory_sample.h"
#include "store/store.h"

enum { SAMPLES = 1000, GROUPS_SHOWN = 10 };

static void printGroups(str *out, memoryGroups *groups, double scale) {
    int count = memoryGroupsSort(groups);
    strAppendByte(out, '[');
    for (int i = 0; i < count && i < GROUPS_SHOWN; i++) {
        const memoryGroup *g = &groups->list[i];
        strAppendText(out, i ? ",{" : "{");
        jsonString(out, "name", sliceOf(g->name));
        strAppendFormat(out, ",\"keys\":%.0f,\"bytes\":%.0f}", (double)g->keys * scale,
                        g->bytes * scale);
    }
    strAppendByte(out, ']');
}

void memoryPrint(bool hide_user_data, str *out) {
    hotCheck(threadIsMain());
    memorySample *all = memNew(memorySample);
    uint64_t keys = keyspaceKeyCount(keyspaceMain());
    memorySampleRead(SAMPLES, all);
    double scale = all->seen ? (double)keys / (double)all->seen : 0;
    strAppendFormat(out, "{\"keys\":%llu,\"sampled\":%llu,\"bytes\":%.0f,\"with_expiry\":%.0f",
                    (unsigned long long)keys, (unsigned long long)all->seen, all->bytes * scale,
                    (double)all->timed * scale);
    jsonName(out, "types");
    printGroups(out, &all->kinds, scale);
    jsonName(out, "prefixes");
    if (hide_user_data) all->prefixes = (memoryGroups){.count = 0};
    printGroups(out, &all->prefixes, scale);
    strAppendFormat(out, ",\"hidden\":%s}\n", hide_user_data ? "true" : "false");
    memFree(all);
}

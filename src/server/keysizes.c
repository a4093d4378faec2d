/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO keysizes: histograms of value sizes in powers of two, by database and type. Computed on
 * request, so that writes do not pay for it: exact up to KEYS_SAMPLED_MAX keys per database, above
 * that scaled up from a sample (a bin that holds one key in a hundred is then accurate to about 13
 * %). Main thread only. */
#include "base/base.h"
#include "server/server.h"
#include "store/store.h"
#include "store/type.h"

enum { KEYS_SAMPLED_MAX = 20000, BINS = 62, TYPES = TYPE_COUNT };

typedef struct sizes {
    uint64_t bins[TYPES][BINS]; /* bin 0: empty; bin n: at least 2^(n-1) */
} sizes;

static void addKey(void *arg, const robj *o) {
    sizes *all = arg;
    const typeOps *ops = typeOf(o);
    if (!ops->length || objectType(o) == TYPE_MODULE) return; /* values of modules have no size */
    size_t length = objectLength(o);
    unsigned bin = length ? 64 - (unsigned)__builtin_clzll(length) : 0;
    all->bins[objectType(o)][bin < BINS ? bin : BINS - 1]++;
}

static void printBound(str *out, unsigned bin) {
    static const char units[] = {0, 'K', 'M', 'G', 'T', 'P'};
    unsigned power = bin ? bin - 1 : 0;
    if (bin == 0) {
        strAppendText(out, "0");
    } else {
        strAppendFormat(out, "%u", 1u << power % 10);
        if (power >= 10) strAppendByte(out, units[power / 10]);
    }
}

/* The plural as used in field names: "lists", "hashes". */
static const char *plural(valueType type) {
    static const char *const names[TYPES] = {
        "strings", "lists", "sets", "zsets", "hashes", "streams", [TYPE_PATHHASH] = "pathhashes"};
    return names[type];
}

static void printType(str *out, int db_id, valueType type, const uint64_t *bins, double scale) {
    const char *what = type == TYPE_STRING ? "sizes" : "items";
    bool any = false;
    for (unsigned bin = 0; bin < BINS; bin++) {
        if (!bins[bin]) continue;
        if (!any) strAppendFormat(out, "db%d_distrib_%s_%s:", db_id, plural(type), what);
        if (any) strAppendByte(out, ',');
        any = true;
        printBound(out, bin);
        strAppendFormat(out, "=%.0f", (double)bins[bin] * scale);
    }
    if (any) strAppendText(out, "\r\n");
}

void infoPrintKeysizes(str *out) {
    hotCheck(threadIsMain());
    for (int i = 0; i < storeDbCount(); i++) {
        const db *d = storeDb(i);
        if (!dbSize(d)) continue;
        sizes all = {0};
        uint64_t seen = dbSample(d, KEYS_SAMPLED_MAX, addKey, &all);
        if (!seen) continue;
        double scale = (double)dbSize(d) / (double)seen;
        for (int type = 0; type < TYPES; type++)
            printType(out, i, (valueType)type, all.bins[type], scale);
    }
}

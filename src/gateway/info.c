/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO with the keys of all nodes (info.h). Texts of other nodes are checked: lines of another form
 * do not count. */
#define _GNU_SOURCE /* memmem() */
#include "gateway/info.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/number.h"
#include "gateway/merge.h"
#include "resp/resp.h"

enum { DATABASES_MAX = 16384, TITLE_LEN = 12 };
static const char title[] = "# Keyspace\r\n";
_Static_assert(sizeof(title) - 1 == TITLE_LEN, "the length of the title");

typedef struct keyCounts {
    int db;
    int64_t keys, expires, volatile_items;
    double ttl_sum;
} keyCounts;

typedef struct keyTotals {
    keyCounts *of;
    int count;
} keyTotals;

static const char *findTitle(slice text) {
    return text.len ? memmem(text.ptr, text.len, title, TITLE_LEN) : NULL;
}

bool infoHasKeyspace(slice text) { return findTitle(text) != NULL; }

slice infoText(slice reply) {
    enum { FORMAT_LEN = 4 }; /* "txt:" */
    const char *line = reply.len ? memchr(reply.ptr, '\n', reply.len) : NULL;
    bool is_text = line && (reply.ptr[0] == '$' || reply.ptr[0] == '=') && reply.ptr[1] != '-';
    if (!is_text) return SLICE("");
    size_t head = (size_t)(line - reply.ptr) + 1 + (reply.ptr[0] == '=' ? FORMAT_LEN : 0);
    if (reply.len < head + 2) return SLICE("");
    return sliceMake(reply.ptr + head, reply.len - head - 2);
}

/* Takes the text up to `end` from the front of `rest`, and `end`. */
static slice takeUntil(slice *rest, char end) {
    const char *at = rest->len ? memchr(rest->ptr, end, rest->len) : NULL;
    size_t len = at ? (size_t)(at - rest->ptr) : rest->len;
    slice part = sliceMake(rest->ptr, len);
    size_t taken = at ? len + 1 : len;
    *rest = sliceMake(rest->ptr + taken, rest->len - taken);
    return part;
}

static keyCounts *totalsOf(keyTotals *t, int db) {
    check(db >= 0);
    int at = 0;
    while (at < t->count && t->of[at].db < db) at++;
    if (at < t->count && t->of[at].db == db) return &t->of[at];
    t->of = memRealloc(t->of, (size_t)(t->count + 1) * sizeof(*t->of));
    memmove(&t->of[at + 1], &t->of[at], (size_t)(t->count - at) * sizeof(*t->of));
    t->of[at] = (keyCounts){.db = db};
    t->count++;
    return &t->of[at];
}

/* "db0:keys=1,expires=0,avg_ttl=0,keys_with_volatile_items=0" */
static void addLine(keyTotals *t, slice line) {
    int64_t db, number, ttl = 0;
    keyCounts one = {0};
    slice name = takeUntil(&line, ':');
    if (!sliceHasPrefix(name, SLICE("db"))) return;
    if (!numberParseInt(sliceMake(name.ptr + 2, name.len - 2), &db)) return;
    if (db < 0 || db >= DATABASES_MAX) return;
    while (line.len) {
        slice value = takeUntil(&line, ',');
        slice field = takeUntil(&value, '=');
        if (!numberParseInt(value, &number)) continue;
        if (sliceEqual(field, SLICE("keys"))) one.keys = number;
        if (sliceEqual(field, SLICE("expires"))) one.expires = number;
        if (sliceEqual(field, SLICE("avg_ttl"))) ttl = number;
        if (sliceEqual(field, SLICE("keys_with_volatile_items"))) one.volatile_items = number;
    }
    keyCounts *sum = totalsOf(t, (int)db);
    sum->keys += one.keys;
    sum->expires += one.expires;
    sum->volatile_items += one.volatile_items;
    sum->ttl_sum += (double)ttl * (double)one.expires;
}

/* Adds the lines of the section; returns the bytes of it, with its title. */
static size_t addSection(keyTotals *t, slice text) {
    const char *at = findTitle(text);
    if (!at) return 0;
    slice rest = sliceMake(at + TITLE_LEN, text.len - (size_t)(at - text.ptr) - TITLE_LEN);
    while (sliceHasPrefix(rest, SLICE("db"))) {
        slice line = takeUntil(&rest, '\n');
        if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
        if (t) addLine(t, line);
    }
    return (size_t)(rest.ptr - at);
}

static void appendTotals(str *out, const keyTotals *t) {
    for (int i = 0; i < t->count; i++) {
        const keyCounts *k = &t->of[i];
        double ttl = k->expires > 0 ? k->ttl_sum / (double)k->expires : 0;
        strAppendFormat(
            out, "db%d:keys=%lld,expires=%lld,avg_ttl=%lld,keys_with_volatile_items=%lld\r\n",
            k->db, (long long)k->keys, (long long)k->expires, (long long)ttl,
            (long long)k->volatile_items);
    }
}

void infoSumKeyspaces(int proto, slice own, bool own_counts, const slice *others, int count,
                      str *out) {
    slice text = infoText(own);
    const char *at = findTitle(text);
    if (!at) { /* an error, or without that section */
        strAppendSlice(out, own);
        return;
    }
    keyTotals totals = {0};
    size_t section = addSection(own_counts ? &totals : NULL, text);
    check(count >= 0);
    for (int i = 0; i < count; i++) (void)addSection(&totals, infoText(others[i]));
    size_t before = (size_t)(at - text.ptr);
    check(before + section <= text.len);
    str whole = strNew(sliceMake(text.ptr, before));
    strAppendText(&whole, title);
    appendTotals(&whole, &totals);
    strAppend(&whole, at + section, text.len - before - section);
    if (proto == 3) {
        strAppendFormat(out, "=%zu\r\ntxt:", whole.len + 4);
    } else {
        strAppendFormat(out, "$%zu\r\n", whole.len);
    }
    strAppendSlice(out, strSlice(&whole));
    strAppendText(out, "\r\n");
    strFree(&whole);
    memFree(totals.of);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One reply from those of several nodes (merge.h). Replies come from other nodes: they are checked
 * before use, and what does not have the expected form gives an error. */
#include "gateway/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/number.h"
#include "resp/resp.h"

static const char malformed[] = "-ERR The nodes of the cluster have replied in different forms\r\n";

static bool isError(slice reply) {
    return reply.len && (reply.ptr[0] == '-' || reply.ptr[0] == '!');
}

/* The number after the first byte of a reply; false: it is no line of that kind. */
static bool numberOf(slice reply, char kind, int64_t *out) {
    if (reply.len < 4 || reply.ptr[0] != kind) return false;
    const char *end = memchr(reply.ptr, '\r', reply.len);
    return end && numberParseInt(sliceMake(reply.ptr + 1, (size_t)(end - reply.ptr) - 1), out);
}

static void beginArray(str *out, int64_t count) {
    strAppendByte(out, '*');
    strAppendInt(out, count);
    strAppendText(out, "\r\n");
}

int mergeItems(slice reply, slice *items, int max) {
    int64_t wanted;
    bool is_array = numberOf(reply, '*', &wanted) || numberOf(reply, '~', &wanted) ||
                    numberOf(reply, '>', &wanted);
    if (!is_array || wanted < 0 || wanted > (int64_t)reply.len) return -1;
    size_t pos = (size_t)((const char *)memchr(reply.ptr, '\n', reply.len) - reply.ptr) + 1;
    replyReader r;
    replyReaderInit(&r);
    r.skip = true;
    int count = 0;
    while (count < wanted) {
        size_t start = pos;
        replyEvent e;
        if (replyRead(&r, reply.ptr, reply.len, &pos, &e) != REPLY_EVENT) return -1;
        if (count < max) items[count] = sliceMake(reply.ptr + start, pos - start);
        count++;
    }
    return pos == reply.len ? count : -1;
}

slice mergeBulk(slice reply) {
    int64_t len;
    if (!numberOf(reply, '$', &len) || len < 0) return SLICE("");
    const char *line = memchr(reply.ptr, '\n', reply.len);
    size_t head = line ? (size_t)(line - reply.ptr) + 1 : reply.len;
    if (reply.len < head + 2) return SLICE("");
    return sliceMake(reply.ptr + head, reply.len - head - 2);
}

/* ------------------------------------------------------------------ the kinds */

static bool addUp(const mergeParts *parts, str *out) {
    int64_t sum = 0;
    for (int i = 0; i < parts->count; i++) {
        int64_t one;
        if (!numberOf(parts->replies[i], ':', &one)) return false;
        if (__builtin_add_overflow(sum, one, &sum)) return false;
    }
    strAppendByte(out, ':');
    strAppendInt(out, sum);
    strAppendText(out, "\r\n");
    return true;
}

static bool placeValues(const mergeParts *parts, str *out) {
    check(parts->total > 0);
    slice *all = memCalloc((size_t)parts->total, sizeof(slice));
    slice *items = memNewArray(slice, (size_t)parts->total);
    int used = 0;
    bool fits = true;
    for (int i = 0; fits && i < parts->count; i++) {
        int got = mergeItems(parts->replies[i], items, parts->total - used);
        fits = got >= 0 && got <= parts->total - used;
        for (int k = 0; fits && k < got; k++) all[parts->positions[used++]] = items[k];
    }
    fits = fits && used == parts->total;
    if (fits) beginArray(out, parts->total);
    for (int i = 0; fits && i < parts->total; i++) strAppendSlice(out, all[i]);
    memFree(items);
    memFree(all);
    return fits;
}

static bool appendAll(const mergeParts *parts, str *out) {
    str body = STR_EMPTY;
    int64_t total = 0;
    bool fits = true;
    for (int i = 0; fits && i < parts->count; i++) {
        slice reply = parts->replies[i];
        int count = mergeItems(reply, NULL, 0);
        fits = count >= 0;
        if (!fits) break;
        size_t head = (size_t)((const char *)memchr(reply.ptr, '\n', reply.len) - reply.ptr) + 1;
        strAppend(&body, reply.ptr + head, reply.len - head);
        total += count;
    }
    if (fits) {
        beginArray(out, total);
        strAppendSlice(out, strSlice(&body));
    }
    strFree(&body);
    return fits;
}

static bool everyOne(const mergeParts *parts, str *out) {
    int wanted = mergeItems(parts->replies[0], NULL, 0);
    if (wanted < 0) return false;
    slice *items = memNewArray(slice, (size_t)wanted + 1);
    bool *has = memNewArray(bool, (size_t)wanted + 1);
    bool fits = true;
    for (int k = 0; k < wanted; k++) has[k] = true;
    for (int i = 0; fits && i < parts->count; i++) {
        fits = mergeItems(parts->replies[i], items, wanted) == wanted;
        for (int k = 0; fits && k < wanted; k++) {
            int64_t one = 0;
            fits = numberOf(items[k], ':', &one);
            has[k] = has[k] && one != 0;
        }
    }
    if (fits) beginArray(out, wanted);
    for (int k = 0; fits && k < wanted; k++) strAppendText(out, has[k] ? ":1\r\n" : ":0\r\n");
    memFree(has);
    memFree(items);
    return fits;
}

static bool anyOne(const mergeParts *parts, str *out) {
    for (int i = 0; i < parts->count; i++) {
        slice reply = parts->replies[i];
        bool is_null = reply.ptr[0] == '_' || (reply.len > 2 && reply.ptr[1] == '-');
        if (is_null && i + 1 < parts->count) continue;
        strAppendSlice(out, reply);
        return true;
    }
    return false;
}

static void anyOk(const mergeParts *parts, str *out) {
    int i = 0;
    while (i + 1 < parts->count && isError(parts->replies[i])) i++;
    check(i < parts->count);
    strAppendSlice(out, parts->replies[i]);
}

static void appendNumber(str *out, int64_t number) {
    strAppendByte(out, ':');
    strAppendInt(out, number);
    strAppendText(out, "\r\n");
}

static bool leastNumber(const mergeParts *parts, str *out) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < parts->count; i++) {
        int64_t one;
        if (!numberOf(parts->replies[i], ':', &one)) return false;
        if (one < least) least = one;
    }
    appendNumber(out, least);
    return true;
}

/* Applies `kind` to the items in each place of arrays of the same length. */
static bool eachPlace(const mergeParts *parts, mergeKind kind, str *out) {
    int wanted = mergeItems(parts->replies[0], NULL, 0);
    if (wanted < 0) return false;
    size_t width = (size_t)wanted;
    slice *items = memNewArray(slice, (size_t)parts->count * width + 1);
    slice *column = memNewArray(slice, (size_t)parts->count);
    bool fits = true;
    for (int i = 0; fits && i < parts->count; i++)
        fits = mergeItems(parts->replies[i], items + (size_t)i * width, wanted) == wanted;
    if (fits) beginArray(out, wanted);
    for (int k = 0; fits && k < wanted; k++) {
        for (int i = 0; i < parts->count; i++) column[i] = items[(size_t)i * width + (size_t)k];
        if (column[0].ptr[0] == ':') {
            mergeReplies(&(mergeParts){.kind = kind, .replies = column, .count = parts->count},
                         out);
        } else {
            strAppendSlice(out, column[0]); /* a name */
        }
    }
    memFree(column);
    memFree(items);
    return fits;
}

static int compareItems(const void *a, const void *b) {
    return sliceCompare(*(const slice *)a, *(const slice *)b);
}

static bool unite(const mergeParts *parts, str *out) {
    int total = 0, used = 0;
    for (int i = 0; i < parts->count; i++) {
        int one = mergeItems(parts->replies[i], NULL, 0);
        if (one < 0) return false;
        total += one;
    }
    slice *items = memNewArray(slice, (size_t)total + 1);
    for (int i = 0; i < parts->count; i++)
        used += mergeItems(parts->replies[i], items + used, total - used);
    check(used == total);
    qsort(items, (size_t)total, sizeof(*items), compareItems);
    int kept = 0;
    for (int i = 0; i < total; i++)
        if (!kept || !sliceEqual(items[kept - 1], items[i])) items[kept++] = items[i];
    beginArray(out, kept);
    for (int i = 0; i < kept; i++) strAppendSlice(out, items[i]);
    memFree(items);
    return true;
}

/* An error of any part is the whole reply. */
static bool appendFirstError(const mergeParts *parts, str *out) {
    for (int i = 0; i < parts->count; i++) {
        check(parts->replies[i].len > 0);
        if (!isError(parts->replies[i])) continue;
        strAppendSlice(out, parts->replies[i]);
        return true;
    }
    return false;
}

void mergeReplies(const mergeParts *parts, str *out) {
    check(parts->count > 0);
    check(parts->kind < MERGE_KINDS);
    if (parts->kind == MERGE_ANY_OK) {
        anyOk(parts, out);
        return;
    }
    if (appendFirstError(parts, out)) return;
    bool fits = true;
    bool is_array = parts->replies[0].ptr[0] != ':';
    switch (parts->kind) {
    case MERGE_SUM: fits = addUp(parts, out); break;
    case MERGE_VALUES: fits = placeValues(parts, out); break;
    case MERGE_APPEND: fits = appendAll(parts, out); break;
    case MERGE_EVERY: fits = everyOne(parts, out); break;
    case MERGE_ANY_ONE: fits = anyOne(parts, out); break;
    case MERGE_UNION: fits = unite(parts, out); break;
    case MERGE_COUNTS: fits = eachPlace(parts, MERGE_SUM, out); break;
    case MERGE_LEAST:
        fits = is_array ? eachPlace(parts, MERGE_LEAST, out) : leastNumber(parts, out);
        break;
    default: strAppendSlice(out, parts->replies[0]); break;
    }
    if (!fits) strAppendText(out, malformed);
}

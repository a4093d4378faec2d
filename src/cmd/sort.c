/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SORT: elements of a list, set or sorted set ordered by value or by the values of other keys. All
 * elements are copied before other keys are looked up, because a lookup may delete an expired key.
 * Main thread only. */
#include <locale.h>

#include "base/base.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/str.h"
#include "cmd/collection.h"
#include "cmd/hash_priv.h"
#include "cmd/list_priv.h"
#include "cmd/procs.h"
#include "ds/key_sort.h"
#include "engine/job.h"
#include "engine/keyspace.h"
#include "engine/user.h"
#include "store/compressed.h"
#include "store/type_hash.h"
#include "store/type_set.h"
#include "store/type_zset.h"

typedef struct sorter {
    const robj *o; /* NULL if the key is missing */
    bool reads_only;
    bool alpha, descending, unsorted;
    int by, store;         /* indexes of the BY pattern and of the destination; 0: none */
    int *gets, get_count;  /* indexes of the GET patterns */
    int64_t offset, limit; /* as given */
    size_t from, count;    /* resulting range of elements */
    listpackItem *items;   /* all elements; if unsorted, only those in the range */
    size_t item_count;
    slice *texts; /* ALPHA: the texts to compare; ptr NULL for a missing key */
    /* First comparison of items: a number that increases with the score, or the first bytes of the
     * text in big-endian order; inverted for DESC. */
    sortKey *keys;
    str bytes, text_bytes; /* storage of the texts of `items` and `texts` */
    str name;              /* name of the key looked up last, or a text to be transformed */
    compressedMark mark;   /* before the values that are looked up */
    robj *into;            /* STORE: the list under construction */
    keyCompareProc *compare;
} sorter;

/* ------------------------------------------------------------------ the request */

/* The slot of all keys that a pattern can produce, -1 if there may be several. */
static int slotOfPattern(slice pattern) {
    const char *star = memchr(pattern.ptr, '*', pattern.len);
    if (!star) return hashSlot(pattern);
    const char *open = memchr(pattern.ptr, '{', pattern.len);
    if (!open) return -1;
    size_t rest = (size_t)(pattern.ptr + pattern.len - open);
    const char *close = memchr(open, '}', rest);
    return close && close > open + 1 && star > close ? hashSlot(pattern) : -1;
}

/* BY and GET access keys that were not checked by the gates: in cluster mode they must be in the
 * slot of the request, and the user must be allowed to read every key. */
static bool isReachable(ctx *c, slice pattern, const char *option) {
    if (storeIsSlotted() && slotOfPattern(pattern) != hashSlot(c->argv[1])) {
        replyErrorFormat(c,
                         "ERR %s option of SORT denied in Cluster mode when keys formed by the "
                         "pattern may be in different slots.",
                         option);
        return false;
    }
    if (userReadsAllKeys(c, false)) return true;
    replyErrorFormat(c, "ERR %s option of SORT denied due to insufficient ACL permissions.",
                     option);
    return false;
}

/* Parses the option at `arg_index`. Returns the index of its last argument, -1 after an error. */
static int parseOption(ctx *c, sorter *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    int left = c->argc - arg_index - 1;
    slice next = left > 0 ? c->argv[arg_index + 1] : (slice){NULL, 0};
    if (ctxArgIs(c, arg_index, "asc")) {
        s->descending = false;
    } else if (ctxArgIs(c, arg_index, "desc")) {
        s->descending = true;
    } else if (ctxArgIs(c, arg_index, "alpha")) {
        s->alpha = true;
    } else if (ctxArgIs(c, arg_index, "limit") && left >= 2) {
        if (!ctxArgInt(c, arg_index + 1, &s->offset) || !ctxArgInt(c, arg_index + 2, &s->limit))
            return -1;
        return arg_index + 2;
    } else if (ctxArgIs(c, arg_index, "store") && left >= 1 && !s->reads_only) {
        s->store = arg_index + 1;
        return arg_index + 1;
    } else if (ctxArgIs(c, arg_index, "by") && left >= 1) {
        s->by = arg_index + 1;
        /* A BY pattern without '*' gives the same key for all elements: no sorting. */
        if (!memchr(next.ptr, '*', next.len)) {
            s->unsorted = true;
        } else if (!isReachable(c, next, "BY")) {
            return -1;
        }
        return arg_index + 1;
    } else if (ctxArgIs(c, arg_index, "get") && left >= 1) {
        if (!sliceEqual(next, SLICE("#")) && !isReachable(c, next, "GET")) return -1;
        if (!s->gets) s->gets = memNewArray(int, (size_t)c->argc);
        s->gets[s->get_count++] = arg_index + 1;
        return arg_index + 1;
    } else {
        replyError(c, ERR_SYNTAX_TEXT);
        return -1;
    }
    return arg_index;
}

static bool parseRequest(ctx *c, sorter *s) {
    s->limit = -1;
    for (int i = 2; i < c->argc; i++) {
        i = parseOption(c, s, i);
        if (i < 0) return false;
    }
    return true;
}

/* Applies LIMIT to a result of `length` elements. */
static void applyLimit(sorter *s, size_t length) {
    s->from = s->offset < 0 ? 0 : (size_t)s->offset;
    if (s->from > length) s->from = length;
    s->count = length - s->from;
    if (s->limit >= 0 && (size_t)s->limit < s->count) s->count = (size_t)s->limit;
    hotCheck(s->from + s->count <= length || s->count == 0);
}

/* ------------------------------------------------------------------ other keys */

/* Looks up the value that a pattern gives for an element; false if the key or field is missing.
 * `digits` may be used as a buffer. The value is valid until the next call. */
static bool lookUp(ctx *c, sorter *s, slice pattern, slice element, char *digits, slice *out) {
    const char *star = memchr(pattern.ptr, '*', pattern.len);
    if (!star) return false;
    compressedFreeSince(s->mark); /* what was looked up before has been copied */
    slice suffix = sliceMake(star + 1, (size_t)(pattern.ptr + pattern.len - star - 1));
    slice field = {NULL, 0};
    for (size_t i = 0; i + 2 < suffix.len && !field.ptr; i++) {
        if (suffix.ptr[i] != '-' || suffix.ptr[i + 1] != '>') continue;
        field = sliceMake(suffix.ptr + i + 2, suffix.len - i - 2);
        suffix.len = i;
    }
    strClear(&s->name);
    strAppend(&s->name, pattern.ptr, (size_t)(star - pattern.ptr));
    strAppendSlice(&s->name, element);
    strAppendSlice(&s->name, suffix);
    slice name = strSlice(&s->name);
    uint64_t hash = storeHash(name);
    robj *o = dbFindRead(c->db, name, hash, c->look);
    if (!o) return false;
    if (field.ptr)
        return objectType(o) == TYPE_HASH &&
               !keyspaceFieldExpired(c, c->db, name, hash, o, field) &&
               hashGet(o, field, c->look, digits, out);
    if (objectType(o) != TYPE_STRING) return false;
    *out = objectText(o, digits);
    return true;
}

/* ------------------------------------------------------------------ elements */

/* Copies an element. Its text is appended to s->bytes; until all are copied, its pointer is an
 * offset in there. */
static void keepItem(sorter *s, const listpackItem *item) {
    hotCheck(s->items);
    (void)fiberPoint(1); /* as many are kept as were counted */
    listpackItem *kept = &s->items[s->item_count++];
    *kept = *item;
    if (!item->ptr) return;
    kept->ptr = (const char *)(uintptr_t)(s->bytes.len + 1);
    strAppend(&s->bytes, item->ptr, item->len);
    strAppendByte(&s->bytes, '\0');
}

static void gatherList(sorter *s, size_t from, size_t count, bool backwards) {
    listCursor cursor;
    listpackItem item;
    listCursorInit(&cursor, s->o, from, backwards);
    for (; count > 0 && listNextItem(&cursor, &item); count--) keepItem(s, &item);
    listCursorClear(&cursor);
}

static void gatherZset(sorter *s, size_t from, size_t count, bool backwards) {
    zsetCursor cursor;
    zsetPair pair;
    zsetSeek(&cursor, s->o, from, backwards);
    for (; count > 0 && zsetNext(&cursor, &pair); count--) {
        listpackItem item = listpackItemOf(pair.member);
        keepItem(s, &item);
    }
}

static void gatherSet(sorter *s, size_t from, size_t count) {
    setIterator it;
    listpackItem item;
    setIteratorInit(&it, s->o);
    for (; from > 0 && setNext(&it, &item); from--) continue;
    for (; count > 0 && setNext(&it, &item); count--) keepItem(s, &item);
    setIteratorClear(&it);
}

/* Copies all elements, or only those in the range if their order is kept. */
static void gather(sorter *s) {
    size_t length = typeOf(s->o)->length(s->o), from = 0, count = length;
    bool backwards = s->unsorted && s->descending;
    applyLimit(s, length);
    if (s->unsorted) {
        from = s->from;
        count = s->count;
    }
    if (count == 0) return;
    s->items = memNewArray(listpackItem, count);
    size_t first = backwards ? length - 1 - from : from;
    switch (objectType(s->o)) {
    case TYPE_LIST: gatherList(s, first, count, backwards); break;
    case TYPE_ZSET: gatherZset(s, first, count, backwards); break;
    default: gatherSet(s, from, count); break;
    }
    check(s->item_count == count);
    for (size_t i = 0; i < count; i++) {
        if (s->items[i].ptr) s->items[i].ptr = s->bytes.ptr + (uintptr_t)s->items[i].ptr - 1;
    }
}

/* ------------------------------------------------------------------ order */

/* Equal elements keep their order. */
static int finish(const sorter *s, int order, const sortKey *a, const sortKey *b) {
    if (order) return s->descending ? -order : order;
    return (a->index > b->index) - (a->index < b->index);
}

/* Equal scores are ordered by the elements' texts; a missing key comes before any text. */
static int compareKeys(const void *a, const void *b, void *context) {
    const sorter *s = context;
    const sortKey *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    (void)fiberPoint(1); /* elements that are half sorted are of no use */
    if (!s->texts) {
        char x_digits[NUMBER_TEXT_MAX], y_digits[NUMBER_TEXT_MAX];
        return finish(s,
                      sliceCompare(listpackText(&s->items[x->index], x_digits),
                                   listpackText(&s->items[y->index], y_digits)),
                      x, y);
    }
    slice first = s->texts[x->index], second = s->texts[y->index];
    if (!first.ptr || !second.ptr)
        return finish(s, (first.ptr != NULL) - (second.ptr != NULL), x, y);
    return finish(s, sliceCompare(first, second), x, y);
}

/* Maps a score to an integer that increases with it. */
static uint64_t orderOf(double score) {
    uint64_t bits, sign = 1ull << 63;
    score += 0.0; /* -0 and 0 are equal */
    memcpy(&bits, &score, sizeof(bits));
    return bits & sign ? ~bits : bits | sign;
}

static uint64_t prefixOf(slice text) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < sizeof(prefix); i++)
        prefix = prefix << 8 | (i < text.len ? (uint8_t)text.ptr[i] : 0);
    return prefix;
}

/* The text that item `index` is sorted by; false if the key is missing. */
static bool sortTextOf(ctx *c, sorter *s, size_t index, char *digits, slice *out) {
    char element[NUMBER_TEXT_MAX];
    if (!s->by) {
        *out = listpackText(&s->items[index], digits);
        return true;
    }
    return lookUp(c, s, c->argv[s->by], listpackText(&s->items[index], element), digits, out);
}

/* The text of a score ends at a NUL. */
static bool parseScore(slice text, double *out) {
    text.len = strnlen(text.ptr, text.len);
    return numberParseDouble(text, out);
}

/* Reads the scores of all items; a missing key counts as 0. False: the error was replied. */
static bool readScores(ctx *c, sorter *s) {
    uint64_t flip = s->descending ? UINT64_MAX : 0;
    for (size_t i = 0; i < s->item_count; i++) {
        char digits[NUMBER_TEXT_MAX];
        slice text;
        double score = 0;
        (void)fiberPoint(1); /* all keys are compared */
        if (!s->by && !s->items[i].ptr) {
            score = (double)s->items[i].number;
        } else if (sortTextOf(c, s, i, digits, &text) && !parseScore(text, &score)) {
            replyError(c, SLICE("ERR One or more scores can't be converted into double"));
            return false;
        }
        s->keys[i] = (sortKey){orderOf(score) ^ flip, {i}};
    }
    s->compare = compareKeys;
    return true;
}

/* True if texts are ordered by the locale. Stored results must be the same on every server and are
 * not. */
static bool isCollated(const sorter *s) {
    const char *locale = setlocale(LC_COLLATE, NULL);
    return !s->store && locale && strcmp(locale, "C") && strcmp(locale, "POSIX");
}

/* True if an item is sorted by its own text, which was copied already. */
static bool isOwnText(const sorter *s, size_t index) { return !s->by && s->items[index].ptr; }

/* Copies a text to s->text_bytes; `collated`: up to its first NUL, and transformed so that the
 * order of the bytes is that of the locale, which costs less than strcoll() for each comparison.
 * The result is valid until the next call. */
static slice keepText(sorter *s, slice text, bool collated) {
    size_t begin = s->text_bytes.len;
    if (collated) {
        strClear(&s->name);
        strAppendSlice(&s->name, text); /* adds the NUL */
        size_t len = strxfrm(NULL, strText(&s->name), 0);
        char *to = strReserve(&s->text_bytes, len + 1);
        (void)strxfrm(to, strText(&s->name), len + 1); /* `len` again */
        strGrow(&s->text_bytes, len);
    } else {
        strAppendSlice(&s->text_bytes, text);
    }
    size_t len = s->text_bytes.len - begin;
    strAppendByte(&s->text_bytes, '\0');
    return sliceMake(s->text_bytes.ptr + begin, len);
}

/* Reads the texts that all items are sorted by. */
static void readTexts(ctx *c, sorter *s) {
    uint64_t flip = s->descending ? UINT64_MAX : 0;
    bool collated = isCollated(s);
    s->compare = compareKeys;
    s->texts = memNewArray(slice, s->item_count);
    for (size_t i = 0; i < s->item_count; i++) {
        char digits[NUMBER_TEXT_MAX];
        slice text;
        s->keys[i] = (sortKey){flip, {i}};
        (void)fiberPoint(1); /* all keys are compared */
        if (!sortTextOf(c, s, i, digits, &text)) continue;
        bool copies = collated || !isOwnText(s, i);
        if (copies) text = keepText(s, text, collated);
        s->keys[i].order = prefixOf(text) ^ flip;
        s->texts[i] = text;
        /* An offset for now; pointers are set once all texts are read. */
        if (copies) s->texts[i].ptr = (const char *)(text.ptr - s->text_bytes.ptr + 1);
    }
    for (size_t i = 0; i < s->item_count; i++) {
        slice *text = &s->texts[i];
        if (text->ptr && (collated || !isOwnText(s, i)))
            text->ptr = s->text_bytes.ptr + (uintptr_t)text->ptr - 1;
    }
}

static void swapKeys(sortKey *a, sortKey *b) {
    sortKey kept = *a;
    *a = *b;
    *b = kept;
}

/* Quickselect: moves the key with rank `at` to its place, with smaller keys before it. */
static void selectKey(sorter *s, size_t first, size_t count, size_t at) {
    hotCheck(at < first + count);
    hotCheck(first <= at);
    while (count > 1) {
        sortKey *keys = s->keys + first;
        swapKeys(&keys[randomUniform(count)], &keys[count - 1]);
        size_t less = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            (void)fiberPoint(1);
            if (s->compare(&keys[i], &keys[count - 1], s) < 0) swapKeys(&keys[i], &keys[less++]);
        }
        swapKeys(&keys[less], &keys[count - 1]);
        if (first + less == at) return;
        if (first + less < at) {
            first += less + 1;
            count -= less + 1;
        } else {
            count = less;
        }
    }
}

/* Sorts the requested range; the elements before and after it stay unordered. */
static void sortRange(sorter *s) {
    hotCheck(s->from + s->count <= s->item_count);
    size_t end = s->from + s->count;
    if (s->count == 0) return;
    if (s->from > 0) selectKey(s, 0, s->item_count, s->from);
    if (end < s->item_count) selectKey(s, s->from, s->item_count - s->from, end);
    keySort(s->keys + s->from, s->count, s->compare, s);
}

/* ------------------------------------------------------------------ replies */

/* Receives one item of the result; NULL for a missing key. */
typedef void resultProc(ctx *c, sorter *s, const listpackItem *item);

static void visitResult(ctx *c, sorter *s, resultProc *visit) {
    for (size_t i = 0; i < s->count && !jobPoint(c, 1); i++) {
        const listpackItem *item = &s->items[s->unsorted ? i : s->keys[s->from + i].index];
        if (s->get_count == 0) visit(c, s, item);
        for (int j = 0; j < s->get_count; j++) {
            slice pattern = c->argv[s->gets[j]], value;
            char element[NUMBER_TEXT_MAX], digits[NUMBER_TEXT_MAX];
            if (sliceEqual(pattern, SLICE("#"))) {
                visit(c, s, item);
            } else if (lookUp(c, s, pattern, listpackText(item, element), digits, &value)) {
                listpackItem found = {.ptr = value.ptr, .len = value.len};
                visit(c, s, &found);
            } else {
                visit(c, s, NULL);
            }
        }
    }
}

static void replyResult(ctx *c, sorter *s, const listpackItem *item) {
    (void)s; /* used by storeResult() only */
    if (item) {
        replyItem(c, item);
    } else {
        replyNull(c);
    }
}

static void storeResult(ctx *c, sorter *s, const listpackItem *item) {
    char digits[NUMBER_TEXT_MAX];
    listLimits most = listLimitsNow();
    slice text = item ? listpackText(item, digits) : SLICE("");
    if (!s->into) s->into = listNew(c->argv[s->store]);
    s->into = listPush(listPrepare(s->into, &text, 1, &most), &text, 1, false);
}

/* Sorts s->o. False: the error was replied. */
static bool sortAll(ctx *c, sorter *s) {
    /* Results that are stored or used by scripts must be the same on every server. */
    if (s->unsorted && objectType(s->o) == TYPE_SET && (s->store || c->origin == ORIGIN_SCRIPT)) {
        s->unsorted = false;
        s->alpha = true;
        s->by = 0;
    }
    gather(s);
    s->mark = compressedSetMark();
    if (s->unsorted || jobPoint(c, 0)) return true;
    s->keys = memNewArray(sortKey, s->item_count + 1);
    if (s->alpha) {
        readTexts(c, s);
    } else if (!readScores(c, s)) {
        return false;
    }
    sortRange(s);
    return true;
}

static void clear(sorter *s) {
    memFree(s->gets);
    memFree(s->items);
    memFree(s->texts);
    memFree(s->keys);
    strFree(&s->bytes);
    strFree(&s->text_bytes);
    strFree(&s->name);
}

/* Looks up the value to sort. False: the error was replied. */
static bool findSource(ctx *c, sorter *s) {
    robj *o = collectionFindAny(c, c->argv[1], collectionHash(c, 1));
    valueType type = o ? objectType(o) : TYPE_LIST;
    if (type != TYPE_LIST && type != TYPE_SET && type != TYPE_ZSET) {
        replyError(c, ERR_WRONG_TYPE_TEXT);
        return false;
    }
    if (type == TYPE_ZSET) {
        /* As in Valkey, SORT converts a sorted set from listpack to skiplist, visible to OBJECT
         * ENCODING. */
        const packLimits nothing = {0, 0};
        o = dbFind(c->db, c->argv[1], collectionHash(c, 1), c->look, &c->at);
        check(o != NULL); /* another object than before if the value was compressed */
        o = zsetPrepare(o, 1, 0, &nothing);
        collectionPlace(c, 1, o);
    }
    s->o = o;
    return true;
}

/* True if all that the result depends on is in the value: only then it may be read in slices. The
 * keys of BY and GET are known only from the elements, so that no gate holds their writers. */
static bool looksNothingUp(const sorter *s) { return (!s->by || s->unsorted) && !s->get_count; }

/* Makes the command a job if the value is large. */
static bool runsInSlices(ctx *c, const sorter *s) {
    if (!s->o || !looksNothingUp(s)) return false;
    uint64_t length = typeOf(s->o)->length(s->o);
    return s->store ? jobStartStore(c, length) : jobStart(c, length);
}

static void run(ctx *c, bool reads_only) {
    sorter s = {.reads_only = reads_only};
    if (!parseRequest(c, &s)) goto done;
    if (!findSource(c, &s)) goto done;
    if (runsInSlices(c, &s)) goto done;
    if (s.o && !sortAll(c, &s)) goto done;
    if (s.store) {
        visitResult(c, &s, storeResult);
        if (s.into && jobMayStore(c)) /* counts as a change of each element */
            engineHot.dirty += listLength(s.into) - 1;
        collectionStore(c, s.store, s.into, &eventSortstore);
    } else {
        replyArray(c, (int64_t)s.count * (s.get_count ? s.get_count : 1));
        visitResult(c, &s, replyResult);
    }
done:
    clear(&s);
}

/* SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC|DESC] [ALPHA]
 * [STORE destination]. Reply: the elements in order, or the values of GET; with STORE, the number
 * of stored elements. */
void sortCommand(ctx *c) { run(c, false); }

/* SORT_RO key <as SORT, without STORE>. */
void sortRoCommand(ctx *c) { run(c, true); }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SORT: elements of a list, set or sorted set in the order of their own values or of other keys' values. All elements
 * are copied before other keys are looked up: a lookup may remove a key whose time has come. Main thread only. */
#include <locale.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/str.h"
#include "cmd/collection.h"
#include "cmd/hash_priv.h"
#include "cmd/list_priv.h"
#include "cmd/procs.h"
#include "ds/key_sort.h"
#include "store/type_hash.h"
#include "store/type_set.h"
#include "store/type_zset.h"

typedef struct sorter {
    const robj *o; /* NULL: there is none */
    bool reads_only;
    bool alpha, descends, unsorted;
    int by, store;         /* arguments: the pattern of keys to sort by, the destination; 0: none */
    int *gets, get_count;  /* arguments that are GET patterns */
    int64_t offset, limit; /* as given */
    size_t from, count;    /* what that means: which elements of the result are wanted */
    listpackItem *items;   /* all elements; of an unsorted result those wanted */
    size_t item_count;
    slice *texts; /* ALPHA: what the items are compared by; ptr NULL: a missing key */
    /* What the items are compared by, first of all: a number that grows with the score, or the first bytes of the text,
     * most significant first; the other way round for DESC. */
    sortKey *keys;
    str bytes, text_bytes; /* what the texts of items lie in, and texts */
    str name;              /* of the key that was looked up last */
    robj *into;            /* STORE: the list so far */
    keyCompareProc *compare;
} sorter;

/* ------------------------------------------------------------------ the request */

/* The slot of all keys a pattern stands for, -1 when they may be in several. */
static int slotOfPattern(slice pattern) {
    const char *star = memchr(pattern.ptr, '*', pattern.len);
    if (!star) return hashSlot(pattern);
    const char *open = memchr(pattern.ptr, '{', pattern.len);
    if (!open) return -1;
    size_t rest = (size_t)(pattern.ptr + pattern.len - open);
    const char *shut = memchr(open, '}', rest);
    return shut && shut > open + 1 && star > shut ? hashSlot(pattern) : -1;
}

/* BY and GET reach keys that no one has checked: in a cluster they must be in the slot of the request. */
static bool isReachable(ctx *c, slice pattern, const char *option) {
    if (!storeIsSlotted() || slotOfPattern(pattern) == hashSlot(c->argv[1])) return true;
    replyErrorFormat(c,
                     "ERR %s option of SORT denied in Cluster mode when keys formed by the pattern "
                     "may be in different slots.",
                     option);
    return false;
}

/* One option at `place`: its last argument, -1 after an error. */
static int parseOption(ctx *c, sorter *s, int place) {
    int left = c->argc - place - 1;
    slice next = left > 0 ? c->argv[place + 1] : (slice){NULL, 0};
    if (ctxArgIs(c, place, "asc")) {
        s->descends = false;
    } else if (ctxArgIs(c, place, "desc")) {
        s->descends = true;
    } else if (ctxArgIs(c, place, "alpha")) {
        s->alpha = true;
    } else if (ctxArgIs(c, place, "limit") && left >= 2) {
        if (!ctxArgInt(c, place + 1, &s->offset) || !ctxArgInt(c, place + 2, &s->limit)) return -1;
        return place + 2;
    } else if (ctxArgIs(c, place, "store") && left >= 1 && !s->reads_only) {
        s->store = place + 1;
        return place + 1;
    } else if (ctxArgIs(c, place, "by") && left >= 1) {
        s->by = place + 1;
        /* A pattern for one key and all elements orders nothing. */
        if (!memchr(next.ptr, '*', next.len)) {
            s->unsorted = true;
        } else if (!isReachable(c, next, "BY")) {
            return -1;
        }
        return place + 1;
    } else if (ctxArgIs(c, place, "get") && left >= 1) {
        if (!sliceEqual(next, SLICE("#")) && !isReachable(c, next, "GET")) return -1;
        if (!s->gets) s->gets = memNewArray(int, (size_t)c->argc);
        s->gets[s->get_count++] = place + 1;
        return place + 1;
    } else {
        replyError(c, ERR_SYNTAX_TEXT);
        return -1;
    }
    return place;
}

static bool parseRequest(ctx *c, sorter *s) {
    s->limit = -1;
    for (int i = 2; i < c->argc; i++) {
        i = parseOption(c, s, i);
        if (i < 0) return false;
    }
    return true;
}

/* Which of `length` elements LIMIT asks for. */
static void applyLimit(sorter *s, size_t length) {
    s->from = s->offset < 0 ? 0 : (size_t)s->offset;
    if (s->from > length) s->from = length;
    s->count = length - s->from;
    if (s->limit >= 0 && (size_t)s->limit < s->count) s->count = (size_t)s->limit;
}

/* ------------------------------------------------------------------ other keys */

/* What the pattern says of an element; false when there is no such key or field. `digits` may be written to. */
static bool lookUp(ctx *c, sorter *s, slice pattern, slice element, char *digits, slice *out) {
    const char *star = memchr(pattern.ptr, '*', pattern.len);
    if (!star) return false;
    slice behind = sliceMake(star + 1, (size_t)(pattern.ptr + pattern.len - star - 1));
    slice field = {NULL, 0};
    for (size_t i = 0; i + 2 < behind.len && !field.ptr; i++) {
        if (behind.ptr[i] != '-' || behind.ptr[i + 1] != '>') continue;
        field = sliceMake(behind.ptr + i + 2, behind.len - i - 2);
        behind.len = i;
    }
    strClear(&s->name);
    strAppend(&s->name, pattern.ptr, (size_t)(star - pattern.ptr));
    strAppendSlice(&s->name, element);
    strAppendSlice(&s->name, behind);
    slice name = strSlice(&s->name);
    const robj *o = dbFindRead(c->db, name, storeHash(name), c->now_ms);
    if (!o) return false;
    if (field.ptr) return objectType(o) == TYPE_HASH && hashGet(o, field, digits, out);
    if (objectType(o) != TYPE_STRING) return false;
    *out = objectText(o, digits);
    return true;
}

/* ------------------------------------------------------------------ elements */

/* Keeps an element. Its text goes to s->bytes, and its pointer says where in there until all are read. */
static void keepItem(sorter *s, const listpackItem *item) {
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

/* Copies the elements: all, or those wanted of a result that keeps their order. */
static void gather(sorter *s) {
    size_t length = typeOf(s->o)->length(s->o), from = 0, count = length;
    bool backwards = s->unsorted && s->descends;
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

/* The sort at work, for the comparisons. */
static const sorter *sorting;

static int compareBytes(slice a, slice b) {
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Among equals the one that was found first. */
static int finish(int order, const sortKey *a, const sortKey *b) {
    if (order) return sorting->descends ? -order : order;
    return (a->index > b->index) - (a->index < b->index);
}

/* Equal numbers are in the order of the elements' texts; a missing key stands before any text. */
static int compareKeys(const void *a, const void *b) {
    const sortKey *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    if (!sorting->texts) {
        char x_digits[NUMBER_TEXT_MAX], y_digits[NUMBER_TEXT_MAX];
        return finish(compareBytes(listpackText(&sorting->items[x->index], x_digits),
                                   listpackText(&sorting->items[y->index], y_digits)),
                      x, y);
    }
    slice first = sorting->texts[x->index], second = sorting->texts[y->index];
    if (!first.ptr || !second.ptr) return finish((first.ptr != NULL) - (second.ptr != NULL), x, y);
    return finish(compareBytes(first, second), x, y);
}

/* As the locale orders texts, up to their first zero byte. */
static int compareCollated(const void *a, const void *b) {
    const sortKey *x = a, *y = b;
    slice first = sorting->texts[x->index], second = sorting->texts[y->index];
    if (!first.ptr || !second.ptr) return finish((first.ptr != NULL) - (second.ptr != NULL), x, y);
    return finish(strcoll(first.ptr, second.ptr), x, y);
}

/* Grows with the score. */
static uint64_t orderOf(double score) {
    uint64_t bits, sign = 1ull << 63;
    score += 0.0; /* one zero is as good as the other */
    memcpy(&bits, &score, sizeof(bits));
    return bits & sign ? ~bits : bits | sign;
}

static uint64_t prefixOf(slice text) {
    uint64_t prefix = 0;
    for (size_t i = 0; i < sizeof(prefix); i++)
        prefix = prefix << 8 | (i < text.len ? (uint8_t)text.ptr[i] : 0);
    return prefix;
}

/* Number and element of what item `index` is sorted by; false: there is no such key. */
static bool weightOf(ctx *c, sorter *s, size_t index, char *digits, slice *out) {
    char element[NUMBER_TEXT_MAX];
    if (!s->by) {
        *out = listpackText(&s->items[index], digits);
        return true;
    }
    return lookUp(c, s, c->argv[s->by], listpackText(&s->items[index], element), digits, out);
}

/* A number ends at a zero byte. */
static bool parseScore(slice text, double *out) {
    text.len = strnlen(text.ptr, text.len);
    return numberParseDouble(text, out);
}

/* Reads what all items are sorted by as numbers; a missing key counts as 0. False: the error was replied. */
static bool weighNumbers(ctx *c, sorter *s) {
    uint64_t flip = s->descends ? UINT64_MAX : 0;
    for (size_t i = 0; i < s->item_count; i++) {
        char digits[NUMBER_TEXT_MAX];
        slice text;
        double score = 0;
        if (!s->by && !s->items[i].ptr) {
            score = (double)s->items[i].number;
        } else if (weightOf(c, s, i, digits, &text) && !parseScore(text, &score)) {
            replyError(c, SLICE("ERR One or more scores can't be converted into double"));
            return false;
        }
        s->keys[i] = (sortKey){orderOf(score) ^ flip, {i}};
    }
    s->compare = compareKeys;
    return true;
}

/* Texts are in the order of the locale; but what is stored is the same on every server. */
static bool isCollated(const sorter *s) {
    const char *locale = setlocale(LC_COLLATE, NULL);
    return !s->store && locale && strcmp(locale, "C") && strcmp(locale, "POSIX");
}

/* Whether an item is sorted by its own text, which is kept already. */
static bool isOwnText(const sorter *s, size_t index) { return !s->by && s->items[index].ptr; }

/* The same as texts. */
static void weighTexts(ctx *c, sorter *s) {
    uint64_t flip = s->descends ? UINT64_MAX : 0;
    bool collated = isCollated(s);
    s->compare = collated ? compareCollated : compareKeys;
    s->texts = memNewArray(slice, s->item_count);
    for (size_t i = 0; i < s->item_count; i++) {
        char digits[NUMBER_TEXT_MAX];
        slice text;
        s->keys[i] = (sortKey){collated ? 0 : flip, {i}};
        if (!weightOf(c, s, i, digits, &text)) continue;
        if (!collated) s->keys[i].order = prefixOf(text) ^ flip;
        s->texts[i] = text;
        if (isOwnText(s, i)) continue;
        /* Where the text is going to lie; pointers are known when all are there. */
        s->texts[i].ptr = (const char *)(uintptr_t)(s->text_bytes.len + 1);
        strAppendSlice(&s->text_bytes, text);
        strAppendByte(&s->text_bytes, '\0');
    }
    for (size_t i = 0; i < s->item_count; i++) {
        slice *text = &s->texts[i];
        if (text->ptr && !isOwnText(s, i)) text->ptr = s->text_bytes.ptr + (uintptr_t)text->ptr - 1;
    }
}

static void swapKeys(sortKey *a, sortKey *b) {
    sortKey kept = *a;
    *a = *b;
    *b = kept;
}

/* Brings the key with the number `at`, counted in order, to its place, smaller ones in front of it. */
static void selectKey(const sorter *s, size_t first, size_t count, size_t at) {
    while (count > 1) {
        sortKey *keys = s->keys + first;
        swapKeys(&keys[randomUniform(count)], &keys[count - 1]);
        size_t less = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            if (s->compare(&keys[i], &keys[count - 1]) < 0) swapKeys(&keys[i], &keys[less++]);
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

/* Puts in order what is wanted: the rest stays before and behind it in any order. */
static void putInOrder(const sorter *s) {
    size_t end = s->from + s->count;
    if (s->count == 0) return;
    sorting = s;
    if (s->from > 0) selectKey(s, 0, s->item_count, s->from);
    if (end < s->item_count) selectKey(s, s->from, s->item_count - s->from, end);
    keySort(s->keys + s->from, s->count, s->compare);
    sorting = NULL;
}

/* ------------------------------------------------------------------ answers */

/* Gets what one item stands for in the result; NULL for a key that is not there. */
typedef void resultProc(ctx *c, sorter *s, const listpackItem *item);

static void visitResult(ctx *c, sorter *s, resultProc *visit) {
    for (size_t i = 0; i < s->count; i++) {
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
    (void)s; /* for those that store */
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
    /* What is stored, or decides what a script does, is the same on every server. */
    if (s->unsorted && objectType(s->o) == TYPE_SET && (s->store || c->origin == ORIGIN_SCRIPT)) {
        s->unsorted = false;
        s->alpha = true;
        s->by = 0;
    }
    gather(s);
    if (s->unsorted) return true;
    s->keys = memNewArray(sortKey, s->item_count + 1);
    if (s->alpha) {
        weighTexts(c, s);
    } else if (!weighNumbers(c, s)) {
        return false;
    }
    putInOrder(s);
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

/* Finds what is to be sorted. False: the error was replied. */
static bool findSource(ctx *c, sorter *s) {
    robj *o = dbFindRead(c->db, c->argv[1], collectionHash(c, 1), c->now_ms);
    valueType type = o ? objectType(o) : TYPE_LIST;
    if (type != TYPE_LIST && type != TYPE_SET && type != TYPE_ZSET) {
        replyError(c, ERR_WRONG_TYPE_TEXT);
        return false;
    }
    if (type == TYPE_ZSET) {
        /* Whatever is asked for, a sorted set is not packed afterwards: everybody's OBJECT ENCODING says so. */
        const packLimits nothing = {0, 0};
        o = zsetPrepare(o, 1, 0, &nothing);
        collectionPlace(c, 1, o);
    }
    s->o = o;
    return true;
}

static void run(ctx *c, bool reads_only) {
    sorter s = {.reads_only = reads_only};
    if (!parseRequest(c, &s)) goto done;
    if (!findSource(c, &s)) goto done;
    hashLook(c);
    if (s.o && !sortAll(c, &s)) goto done;
    if (s.store) {
        visitResult(c, &s, storeResult);
        collectionStore(c, s.store, s.into, "sortstore");
    } else {
        replyArray(c, (int64_t)s.count * (s.get_count ? s.get_count : 1));
        visitResult(c, &s, replyResult);
    }
done:
    clear(&s);
}

/* SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC|DESC] [ALPHA] [STORE destination].
 * Reply: the elements in order, or what GET says of each; with STORE, how many were stored. */
void sortCommand(ctx *c) { run(c, false); }

/* SORT_RO key <as SORT, without STORE>. */
void sortRoCommand(ctx *c) { run(c, true); }

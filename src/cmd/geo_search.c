/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GEOSEARCH and its predecessors: replies or stores the members within a shape. Main thread
 * only. */
#include <stdlib.h>

#include "base/base.h"
#include "base/fiber.h"
#include "cmd/collection.h"
#include "cmd/geo_priv.h"
#include "cmd/procs.h"
#include "cmd/zset_priv.h"
#include "ds/geo_shape.h"
#include "engine/job.h"

/* ------------------------------------------------------------------ requests */

typedef enum searchForm {
    FORM_SEARCH,
    FORM_SEARCH_STORE,
    FORM_RADIUS, /* GEORADIUS, GEORADIUSBYMEMBER */
    FORM_RADIUS_RO,
} searchForm;

/* Options that define the area. */
enum where {
    WHERE_MEMBER = 1,
    WHERE_POINT = 2,
    WHERE_CIRCLE = 4,
    WHERE_BOX = 8,
    WHERE_POLYGON = 16,
    WHERE_CENTRE = WHERE_MEMBER | WHERE_POINT | WHERE_POLYGON,
    WHERE_SHAPE = WHERE_CIRCLE | WHERE_BOX | WHERE_POLYGON,
};

typedef struct search {
    searchForm form;
    const robj *o; /* the index; NULL if the key is missing */
    geoShape shape;
    geoPoint *vertices; /* vertices of the shape, owned; usually NULL */
    unsigned given;     /* flags of enum where */
    bool coord, dist, hash;
    bool any;
    bool store_dist;
    int store; /* argument of the destination key, 0 if none */
    enum { ORDER_NONE, ORDER_ASC, ORDER_DESC } order;
    int64_t count; /* 0: all */
} search;

static bool refuse(ctx *c, const char *text) {
    replyError(c, sliceOf(text));
    return false;
}

/* Parses argument `arg_index` as a length. False: `error` was replied. */
static bool argLength(ctx *c, int arg_index, double *out, const char *error) {
    return numberParseDouble(c->argv[arg_index], out) || refuse(c, error);
}

/* ---- area options: parse arguments from `arg_index` on and set *used to their number; false: the
 * error was replied ---- */

/* The centre is a member; it is not looked up if the index is missing. */
static bool parseMember(ctx *c, search *s, int arg_index, int *used) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *used = 1;
    double score;
    if (!s->o) return true;
    slice member = c->argv[arg_index];
    if (!zsetScore(s->o, member, &score)) {
        replyErrorFormat(c, "ERR member %.*s does not exist", (int)member.len, member.ptr);
        return false;
    }
    s->shape.centre = geohashDecode(geohashOfScore(score));
    return true;
}

static bool parsePoint(ctx *c, search *s, int arg_index, int *used) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *used = 2;
    return geoArgPoint(c, arg_index, &s->shape.centre);
}

static bool parseCircle(ctx *c, search *s, int arg_index, int *used) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *used = 2;
    s->shape.kind = GEO_CIRCLE;
    if (!argLength(c, arg_index, &s->shape.radius, "ERR need numeric radius")) return false;
    if (s->shape.radius < 0) return refuse(c, "ERR radius cannot be negative");
    return geoArgUnit(c, arg_index + 1, &s->shape.metres);
}

static bool parseBox(ctx *c, search *s, int arg_index, int *used) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    *used = 3;
    s->shape.kind = GEO_BOX;
    if (!argLength(c, arg_index, &s->shape.width, "ERR need numeric width")) return false;
    if (!argLength(c, arg_index + 1, &s->shape.height, "ERR need numeric height")) return false;
    if (s->shape.width < 0 || s->shape.height < 0)
        return refuse(c, "ERR height or width cannot be negative");
    return geoArgUnit(c, arg_index + 2, &s->shape.metres);
}

static bool parsePolygon(ctx *c, search *s, int arg_index, int *used) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    int64_t count;
    if (!ctxArgIntIn(c, arg_index, INT32_MIN, INT32_MAX, &count, "ERR invalid number of vertices"))
        return false;
    if (count < 3 || count > (c->argc - arg_index - 1) / 2)
        return refuse(c, "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices");
    *used = 1 + 2 * (int)count;
    memFree(s->vertices); /* of an earlier BYPOLYGON */
    s->vertices = memNewArray(geoPoint, (size_t)count);
    for (int i = 0; i < (int)count; i++) {
        if (!geoArgPoint(c, arg_index + 1 + 2 * i, &s->vertices[i])) return false;
    }
    s->shape.kind = GEO_POLYGON;
    s->shape.vertices = s->vertices;
    s->shape.vertex_count = (size_t)count;
    return true;
}

/* ---- options ---- */

/* Parses one option. Returns the index of its last argument, -1 after an error, 0 if it is not one
 * of these. */
static int parseWhere(ctx *c, search *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index < c->argc);
    static const struct {
        const char *word;
        int args; /* minimum */
        unsigned what, excludes;
        bool (*parse)(ctx *c, search *s, int arg_index, int *used);
    } words[] = {
        {"frommember", 1, WHERE_MEMBER, WHERE_POINT | WHERE_POLYGON, parseMember},
        {"fromlonlat", 2, WHERE_POINT, WHERE_MEMBER | WHERE_POLYGON, parsePoint},
        {"byradius", 2, WHERE_CIRCLE, WHERE_BOX | WHERE_POLYGON, parseCircle},
        {"bybox", 3, WHERE_BOX, WHERE_CIRCLE | WHERE_POLYGON, parseBox},
        {"bypolygon", 2, WHERE_POLYGON, WHERE_MEMBER | WHERE_POINT | WHERE_CIRCLE | WHERE_BOX,
         parsePolygon},
    };
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!ctxArgIs(c, arg_index, words[i].word)) continue;
        int used;
        if (c->argc - arg_index <= words[i].args || s->given & words[i].excludes) return 0;
        if (!words[i].parse(c, s, arg_index + 1, &used)) return -1;
        s->given |= words[i].what;
        return arg_index + used;
    }
    return 0;
}

/* Like parseWhere(), for options without arguments. */
static int parseWord(ctx *c, search *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index < c->argc);
    if (ctxArgIs(c, arg_index, "withdist")) {
        s->dist = true;
    } else if (ctxArgIs(c, arg_index, "withhash")) {
        s->hash = true;
    } else if (ctxArgIs(c, arg_index, "withcoord")) {
        s->coord = true;
    } else if (ctxArgIs(c, arg_index, "any")) {
        s->any = true;
    } else if (ctxArgIs(c, arg_index, "asc")) {
        s->order = ORDER_ASC;
    } else if (ctxArgIs(c, arg_index, "desc")) {
        s->order = ORDER_DESC;
    } else if (s->form == FORM_SEARCH_STORE && ctxArgIs(c, arg_index, "storedist")) {
        s->store_dist = true;
    } else {
        return 0;
    }
    return arg_index;
}

static int parseCount(ctx *c, search *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (!ctxArgInt(c, arg_index, &s->count)) return -1;
    if (s->count > 0) return arg_index;
    replyError(c, SLICE("ERR COUNT must be > 0"));
    return -1;
}

/* STORE and STOREDIST of GEORADIUS. */
static int parseStore(ctx *c, search *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    bool distances = ctxArgIs(c, arg_index, "storedist");
    if (!distances && !ctxArgIs(c, arg_index, "store")) return 0;
    s->store = arg_index + 1;
    s->store_dist = distances;
    return arg_index + 1;
}

static bool parseOptions(ctx *c, search *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    bool searches = s->form == FORM_SEARCH || s->form == FORM_SEARCH_STORE;
    for (; arg_index < c->argc; arg_index++) {
        bool more = arg_index + 1 < c->argc;
        int last = parseWord(c, s, arg_index);
        if (!last && more && ctxArgIs(c, arg_index, "count"))
            last = parseCount(c, s, arg_index + 1);
        if (!last && more && s->form == FORM_RADIUS) last = parseStore(c, s, arg_index);
        if (!last && searches) last = parseWhere(c, s, arg_index);
        if (last == 0) replyError(c, ERR_SYNTAX_TEXT);
        if (last <= 0) return false;
        arg_index = last;
    }
    return true;
}

/* Validates the options as a whole. False: the error was replied. */
static bool validateOptions(ctx *c, search *s) {
    if (s->store && (s->dist || s->hash || s->coord)) {
        replyErrorFormat(
            c, "ERR %s is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
            s->form == FORM_SEARCH_STORE ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS");
        return false;
    }
    const char *missing = NULL;
    if (!(s->given & WHERE_SHAPE)) missing = "BYRADIUS, BYBOX and BYPOLYGON";
    if (!(s->given & WHERE_CENTRE)) missing = "FROMMEMBER or FROMLONLAT";
    if (missing) {
        replyErrorFormat(c, "ERR exactly one of %s can be specified for %.*s", missing,
                         (int)c->argv[0].len, c->argv[0].ptr);
        return false;
    }
    if (s->any && !s->count) return refuse(c, "ERR the ANY argument requires COUNT argument");
    /* COUNT without ANY returns the nearest members. */
    if (s->count && !s->any && s->order == ORDER_NONE) s->order = ORDER_ASC;
    return true;
}

/* ------------------------------------------------------------------ searching */

typedef struct found {
    slice member;
    double score, distance; /* metres; computed only if needed */
    uint64_t found_before;  /* number of members found before it */
    bool owned;             /* the member's text was copied */
} found;

/* With ANY, so many members are visited for each that is found, about. */
enum { ANY_VISITED = 16 };

typedef struct finder {
    const ctx *c;
    const search *s;
    geoShape shape;
    bool measured; /* distances are needed */
    uint64_t limit;
    uint64_t found_total;
    found *items;
    size_t count, cap;
    zsetRange runs[GEO_RANGES_MAX]; /* members that are visited */
    unsigned run_count;
} finder;

/* True if `a` comes after `b` in the reply. */
static bool comesAfter(const finder *f, const found *a, const found *b) {
    if (a->distance == b->distance) return a->found_before > b->found_before;
    return (a->distance > b->distance) == (f->s->order == ORDER_ASC);
}

/* The items are a binary heap with the last one in the reply order at the root. Places `item` at
 * index `at` or below it. */
static void siftDown(finder *f, size_t at, const found *item) {
    hotCheck(at < f->count);
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= f->count) break;
        if (child + 1 < f->count && comesAfter(f, &f->items[child + 1], &f->items[child])) child++;
        if (!comesAfter(f, &f->items[child], item)) break;
        f->items[at] = f->items[child];
        at = child;
    }
    f->items[at] = *item;
}

/* Copies the member's text, which is valid only until the next member is read. */
static void keepText(found *item, const zsetCursor *cursor) {
    item->owned = item->member.ptr == cursor->digits;
    if (item->owned) item->member.ptr = memDup(item->member.ptr, item->member.len);
}

static void dropText(const found *item) {
    if (item->owned) memFree((char *)(uintptr_t)item->member.ptr);
}

/* Adds an item. If there are too many and the order matters, the last one is removed. */
static void add(finder *f, found *item, const zsetCursor *cursor) {
    hotCheck(f->limit == 0 || f->count <= f->limit);
    bool full = f->limit && f->count == f->limit;
    item->found_before = f->found_total++;
    if (full && !comesAfter(f, &f->items[0], item)) return;
    keepText(item, cursor);
    if (full) {
        dropText(&f->items[0]);
        siftDown(f, 0, item);
    } else {
        if (f->count == f->cap) {
            f->cap = f->cap ? f->cap * 2 : 16;
            f->items = memRealloc(f->items, f->cap * sizeof(*f->items));
        }
        f->items[f->count++] = *item;
        full = f->limit && f->count == f->limit && f->s->order != ORDER_NONE && !f->s->any;
        for (size_t i = f->count / 2; full && i-- > 0;) {
            found above = f->items[i];
            siftDown(f, i, &above);
        }
    }
    if (full && f->s->order == ORDER_ASC && f->shape.kind == GEO_CIRCLE)
        geoShapeShrink(&f->shape, f->items[0].distance);
}

/* Finds the ranges of members that may be within the shape. Returns the number of members. */
static uint64_t findRuns(finder *f) {
    geoScores scores[GEO_RANGES_MAX];
    hotCheck(f->count == 0);
    uint64_t members = 0;
    f->run_count = geoShapeCover(&f->shape, scores);
    for (unsigned i = 0; i < f->run_count; i++) {
        hotCheck(scores[i].min <= scores[i].max);
        zsetBound min = {.by = ZSET_BY_SCORE, .score = scores[i].min};
        zsetBound max = {.by = ZSET_BY_SCORE, .score = scores[i].max, .excluded = true};
        f->runs[i] = zsetFindRange(f->s->o, &min, &max);
        members += f->runs[i].count;
    }
    return members;
}

/* Visits the members in one range. False if the limit was reached. */
static bool findInRun(finder *f, zsetRange r) {
    if (r.count == 0) return true;
    zsetCursor cursor;
    zsetPair pair;
    zsetSeek(&cursor, f->s->o, r.index, false);
    for (; r.count > 0 && !jobPoint(f->c, 2) && zsetNext(&cursor, &pair); r.count--) {
        geoPoint p = geohashDecode(geohashOfScore(pair.score));
        found item = {.member = pair.member, .score = pair.score};
        if (!geoShapeContains(&f->shape, &p, f->measured, &item.distance)) continue;
        add(f, &item, &cursor);
        if (f->s->any && f->count == f->limit) return false;
    }
    return true;
}

static int compareNear(const void *a, const void *b) {
    const found *x = a, *y = b;
    (void)fiberPoint(1); /* half sorted they are of no use */
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return x->found_before < y->found_before ? -1 : x->found_before > y->found_before;
}

static int compareFar(const void *a, const void *b) {
    const found *x = a, *y = b;
    (void)fiberPoint(1);
    if (x->distance != y->distance) return x->distance > y->distance ? -1 : 1;
    return x->found_before < y->found_before ? -1 : x->found_before > y->found_before;
}

/* True: the search is or becomes a job, and nothing was found. */
static bool find(ctx *c, finder *f, search *s) {
    geoShapePrepare(&s->shape);
    *f = (finder){.c = c, .s = s, .shape = s->shape, .limit = (uint64_t)s->count};
    f->measured = s->dist || s->store_dist || s->order != ORDER_NONE;
    uint64_t members = findRuns(f);
    if (s->any && members / ANY_VISITED > f->limit) members = f->limit * ANY_VISITED;
    if (s->store ? jobStartStore(c, members) : jobStart(c, members)) return true;
    for (unsigned i = 0; i < f->run_count && findInRun(f, f->runs[i]); i++) continue;
    if (f->count > 1 && s->order != ORDER_NONE)
        qsort(f->items, f->count, sizeof(*f->items),
              s->order == ORDER_ASC ? compareNear : compareFar);
    return false;
}

static void finderClear(finder *f) {
    for (size_t i = 0; i < f->count; i++) dropText(&f->items[i]);
    memFree(f->items);
}

/* ------------------------------------------------------------------ replies */

static void replyFound(ctx *c, const search *s, const finder *f) {
    hotCheck(f->count <= f->found_total);
    int extras = s->dist + s->hash + s->coord;
    replyArray(c, (int64_t)f->count);
    for (size_t i = 0; i < f->count; i++) {
        const found *item = &f->items[i];
        uint64_t cell = geohashOfScore(item->score);
        if (extras) replyArray(c, 1 + extras);
        replyBulk(c, item->member);
        if (s->dist) geoReplyDistance(c, item->distance / s->shape.metres);
        if (s->hash) replyInteger(c, (int64_t)cell);
        if (jobPoint(c, 1 + (unsigned)extras)) break;
        if (!s->coord) continue;
        geoPoint p = geohashDecode(cell);
        geoReplyPoint(c, &p);
    }
}

static void storeFound(ctx *c, const search *s, const finder *f) {
    zsetBuilder built;
    zsetBuilderInit(&built);
    for (size_t i = 0; i < f->count; i++) {
        const found *item = &f->items[i];
        double score = s->store_dist ? item->distance / s->shape.metres : item->score;
        zsetPair pair = {item->member, score};
        zsetBuilderAppend(&built, &pair);
        if (jobPoint(c, 1)) break;
    }
    packLimits most = zsetLimitsNow();
    robj *into = zsetBuilderTake(&built, c->argv[s->store], &most);
    if (into && jobMayStore(c)) engineHot.dirty += f->count - 1; /* counts as a change of each */
    collectionStore(c, s->store, into,
                    s->form == FORM_SEARCH_STORE ? &eventGeosearchstore : &eventGeoradiusstore);
}

/* Parses the options from `arg_index` on, searches and replies. */
static void run(ctx *c, search *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (!parseOptions(c, s, arg_index) || !validateOptions(c, s)) {
        memFree(s->vertices);
        return;
    }
    finder f = {.c = c, .s = s};
    bool by_job = s->o && find(c, &f, s);
    if (!by_job) (s->store ? storeFound : replyFound)(c, s, &f);
    finderClear(&f);
    memFree(s->vertices);
}

/* ------------------------------------------------------------------ commands */

static bool findIndex(ctx *c, search *s, int arg_index) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    robj *o;
    if (!collectionFindRead(c, arg_index, TYPE_ZSET, &o)) return false;
    s->o = o;
    return true;
}

/* GEOSEARCH key FROMMEMBER member|FROMLONLAT longitude latitude BYRADIUS radius unit|BYBOX width
 * height unit [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH], or with BYPOLYGON
 * count longitude latitude ... instead of FROM and BY. Reply: the members within the area, each
 * with what was requested. */
void geosearchCommand(ctx *c) {
    search s = {.form = FORM_SEARCH};
    if (findIndex(c, &s, 1)) run(c, &s, 2);
}

/* GEOSEARCHSTORE destination source <as GEOSEARCH> [STOREDIST]. Reply: number of members stored. */
void geosearchstoreCommand(ctx *c) {
    search s = {.form = FORM_SEARCH_STORE, .store = 1};
    if (findIndex(c, &s, 2)) run(c, &s, 3);
}

static void searchRadius(ctx *c, searchForm form) {
    search s = {.form = form, .given = WHERE_POINT | WHERE_CIRCLE};
    int used;
    if (findIndex(c, &s, 1) && parsePoint(c, &s, 2, &used) && parseCircle(c, &s, 4, &used))
        run(c, &s, 6);
}

static void searchByMember(ctx *c, searchForm form) {
    search s = {.form = form, .given = WHERE_MEMBER | WHERE_CIRCLE};
    int used;
    if (!findIndex(c, &s, 1)) return;
    /* If the index is missing, the radius is not validated. */
    if (!s.o || (parseMember(c, &s, 2, &used) && parseCircle(c, &s, 3, &used))) run(c, &s, 5);
}

/* GEORADIUS key longitude latitude radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
 * [ANY]] [ASC|DESC] [STORE key|STOREDIST key]. Reply: the members within the circle, or the number
 * stored. */
void georadiusCommand(ctx *c) { searchRadius(c, FORM_RADIUS); }
/* GEORADIUS_RO: GEORADIUS without storing. */
void georadiusRoCommand(ctx *c) { searchRadius(c, FORM_RADIUS_RO); }

/* GEORADIUSBYMEMBER key member radius unit <as GEORADIUS>. */
void georadiusbymemberCommand(ctx *c) { searchByMember(c, FORM_RADIUS); }
/* GEORADIUSBYMEMBER_RO: GEORADIUSBYMEMBER without storing. */
void georadiusbymemberRoCommand(ctx *c) { searchByMember(c, FORM_RADIUS_RO); }

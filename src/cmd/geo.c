/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Geo commands on members. A geospatial index is a sorted set whose scores are geohash cells
 * (ds/geohash.h). Searching is in geo_search.c. Main thread only. */
#include "cmd/geo_priv.h"

#include <math.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/collection.h"
#include "cmd/procs.h"
#include "cmd/zset_priv.h"
#include "engine/job.h"

/* ------------------------------------------------------------------ arguments and replies */

bool geoArgPoint(ctx *c, int arg_index, geoPoint *out) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    if (!ctxArgDouble(c, arg_index, &out->lon) || !ctxArgDouble(c, arg_index + 1, &out->lat))
        return false;
    if (geoPointIsValid(out)) return true;
    replyErrorFormat(c, "ERR invalid longitude,latitude pair %f,%f", out->lon, out->lat);
    return false;
}

bool geoArgUnit(ctx *c, int arg_index, double *metres) {
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    static const struct {
        const char *word;
        double metres;
    } units[] = {{"m", 1}, {"km", 1000}, {"ft", 0.3048}, {"mi", 1609.34}};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (!ctxArgIs(c, arg_index, units[i].word)) continue;
        *metres = units[i].metres;
        return true;
    }
    replyError(c, SLICE("ERR unsupported unit provided. please use M, KM, FT, MI"));
    return false;
}

void geoReplyDistance(ctx *c, double distance) {
    char text[NUMBER_TEXT_MAX];
    uint64_t parts = (uint64_t)llrint(distance * 10000), rest = parts % 10000;
    size_t len = numberPrintUint(text, parts / 10000);
    text[len++] = '.';
    for (unsigned unit = 1000; unit > 0; unit /= 10) text[len++] = (char)('0' + rest / unit % 10);
    replyBulk(c, sliceMake(text, len));
}

static void replyDegrees(ctx *c, double degrees) {
    char text[LONG_DOUBLE_TEXT_MAX];
    slice shown = sliceMake(text, numberPrintLongDouble(text, degrees));
    replyDoubleText(c, shown);
}

void geoReplyPoint(ctx *c, const geoPoint *p) {
    replyArray(c, 2);
    replyDegrees(c, p->lon);
    replyDegrees(c, p->lat);
}

static bool findRead(ctx *c, robj **out) { return collectionFindRead(c, 1, TYPE_ZSET, out); }

/* The coordinates of the member at argument `arg_index`; false if it is missing. */
static bool pointOf(const ctx *c, const robj *o, int arg_index, geoPoint *out) {
    hotCheck(!o || objectType(o) == TYPE_ZSET);
    hotCheck(arg_index > 0);
    hotCheck(arg_index <= c->argc);
    double score;
    if (!o || !zsetScore(o, c->argv[arg_index], &score)) return false;
    *out = geohashDecode(geohashOfScore(score));
    return true;
}

/* ------------------------------------------------------------------ commands */

/* Propagates ZADD with the cells as scores. */
static void propagateAdded(ctx *c, const zsetAdding *a) {
    int options = a->first - 2; /* including command name and key */
    slice *words = memNewArray(slice, (size_t)(options + 2 * a->count));
    char(*digits)[NUMBER_TEXT_MAX] = memAlloc((size_t)a->count * sizeof(*digits));
    memcpy(words, c->argv, (size_t)options * sizeof(*words));
    words[0] = SLICE("ZADD");
    for (int i = 0; i < a->count; i++) {
        size_t len = numberPrintUint(digits[i], (uint64_t)a->scores[i]);
        words[options + 2 * i] = sliceMake(digits[i], len);
        words[options + 2 * i + 1] = c->argv[a->first + i * a->step];
    }
    ctxPropagateAs(c, options + 2 * a->count, words);
    memFree(digits);
    memFree(words);
}

/* GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member ...]. Reply: number
 * of new members, with CH of changed ones. */
void geoaddCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    zsetAdding a = {.step = 3};
    int arg_index = 2;
    for (; arg_index < c->argc; arg_index++) {
        if (ctxArgIs(c, arg_index, "nx")) {
            a.flags |= ZSET_NX;
        } else if (ctxArgIs(c, arg_index, "xx")) {
            a.flags |= ZSET_XX;
        } else if (ctxArgIs(c, arg_index, "ch")) {
            a.count_changed = true;
        } else {
            break;
        }
    }
    int words = c->argc - arg_index;
    if (words == 0 || words % 3 || (a.flags & (ZSET_NX | ZSET_XX)) == (ZSET_NX | ZSET_XX)) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    a.first = arg_index + 2;
    a.count = words / 3;
    if (jobStartChange(c, (uint64_t)a.count)) return;
    zsetAddingInit(&a);
    geoPoint p;
    int i = 0;
    for (; i < a.count && geoArgPoint(c, arg_index + 3 * i, &p); i++) {
        if (jobIsDue(c, 1) && !jobSuspend()) break;
        a.scores[i] = (double)geohashEncode(&p);
    }
    if (i == a.count) zsetAddAll(c, &a);
    if (c->flags & CTX_CHANGED && engineHot.sinks) propagateAdded(c, &a);
    zsetAddingClear(&a);
}

/* GEOPOS key [member ...]. Reply: longitude and latitude of each, or null. */
void geoposCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    robj *o;
    if (!findRead(c, &o)) return;
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        geoPoint p;
        if (pointOf(c, o, i, &p)) {
            geoReplyPoint(c, &p);
        } else {
            replyNullArray(c);
        }
    }
}

/* GEOHASH key [member ...]. Reply: the geohash text of each, or null. */
void geohashCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    robj *o;
    if (!findRead(c, &o)) return;
    replyArray(c, c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        geoPoint p;
        char text[GEO_TEXT_LEN + 1];
        if (pointOf(c, o, i, &p)) {
            geohashPrint(text, &p);
            replyBulk(c, sliceMake(text, GEO_TEXT_LEN));
        } else {
            replyNull(c);
        }
    }
}

/* GEODIST key member member [M|KM|FT|MI]. Reply: the distance, or null if a member is missing. */
void geodistCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    double metres = 1;
    robj *o;
    geoPoint a, b;
    if (c->argc > 5) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (c->argc == 5 && !geoArgUnit(c, 4, &metres)) return;
    if (!findRead(c, &o)) return;
    if (pointOf(c, o, 2, &a) && pointOf(c, o, 3, &b)) {
        geoReplyDistance(c, geoDistance(&a, &b) / metres);
    } else {
        replyNull(c);
    }
}

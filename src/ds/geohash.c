/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Points and cells (geohash.h). The order of floating-point operations is significant: it gives the
 * same doubles as Valkey. ANY_THREAD. */
#include "ds/geohash.h"

#include <math.h>

#include "base/base.h"

bool geoPointIsValid(const geoPoint *p) {
    return p->lon >= -GEO_LON_MAX && p->lon <= GEO_LON_MAX && p->lat >= -GEO_LAT_MAX &&
           p->lat <= GEO_LAT_MAX;
}

/* ------------------------------------------------------------------ interleaving bits */

/* Moves the bits of `v` to the even positions. */
static uint64_t spread(uint32_t v) {
    uint64_t x = v;
    x = (x | x << 16) & 0x0000ffff0000ffffull;
    x = (x | x << 8) & 0x00ff00ff00ff00ffull;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
}

static uint32_t gather(uint64_t x) {
    x &= 0x5555555555555555ull;
    x = (x | x >> 1) & 0x3333333333333333ull;
    x = (x | x >> 2) & 0x0f0f0f0f0f0f0f0full;
    x = (x | x >> 4) & 0x00ff00ff00ff00ffull;
    x = (x | x >> 8) & 0x0000ffff0000ffffull;
    return (uint32_t)(x | x >> 16);
}

/* ------------------------------------------------------------------ intervals */

/* The index of the interval containing `v` when [-max, max] is divided into 2^depth intervals;
 * 2^depth for the upper edge itself. */
static uint32_t stripOf(double v, double max, unsigned depth) {
    return (uint32_t)((v + max) / (max + max) * (double)(1ull << depth));
}

/* Lower bound of interval `n`. */
static double stripEdge(uint64_t n, double max, unsigned depth) {
    return -max + (double)n / (double)(1ull << depth) * (max + max);
}

static double stripMiddle(uint32_t n, double max) {
    double from = stripEdge(n, max, GEO_DEPTH_MAX);
    double to = stripEdge((uint64_t)n + 1, max, GEO_DEPTH_MAX);
    return fmax(-max, fmin(max, (from + to) / 2));
}

uint64_t geohashEncode(const geoPoint *p) {
    return spread(stripOf(p->lat, GEO_LAT_MAX, GEO_DEPTH_MAX)) |
           spread(stripOf(p->lon, GEO_LON_MAX, GEO_DEPTH_MAX)) << 1;
}

geoPoint geohashDecode(uint64_t cell) {
    return (geoPoint){stripMiddle(gather(cell >> 1), GEO_LON_MAX),
                      stripMiddle(gather(cell), GEO_LAT_MAX)};
}

/* Converts like processors without an instruction for unsigned numbers; in C the result is
 * undefined for some values. */
uint64_t geohashOfScore(double score) {
    hotCheck(score == score);
    const double half = 9223372036854775808.0; /* 2^63 */
    const uint64_t none = 1ull << 63;
    if (score < half) return score >= -half ? (uint64_t)(int64_t)score : none;
    return score - half < half ? (uint64_t)(int64_t)(score - half) ^ none : 0;
}

void geohashPrint(char *dst, const geoPoint *p) {
    hotCheck(geoPointIsValid(p));
    static const char letters[] = "0123456789bcdefghjkmnpqrstuvwxyz";
    uint64_t cell = spread(stripOf(p->lat, 90, GEO_DEPTH_MAX)) |
                    spread(stripOf(p->lon, GEO_LON_MAX, GEO_DEPTH_MAX)) << 1;
    /* 10 letters encode 50 of the 52 bits; the last two bits are not enough for another letter. */
    for (int i = 0; i < GEO_TEXT_LEN - 1; i++) dst[i] = letters[cell >> (47 - 5 * i) & 31];
    dst[GEO_TEXT_LEN - 1] = '0';
    dst[GEO_TEXT_LEN] = '\0';
}

/* ------------------------------------------------------------------ distances */

double geoLatDistance(double lat_a, double lat_b) {
    return GEO_EARTH_RADIUS * fabs(geoRadians(lat_b) - geoRadians(lat_a));
}

double geoDistance(const geoPoint *a, const geoPoint *b) {
    double lon_a = geoRadians(a->lon), lon_b = geoRadians(b->lon);
    double v = sin((lon_b - lon_a) / 2);
    if (v == 0.0) return geoLatDistance(a->lat, b->lat);
    double lat_a = geoRadians(a->lat), lat_b = geoRadians(b->lat);
    double u = sin((lat_b - lat_a) / 2);
    return 2.0 * GEO_EARTH_RADIUS * asin(sqrt(u * u + cos(lat_a) * cos(lat_b) * v * v));
}

/* ------------------------------------------------------------------ coarser cells */

geoCell geoCellOf(const geoPoint *p, unsigned depth) {
    hotCheck(depth >= 1);
    hotCheck(depth <= GEO_DEPTH_MAX);
    return (geoCell){stripOf(p->lon, GEO_LON_MAX, depth), stripOf(p->lat, GEO_LAT_MAX, depth),
                     depth};
}

geoCell geoCellMove(const geoCell *cell, int east, int north) {
    hotCheck(cell->depth <= GEO_DEPTH_MAX);
    hotCheck(east >= -1);
    hotCheck(east <= 1);
    hotCheck(north >= -1);
    hotCheck(north <= 1);
    uint32_t mask = (1u << cell->depth) - 1;
    geoCell moved = *cell;
    /* An index of 2^depth (a point on the edge of the map) is kept in a direction without
     * movement. */
    if (east) moved.lon = (cell->lon + (uint32_t)east) & mask;
    if (north) moved.lat = (cell->lat + (uint32_t)north) & mask;
    return moved;
}

geoBox geoCellBox(const geoCell *cell) {
    hotCheck(cell->depth <= GEO_DEPTH_MAX);
    unsigned depth = cell->depth;
    return (geoBox){
        {stripEdge(cell->lon, GEO_LON_MAX, depth), stripEdge(cell->lat, GEO_LAT_MAX, depth)},
        {stripEdge((uint64_t)cell->lon + 1, GEO_LON_MAX, depth),
         stripEdge((uint64_t)cell->lat + 1, GEO_LAT_MAX, depth)}};
}

void geoCellScores(const geoCell *cell, double *min, double *max) {
    hotCheck(cell->depth <= GEO_DEPTH_MAX);
    uint64_t bits = spread(cell->lat) | spread(cell->lon) << 1;
    unsigned shift = 2 * (GEO_DEPTH_MAX - cell->depth);
    *min = (double)(bits << shift);
    *max = (double)((bits + 1) << shift);
    hotCheck(*min < *max);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Points on Earth and geohash cells. A cell is a number of 52 bits: latitude and longitude are each
 * divided into 2^26 intervals, and the bits of the two indexes are interleaved, longitude first. So
 * the cells of a region are a few ranges of numbers, and a double represents a cell exactly.
 * Latitudes are limited to 85.05 degrees (Web Mercator).
 *
 * All results are bit-identical to Valkey's. Pure functions. ANY_THREAD. */
#ifndef DS_GEOHASH_H
#define DS_GEOHASH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GEO_DEPTH_MAX = 26, /* 2^depth intervals per coordinate */
    GEO_TEXT_LEN = 11,  /* including the last character, see geohashPrint() */
};
#define GEO_LON_MAX 180.0
#define GEO_LAT_MAX 85.05112878
#define GEO_EARTH_RADIUS 6372797.560856 /* m */

/* In degrees. */
typedef struct geoPoint {
    double lon, lat;
} geoPoint;

typedef struct geoBox {
    geoPoint min, max;
} geoBox;

/* True if the point is within the limits of the map. */
bool geoPointIsValid(const geoPoint *p);
static inline double geoRadians(double degrees) { return degrees * (3.14159265358979323846 / 180); }
static inline double geoDegrees(double radians) { return radians / (3.14159265358979323846 / 180); }

/* The cell that contains a point on the map. */
uint64_t geohashEncode(const geoPoint *p);
/* The centre of a cell. Accepts any number; points outside the map are moved to its edge. */
geoPoint geohashDecode(uint64_t cell);
/* The cell of a score, which may be any double. */
uint64_t geohashOfScore(double score);
/* The standard geohash text, for latitudes of -90..90: GEO_TEXT_LEN characters, of which the last
 * is always '0', and a NUL. */
void geohashPrint(char *dst, const geoPoint *p);

/* Distance between two points on a sphere in metres. */
double geoDistance(const geoPoint *a, const geoPoint *b);
/* Distance between two circles of latitude in metres. */
double geoLatDistance(double lat_a, double lat_b);

/* ---- coarser cells ---- */

/* One of the 2^depth x 2^depth cells of the map. */
typedef struct geoCell {
    uint32_t lon, lat; /* indexes of the intervals */
    unsigned depth;
} geoCell;

geoCell geoCellOf(const geoPoint *p, unsigned depth);
/* The cell `east` and `north` steps away; wraps around at the edges. */
geoCell geoCellMove(const geoCell *cell, int east, int north);
geoBox geoCellBox(const geoCell *cell);
/* The scores of the points in the cell: [*min, *max). */
void geoCellScores(const geoCell *cell, double *min, double *max);

#endif

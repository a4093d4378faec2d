/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Places on Earth and the cells they fall into. A cell is a number of 52 bits, latitude and longitude cut into 2^26
 * strips each, their bits in turn, the longitude's first: so the cells of a region are a few runs of numbers, and a
 * double holds one exactly. Latitudes end where the square map of the web does, at 85.05 degrees.
 *
 * All results are the same to the last bit as those of every server of the family. Pure maths. ANY_THREAD. */
#ifndef DS_GEOHASH_H
#define DS_GEOHASH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GEO_DEPTH_MAX = 26, /* strips each way: 2^depth */
    GEO_TEXT_LEN = 11,  /* of geohashPrint() */
};
#define GEO_LON_MAX 180.0
#define GEO_LAT_MAX 85.05112878
#define GEO_EARTH_RADIUS 6372797.560856 /* m */

/* Degrees. */
typedef struct geoPoint {
    double lon, lat;
} geoPoint;

typedef struct geoBox {
    geoPoint min, max;
} geoBox;

/* Whether a place is on the map. */
bool geoPointIsValid(const geoPoint *p);
static inline double geoRadians(double degrees) { return degrees * (3.14159265358979323846 / 180); }
static inline double geoDegrees(double radians) { return radians / (3.14159265358979323846 / 180); }

/* The cell of a place on the map. */
uint64_t geohashEncode(const geoPoint *p);
/* The middle of a cell. Any number will do; what lies off the map is moved to its edge. */
geoPoint geohashDecode(uint64_t cell);
/* The cell a score stands for, any score. */
uint64_t geohashOfScore(double score);
/* The usual text for a place, for which latitudes end at the poles; GEO_TEXT_LEN characters, the last one always
 * '0', and a NUL. */
void geohashPrint(char *dst, const geoPoint *p);

/* Metres between two places, on a sphere. */
double geoDistance(const geoPoint *a, const geoPoint *b);
/* ... between two circles of latitude. */
double geoLatDistance(double lat_a, double lat_b);

/* ---- coarser cells ---- */

/* One of the 2^depth by 2^depth fields of the map. */
typedef struct geoCell {
    uint32_t lon, lat; /* number of the strip */
    unsigned depth;
} geoCell;

geoCell geoCellOf(const geoPoint *p, unsigned depth);
/* The cell so many strips to the east and to the north; the map has no edges here. */
geoCell geoCellMove(const geoCell *cell, int east, int north);
geoBox geoCellBox(const geoCell *cell);
/* The scores of the places within: from *min on and below *max. */
void geoCellScores(const geoCell *cell, double *min, double *max);

#endif

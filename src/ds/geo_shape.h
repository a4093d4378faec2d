/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes on the map: which points they contain, and which ranges of scores contain all of these
 * points. ANY_THREAD. */
#ifndef DS_GEO_SHAPE_H
#define DS_GEO_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "ds/geohash.h"

typedef enum geoShapeKind {
    GEO_CIRCLE, /* within `radius` of the centre */
    GEO_BOX,    /* `height` / 2 to the north and south, `width` / 2 to the west and east */
    /* Sides are straight in degrees; the centre is the mean of the vertices on the sphere. */
    GEO_POLYGON,
} geoShapeKind;

typedef struct geoShape {
    geoShapeKind kind;
    geoPoint centre;
    double metres; /* per unit of length */
    double radius, width, height;
    const geoPoint *vertices;
    size_t vertex_count;
    double centre_lon, centre_lat, centre_cos; /* private: in radians; cosine of the latitude */
    double limit, far; /* private: circle: radius in metres, and its haversine */
} geoShape;

/* Must be called after all fields except the private ones are set; computes the centre of a
 * polygon. */
void geoShapePrepare(geoShape *s);
/* Reduces a circle to a radius of `metres`. */
void geoShapeShrink(geoShape *s, double metres);
/* True if the shape contains the point; then, if `measured`, *distance is set to its distance from
 * the centre in metres. */
bool geoShapeContains(const geoShape *s, const geoPoint *p, bool measured, double *distance);

/* Scores in [min, max). */
typedef struct geoScores {
    double min, max;
} geoScores;
enum { GEO_RANGES_MAX = 9 };
/* Computes disjoint ranges of scores that contain all points in the shape, and some others. Returns
 * their number. The order is part of the protocol: members are found and replied in this order. */
unsigned geoShapeCover(const geoShape *s, geoScores runs[GEO_RANGES_MAX]);

#endif

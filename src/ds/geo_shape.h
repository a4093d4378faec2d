/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes on the map: which places lie within, and which runs of scores hold all of them. ANY_THREAD. */
#ifndef DS_GEO_SHAPE_H
#define DS_GEO_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "ds/geohash.h"

typedef enum geoShapeKind {
    GEO_CIRCLE, /* within `radius` of the centre */
    GEO_BOX,    /* half of `height` to the north and south, half of `width` to the west and east */
    GEO_POLYGON, /* sides are straight on a map of degrees; the centre is that of the vertices on the sphere */
} geoShapeKind;

typedef struct geoShape {
    geoShapeKind kind;
    geoPoint centre;
    double metres; /* of one unit of the lengths */
    double radius, width, height;
    const geoPoint *vertices;
    size_t vertex_count;
    double centre_lon, centre_lat, centre_cos; /* private: in radians; cosine of the latitude */
    double limit, far; /* private: of a circle: radius in metres; as the haversine of it */
} geoShape;

/* To be called when all but the private fields are set (and, for a polygon, the centre). */
void geoShapeReady(geoShape *s);
/* Makes a circle smaller: from now on only places up to `metres` from the centre lie within. */
void geoShapeNarrow(geoShape *s, double metres);
/* Whether a place lies within; only then *distance is its way to the centre in metres, computed only if
 * `measured`. */
bool geoShapeHas(const geoShape *s, const geoPoint *p, bool measured, double *distance);

/* Scores from `min` on and below `max`. */
typedef struct geoScores {
    double min, max;
} geoScores;
enum { GEO_RUNS_MAX = 9 };
/* Runs of scores that hold all places within the shape and some more, none twice. Returns how many there are. The
 * order is part of the protocol: members are found and replied in it. */
unsigned geoShapeCover(const geoShape *s, geoScores runs[GEO_RUNS_MAX]);

#endif

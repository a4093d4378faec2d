/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes on the map (geo_shape.h). A shape is covered by the cell of its centre and the eight cells
 * around it, at a depth at which a cell is as large as the shape. ANY_THREAD. */
#include "ds/geo_shape.h"

#include <math.h>

#include "base/base.h"

/* ------------------------------------------------------------------ containment */

/* The mean of points on the sphere, projected to its surface. */
static geoPoint middleOf(const geoPoint *places, size_t count) {
    hotCheck(count >= 3);
    double x = 0, y = 0, z = 0;
    for (size_t i = 0; i < count; i++) {
        double lon = geoRadians(places[i].lon), lat = geoRadians(places[i].lat);
        x += cos(lat) * cos(lon);
        y += cos(lat) * sin(lon);
        z += sin(lat);
    }
    return (geoPoint){geoDegrees(atan2(y, x)), geoDegrees(atan2(z, sqrt(x * x + y * y)))};
}

void geoShapePrepare(geoShape *s) {
    if (s->kind == GEO_POLYGON) hotCheck(s->vertex_count >= 3);
    if (s->kind == GEO_CIRCLE) hotCheck(s->radius >= 0);
    if (s->kind == GEO_POLYGON) {
        s->metres = 1;
        s->centre = middleOf(s->vertices, s->vertex_count);
    }
    s->centre_lon = geoRadians(s->centre.lon);
    s->centre_lat = geoRadians(s->centre.lat);
    s->centre_cos = cos(s->centre_lat);
    geoShapeShrink(s, s->radius * s->metres);
}

void geoShapeShrink(geoShape *s, double metres) {
    hotCheck(metres >= 0);
    double angle = metres / GEO_EARTH_RADIUS / 2;
    s->limit = metres;
    /* A radius that reaches the opposite side of the Earth contains everything. */
    s->far = angle < 1.57 ? sin(angle) * sin(angle) : (double)INFINITY;
}

/* Distance to the centre as computed by geoDistance(), reusing what is known of the centre. Points
 * clearly inside or outside are decided by a cheaper test; near the edge the rounded distance
 * itself decides. */
static bool withinCircle(const geoShape *s, const geoPoint *p, bool measured, double *distance) {
    hotCheck(s->kind == GEO_CIRCLE);
    const double sure = 1e-9;
    double lat = geoRadians(p->lat);
    double by_lat = GEO_EARTH_RADIUS * fabs(lat - s->centre_lat);
    if (by_lat * (1 - sure) > s->limit) return false;
    double v = sin((geoRadians(p->lon) - s->centre_lon) / 2);
    if (v == 0.0) {
        *distance = by_lat;
        return !(by_lat > s->limit);
    }
    double u = sin((lat - s->centre_lat) / 2);
    double half = u * u + s->centre_cos * cos(lat) * v * v;
    if (half * (1 - sure) > s->far) return false;
    if (!measured && half * (1 + sure) < s->far) return true;
    *distance = 2.0 * GEO_EARTH_RADIUS * asin(sqrt(half));
    return !(*distance > s->limit);
}

static bool withinBox(const geoShape *s, const geoPoint *p) {
    hotCheck(s->kind == GEO_BOX);
    hotCheck(s->width >= 0);
    hotCheck(s->height >= 0);
    if (geoLatDistance(p->lat, s->centre.lat) > s->height * s->metres / 2) return false;
    geoPoint beside = {s->centre.lon, p->lat};
    return geoDistance(p, &beside) <= s->width * s->metres / 2;
}

/* A ray to the east crosses the sides an odd number of times. */
static bool withinPolygon(const geoShape *s, const geoPoint *p) {
    hotCheck(s->kind == GEO_POLYGON);
    hotCheck(s->vertex_count >= 3);
    bool odd = false;
    const geoPoint *a = &s->vertices[s->vertex_count - 1];
    for (size_t i = 0; i < s->vertex_count; i++) {
        const geoPoint *b = &s->vertices[i];
        if ((b->lat > p->lat) != (a->lat > p->lat) &&
            p->lon < (a->lon - b->lon) * (p->lat - b->lat) / (a->lat - b->lat) + b->lon)
            odd = !odd;
        a = b;
    }
    return odd;
}

bool geoShapeContains(const geoShape *s, const geoPoint *p, bool measured, double *distance) {
    if (s->kind == GEO_CIRCLE) return withinCircle(s, p, measured, distance);
    if (!(s->kind == GEO_BOX ? withinBox(s, p) : withinPolygon(s, p))) return false;
    if (measured) *distance = geoDistance(&s->centre, p);
    return true;
}

/* ------------------------------------------------------------------ covering cells */

/* Approximate bounding box of the shape in degrees. */
static geoBox boundsOf(const geoShape *s) {
    if (s->kind == GEO_POLYGON) hotCheck(s->vertex_count >= 3);
    if (s->kind == GEO_POLYGON) {
        geoBox box = {s->vertices[0], s->vertices[0]};
        for (size_t i = 1; i < s->vertex_count; i++) {
            const geoPoint *v = &s->vertices[i];
            box.min = (geoPoint){fmin(box.min.lon, v->lon), fmin(box.min.lat, v->lat)};
            box.max = (geoPoint){fmax(box.max.lon, v->lon), fmax(box.max.lat, v->lat)};
        }
        return box;
    }
    bool circle = s->kind == GEO_CIRCLE;
    double height = s->metres * (circle ? s->radius : s->height / 2);
    double width = s->metres * (circle ? s->radius : s->width / 2);
    double lat = s->centre.lat, lat_delta = geoDegrees(height / GEO_EARTH_RADIUS);
    /* A degree of longitude is shorter near the poles. */
    double wide_at = lat < 0 ? lat - lat_delta : lat + lat_delta;
    double lon_delta = geoDegrees(width / GEO_EARTH_RADIUS / cos(geoRadians(wide_at)));
    return (geoBox){{s->centre.lon - lon_delta, lat - lat_delta},
                    {s->centre.lon + lon_delta, lat + lat_delta}};
}

/* Distance from the centre to the farthest point, in metres. */
static double reachOf(const geoShape *s, const geoBox *bounds) {
    if (s->kind == GEO_CIRCLE) return s->radius * s->metres;
    if (s->kind == GEO_BOX) {
        double w = s->width / 2, h = s->height / 2;
        return sqrt(w * w + h * h) * s->metres;
    }
    geoPoint corners[] = {bounds->min,
                          {bounds->min.lon, bounds->max.lat},
                          bounds->max,
                          {bounds->max.lon, bounds->min.lat}};
    double reach = 0;
    for (size_t i = 0; i < COUNT_OF(corners); i++)
        reach = fmax(reach, geoDistance(&s->centre, &corners[i]));
    return reach;
}

/* A depth at which nine cells contain a shape around this latitude, except possibly near its
 * edges. */
static unsigned depthFor(double reach, double lat) {
    hotCheck(reach >= 0);
    const double half_equator = 20037726.37;
    if (reach == 0) return GEO_DEPTH_MAX;
    int depth = -1;
    for (; reach < half_equator; reach *= 2) depth++;
    /* Cells are narrower towards the poles. */
    if (fabs(lat) > 66) depth--;
    if (fabs(lat) > 80) depth--;
    return depth < 1 ? 1 : depth > GEO_DEPTH_MAX ? GEO_DEPTH_MAX : (unsigned)depth;
}

/* True if the surrounding cells do not reach the bounds. */
static bool isTooSmall(const geoCell *middle, const geoBox *bounds) {
    hotCheck(middle->depth >= 1);
    hotCheck(middle->depth <= GEO_DEPTH_MAX);
    geoCell north = geoCellMove(middle, 0, 1), south = geoCellMove(middle, 0, -1);
    geoCell east = geoCellMove(middle, 1, 0), west = geoCellMove(middle, -1, 0);
    return geoCellBox(&north).max.lat < bounds->max.lat ||
           geoCellBox(&south).min.lat > bounds->min.lat ||
           geoCellBox(&east).max.lon < bounds->max.lon ||
           geoCellBox(&west).min.lon > bounds->min.lon;
}

unsigned geoShapeCover(const geoShape *s, geoScores runs[GEO_RANGES_MAX]) {
    static const struct {
        int8_t east, north;
    } moves[GEO_RANGES_MAX] = {{0, 0}, {0, 1},  {0, -1}, {1, 0},  {-1, 0},
                               {1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
    geoBox bounds = boundsOf(s);
    /* The centre of a polygon may be outside the map, near a pole. */
    geoPoint centre = {s->centre.lon, fmax(-GEO_LAT_MAX, fmin(GEO_LAT_MAX, s->centre.lat))};
    geoCell middle = geoCellOf(&centre, depthFor(reachOf(s, &bounds), s->centre.lat));
    if (middle.depth > 1 && isTooSmall(&middle, &bounds))
        middle = geoCellOf(&centre, middle.depth - 1);
    geoBox inner = geoCellBox(&middle);
    unsigned count = 0;
    for (unsigned i = 0; i < COUNT_OF(moves); i++) {
        int east = moves[i].east, north = moves[i].north;
        /* Skip cells that the shape does not reach. */
        bool useless = (north < 0 && inner.min.lat < bounds.min.lat) ||
                       (north > 0 && inner.max.lat > bounds.max.lat) ||
                       (east < 0 && inner.min.lon < bounds.min.lon) ||
                       (east > 0 && inner.max.lon > bounds.max.lon);
        if (useless && middle.depth >= 2) continue;
        geoCell cell = geoCellMove(&middle, east, north);
        geoScores run;
        geoCellScores(&cell, &run.min, &run.max);
        if (count == 0 || run.min != runs[count - 1].min) runs[count++] = run;
    }
    return count;
}

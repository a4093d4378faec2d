/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes: what lies within against plain formulas, and coverings against what lies within. */
#include "ds_test.h"

#include <math.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/geo_shape.h"

enum { VERTICES_MAX = 12 };

static double uniform(double min, double max) {
    return min + (double)(randomNext() >> 11) / (double)(1ull << 53) * (max - min);
}

static geoShape circleOf(geoPoint centre, double metres) {
    geoShape s = {.kind = GEO_CIRCLE, .centre = centre, .metres = 1, .radius = metres};
    geoShapePrepare(&s);
    return s;
}

static void circlesEndWhereTheDistanceSays(void **state) {
    (void)state;
    testSeed("circles");
    for (int i = 0; i < 30000; i++) {
        geoPoint centre = {uniform(-180, 180), uniform(-85, 85)};
        geoPoint p = {uniform(-180, 180), uniform(-85, 85)};
        if (i % 5 == 0) p.lon = centre.lon;
        double way = geoDistance(&centre, &p), distance = -1;
        /* The nearest doubles to the distance, and anything else. */
        double limits[] = {way, nextafter(way, 0), nextafter(way, INFINITY), way * (1 + 1e-12),
                           uniform(0, 3e7)};
        geoShape wide = circleOf(centre, 4e7);
        for (size_t j = 0; j < COUNT_OF(limits); j++) {
            geoShape s = circleOf(centre, limits[j]);
            bool within = way <= limits[j];
            assert_int_equal(geoShapeContains(&s, &p, true, &distance), within);
            if (within) assert_true(distance == way);
            assert_int_equal(geoShapeContains(&s, &p, false, &distance), within);
            geoShapeShrink(&wide, limits[j]);
            assert_int_equal(geoShapeContains(&wide, &p, true, &distance), within);
        }
    }
}

static void boxesAreMeasuredAlongTheMeridianAndTheParallel(void **state) {
    (void)state;
    testSeed("boxes");
    for (int i = 0; i < 30000; i++) {
        geoPoint centre = {uniform(-180, 180), uniform(-85, 85)};
        geoPoint p = {centre.lon + uniform(-5, 5), centre.lat + uniform(-5, 5)};
        geoPoint beside = {centre.lon, p.lat};
        geoShape s = {.kind = GEO_BOX, .centre = centre, .metres = 1000};
        s.width = uniform(0, 1000);
        s.height = uniform(0, 1000);
        geoShapePrepare(&s);
        bool within = geoLatDistance(centre.lat, p.lat) <= s.height * 500 &&
                      geoDistance(&p, &beside) <= s.width * 500;
        double distance;
        assert_int_equal(geoShapeContains(&s, &p, true, &distance), within);
        if (within) assert_true(distance == geoDistance(&centre, &p));
    }
}

/* Regular polygons: a place is within when it is on the inner side of every side. */
static void convexPolygonsAreTheirHalfPlanes(void **state) {
    (void)state;
    testSeed("polygons");
    for (int i = 0; i < 3000; i++) {
        geoPoint v[VERTICES_MAX], middle = {uniform(-100, 100), uniform(-60, 60)};
        size_t count = 3 + randomUniform(VERTICES_MAX - 2);
        double size = uniform(0.01, 10), turn = uniform(0, 7);
        for (size_t j = 0; j < count; j++) {
            double angle = turn + 6.283185307179586 * (double)j / (double)count;
            v[j] = (geoPoint){middle.lon + size * cos(angle), middle.lat + size * sin(angle)};
        }
        geoShape s = {.kind = GEO_POLYGON, .vertices = v, .vertex_count = count};
        geoShapePrepare(&s);
        for (int k = 0; k < 20; k++) {
            geoPoint p = {middle.lon + uniform(-size, size), middle.lat + uniform(-size, size)};
            bool within = true;
            for (size_t j = 0; j < count; j++) {
                const geoPoint *a = &v[j], *b = &v[(j + 1) % count];
                within &=
                    (b->lon - a->lon) * (p.lat - a->lat) > (b->lat - a->lat) * (p.lon - a->lon);
            }
            double distance;
            assert_int_equal(geoShapeContains(&s, &p, true, &distance), within);
        }
    }
}

static void polygonsHaveTheirCentreOnTheSphere(void **state) {
    (void)state;
    geoPoint square[] = {{0, 0}, {10, 0}, {10, 10}, {0, 10}};
    geoShape s = {.kind = GEO_POLYGON, .vertices = square, .vertex_count = 4};
    geoShapePrepare(&s);
    assert_true(fabs(s.centre.lon - 5) < 1e-9);
    assert_true(fabs(s.centre.lat - 5.01900) < 1e-5);
}

static geoShape randomShape(geoPoint *vertices) {
    geoShape s = {.kind = (geoShapeKind)randomUniform(3), .metres = 1};
    s.centre = (geoPoint){uniform(-140, 140), uniform(-60, 60)};
    double size = pow(10, uniform(0, 5.7));
    s.radius = size;
    s.width = size * uniform(0.01, 2);
    s.height = size * uniform(0.01, 2);
    s.vertices = vertices;
    s.vertex_count = 3 + randomUniform(VERTICES_MAX - 2);
    for (size_t i = 0; i < s.vertex_count; i++)
        vertices[i] = (geoPoint){s.centre.lon + uniform(-size, size) / 111000,
                                 s.centre.lat + uniform(-size, size) / 111000};
    geoShapePrepare(&s);
    return s;
}

static void coveringsHoldAllOfAShapeOnce(void **state) {
    (void)state;
    testSeed("coverings");
    int seen = 0;
    for (int i = 0; i < 5000; i++) {
        geoPoint vertices[VERTICES_MAX];
        geoShape s = randomShape(vertices);
        geoScores runs[GEO_RANGES_MAX];
        unsigned count = geoShapeCover(&s, runs);
        assert_in_range(count, 1, GEO_RANGES_MAX);
        double spread = fmax(s.radius, fmax(s.width, s.height)) / 150000;
        for (int j = 0; j < 30; j++) {
            geoPoint p = {s.centre.lon + uniform(-spread, spread),
                          s.centre.lat + uniform(-spread, spread)};
            double distance, score;
            if (!geoPointIsValid(&p) || !geoShapeContains(&s, &p, false, &distance)) continue;
            unsigned found = 0;
            score = (double)geohashEncode(&p);
            for (unsigned k = 0; k < count; k++)
                found += score >= runs[k].min && score < runs[k].max;
            assert_int_equal(found, 1);
            seen++;
        }
    }
    assert_true(seen > 5000);
}

static void extremeShapesAreCoveredSomehow(void **state) {
    (void)state;
    const double sizes[] = {0, 1e-300, 1e7, 2e7, 4e7, 1e300, INFINITY};
    const geoPoint centres[] = {
        {0, 0}, {180, GEO_LAT_MAX}, {-180, -GEO_LAT_MAX}, {180, 0}, {0, 80}};
    for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(centres); i++) {
        geoShape s = circleOf(centres[i % COUNT_OF(centres)], sizes[i / COUNT_OF(centres)]);
        geoScores runs[GEO_RANGES_MAX];
        unsigned count = geoShapeCover(&s, runs);
        assert_in_range(count, 1, GEO_RANGES_MAX);
        for (unsigned k = 0; k < count; k++) assert_true(runs[k].min < runs[k].max);
    }
    /* The middle of these lies at the pole, off the map: they are found all the same. */
    geoPoint arctic[] = {{-36.5, 46.8}, {165.2, 44.7}, {13, 76.1}}, within = {7, 52};
    geoShape s = {.kind = GEO_POLYGON, .vertices = arctic, .vertex_count = 3};
    geoShapePrepare(&s);
    assert_true(s.centre.lat > GEO_LAT_MAX);
    geoScores runs[GEO_RANGES_MAX];
    unsigned found = 0, count = geoShapeCover(&s, runs);
    double score = (double)geohashEncode(&within);
    for (unsigned k = 0; k < count; k++) found += score >= runs[k].min && score < runs[k].max;
    assert_int_equal(found, 1);
}

int test_geo_shape(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(circlesEndWhereTheDistanceSays),
        cmocka_unit_test(boxesAreMeasuredAlongTheMeridianAndTheParallel),
        cmocka_unit_test(convexPolygonsAreTheirHalfPlanes),
        cmocka_unit_test(polygonsHaveTheirCentreOnTheSphere),
        cmocka_unit_test(coveringsHoldAllOfAShapeOnce),
        cmocka_unit_test(extremeShapesAreCoveredSomehow),
    };
    return cmocka_run_group_tests_name("geo_shape", tests, NULL, NULL);
}

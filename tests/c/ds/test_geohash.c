/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cells, texts and distances: known values of released servers, and cells against the places in
 * them. */
#include "ds_test.h"

#include <math.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/geohash.h"

static double uniform(double min, double max) {
    return min + (double)(randomNext() >> 11) / (double)(1ull << 53) * (max - min);
}

static geoPoint randomPlace(void) {
    return (geoPoint){uniform(-GEO_LON_MAX, GEO_LON_MAX), uniform(-GEO_LAT_MAX, GEO_LAT_MAX)};
}

static void knownValues(void **state) {
    (void)state;
    geoPoint palermo = {13.361389, 38.115556}, catania = {15.087269, 37.502669};
    assert_true(geohashEncode(&palermo) == 3479099956230698);
    assert_true(geohashEncode(&catania) == 3479447370796909);
    palermo = geohashDecode(3479099956230698);
    catania = geohashDecode(3479447370796909);
    assert_true(palermo.lon == 13.36138933897018433);
    assert_true(palermo.lat == 38.11555639549629859);
    assert_int_equal(llrint(geoDistance(&palermo, &catania) * 10000), 1662741516);
    char text[GEO_TEXT_LEN + 1];
    geohashPrint(text, &palermo);
    assert_string_equal(text, "sqc8b49rny0");
    geohashPrint(text, &catania);
    assert_string_equal(text, "sqdtr74hyu0");
}

static void edgesOfTheMap(void **state) {
    (void)state;
    geoPoint low = {-GEO_LON_MAX, -GEO_LAT_MAX}, high = {GEO_LON_MAX, GEO_LAT_MAX};
    assert_true(geoPointIsValid(&low));
    assert_true(geoPointIsValid(&high));
    assert_true(geohashEncode(&low) == 0);
    /* The upper edge belongs to strips beyond the last, and is returned as the edge. */
    assert_true(geohashEncode(&high) == 3ull << 52);
    geoPoint back = geohashDecode(geohashEncode(&high));
    assert_true(back.lon == GEO_LON_MAX);
    assert_true(back.lat == GEO_LAT_MAX);
    const geoPoint bad[] = {{180.0000001, 0},  {-180.0000001, 0}, {0, 85.05112879},
                            {0, -85.05112879}, {INFINITY, 0},     {NAN, 0},
                            {0, NAN}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) assert_false(geoPointIsValid(&bad[i]));
}

static void anyScoreIsACell(void **state) {
    (void)state;
    assert_true(geohashOfScore(0) == 0);
    assert_true(geohashOfScore(1.9) == 1);
    assert_true(geohashOfScore(4503599627370495) == 4503599627370495);
    assert_true(geohashOfScore(-1) == UINT64_MAX);
    assert_true(geohashOfScore(9223372036854775808.0) == 1ull << 63);
    assert_true(geohashOfScore(1e300) == 0);
    assert_true(geohashOfScore(INFINITY) == 0);
    assert_true(geohashOfScore(-INFINITY) == 1ull << 63);
    for (int i = 0; i < 10000; i++) {
        geoPoint p = geohashDecode(randomNext());
        assert_true(geoPointIsValid(&p));
    }
}

static void placesComeBackFromTheirCells(void **state) {
    (void)state;
    testSeed("cells");
    for (int i = 0; i < 20000; i++) {
        geoPoint p = randomPlace();
        uint64_t cell = geohashEncode(&p);
        geoPoint middle = geohashDecode(cell);
        assert_true(cell < 1ull << 52);
        assert_true(fabs(middle.lon - p.lon) <= 360.0 / (1 << 26) / 2 + 1e-12);
        assert_true(fabs(middle.lat - p.lat) <= 2 * GEO_LAT_MAX / (1 << 26) / 2 + 1e-12);
        assert_true(geohashEncode(&middle) == cell);
    }
}

static void coarseCellsHoldTheirPlaces(void **state) {
    (void)state;
    testSeed("coarse cells");
    for (int i = 0; i < 20000; i++) {
        geoPoint p = randomPlace();
        unsigned depth = 1 + (unsigned)randomUniform(GEO_DEPTH_MAX);
        geoCell cell = geoCellOf(&p, depth);
        geoBox box = geoCellBox(&cell);
        assert_true(box.min.lon <= p.lon);
        assert_true(p.lon <= box.max.lon);
        assert_true(box.min.lat <= p.lat);
        assert_true(p.lat <= box.max.lat);
        double min, max, score = (double)geohashEncode(&p);
        geoCellScores(&cell, &min, &max);
        assert_true(min <= score);
        assert_true(score < max);
        int east = (int)randomUniform(3) - 1, north = (int)randomUniform(3) - 1;
        geoCell moved = geoCellMove(&cell, east, north), back = geoCellMove(&moved, -east, -north);
        assert_int_equal(back.lon, cell.lon);
        assert_int_equal(back.lat, cell.lat);
    }
}

static void distancesAreAMetric(void **state) {
    (void)state;
    testSeed("distances");
    for (int i = 0; i < 20000; i++) {
        geoPoint a = randomPlace(), b = randomPlace(), c = randomPlace();
        double ab = geoDistance(&a, &b);
        assert_true(geoDistance(&a, &a) == 0);
        assert_true(ab == geoDistance(&b, &a));
        assert_true(ab <= geoDistance(&a, &c) + geoDistance(&c, &b) + 1e-6);
        assert_true(ab <= 3.1415926536 * GEO_EARTH_RADIUS);
        assert_true(ab >= geoLatDistance(a.lat, b.lat) - 1e-6);
    }
}

int test_geohash(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knownValues),
        cmocka_unit_test(edgesOfTheMap),
        cmocka_unit_test(anyScoreIsACell),
        cmocka_unit_test(placesComeBackFromTheirCells),
        cmocka_unit_test(coarseCellsHoldTheirPlaces),
        cmocka_unit_test(distancesAreAMetric),
    };
    return cmocka_run_group_tests_name("geohash", tests, NULL, NULL);
}

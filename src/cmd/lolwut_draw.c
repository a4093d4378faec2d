/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two small raster drawings (lolwut_draw.h).
 * Invariant: a canvas holds width x height bytes, one per pixel; pixels outside of it are
 * dropped. */
#include "cmd/lolwut_draw.h"

#include <math.h>

#include "base/base.h"
#include "base/random.h"

typedef struct canvas {
    int64_t width, height;
    uint8_t *pixels;
} canvas;

static void canvasInit(canvas *c, int64_t width, int64_t height) {
    hotCheck(width > 0);
    hotCheck(height > 0);
    c->width = width;
    c->height = height;
    c->pixels = memCalloc((size_t)width, (size_t)height);
}

static void canvasClear(canvas *c) { memFree(c->pixels); }

static void setPixel(canvas *c, int64_t x, int64_t y, uint8_t value) {
    if (x < 0 || y < 0 || x >= c->width || y >= c->height) return;
    c->pixels[y * c->width + x] = value;
}

static uint8_t pixelAt(const canvas *c, int64_t x, int64_t y) {
    hotCheck(x >= 0);
    hotCheck(y >= 0);
    if (x >= c->width || y >= c->height) return 0;
    return c->pixels[y * c->width + x];
}

/* A line, sampled once per pixel of its longer direction. */
static void drawLine(canvas *c, double x1, double y1, double x2, double y2) {
    int64_t steps = (int64_t)ceil(fmax(fabs(x2 - x1), fabs(y2 - y1)));
    if (steps < 1) steps = 1;
    for (int64_t i = 0; i <= steps; i++) {
        double part = (double)i / (double)steps;
        setPixel(c, (int64_t)lround(x1 + (x2 - x1) * part), (int64_t)lround(y1 + (y2 - y1) * part),
                 1);
    }
}

/* A square around (x, y), turned by `angle` radians. */
static void drawSquare(canvas *c, double x, double y, double side, double angle) {
    double corner_x[4], corner_y[4];
    double radius = side / sqrt(2);
    for (int i = 0; i < 4; i++) {
        double direction = angle + M_PI / 4 + i * M_PI / 2;
        corner_x[i] = x + radius * cos(direction);
        corner_y[i] = y + radius * sin(direction);
    }
    for (int i = 0; i < 4; i++)
        drawLine(c, corner_x[i], corner_y[i], corner_x[(i + 1) % 4], corner_y[(i + 1) % 4]);
}

/* The Braille character (U+2800 and up) of the 2 x 4 pixels at (x, y), in UTF-8. */
static void appendBraille(str *out, const canvas *c, int64_t x, int64_t y) {
    /* Bits of the dots in each row, left and right: Unicode numbers the fourth row last. */
    static const uint8_t dots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned bits = 0;
    for (int row = 0; row < 4; row++) {
        for (int column = 0; column < 2; column++) {
            if (pixelAt(c, x + column, y + row)) bits |= dots[row][column];
        }
    }
    char text[3] = {(char)0xE2, (char)(0xA0 | bits >> 6), (char)(0x80 | (bits & 0x3F))};
    strAppend(out, text, sizeof(text));
}

/* Between -1 and 1. */
static double randomSigned(void) { return (double)randomUniform(20001) / 10000 - 1; }

void lolwutDrawSchotter(str *out, int64_t columns, int64_t squares_per_row,
                        int64_t squares_per_column) {
    int64_t width = columns * 2, padding = width > 4 ? 2 : 0;
    double side = (double)(width - padding * 2) / (double)squares_per_row;
    canvas c;
    canvasInit(&c, width, (int64_t)(side * (double)squares_per_column) + padding * 2);
    for (int64_t row = 0; row < squares_per_column; row++) {
        /* The first rows stay in order. */
        double disorder = row < 2 ? 0 : (double)row / (double)squares_per_column;
        for (int64_t column = 0; column < squares_per_row; column++) {
            double x = (double)padding + side * ((double)column + 0.5);
            double y = (double)padding + side * ((double)row + 0.5);
            drawSquare(&c, x + randomSigned() * disorder * side / 3,
                       y + randomSigned() * disorder * side / 3, side,
                       randomSigned() * disorder * M_PI / 3);
        }
    }
    for (int64_t y = 0; y < c.height; y += 4) {
        for (int64_t x = 0; x < c.width; x += 2) appendBraille(out, &c, x, y);
        strAppendByte(out, '\n');
    }
    canvasClear(&c);
}

enum { WHITE, LIGHT_GRAY, DARK_GRAY, BLACK };

/* A building with its top at `top`, in one colour, with windows when `window` is another one. */
static void drawBuilding(canvas *c, int64_t left, int64_t width, int64_t top, uint8_t colour,
                         uint8_t window) {
    for (int64_t y = top; y < c->height; y++) {
        for (int64_t x = left; x < left + width; x++) {
            bool is_window = (x - left) % 3 == 2 && x < left + width - 1 && (y - top) % 2 == 1;
            setPixel(c, x, y, is_window && randomUniform(2) ? window : colour);
        }
    }
}

/* A row of buildings of one colour across the canvas, `height` to twice that high. */
static void drawRow(canvas *c, int64_t height, uint8_t colour, uint8_t window) {
    if (height < 1) height = 1;
    for (int64_t x = -(int64_t)randomUniform(4); x < c->width;) {
        int64_t width = 5 + (int64_t)randomUniform(8);
        int64_t tall = height + (int64_t)randomUniform((uint64_t)height + 1);
        drawBuilding(c, x, width, c->height - tall, colour, window);
        x += width + (int64_t)randomUniform(3);
    }
}

void lolwutDrawSkyline(str *out, int64_t columns, int64_t rows) {
    static const char *const colours[] = {
        [WHITE] = "0;97;107m", [LIGHT_GRAY] = "0;37;47m", [DARK_GRAY] = "0;90;100m", "0;30;40m"};
    canvas c;
    canvasInit(&c, columns, rows);
    drawRow(&c, rows / 2, LIGHT_GRAY, LIGHT_GRAY);
    drawRow(&c, rows / 3, DARK_GRAY, DARK_GRAY);
    drawRow(&c, rows / 4, BLACK, LIGHT_GRAY);
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < columns; x++)
            strAppendFormat(out, "\033[%s \033[0m", colours[pixelAt(&c, x, y)]);
        strAppendByte(out, '\n');
    }
    canvasClear(&c);
}

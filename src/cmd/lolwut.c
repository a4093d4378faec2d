/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LOLWUT: ASCII art and the version. Version 9 is a Julia set; 5 and 6 are in lolwut_draw.c. The
 * size of each is bounded. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "cmd/cmd.h"
#include "cmd/lolwut_draw.h"
#include "cmd/procs.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"

enum { COLUMNS_MAX = 160, ROWS_MAX = 80, ITERATIONS = 64, DRAWN_VERSION = 9 };

typedef struct picture {
    int64_t columns, rows;
    double real, imaginary; /* the constant of the set */
} picture;

static int64_t clampTo(int64_t value, int64_t max) {
    return value < 1 ? 1 : value > max ? max : value;
}

/* The character for a point: the more iterations it stays bounded, the darker. */
static char shadeOf(const picture *p, int64_t column, int64_t row) {
    hotCheck(column >= 0);
    hotCheck(column < p->columns);
    hotCheck(row >= 0);
    hotCheck(row < p->rows);
    static const char shades[] = " .:-=+*%#&@";
    double x = ((double)column + 0.5) / (double)p->columns * 3.6 - 1.8;
    double y = ((double)row + 0.5) / (double)p->rows * 3.0 - 1.5;
    int i = 0;
    for (; i < ITERATIONS && x * x + y * y < 4; i++) {
        double next = x * x - y * y + p->real;
        y = 2 * x * y + p->imaginary;
        x = next;
    }
    size_t darkest = sizeof(shades) - 2;
    return shades[sizeMin((size_t)i / 3, darkest)];
}

static void draw(const picture *p, str *out) {
    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t column = 0; column < p->columns; column++)
            strAppendByte(out, shadeOf(p, column, row));
        strAppendByte(out, '\n');
    }
    strAppendFormat(out, "Ascii representation of Julia set with constant %.2f + %.2fi\n", p->real,
                    p->imaginary);
}

/* Picks a constant for which the set is neither empty nor full. */
static void pickConstant(picture *p) {
    static const double constants[][2] = {{-0.40, 0.60},  {0.28, 0.01},  {-0.70, -0.38},
                                          {-0.83, -0.23}, {-0.07, 0.70}, {0.36, 0.36},
                                          {-0.54, 0.54},  {-0.12, 0.74}};
    size_t i = (size_t)randomUniform(COUNT_OF(constants));
    p->real = constants[i][0];
    p->imaginary = constants[i][1];
}

/* Parses [columns rows] [real imaginary] from argv[first] on. False: the error was replied. */
static bool readPicture(ctx *c, int first, picture *p) {
    int given = c->argc - first;
    *p = (picture){.columns = 80, .rows = 40};
    pickConstant(p);
    if (given != 0 && given != 2 && given != 4) {
        replyError(c, SLICE("ERR Syntax error. Use: LOLWUT [columns rows] [real imaginary]"));
        return false;
    }
    if (given >= 2 && (!ctxArgInt(c, first, &p->columns) || !ctxArgInt(c, first + 1, &p->rows)))
        return false;
    if (given == 4 &&
        (!ctxArgDouble(c, first + 2, &p->real) || !ctxArgDouble(c, first + 3, &p->imaginary))) {
        return false;
    }
    p->columns = clampTo(p->columns, COLUMNS_MAX);
    p->rows = clampTo(p->rows, ROWS_MAX);
    return true;
}

/* Reads up to `count` whole numbers from argv[first] on into `values`, which hold the defaults, and
 * limits each to 1 .. max[i]; the error is replied. */
static bool readSizes(ctx *c, int first, int count, int64_t *values, const int64_t *max) {
    hotCheck(count > 0);
    for (int i = 0; i < count; i++) {
        if (first + i < c->argc && !ctxArgInt(c, first + i, &values[i])) return false;
        values[i] = clampTo(values[i], max[i]);
    }
    return true;
}

/* Each appends its drawing with the words below it; false when an error was replied. */
static bool drawVersion5(ctx *c, int first, str *out) {
    static const int64_t max[] = {1000, 200, 200};
    int64_t sizes[] = {66, 8, 12}; /* columns, squares per row, squares per column */
    if (!readSizes(c, first, 3, sizes, max)) return false;
    lolwutDrawSchotter(out, sizes[0], sizes[1], sizes[2]);
    strAppendText(out, "\nGeorg Nees - schotter, plotter on paper, 1968. ");
    return true;
}

static bool drawVersion6(ctx *c, int first, str *out) {
    static const int64_t max[] = {1000, 1000};
    int64_t sizes[] = {80, 20}; /* columns, rows */
    if (!readSizes(c, first, 2, sizes, max)) return false;
    lolwutDrawSkyline(out, sizes[0], sizes[1]);
    strAppendText(out, "Dedicated to the 8 bit game developers of past and present.\n"
                       "Original 8 bit image from Plaguemon by hikikomori. ");
    return true;
}

static bool drawVersion9(ctx *c, int first, str *out) {
    picture p;
    if (!readPicture(c, first, &p)) return false;
    draw(&p, out);
    strAppendText(out, "Don't forget to have fun! ");
    return true;
}

/* LOLWUT [VERSION n] [arguments of the drawing]. Reply: the drawing, the server's version at its
 * end. */
void lolwutCommand(ctx *c) {
    int64_t version = DRAWN_VERSION;
    int first = 1;
    if (c->argc >= 3 && ctxArgIs(c, 1, "version")) {
        if (!ctxArgInt(c, 2, &version)) return;
        first = 3;
    }
    str text = STR_EMPTY;
    bool drawn = version == 5 || version == 6 || version == DRAWN_VERSION;
    bool valid = version == 5   ? drawVersion5(c, first, &text)
                 : version == 6 ? drawVersion6(c, first, &text)
                 : drawn        ? drawVersion9(c, first, &text)
                                : true;
    if (valid) {
        engineIdentity server;
        engineIdentify(&server);
        bool redis = cmdNamesRedis();
        strAppendFormat(&text, "%s ver.%s%s\n", redis ? "Redis" : "Valkey", drawn ? " " : "",
                        redis ? server.redis_version : server.version);
        replyVerbatim(c, strSlice(&text), "txt");
    }
    strFree(&text);
}

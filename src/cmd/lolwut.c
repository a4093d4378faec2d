/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LOLWUT: ASCII art and the version. Draws a Julia set. Costs columns x rows x iterations, all
 * bounded. */
#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
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

/* Older drawings took up to three whole numbers; ours stands for them. */
static bool readOldArguments(ctx *c, int first) {
    int64_t ignored;
    for (int i = first; i < c->argc && i < first + 3; i++) {
        if (!ctxArgInt(c, i, &ignored)) return false;
    }
    return true;
}

/* LOLWUT [VERSION n] [columns rows] [real imaginary]. Reply: the drawing, the version at its end. */
void lolwutCommand(ctx *c) {
    int64_t version = DRAWN_VERSION;
    int first = 1;
    if (c->argc >= 3 && ctxArgIs(c, 1, "version")) {
        if (!ctxArgInt(c, 2, &version)) return;
        first = 3;
    }
    bool drawn = version == 5 || version == 6 || version == DRAWN_VERSION;
    picture p = {.columns = 80, .rows = 40};
    pickConstant(&p);
    if (version == DRAWN_VERSION) {
        if (!readPicture(c, first, &p)) return;
    } else if (drawn && !readOldArguments(c, first)) {
        return;
    }
    engineIdentity server;
    engineIdentify(&server);
    str text = STR_EMPTY;
    if (drawn) {
        draw(&p, &text);
        strAppendFormat(&text, "Don't forget to have fun! Valkey ver. %s\n", server.version);
    } else {
        strAppendFormat(&text, "Valkey ver.%s\n", server.version);
    }
    replyVerbatim(c, strSlice(&text), "txt");
    strFree(&text);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The drawings of LOLWUT VERSION 5 and 6. Main thread only. */
#ifndef CMD_LOLWUT_DRAW_H
#define CMD_LOLWUT_DRAW_H

#include <stdint.h>

#include "base/str.h"

/* Appends Georg Nees' "Schotter": a grid of squares that get more disordered from the top row to
 * the bottom row, in Braille characters of 2 x 4 dots. `columns` is the width in characters. All
 * arguments are at least 1. Takes time and memory proportional to the drawing's area. */
void lolwutDrawSchotter(str *out, int64_t columns, int64_t squares_per_row,
                        int64_t squares_per_column);

/* Appends the skyline of a city at dusk, `columns` x `rows` characters, each of which sets its own
 * terminal colour. */
void lolwutDrawSkyline(str *out, int64_t columns, int64_t rows);

#endif

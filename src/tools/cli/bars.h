/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bars made of characters: of block elements where the character set has them, else of ASCII. */
#ifndef TOOLS_CLI_BARS_H
#define TOOLS_CLI_BARS_H

#include <stdbool.h>

#include "base/str.h"

/* True if the character set of the locale is UTF-8. */
bool barsAreBlocks(void);
/* Appends a horizontal bar of `share` (0 to 1) of `width` columns; a share above 0 is visible. */
void barsAppend(str *out, double share, int width, bool blocks);
/* Appends a vertical bar of one column, for a latency on a logarithmic scale: the lowest is below
 * 32 us, the highest from 2 ms on. */
void barsAppendLatency(str *out, uint64_t us, bool blocks);

#endif

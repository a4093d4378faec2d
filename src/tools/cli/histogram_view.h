/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reply of LATENCY HISTOGRAM as bars. */
#ifndef TOOLS_CLI_HISTOGRAM_VIEW_H
#define TOOLS_CLI_HISTOGRAM_VIEW_H

#include <valkey/valkey.h>

#include "base/str.h"

/* How to draw: columns of the terminal, block elements or ASCII, colours. */
typedef struct histogramStyle {
    int columns;
    bool blocks, colors;
} histogramStyle;

/* Appends a table for each command: the calls up to each latency, and bars. False, with nothing
 * appended, if the reply does not have the form of LATENCY HISTOGRAM, in RESP2 or RESP3, or has no
 * command. */
bool histogramDraw(str *out, const valkeyReply *reply, histogramStyle style);

#endif

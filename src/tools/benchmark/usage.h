/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of --help. */
#ifndef TOOLS_BENCHMARK_USAGE_H
#define TOOLS_BENCHMARK_USAGE_H

#include <stdio.h>

void benchUsage(FILE *to);

#endif

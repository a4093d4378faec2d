/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --fuzz: random commands, composed from the server's own documentation of its commands. */
#ifndef TOOLS_BENCHMARK_FUZZ_H
#define TOOLS_BENCHMARK_FUZZ_H

#include "tools/benchmark/options.h"

/* Runs the fuzzer; returns the exit status of the program: 1 if the server stopped replying. */
int fuzzRun(const benchOptions *o);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The built-in tests. */
#ifndef TOOLS_BENCHMARK_TESTS_H
#define TOOLS_BENCHMARK_TESTS_H

#include "tools/benchmark/workload.h"

/* Runs a test. */
typedef void testRunProc(void *arg, workload *w);
/* Sends a command that a test needs, once. */
typedef void testPrepareProc(void *arg, int argc, const char **argv);
/* Ends the program with an error if a name in ",set,get," is no test. */
void testsCheck(const char *list);
/* Calls `run` for each test that the options choose, in the order of Valkey. */
void testsRun(const benchOptions *o, testPrepareProc *prepare, testRunProc *run, void *arg);
/* Builds the workload of --mix from the names of tests and weights; ends the program if they are
 * not valid. */
void testsMix(const benchOptions *o, workload *w);

#endif

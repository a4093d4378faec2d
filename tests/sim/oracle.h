/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the simulation knows for certain. A dataset is a number that stands for the commands which
 * made it, in their order: datasets with equal numbers are equal, and each knows the one that it
 * was made from. For each position of each stream (id and offset) the dataset there is recorded
 * when it is first reached. */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum { DATASET_EMPTY = 0, DATASET_NONE = -1 };

void oracleReset(void);
/* The dataset after `command` in database `db`. */
int oracleApply(int dataset, int db, slice command);
/* True if `later` was made from `earlier`, or is the same. */
bool oracleIncludes(int later, int earlier);
/* Records the dataset at a position, or, if one was recorded, fails the simulation unless it is the
 * same. */
void oracleAt(const char *id, int64_t offset, int dataset, const char *who);

#endif

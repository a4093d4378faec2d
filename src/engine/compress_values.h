/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values compressed in memory (value-compression): when, and how much time that may take. Main
 * thread only. */
#ifndef ENGINE_COMPRESS_VALUES_H
#define ENGINE_COMPRESS_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

/* The memory limit is reached: from now on reads store no value plain, and idle values are
 * compressed for a short time, at most `length_us`, before any key is evicted. */
void compressValuesUnderPressure(int64_t length_us);
/* True unless value-compression is no. */
bool compressValuesIsOn(void);
/* Implement accepting and applying the directive value-compression. */
status compressValuesAccept(slice text, int64_t number, reason *why) MUST_USE;
status compressValuesApply(reason *why) MUST_USE;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Glob patterns of KEYS, SCAN, CONFIG GET and PSUBSCRIBE: * ? [a-z] [^x] \c. Not recursive, no
 * allocation; a malicious pattern costs at most O(pattern x text). ANY_THREAD. */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

/* An empty text matches only the empty pattern. */
bool globMatch(slice pattern, slice text);
/* Like globMatch(), ignoring ASCII case. */
bool globMatchFold(slice pattern, slice text);
/* Number of bytes at the start of the pattern that match only themselves. */
size_t globLiteralPrefix(slice pattern);

#endif

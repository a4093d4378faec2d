/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names that a user may have meant. */
#ifndef TOOLS_SIMILAR_H
#define TOOLS_SIMILAR_H

#include "base/slice.h"

/* Number of insertions, removals, replacements and swaps of neighbours that turn one name into the
 * other, whatever their case. SIMILAR_NEVER if a name is long, or the number is too large for a
 * slip: more than 1 for names of up to 2 bytes, 2 of up to 5, 3 else. */
enum { SIMILAR_NEVER = 1000 };
int similarDistance(slice typed, slice name);

#endif

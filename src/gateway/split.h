/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A request on keys of several slots as one request per slot. For commands whose arguments are keys
 * alone, or keys with a value each. Pure. */
#ifndef GATEWAY_SPLIT_H
#define GATEWAY_SPLIT_H

#include "base/slice.h"

typedef struct splitPart {
    int slot;
    int argc;
    slice *argv;
} splitPart;

/* `positions`: for each key of all parts, one part after the other, its number in the request. */
typedef struct splitRequest {
    splitPart *parts;
    int count;
    int *positions;
    int key_count;
    slice *words; /* private: the argv of all parts */
} splitRequest;

/* `step` arguments belong to a key, which is the first of them. There is a key, and the last
 * group is complete. */
void splitBegin(splitRequest *out, int step, int argc, const slice *argv);
void splitEnd(splitRequest *s);

#endif

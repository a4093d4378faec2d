/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One reply from those of several nodes. Pure. */
#ifndef GATEWAY_MERGE_H
#define GATEWAY_MERGE_H

#include "base/slice.h"
#include "base/str.h"

typedef enum mergeKind {
    MERGE_FIRST,   /* the first one: all do the same */
    MERGE_SUM,     /* integers are added */
    MERGE_VALUES,  /* arrays: each item has a place in the whole: `positions` */
    MERGE_APPEND,  /* the items of all arrays */
    MERGE_EVERY,   /* arrays of 0 and 1: 1 where all have it */
    MERGE_ANY_ONE, /* the first that is not null */
    MERGE_ANY_OK,  /* the first that is no error */
    MERGE_LEAST,   /* the smallest integer; of arrays, in each place */
    MERGE_UNION,   /* the different items of all arrays */
    MERGE_COUNTS,  /* arrays of names and integers: these are added */
    MERGE_KINDS
} mergeKind;

/* The replies of `count` nodes, as they came; an error of any of them is the whole reply.
 * `positions`: for MERGE_VALUES the places of the items of all parts, one part after the other;
 * `total` of them. `proto` is that of the client. Appends to `out`. */
typedef struct mergeParts {
    mergeKind kind;
    int proto;
    const slice *replies;
    int count;
    const int *positions;
    int total;
} mergeParts;
void mergeReplies(const mergeParts *parts, str *out);

/* Splits an array, set or push into its items, as they came; stores at most `max`. Returns their
 * number; -1: it is none of them. */
int mergeItems(slice reply, slice *items, int max);
/* The bytes of a bulk string; empty for another reply. */
slice mergeBulk(slice reply);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Positions in a hashtable (hashtable.h), for headers that store a position and do not call the
 * table. */
#ifndef DS_HASHTABLE_POSITION_H
#define DS_HASHTABLE_POSITION_H

#include <stdint.h>

/* A position is the result of a lookup: an entry or its absence. Valid until the next change of the
 * table. */
typedef struct hashtablePosition {
    uint64_t hash;
    void *home;     /* private: where the search started */
    uint64_t *word; /* private: where it ended; NULL if absent */
    uint32_t tag;   /* private */
} hashtablePosition;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes: lists of field names, in order, that many small hashes have in common. Such a hash has
 * the number of its shape in place of the names, and its values only (hash_record.h). Shapes are
 * found while hashes are created, changed and loaded; nobody declares them. This header is for
 * reports and settings. Main thread only. */
#ifndef STORE_SHAPE_H
#define STORE_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum {
    SHAPES_MAX = 65535,
    SHAPE_FIELDS_MAX = 255,
    SHAPE_NAMES_MAX = 65535,
};

/* Limits; hashes that have a shape keep it. All 0, no hash gets a shape, at the start. */
typedef struct shapeLimits {
    unsigned shapes;      /* at most SHAPES_MAX at a time; 0: no hash gets one */
    unsigned fields;      /* at most SHAPE_FIELDS_MAX of a hash with a shape */
    unsigned names_bytes; /* at most SHAPE_NAMES_MAX: bytes of all names of a new shape */
} shapeLimits;
void shapeSetLimits(const shapeLimits *limits);

typedef struct shape shape;

/* Totals over all shapes. */
typedef struct shapesReport {
    uint64_t shapes;  /* including those that no hash has at the moment */
    uint64_t hashes;  /* that have a shape */
    uint64_t bytes;   /* memory of the shapes */
    uint64_t saved;   /* estimate: memory that names would take, less `bytes`; 0 if negative */
    uint64_t made;    /* number of shapes made since the start */
    uint64_t refused; /* number of times that one was not made because of the limits */
} shapesReport;
/* O(shapes). */
void shapesGetReport(shapesReport *out);
/* The shapes that save most, in descending order; returns how many were stored, at most `cap`.
 * Borrowed until the store is changed. O(shapes * cap). */
size_t shapesLargest(const shape **out, size_t cap);
/* Number of fields, and their names; number of hashes; estimate of the memory saved. */
unsigned shapeFieldCount(const shape *s);
slice shapeFieldName(const shape *s, unsigned position);
uint64_t shapeUsers(const shape *s);
uint64_t shapeSaved(const shape *s);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Leaves of ds/id_tree.h: columns of offsets from a least value.
 *
 * Invariant: every value of a column is at least its base, and the difference fits the column's
 * width. The width of a column never shrinks; a leaf that is rebuilt gets the smallest sufficient
 * widths. ANY_THREAD that owns it. */
#include "ds/id_tree_private.h"

static unsigned widthOf(uint64_t offset) {
    return offset == 0            ? 0
           : offset <= UINT8_MAX  ? 1
           : offset <= UINT16_MAX ? 2
           : offset <= UINT32_MAX ? 4
                                  : 8;
}

static bool fits(uint64_t offset, unsigned width) {
    return width == 8 || offset >> (8 * width) == 0;
}

static void columnStore(uint8_t *at, unsigned width, uint64_t offset) {
    switch (width) {
    case 0: return;
    case 1: *at = (uint8_t)offset; return;
    case 2: storeU16(at, (uint16_t)offset); return;
    case 4: storeU32(at, (uint32_t)offset); return;
    default: storeU64(at, offset);
    }
}

static uint8_t *dataOf(idLeaf *l) { return (uint8_t *)(l->base + l->columns); }

static size_t rowBytes(const idLeaf *l) {
    size_t bytes = 0;
    for (unsigned c = 0; c < l->columns; c++) bytes += l->width[c];
    return bytes;
}

size_t idLeafSize(const idLeaf *l) {
    return sizeof(*l) + l->columns * sizeof(uint64_t) + rowBytes(l) * l->cap;
}

void idLeafRead(const idLeaf *l, unsigned at, idRow *out) {
    hotCheck(at < l->count);
    const uint8_t *data = idLeafData(l);
    for (unsigned c = 0; c < l->columns; c++) {
        unsigned width = l->width[c];
        out->column[c] = l->base[c] + idColumnLoad(data + (size_t)at * width, width);
        data += (size_t)l->cap * width;
    }
}

unsigned idLeafFind(const idLeaf *l, streamId id) {
    hotCheck(l->count <= l->cap);
    unsigned low = 0, high = l->count;
    if (high && streamIdLess(idLeafId(l, high - 1), id)) return high; /* appending is common */
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (streamIdLess(idLeafId(l, middle), id)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

idLeaf *idLeafNew(const idRow *rows, unsigned count, unsigned columns, unsigned cap) {
    uint64_t least[ID_COLUMNS_MAX], most[ID_COLUMNS_MAX];
    check(count > 0);
    check(count <= cap);
    for (unsigned c = 0; c < columns; c++) least[c] = most[c] = rows[0].column[c];
    for (unsigned i = 1; i < count; i++) {
        for (unsigned c = 0; c < columns; c++) {
            uint64_t v = rows[i].column[c];
            if (v < least[c]) least[c] = v;
            if (v > most[c]) most[c] = v;
        }
    }
    size_t row = 0;
    for (unsigned c = 0; c < columns; c++) row += widthOf(most[c] - least[c]);
    size_t head = sizeof(idLeaf) + columns * sizeof(uint64_t);
    idLeaf *l = memAlloc(head + row * cap);
    *l = (idLeaf){.count = (uint16_t)count, .cap = (uint16_t)cap, .columns = (uint8_t)columns};
    for (unsigned c = 0; c < columns; c++) {
        l->base[c] = least[c];
        l->width[c] = (uint8_t)widthOf(most[c] - least[c]);
    }
    uint8_t *data = dataOf(l);
    for (unsigned c = 0; c < columns; c++) {
        unsigned width = l->width[c];
        for (unsigned i = 0; i < count; i++)
            columnStore(data + (size_t)i * width, width, rows[i].column[c] - least[c]);
        data += (size_t)cap * width;
    }
    return l;
}

unsigned idLeafReadAll(const idLeaf *l, idRow *rows) {
    hotCheck(l->count <= ID_LEAF_MAX);
    for (unsigned i = 0; i < l->count; i++) idLeafRead(l, i, &rows[i]);
    return l->count;
}

static bool rowFits(const idLeaf *l, const idRow *row) {
    hotCheck(l->columns <= sizeof(row->column) / sizeof(row->column[0]));
    for (unsigned c = 0; c < l->columns; c++) {
        if (row->column[c] < l->base[c]) return false;
        if (!fits(row->column[c] - l->base[c], l->width[c])) return false;
    }
    return true;
}

/* Writes the row at index `at`. */
static void store(idLeaf *l, unsigned at, const idRow *row) {
    hotCheck(at < l->cap);
    uint8_t *data = dataOf(l);
    for (unsigned c = 0; c < l->columns; c++) {
        unsigned width = l->width[c];
        columnStore(data + (size_t)at * width, width, row->column[c] - l->base[c]);
        data += (size_t)l->cap * width;
    }
}

/* Moves rows from..count-1 to index `to` and following. */
static void shift(idLeaf *l, unsigned from, unsigned to) {
    hotCheck(from <= l->count);
    hotCheck(to <= l->cap);
    uint8_t *data = dataOf(l);
    if (from == l->count) return;
    for (unsigned c = 0; c < l->columns; c++) {
        size_t width = l->width[c];
        if (width) memmove(data + to * width, data + from * width, (l->count - from) * width);
        data += l->cap * width;
    }
}

bool idLeafInsert(idLeaf *l, unsigned at, const idRow *row) {
    hotCheck(at <= l->count);
    if (l->count == l->cap || !rowFits(l, row)) return false;
    shift(l, at, at + 1);
    store(l, at, row);
    l->count++;
    return true;
}

bool idLeafSet(idLeaf *l, unsigned at, const idRow *row) {
    hotCheck(at < l->count);
    if (!rowFits(l, row)) return false;
    store(l, at, row);
    return true;
}

void idLeafRemove(idLeaf *l, unsigned at) {
    hotCheck(at < l->count);
    shift(l, at + 1, at);
    l->count--;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Elements of collections (element.h). */
#include "store/element.h"

#include "base/base.h"

void elementFree(void *element, size_t size, valueFreer *by) {
    if (!by || (!by->remote && !by->whole)) {
        slabFreeTo(slabElements(), element, size);
    } else if (by->remote) {
        slabRemoteFree(by->remote, element, size);
    } else if (!slabOwns(by->whole, element)) {
        memFree(element);
    }
}

static void *count(void *moved, compaction *by) {
    by->moved += moved != NULL;
    by->kept += moved == NULL;
    return moved;
}

void *elementMove(void *element, size_t size, compaction *by) {
    return count(slabMoveIfSparse(slabElements(), element, size), by);
}

void *elementMoveBlock(void *block, compaction *by) {
    return by->heap ? count(memMoveIfSparse(block), by) : NULL;
}

bool elementMayStay(void) {
#ifdef HOSTILE_BUILD
    return false;
#else
    return likely(!slabForkActive(slabElements()));
#endif
}

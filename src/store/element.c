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

void *elementMove(void *element, size_t size) {
    return slabMoveIfSparse(slabElements(), element, size);
}

bool elementMayStay(void) {
#ifdef HOSTILE_BUILD
    return false;
#else
    return likely(!slabForkActive(slabElements()));
#endif
}

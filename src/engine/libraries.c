/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that `script` registers (libraries.h). Main thread only. */
#include "engine/libraries.h"

#include <stddef.h>

static const libraryKeeper *keeper;

void librariesSetKeeper(const libraryKeeper *to) { keeper = to; }

void librariesEach(libraryVisitProc *visit, void *arg) {
    if (keeper) keeper->each(visit, arg);
}

status librariesLoad(slice code, bool replace, reason *why) {
    if (!keeper) return reasonSet(why, ERR_DENIED, "functions are not supported");
    return keeper->load(code, replace, why);
}

void librariesClear(void) {
    if (keeper) keeper->clear();
}

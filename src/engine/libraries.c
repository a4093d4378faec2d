/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that `script` registers (libraries.h). Main thread only. */
#include "engine/libraries.h"

#include <stddef.h>

static const libraryKeeper *keeper;
static libraryListener *listener;

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

void librariesEachName(libraryVisitProc *visit, void *arg) {
    if (keeper) keeper->each_name(visit, arg);
}

slice librariesCode(slice name) { return keeper ? keeper->code(name) : (slice){NULL, 0}; }

bool librariesRemove(slice name) { return keeper && keeper->remove(name); }

void librariesListen(libraryListener *proc) { listener = proc; }

void librariesChanged(slice name) {
    if (listener) listener(name);
}

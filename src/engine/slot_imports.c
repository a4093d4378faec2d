/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who keeps the imports of slots (slot_imports.h). */
#include "engine/slot_imports.h"

static const slotImportKeeper *keeper;

void slotImportsSetKeeper(const slotImportKeeper *to) { keeper = to; }

void slotImportsEach(slotImportVisitProc *visit, void *arg) {
    if (keeper) keeper->each(visit, arg);
}

void slotImportsLoaded(const slotImport *import) {
    if (keeper) keeper->loaded(import);
}

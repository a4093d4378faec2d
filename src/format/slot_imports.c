/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who keeps the imports and states of slots (slot_imports.h). */
#include "format/slot_imports.h"

static const slotImportKeeper *keeper;

void slotImportsSetKeeper(const slotImportKeeper *to) { keeper = to; }

void slotImportsEach(slotImportVisitProc *visit, void *arg) {
    if (keeper) keeper->each(visit, arg);
}

void slotImportsLoaded(const slotImport *import) {
    if (keeper) keeper->loaded(import);
}

static const slotStateKeeper *state_keeper;

void slotStatesSetKeeper(const slotStateKeeper *to) { state_keeper = to; }

void slotStatesPrint(str *out) {
    if (state_keeper) state_keeper->print(out);
}

void slotStatesLoaded(slice text) {
    if (state_keeper) state_keeper->loaded(text);
}

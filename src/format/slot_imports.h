/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots that are being imported, as folders see them that write and load files; the cluster keeps
 * them. Their keys are hidden (storeHideSlot()), and saved like others: what is recorded with them
 * says to hide them again. Main thread, or a forked child for slotImportsEach(). */
#ifndef FORMAT_SLOT_IMPORTS_H
#define FORMAT_SLOT_IMPORTS_H

#include "base/slots.h"
#include "base/str.h"

typedef void slotImportVisitProc(void *arg, const slotImport *import);

typedef struct slotImportKeeper {
    void (*each)(slotImportVisitProc *visit, void *arg);
    /* A file that is being loaded contains keys of this import; they follow. */
    void (*loaded)(const slotImport *import);
} slotImportKeeper;
void slotImportsSetKeeper(const slotImportKeeper *keeper);

/* Slots that are being moved key by key, as a text that a primary sends its replicas with the
 * dataset. Only the cluster knows what it says. */
typedef struct slotStateKeeper {
    void (*print)(str *out); /* appends nothing if there are none */
    /* A dataset is being received: what it says replaces what was known; empty: nothing. */
    void (*loaded)(slice text);
} slotStateKeeper;
void slotStatesSetKeeper(const slotStateKeeper *keeper);
void slotStatesPrint(str *out);
void slotStatesLoaded(slice text);

void slotImportsEach(slotImportVisitProc *visit, void *arg);
void slotImportsLoaded(const slotImport *import);

#endif

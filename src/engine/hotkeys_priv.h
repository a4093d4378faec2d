/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of the windows of hot keys (hotkeys_window.c). Main thread only. */
#ifndef ENGINE_HOTKEYS_PRIV_H
#define ENGINE_HOTKEYS_PRIV_H

#include "engine/hooks.h"

extern const commandObserver hotkeysWindowObserver;

/* Periodic job: ends windows. */
void hotkeysWindowTick(int64_t budget_us);
/* Forgets all windows when the keys are replaced. */
void hotkeysWindowDbEvent(const dbEvent *e);
/* A directive was changed: the running window is dropped, the last finished one remains. */
status hotkeysWindowApply(reason *why);
/* Section "hotkeys" of INFO. */
void hotkeysWindowPrintInfo(str *out);

#endif

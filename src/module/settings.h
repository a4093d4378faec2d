/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings of modules: directives named module.name, whose values are the module's. Main thread
 * only. */
#ifndef MODULE_SETTINGS_H
#define MODULE_SETTINGS_H

#include <stdbool.h>

#include "base/slice.h"
#include "module/registry.h"

/* Values that MODULE LOADEX gives to settings of the module that is going to be loaded: `count`
 * names, each followed by its value; a later one of the same name wins. Borrowed until
 * settingsQueueEnd(), which is true if all of them were taken. */
void settingsQueue(const slice *pairs, int count);
bool settingsQueueEnd(void);
/* True if the module has registered settings and not called LoadConfigs(). */
bool settingsAreMissing(const module *m);
/* The module ends: they are no directives any more. */
void settingsRemove(module *m);

#endif

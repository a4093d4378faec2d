/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Modules: shared objects of others, loaded at start or by MODULE LOAD. The interface that they see
 * is valkeymodule.h. Main thread only. */
#ifndef MODULE_MODULE_H
#define MODULE_MODULE_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/hooks.h"

extern const feature moduleFeature;
extern const gate moduleGate;     /* enable-module-command */
extern const gate moduleBusyGate; /* while a module serves others during long work */

/* Appends INFO's lines of the section `modules`. */
void modulesAppendInfo(str *out);
/* True while the modules of the configuration are being loaded. */
bool modulesAreStarting(void);
/* Reports settings of modules in a configuration that loads no module. False if there are any. */
bool modulesCheckSettings(str *report);
/* Reports files of `loadmodule` lines that cannot be read, are no shared objects or may not be
 * executed, all without running anything. False if there are any. */
bool modulesCheckFiles(str *report);
/* Loads the modules of `loadmodule` lines, in their order, before the dataset. The first failure
 * ends the start. */
status modulesLoadConfigured(reason *why) MUST_USE;

#endif

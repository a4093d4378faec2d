/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scripting engines of modules. */
#ifndef MODULE_SCRIPTING_H
#define MODULE_SCRIPTING_H

#include "module/registry.h"

/* The module ends: its engines are removed, with their libraries and scripts. */
void scriptingRemove(module *m);

#endif

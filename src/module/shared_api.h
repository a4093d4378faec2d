/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that modules offer to each other by name. Main thread only. */
#ifndef MODULE_SHARED_API_H
#define MODULE_SHARED_API_H

#include <stdbool.h>

#include "base/str.h"
#include "module/registry.h"

/* True if another module uses a function of this one. */
bool sharedApiIsUsed(const module *m);
/* Append the names of the modules that use this one, or that it uses, with bars between them. */
void sharedApiAppendUsers(const module *m, str *out);
void sharedApiAppendUsed(const module *m, str *out);
/* The module ends: it offers and uses nothing any more. */
void sharedApiRemove(module *m);

#endif

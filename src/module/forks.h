/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes that modules fork. Main thread only. */
#ifndef MODULE_FORKS_H
#define MODULE_FORKS_H

#include "engine/hooks.h"
#include "module/registry.h"

/* Implements on_child. */
void forksChildEvent(childEvent e, int kind, int exit_code, int signal);
/* Kills the child process whose exit would be reported to this module, because the module is being
 * unloaded. */
void forksRemove(const module *m);

#endif

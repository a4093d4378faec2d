/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes that modules fork. Main thread only. */
#ifndef MODULE_FORKS_H
#define MODULE_FORKS_H

#include "engine/hooks.h"
#include "module/registry.h"

/* Implements on_child. */
void forksChildEvent(childEvent e, int kind, int exit_code, int signal);
/* Kills the process whose end the code of this module would be told. */
void forksRemove(const module *m);

#endif

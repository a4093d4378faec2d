/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Modules: there is one, the built-in engine of scripts. */
#ifndef CMD_MODULE_H
#define CMD_MODULE_H

#include "engine/ctx.h"

/* Replies an array with one map per module: for MODULE LIST and HELLO. */
void moduleReplyAll(ctx *c);

#endif

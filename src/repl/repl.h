/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replication. So far: its directives, and the INFO fields of a primary without replicas. Main
 * thread only. */
#ifndef REPL_REPL_H
#define REPL_REPL_H

#include "engine/hooks.h"

extern const feature replFeature;

#endif

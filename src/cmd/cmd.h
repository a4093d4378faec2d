/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands. The command table refers to them directly; this header exports only their
 * configuration. Main thread only. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <stdbool.h>

#include "base/str.h"
#include "engine/hooks.h"

extern const feature cmdFeature;
/* Refuses DEBUG unless enable-debug-command allows it. */
extern const gate debugGate;
/* extended-redis-compatibility: replies name the server Redis. */
bool cmdNamesRedis(void);

#endif

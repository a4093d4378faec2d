/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands users type; the table reaches them, so all there is to name is what they configure. Main thread only. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "engine/hooks.h"

extern const feature cmdFeature;
/* Refuses DEBUG where enable-debug-command does not open it. */
extern const gate debugGate;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gate bits inside the engine. Bits 0..28 are the installed gates in their fixed order; the two highest
 * make one test on the hot path enough for all that is unusual. */
#ifndef ENGINE_GATE_PRIV_H
#define ENGINE_GATE_PRIV_H

#include <stdint.h>

#include "engine/command.h"
#include "engine/hooks.h"

enum { GATES_MAX = 29 };
/* In every command's mask. Armed for a session that must log in first or whose replies are switched off,
 * and for everybody while a seer looks on. */
#define GATE_BIT_SPECIAL (1u << 31)
/* Always armed; only in the mask of the command that stands for unknown names. */
#define GATE_BIT_UNKNOWN (1u << 30)

/* The mask of gates that want to see a command, GATE_BIT_SPECIAL included. */
uint32_t gateMaskFor(const commandSpec *spec);
/* The gates that are asked again by EXEC. */
uint32_t gateAgainMask(void);
/* Fixes the order; at most GATES_MAX. */
void gateInstall(const gate *const *order, int count);
void gateUninstall(void);
/* The gates that judge commands of an origin. */
uint32_t gateMaskOfOrigin(ctxOrigin origin);
/* Asks the armed ones of `mask` in order; stops at the first that does not pass. */
gateVerdict gateAsk(ctx *c, uint32_t mask);

#endif

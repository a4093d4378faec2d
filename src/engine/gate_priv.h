/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gate bits. The low bits are the installed gates in order; with the two highest bits a single test
 * on the hot path covers everything unusual. */
#ifndef ENGINE_GATE_PRIV_H
#define ENGINE_GATE_PRIV_H

#include <stdint.h>

#include "engine/command.h"
#include "engine/hooks.h"

enum { GATES_MAX = 62 };
/* In the mask of every command. Armed for a session that must authenticate or has replies switched
 * off, and for all sessions while a command observer is armed. */
#define GATE_BIT_SPECIAL (UINT64_C(1) << 63)
/* Always armed; only in the mask of the command for unknown names. */
#define GATE_BIT_UNKNOWN (UINT64_C(1) << 62)

/* The gates that select a command, including GATE_BIT_SPECIAL. */
uint64_t gateMaskFor(const commandSpec *spec);
/* The gates that EXEC evaluates again. */
uint64_t gateAgainMask(void);
/* Evaluates the gates whose verdict may have changed since the command was admitted, before it
 * stores its result. False: the error was replied. */
bool gatesAdmitEffect(ctx *c);
/* Installs the gates in order; at most GATES_MAX. */
void gateInstall(const gate *const *order, int count);
void gateUninstall(void);
/* The gates that apply to commands of an origin. */
uint64_t gateMaskOfOrigin(ctxOrigin origin);
/* Evaluates the gates in `mask` in order; stops at the first that does not pass. */
gateVerdict gatesAdmit(ctx *c, uint64_t mask);

#endif

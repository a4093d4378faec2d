/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What changes for clients and for the dataset while this server is a replica. Main thread only. */
#ifndef REPL_RULES_H
#define REPL_RULES_H

#include <stdbool.h>

#include "engine/hooks.h"

/* CLIENT CAPA redirect: sends clients to the primary. */
extern const gate replicaRedirectGate;
/* replica-read-only: refuses writes. */
extern const gate replicaReadOnlyGate;
/* replica-serve-stale-data: refuses most commands while the link is down. */
extern const gate replicaStaleGate;
/* replica-ignore-disk-write-errors: what the primary sends cannot be stored. */
extern const gate replicaDiskGate;
/* Commands that no primary sends. */
extern const gate replicaStreamGate;

/* Called after the role, the state of the link or a directive has changed. */
void rulesUpdate(bool is_replica, bool link_is_up);
/* Each 100 ms. */
void rulesTick(void);
/* The same after a change of directives. */
status rulesApply(reason *why);
/* This server has become a replica: ends the waits of blocked clients. */
void rulesEndBlocked(void);
/* For gates of commands that write, or run a queue of commands that may. */
bool replSelectsWrites(const commandSpec *spec);

#endif

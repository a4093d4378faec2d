/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A session of HOTKEYS (START, STOP), for the other subcommands. */
#ifndef CMD_HOTKEYS_PRIV_H
#define CMD_HOTKEYS_PRIV_H

#include "engine/ctx.h"
#include "engine/hooks.h"

/* Measures commands while a session runs. */
extern const commandObserver hotkeysObserver;

/* Replies what the session has measured; false: there is none, and nothing was replied. */
bool hotkeysReplySession(ctx *c);
/* Ends the existence of a stopped session, if there is one; false: it still runs. */
bool hotkeysForgetSession(void);

#endif

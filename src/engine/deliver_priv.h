/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions for delivery called by the execution of commands. */
#ifndef ENGINE_DELIVER_PRIV_H
#define ENGINE_DELIVER_PRIV_H

#include "engine/deliver.h"

/* Appends waiting output to the session's output after its command (CTX_DELIVERS). */
void deliverWaiting(session *s);
/* Stage LOG: the same for all sessions that are not executing a command. */
void deliverAll(void);

#endif

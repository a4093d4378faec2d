/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What execution does for deliver.h. */
#ifndef ENGINE_DELIVER_PRIV_H
#define ENGINE_DELIVER_PRIV_H

#include "engine/deliver.h"

/* Appends what waits to the session's output: its command has ended (CTX_DELIVERS). */
void deliverWaiting(session *s);
/* Stage LOG: the same for all sessions that execute nothing, should anything have been left. */
void deliverAll(void);

#endif

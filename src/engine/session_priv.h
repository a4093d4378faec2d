/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What of a session only the engine touches. */
#ifndef ENGINE_SESSION_PRIV_H
#define ENGINE_SESSION_PRIV_H

#include "engine/session.h"

/* Arms the special bit while the session must log in or has its replies switched off. */
void sessionUpdateSpecial(session *s);

/* Frees all slots: the session ends. */
void sessionSlotsClear(session *s);

#endif

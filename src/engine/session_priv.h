/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Session functions private to the engine. */
#ifndef ENGINE_SESSION_PRIV_H
#define ENGINE_SESSION_PRIV_H

#include "engine/session.h"

/* Arms the special bit while the session must authenticate or has replies switched off. */
void sessionUpdateSpecial(session *s);

/* Sets the user; of user.c. */
void userMoveSession(session *s, user *to);

/* Frees all slots when the session ends. */
void sessionSlotsClear(session *s);

#endif

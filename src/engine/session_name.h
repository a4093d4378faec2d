/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of sessions: validation, and the error of CLIENT SETNAME and HELLO. */
#ifndef ENGINE_SESSION_NAME_H
#define ENGINE_SESSION_NAME_H

#include "engine/session.h"

extern const slice ERR_SESSION_NAME_TEXT;

/* True if every byte is a printable ASCII character other than a blank, so that the name cannot
 * break lines of CLIENT LIST or of the log. */
bool sessionNameIsValid(slice name);
/* Sets the name of the session; "" removes it. `name` must be valid. */
void sessionSetName(session *s, slice name);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What sessions call themselves: the rule for names, and its error in CLIENT SETNAME and HELLO. */
#ifndef ENGINE_SESSION_NAME_H
#define ENGINE_SESSION_NAME_H

#include "engine/session.h"

extern const slice ERR_SESSION_NAME_TEXT;

/* True when every byte is a printable ASCII character other than the blank: such a text cannot
 * break a line of CLIENT LIST or of the log. */
bool sessionNameIsValid(slice name);
/* Names the session; "" takes its name away. `name` must be valid. */
void sessionSetName(session *s, slice name);

#endif

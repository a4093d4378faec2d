/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Authentication and access control: users with passwords and rights, ACL files, ACL LOG. Other
 * folders ask about users through engine/user.h. Main thread only. */
#ifndef ACL_ACL_H
#define ACL_ACL_H

#include "engine/hooks.h"

extern const feature aclFeature;

/* One of these is armed for a session whose user may not do everything: for all commands, or if
 * only keys or channels are limited, for the commands that have some. */
extern const gate aclGate, aclKeyGate, aclChannelGate;

/* Sets the users of the configuration or of the ACL file; once, when all modules are loaded, since
 * rules can name their commands, and before the first client. The server does not start with users
 * that it cannot understand. */
status aclLoadUsers(reason *why) MUST_USE;

/* True if clients must authenticate because the default user has a password or is off. */
bool aclDefaultNeedsPassword(void);

/* True if an enabled user of this name has this password and may run the command `cmd_name`
 * ("info"): for requests that come over another protocol than RESP. A failure is counted and not
 * logged in ACL LOG. */
bool aclPasswordAllows(slice name, slice password, slice cmd_name);
/* Overwrites bytes that contained a password. */
void aclWipe(slice bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Authentication and access control. So far: the default user and its password. Main thread
 * only. */
#ifndef ACL_ACL_H
#define ACL_ACL_H

#include "engine/hooks.h"

extern const feature aclFeature;

/* True if clients must authenticate because the default user has a password. */
bool aclDefaultNeedsPassword(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who may do what. Today: the default user and its password. Main thread only. */
#ifndef ACL_ACL_H
#define ACL_ACL_H

#include "engine/hooks.h"

extern const feature aclFeature;

/* True when nobody gets in without a password. */
bool aclDefaultNeedsPassword(void);

#endif

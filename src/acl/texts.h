/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users and roles as texts for the rest of the server, and the comparison of rules. Main thread
 * only. */
#ifndef ACL_TEXTS_H
#define ACL_TEXTS_H

#include "acl/rules.h"
#include "engine/user_texts.h"

extern const userTextsKeeper aclTextsKeeper;

/* True if `b` certainly allows all that `a` does, with the same passwords and no lower limit. Key
 * and channel patterns are compared as texts, so false may mean that it is not obvious. */
bool aclRulesWithin(const aclRules *a, const aclRules *b);

#endif

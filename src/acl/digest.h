/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A digest of all users and roles. Main thread only. */
#ifndef ACL_DIGEST_H
#define ACL_DIGEST_H

#include "acl/rules.h"

/* Equal on two servers whose users and roles have the same names, passwords and rules, in whatever
 * order they, their passwords and their patterns were given. */
void aclDigest(uint8_t hash[ACL_HASH_SIZE]);

#endif

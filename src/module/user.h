/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Users as modules have them: their own, or registered ones, which are found by their name each
 * time, because they may be removed. Main thread only. */
#ifndef MODULE_USER_H
#define MODULE_USER_H

#include "engine/user.h"
#include "module/generated/interface.h"

/* The user behind a handle; NULL: the registered user is not there any more. */
user *moduleUserOf(const ValkeyModuleUser *u);

#endif

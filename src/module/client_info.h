/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies the description of a client into the structure that modules have for it. Main thread
 * only. */
#ifndef MODULE_CLIENT_INFO_H
#define MODULE_CLIENT_INFO_H

#include "engine/session.h"
#include "module/generated/interface.h"

void clientInfoRead(const session *s, ValkeyModuleClientInfo *info);

#endif

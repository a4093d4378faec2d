/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the folder. Main thread only. */
#ifndef ACCOUNT_ACCOUNT_PRIV_H
#define ACCOUNT_ACCOUNT_PRIV_H

#include "config/config.h"

extern const configOption accountOptions[];
/* db-maxmemory, and what is called after it has changed. */
extern const configSpecial quotaDirective;
status quotaApply(reason *why);
/* client-cpu-share, and what is called after it has changed. */
extern int64_t accountClientShare;
status shareApplyClients(reason *why);

#endif

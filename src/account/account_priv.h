/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of this folder, which options.c lists in a table. Main thread only. */
#ifndef ACCOUNT_ACCOUNT_PRIV_H
#define ACCOUNT_ACCOUNT_PRIV_H

#include "config/config.h"

extern const configOption accountOptions[];
/* The directive db-maxmemory; quotaApply() is called after it has changed. */
extern const configSpecial quotaDirective;
status quotaApply(reason *why);
/* The value of client-cpu-share, in percent; shareApplyClients() is called after it has changed. */
extern int64_t accountClientShare;
status shareApplyClients(reason *why);
/* The directive db-cpu-share; shareApplyClients() is called after it has changed, too. */
extern const configSpecial shareDirective;

#endif

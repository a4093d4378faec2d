/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Table of directives about limits of databases, users and clients. */
#include "account/account_priv.h"

const configOption accountOptions[] = {
    CONFIG_SPECIAL("db-maxmemory", &quotaDirective, "", .flags = CONFIG_MULTI_WORD,
                   .apply = quotaApply),
    CONFIG_SPECIAL("db-cpu-share", &shareDirective, "", .flags = CONFIG_MULTI_WORD,
                   .apply = shareApplyClients),
    CONFIG_INT("client-cpu-share", accountClientShare, 0, 0, 100, .apply = shareApplyClients),
    CONFIG_END,
};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Table of directives about limits of databases and users. */
#include "account/account_priv.h"

const configOption accountOptions[] = {
    CONFIG_SPECIAL("db-maxmemory", &quotaDirective, "", .flags = CONFIG_MULTI_WORD,
                   .apply = quotaApply),
    CONFIG_END,
};

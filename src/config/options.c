/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives on the configuration itself. Main thread only. */
#include "base/base.h"
#include "config/config_priv.h"

configConfig configConf;

static const configWord unknown_words[] = {
    {"refuse", UNKNOWN_REFUSE}, {"warn", UNKNOWN_WARN}, {NULL, 0}};

const configOption configOptions[] = {
    CONFIG_ENUM("unknown-directives", configConf.unknown_directives, unknown_words, UNKNOWN_REFUSE,
                .flags = CONFIG_IMMUTABLE),
    CONFIG_END,
};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of scripts. Each field is named after its directive; only the configuration registry
 * writes them. */
#ifndef SCRIPT_SCRIPT_PRIV_H
#define SCRIPT_SCRIPT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

typedef struct scriptConfig {
    int64_t busy_reply_threshold; /* ms until other clients get BUSY; 0: never */
    bool lua_enable_insecure_api;
} scriptConfig;

extern scriptConfig scriptConf;
extern const configOption scriptOptions[];

#endif

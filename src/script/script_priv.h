/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of scripts. A field is called as its directive; only the registry writes them. */
#ifndef SCRIPT_SCRIPT_PRIV_H
#define SCRIPT_SCRIPT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

typedef struct scriptConfig {
    int64_t
        busy_reply_threshold; /* ms a script or command may take before others are told; 0 = for ever */
    bool lua_enable_insecure_api;
} scriptConfig;

extern scriptConfig scriptConf;
extern const configOption scriptOptions[];

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of the engine's directives for other folders. Main thread only. */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/hooks.h"
#include "engine/session.h"

typedef enum engineRestricted {
    RESTRICTED_CONFIGS,
    RESTRICTED_DEBUG,
    RESTRICTED_MODULE
} engineRestricted;
/* True if enable-protected-configs, enable-debug-command or enable-module-command permits the
 * feature for this session. */
bool enginePermits(engineRestricted door, const session *s);
/* For gates: passes if it does, else refuses and replies the error with the command's and the
 * directive's name. */
gateVerdict optionsCheckRestricted(ctx *c, engineRestricted feature, const char *command,
                                   const char *directive);
/* maxmemory in bytes, 0: no limit. */
uint64_t engineMaxmemory(void);
/* proto-max-bulk-len: maximum length of an argument, and of a string. */
int64_t engineBulkMax(void);
/* hide-user-data-from-log: omit keys, values and client names from logs and crash reports. */
bool engineHidesUserData(void);

/* DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may run commands with the flag noscript, other than those
 * that run scripts. */
void engineSetDeniedInScripts(bool denied);
bool engineDeniedInScripts(void);

#endif

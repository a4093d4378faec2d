/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What other rooms may ask of the engine's directives. Main thread only. */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/session.h"

typedef enum engineDoor { DOOR_PROTECTED_CONFIGS, DOOR_DEBUG, DOOR_MODULE } engineDoor;
/* Does the directive enable-protected-configs, enable-debug-command or enable-module-command let this
 * caller in? */
bool engineDoorIsOpen(engineDoor door, const session *s);
/* maxmemory in bytes, 0: none. */
uint64_t engineMaxmemory(void);
/* proto-max-bulk-len: the longest argument, and so the longest string. */
int64_t engineBulkMax(void);
/* hide-user-data-from-log: keys, values and names of clients stay out of logs and crash reports. */
bool engineHidesUserData(void);

#endif

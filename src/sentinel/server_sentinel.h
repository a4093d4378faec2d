/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The view of this process, with its clock, file, scripts and events. */
#ifndef SENTINEL_SERVER_SENTINEL_H
#define SENTINEL_SERVER_SENTINEL_H

#include "monitor/scripts.h"
#include "monitor/view.h"

extern sentinelView serverView;
extern scriptQueue serverScripts;

/* The view with the time of now. */
sentinelView *serverViewNow(void);
/* Writes the file; false with the reason in the log. */
bool serverSentinelSave(void);
/* False if the last save has failed and one more fails: no vote is given then. */
bool serverSentinelCanSave(void);
bool serverSentinelIsRunning(void);

#endif

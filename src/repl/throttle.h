/* SPDX-License-Identifier: BSD-3-Clause
 *
 * repl-throttling-enabled in this server: writers wait rather than replicas are dropped. Main
 * thread only. */
#ifndef REPL_THROTTLE_H
#define REPL_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

void throttleInit(void);
void throttleTick(int64_t budget_us);
/* For tickJob.is_busy. */
bool throttleIsBusy(void);
/* True if replicas are not to be closed for their soft limit now. */
bool throttleExempts(void);
void throttlePrintInfo(str *out);
/* INFO debug. */
void throttlePrintDebug(str *out);
/* The directive was changed. */
status throttleApply(reason *why);

#endif

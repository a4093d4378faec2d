/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The software watchdog (watchdog-period): tells where the main thread is when the cron does not come round in
 * time. */
#ifndef SERVER_WATCHDOG_H
#define SERVER_WATCHDOG_H

/* Starts, changes or stops the watchdog: `period_ms` until it barks, 0 is off. */
void watchdogSet(int period_ms);
/* Called by each turn of the cron: it need not bark for another period. Nothing while it is off. */
void watchdogKick(void);

#endif

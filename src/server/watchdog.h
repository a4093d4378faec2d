/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The software watchdog (watchdog-period): logs the stack trace of the main thread if the cron does
 * not run in time. */
#ifndef SERVER_WATCHDOG_H
#define SERVER_WATCHDOG_H

/* From now on SIGALRM logs the stacks of all threads; the server goes on. Once at startup. */
void watchdogInit(void);
/* Starts, changes or stops the watchdog. `period_ms`: time until it expires, 0 is off. */
void watchdogSet(int period_ms);
/* Postpones the expiry by one period; called by each cron run. No effect while it is off. */
void watchdogKick(void);

#endif

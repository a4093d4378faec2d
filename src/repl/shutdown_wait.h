/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server that shuts down waits until its replicas have everything, for at most shutdown-timeout.
 * One that is a replica itself applies nothing more of its primary's stream meanwhile. Main thread
 * only. */
#ifndef REPL_SHUTDOWN_WAIT_H
#define REPL_SHUTDOWN_WAIT_H

#include "engine/hooks.h"

/* Implements on_shutdown. ERR_AGAIN while replicas lag; writes are paused, and the loop does not
 * sleep after an acknowledgement. */
status shutdownWaitForReplicas(uint32_t flags, reason *why);

#endif

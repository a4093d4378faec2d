/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A primary that shuts down waits until its replicas have everything, for at most shutdown-timeout.
 * Main thread only. */
#ifndef REPL_SHUTDOWN_WAIT_H
#define REPL_SHUTDOWN_WAIT_H

#include "engine/hooks.h"

/* Implements on_shutdown. ERR_AGAIN while replicas lag; writes are paused. */
status shutdownWaitForReplicas(uint32_t flags, reason *why);

#endif

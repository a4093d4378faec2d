/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of this server. Main thread only. */
#ifndef REPL_SERVER_STATE_H
#define REPL_SERVER_STATE_H

#include "psync/stream_state.h"

/* The only instance. */
replServer *replThis(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output that waits for the append only file: while the disk is flushed, and with appendfsync
 * always. Main thread only. */
#ifndef REPL_AOF_OUTPUT_H
#define REPL_AOF_OUTPUT_H

#include "engine/hooks.h"

/* After all other gates, armed while output may wait: what the output of a read depends on. */
extern const gate aofOutputGate;
/* Armed while output may wait: notes what has changed. */
extern const sink aofOutputSink;

void aofOutputInit(void);

#endif

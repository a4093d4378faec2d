/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO of the primary's side. Main thread only. */
#ifndef REPL_INFO_PRIMARY_H
#define REPL_INFO_PRIMARY_H

#include "base/str.h"

/* connected_slaves, the replicas, replicas_waiting_psync. */
void infoPrintReplicas(str *out);
/* From master_failover_state on: identity of the stream, backlog. */
void infoPrintStream(str *out);
/* Section "stats". */
void infoPrintSyncs(str *out);

#endif

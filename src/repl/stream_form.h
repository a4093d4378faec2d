/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The form of the replication stream for replicas that are Redis (outgoing-format redis). All
 * replicas share one stream, so Valkey replicas receive the same form. Main thread only. */
#ifndef REPL_STREAM_FORM_H
#define REPL_STREAM_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/hooks.h"

/* True if Redis does not know the propagated command. Then *out has commands with the same effect
 * that Redis 7.4 knows; if there are none, *out is empty, and the dropped command is counted. The
 * caller frees *out. */
bool streamFormReplaces(const propagated *p, str *out);
/* Prints the number of dropped commands as a field of INFO replication; nothing if it is 0. */
void streamFormPrintInfo(str *out);

#endif

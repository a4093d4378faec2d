/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The form of the stream for replicas that are Redis (outgoing-format redis). All replicas share
 * one stream, so it is the same for all of them. Main thread only. */
#ifndef REPL_STREAM_FORM_H
#define REPL_STREAM_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/hooks.h"

/* True if Redis does not know the propagated command: *out then has commands with the same effect
 * that Redis 7.4 knows, or nothing if there are none, which is counted. The caller frees it. */
bool streamFormReplaces(const propagated *p, str *out);
/* A field of INFO replication; nothing if no command was left out. */
void streamFormPrintInfo(str *out);

#endif

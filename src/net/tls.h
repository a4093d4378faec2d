/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TLS of the server: the current context, built from the tls-* directives, its reload, and the
 * handshakes of clients. Main thread only. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "net/client.h"

/* Effects of directives. The files and settings are read again, if TLS is used. On failure the
 * reason is logged and the previous context stays. */
status netTlsApply(reason *why);
/* Whether clients must have certificates; for later handshakes. */
status netTlsApplyAuth(reason *why);
/* Begins the handshake of an accepted client. Its reader starts afterwards. */
status netTlsBegin(client *cl) MUST_USE;
/* Reloads changed files: tls-auto-reload-interval. Each second. */
void netTlsTick(int64_t budget_us);
void netTlsPrintInfo(str *out);

#endif

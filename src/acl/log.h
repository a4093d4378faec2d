/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ACL LOG: recent refusals and failed logins. Main thread only. */
#ifndef ACL_LOG_H
#define ACL_LOG_H

#include "acl/check.h"
#include "engine/ctx.h"

/* A refused command: `verdict` and `object`, the refused key, channel, database or command. */
void aclLogRefusal(const ctx *c, aclVerdict verdict, slice object);
/* A failed login as `name` by the command of `c`. */
void aclLogFailedLogin(const ctx *c, slice name);
/* A failed login without a session: counted only. */
void aclLogCountFailedLogin(void);
/* A client certificate that names no user. */
void aclLogCertificate(const session *s, slice name);
/* Replies the `max` newest entries. */
void aclLogReply(ctx *c, int64_t max);
void aclLogReset(void);
/* The counters of INFO. */
void aclLogPrintStats(str *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits of the memory of single databases (db-maxmemory) and of the keys of users (the rule
 * maxmemory= of ACL SETUSER). A database over its limit has its own keys evicted, as
 * maxmemory-policy says, or commands refused that would use more; those of a user over the limit
 * are refused. Checked when maxmemory is, before each batch of requests. Main thread only. */
#ifndef ACCOUNT_QUOTA_H
#define ACCOUNT_QUOTA_H

#include "account/account.h"
#include "config/config.h"
#include "engine/hooks.h"

typedef struct quota quota;

/* A limit of a database or user, for reports. */
typedef struct quotaReport {
    int db_id;             /* -1: of a user */
    slice user;            /* name; borrowed */
    uint64_t bytes, limit; /* what its keys take, see account.h */
    uint64_t evicted;      /* keys, since the start or CONFIG RESETSTAT */
    uint64_t refused;      /* requests */
} quotaReport;

/* Refuses commands that may need memory in a database that is over its limit and has no key to
 * evict, or of a user whose keys exceed the limit. */
extern const gate quotaGate;
extern const feature quotaFeature;

/* A limit for the keys that `select` chooses, for `user`, whose field `quota` is the caller's to
 * set. `limit` is not 0. */
quota *quotaNew(const user *u, accountSelectProc *select, void *arg, uint64_t limit);
/* NULL is allowed. */
void quotaFree(quota *q);
void quotaSetLimit(quota *q, uint64_t limit);
/* What `select` chooses has changed: measures anew. */
void quotaRestart(quota *q);
/* Number of limits: first those of databases in their order, then those of users. */
int quotaCount(void);
void quotaRead(int index, quotaReport *out);
void quotaReadOf(const quota *q, quotaReport *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits of the memory of single databases (db-maxmemory) and of the keys of users (the rule
 * maxmemory= of ACL SETUSER). If a database is over its limit, its own keys are evicted by the rule
 * of maxmemory-policy, or commands that would use more memory in it are refused. If a user is over
 * the limit, such commands of the user are refused. The limits are checked together with maxmemory,
 * before each batch of requests. Main thread only. */
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
    uint64_t bytes, limit; /* `bytes`: memory of its keys, see account.h */
    uint64_t evicted;      /* keys, since the start or CONFIG RESETSTAT */
    uint64_t refused;      /* requests */
} quotaReport;

/* Refuses commands that may need memory in a database that is over its limit and has no key to
 * evict, or of a user whose keys exceed the limit. */
extern const gate quotaGate;
extern const feature quotaFeature;

/* Creates a limit for the keys that `select` chooses, of user `u`; the caller sets the field
 * `quota` of the user. `limit` is in bytes and not 0. */
quota *quotaNew(const user *u, accountSelectProc *select, void *arg, uint64_t limit);
/* NULL is allowed. */
void quotaFree(quota *q);
void quotaSetLimit(quota *q, uint64_t limit);
/* Measures all keys again. Called when `select` chooses other keys than before. */
void quotaRestart(quota *q);
/* Number of limits: first those of databases in their order, then those of users. */
int quotaCount(void);
void quotaRead(int index, quotaReport *out);
void quotaReadOf(const quota *q, quotaReport *out);

#endif

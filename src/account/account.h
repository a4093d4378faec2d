/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Accounts: the memory of the keys of a database, or of keys that a callback selects, known at any
 * time. While there is no account, keys cost nothing; else a key that was changed is measured once
 * before the next requests, like MEMORY USAGE with its few samples of a collection. The sums are
 * those of ds/size_sample.h: exact up to some 32,000 keys, then estimates. Main thread only. */
#ifndef ACCOUNT_ACCOUNT_H
#define ACCOUNT_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "engine/hooks.h"

extern const feature accountFeature;

typedef struct account account;
/* True if a key belongs to the account. Must be constant until accountRestart(). */
typedef bool accountSelectProc(void *arg, int db_id, slice key);

/* An account of database `db_id`; -1: of all databases, and `select` chooses. `select` may be NULL.
 * Keys that exist are measured in the background, beginning now. */
account *accountNew(int db_id, accountSelectProc *select, void *arg);
/* NULL is allowed. */
void accountFree(account *a);
/* Measures anew: what `select` chooses has changed. */
void accountRestart(account *a);
/* Bytes of keys, values, and their share of the table, as of the last accountsSettle(). */
uint64_t accountBytes(const account *a);
bool accountsExist(void);
/* Measures the keys that were changed since the last call. */
void accountsSettle(void);
/* How much of the keys that existed when an account was made, or since a load, was measured:
 * percent, 100 when all are. */
int accountsMeasuredPercent(void);

#endif

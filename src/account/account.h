/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Accounts: an account is a running sum of the memory of all keys of a database, or of the keys
 * that a callback selects. Without an account, keys are not measured. With one, each changed key is
 * measured once before the next requests, as MEMORY USAGE does: collections by a few of their
 * elements. The sums are those of ds/size_sample.h: exact up to some 32,000 keys, then estimates.
 * Main thread only. */
#ifndef ACCOUNT_ACCOUNT_H
#define ACCOUNT_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "engine/hooks.h"

extern const feature accountFeature;

typedef struct account account;
/* True if a key belongs to the account. The result for a key must not change until
 * accountRestart(). */
typedef bool accountSelectProc(void *arg, int db_id, slice key);

/* Creates an account of database `db_id`, or of all databases if it is -1, for the keys that
 * `select` chooses; NULL chooses all. Keys that exist already are measured in the background,
 * beginning now. */
account *accountNew(int db_id, accountSelectProc *select, void *arg);
/* NULL is allowed. */
void accountFree(account *a);
/* Measures all keys again. Called when `select` chooses other keys than before. */
void accountRestart(account *a);
/* Bytes of keys, values, and their share of the table, as of the last accountsSettle(). */
uint64_t accountBytes(const account *a);
bool accountsExist(void);
/* Measures the keys that were changed since the last call. */
void accountsSettle(void);
/* Percentage of the existing keys that the walk has measured since an account was created or a
 * dataset was loaded; 100 when the walk is complete. */
int accountsMeasuredPercent(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions of the module interface by name. The table is generated from spec/functions.txt.
 * ANY_THREAD. */
#ifndef MODULE_API_TABLE_H
#define MODULE_API_TABLE_H

typedef void apiProc(void);
typedef struct apiFunction {
    const char *name; /* without prefix */
    apiProc *proc;
} apiFunction;
extern const apiFunction apiFunctions[]; /* sorted by name */
extern const int apiFunctionCount;

/* What each context begins with: stores the function of that name, with the prefix ValkeyModule_ or
 * RedisModule_, at `target`. VALKEYMODULE_ERR: there is none, `target` is unchanged. */
int apiGet(const char *name, void *target);

#endif

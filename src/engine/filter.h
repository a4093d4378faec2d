/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Request filters: what may rewrite a request before its command is looked up (command filters of
 * modules). Armed ones are called in the order of arming, once per request of a client, of the
 * primary's stream and of a script; not for the AOF, nor again for what EXEC runs or for a request
 * that was blocked. Everything else then sees the rewritten form: lookup, arity, ACL, gates,
 * MULTI, MONITOR, command log and propagation. A request that is held back by CLIENT PAUSE is
 * filtered again when it continues.
 *
 * While none is armed, requests have no test for it: arming sets the bit of all special cases.
 * Main thread only. */
#ifndef ENGINE_FILTER_H
#define ENGINE_FILTER_H

#include "engine/ctx.h"

typedef struct filteredRequest filteredRequest;
typedef struct requestFilter {
    const char *name;
    void (*filter)(filteredRequest *f);
} requestFilter;
/* Filters may arm and disarm any, themselves included. */
void requestFilterArm(const requestFilter *f, bool on);

/* For filters. The session must not be changed. */
const session *filteredSession(const filteredRequest *f);
int filteredCount(const filteredRequest *f);
/* Argument `i`, 0 is the name; borrowed until the filter returns or changes it. */
slice filteredArg(const filteredRequest *f, int i);
/* Change the arguments; bytes are copied. ERR_RANGE: there is no such position, or the last
 * argument would be removed. */
status filteredInsert(filteredRequest *f, int i, slice arg) MUST_USE;
status filteredReplace(filteredRequest *f, int i, slice arg) MUST_USE;
status filteredRemove(filteredRequest *f, int i) MUST_USE;

/* For code that runs commands with executeInner(): filters the arguments of `c` before it is
 * resolved. Returns NULL if nothing was changed, else what owns the new arguments, to be freed
 * after the command. */
filteredRequest *requestFilterInner(ctx *c);
void filteredFree(filteredRequest *f);

#endif

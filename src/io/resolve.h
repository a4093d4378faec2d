/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of hosts to addresses, without blocking the event loop: the system's resolver runs on a
 * worker thread of its own, which looks up one name at a time. What connects afterwards passes the
 * address, also to clientlib, whose own look-up of a literal address does not wait. */
#ifndef IO_RESOLVE_H
#define IO_RESOLVE_H

#include <stdbool.h>

#include "io/net_addr.h"

/* Receives the literal address, or NULL if the name has none. Called from the loop of bioAttach(),
 * or directly from resolveHost() if the host is a literal address. Main thread. */
typedef void resolveProc(void *arg, const char *addr);
/* Looks up a host. The call of `done` cannot be cancelled. Main thread. */
void resolveHost(const char *host, resolveProc *done, void *arg);
/* For tests: replaces the system's resolver, which fills `addr` or returns false; NULL restores
 * it. */
void resolveSetLookup(bool (*lookup)(const char *host, char addr[NET_ADDR_TEXT_MAX]));
/* The same in the calling thread, which may take seconds. False if the name has no address.
 * ANY_THREAD. */
bool resolveHostNow(const char *host, char addr[NET_ADDR_TEXT_MAX]);

#endif

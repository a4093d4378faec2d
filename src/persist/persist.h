/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When to write and what to trust on disk. Today: its directives, and the INFO fields of a server
 * that keeps nothing on disk. Main thread only. */
#ifndef PERSIST_PERSIST_H
#define PERSIST_PERSIST_H

#include "engine/hooks.h"

extern const feature persistFeature;

#endif

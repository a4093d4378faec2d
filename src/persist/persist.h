/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence. So far: its directives, and the INFO fields of a server that does not persist data.
 * Main thread only. */
#ifndef PERSIST_PERSIST_H
#define PERSIST_PERSIST_H

#include "engine/hooks.h"

extern const feature persistFeature;

#endif

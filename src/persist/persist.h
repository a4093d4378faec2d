/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence: snapshots of the dataset in RDB files. Main thread only. */
#ifndef PERSIST_PERSIST_H
#define PERSIST_PERSIST_H

#include "base/alloc.h"
#include "base/error.h"
#include "engine/hooks.h"

extern const feature persistFeature;
extern const gate snapshotErrorGate, loadingGate;

/* Loads the snapshot file, if it exists. Clients are served meanwhile: call it once, after the listeners are open. */
status persistLoadAtStart(reason *why) MUST_USE;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that modules of different nodes of a cluster exchange. Main thread only. */
#ifndef MODULE_CLUSTER_MESSAGES_H
#define MODULE_CLUSTER_MESSAGES_H

#include "module/registry.h"

/* The module ends: it receives nothing any more. */
void clusterMessagesRemove(module *m);

#endif

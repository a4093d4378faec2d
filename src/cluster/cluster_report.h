/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Larger replies of CLUSTER. Main thread only. */
#ifndef CLUSTER_CLUSTER_REPORT_H
#define CLUSTER_CLUSTER_REPORT_H

#include "base/str.h"
#include "engine/ctx.h"

/* CLUSTER INFO. */
void clusterPrintInfo(str *out);
/* CLUSTER SLOTS. */
void clusterReplySlots(ctx *c);
/* CLUSTER SHARDS. */
void clusterReplyShards(ctx *c);

#endif

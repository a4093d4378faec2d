/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO with the keys of all nodes. Pure. */
#ifndef GATEWAY_INFO_H
#define GATEWAY_INFO_H

#include <stdbool.h>

#include "base/slice.h"
#include "base/str.h"

/* True if a text of INFO has the section keyspace. */
bool infoHasKeyspace(slice text);
/* `own` is a reply of INFO of this node, `others` are replies of INFO KEYSPACE of other nodes.
 * Appends the reply with the sums of all databases; `own_counts`: the keys of this node are among
 * them. Times are the mean, weighted by the keys that have one. */
void infoSumKeyspaces(int proto, slice own, bool own_counts, const slice *others, int count,
                      str *out);
/* The text of a bulk or verbatim string; empty for another reply. */
slice infoText(slice reply);

#endif

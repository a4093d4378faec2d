/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives that all nodes share, cluster-shared-config: their names, and their values as
 * texts. Main thread only. */
#ifndef CLUSTER_SHARED_CONFIG_H
#define CLUSTER_SHARED_CONFIG_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"
#include "config/config.h"

/* The value of the directive: names, sorted. A zeroed one is empty. */
typedef struct sharedNames {
    const configOption **list;
    int count;
} sharedNames;

extern const configSpecial sharedConfigNames;

bool sharedConfigHas(slice name);
/* Calls `visit` for those of them that were set at this node, in a file or since. */
void sharedConfigEach(void (*visit)(void *arg, slice name), void *arg);
/* Appends the value as CONFIG GET shows it; false: there is no directive of that name. */
bool sharedConfigPrint(slice name, str *out);
status sharedConfigSet(slice name, slice value, reason *why) MUST_USE;

#endif

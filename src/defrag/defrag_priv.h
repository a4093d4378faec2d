/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of this folder, which options.c lists in a table. Main thread only. */
#ifndef DEFRAG_DEFRAG_PRIV_H
#define DEFRAG_DEFRAG_PRIV_H

#include "config/config.h"

typedef struct defragConfig {
    bool active; /* activedefrag */
    int64_t ignore_bytes;
    int threshold_lower, threshold_upper; /* percent */
    int cycle_min, cycle_max;             /* percent of CPU time */
    int cycle_us;
    int64_t max_scan_fields;
} defragConfig;

extern defragConfig defragConf;
extern const configOption defragOptions[];

#endif

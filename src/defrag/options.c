/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Table of directives about defragmentation. */
#include "defrag/defrag_priv.h"

defragConfig defragConf;

const configOption defragOptions[] = {
    CONFIG_BOOL("activedefrag", defragConf.active, false, .flags = CONFIG_IN_CRASH_REPORT),
    CONFIG_MEMORY("active-defrag-ignore-bytes", defragConf.ignore_bytes, 100 * CONFIG_MB, 1,
                  INT64_MAX),
    CONFIG_INT("active-defrag-threshold-lower", defragConf.threshold_lower, 10, 0, 1000),
    CONFIG_INT("active-defrag-threshold-upper", defragConf.threshold_upper, 100, 0, 1000),
    CONFIG_INT("active-defrag-cycle-min", defragConf.cycle_min, 1, 1, 99),
    CONFIG_INT("active-defrag-cycle-max", defragConf.cycle_max, 25, 1, 99),
    CONFIG_INT("active-defrag-cycle-us", defragConf.cycle_us, 500, 0, 100000),
    CONFIG_INT("active-defrag-max-scan-fields", defragConf.max_scan_fields, 1000, 1, INT64_MAX),
    CONFIG_END,
};

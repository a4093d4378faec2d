/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence. So far: its directives, and the INFO fields of a server that does not persist data.
 * Main thread only. */
#include "base/base.h"
#include "engine/hot.h"
#include "config/config.h"
#include "persist/persist.h"
#include "persist/persist_priv.h"

static void printPersistence(str *out) {
    strAppendText(out, "loading:0\r\nasync_loading:0\r\n");
    strAppendFormat(out, "rdb_changes_since_last_save:%llu\r\n",
                    (unsigned long long)engineHot.dirty);
    strAppendText(out, "rdb_bgsave_in_progress:0\r\nrdb_last_bgsave_status:ok\r\nrdb_saves:0\r\n");
    strAppendText(out, "aof_enabled:0\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n");
}

/* A server configured to persist its data must not start without doing so. */
static status init(reason *why) {
    if (!persistConf.appendonly) return OK;
    return reasonSet(
        why, ERR_DENIED,
        "this version of the server has no append only file: start it with appendonly no");
}

static const infoSection sections[] = {
    {"persistence", "# Persistence", INFO_NORMAL, INFO_PERSISTENCE, printPersistence},
    {0},
};

const feature persistFeature = {
    .name = "persist", .options = persistOptions, .info = sections, .init = init};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the process is: a server, or a Sentinel. Chosen once, before anything else. Main thread
 * only. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "config/config.h"
#include "repl/role.h"
#include "sentinel/sentinel.h"
#include "server/server.h"

/* ------------------------------------------------------------------ the server */

/* A file for Sentinel would make a server that does not know what it should watch. */
static status refuseLine(const slice *words, int count, reason *why) {
    (void)words; /* whatever they are */
    if (count == 0) return OK;
    return reasonSet(
        why, ERR_SYNTAX,
        "sentinel directive while not in sentinel mode: start it as valkey-sentinel, or with "
        "--sentinel");
}

static const configFileOnly no_sentinel = {.words_max = INT_MAX, .take = refuseLine};
static const configOption server_options[] = {
    CONFIG_FILE_ONLY("sentinel", &no_sentinel, .flags = CONFIG_MAY_BE_BARE), CONFIG_END};

static const serverMode server_mode = {.features = serverFeatures,
                                       .feature_count = &serverFeatureCount,
                                       .options = server_options,
                                       .info_orders = UINT32_MAX,
                                       .has_dataset = true,
                                       .log_role = 'M',
                                       .farewell = "Valkey is now ready to exit, bye bye..."};

/* ------------------------------------------------------------------ Sentinel */

static void presetSentinel(void) {
    sentinelPrepare();
    replSetRoleReply(sentinelReplyRole);
    configPreset("port", "26379");
    configPreset("protected-mode", "no");
}

static const serverMode sentinel_mode = {.name = "sentinel",
                                         .features = sentinelFeatures,
                                         .feature_count = &sentinelFeatureCount,
                                         .options = sentinelOptions,
                                         .preset = presetSentinel,
                                         .begin = sentinelBegin,
                                         .info_orders = 1u << INFO_SERVER | 1u << INFO_CLIENTS |
                                                        1u << INFO_STATS | 1u << INFO_CPU |
                                                        1u << INFO_SENTINEL,
                                         .log_role = 'X',
                                         .farewell = "Sentinel is now ready to exit, bye bye..."};

/* ------------------------------------------------------------------ the choice */

static const serverMode *mode = &server_mode;

const serverMode *serverModeNow(void) { return mode; }

const char *serverModeName(void) {
    if (mode->name) return mode->name;
    return serverIsCluster() ? "cluster" : "standalone";
}

void serverModeChoose(int argc, char **argv) {
    bool asked = strstr(argv[0], "valkey-sentinel") || strstr(argv[0], "redis-sentinel");
    for (int i = 1; i < argc; i++) asked = asked || !strcmp(argv[i], "--sentinel");
    if (asked) mode = &sentinel_mode;
}

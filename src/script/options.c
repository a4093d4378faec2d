/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directives of scripts. Main thread only. */
#include "base/base.h"
#include "script/script_priv.h"

scriptConfig scriptConf;

/* The interpreter is opened again with the other functions. Functions follow after FUNCTION
 * FLUSH. */
static status applyInsecure(reason *why) {
    (void)why; /* it cannot fail */
    scriptCacheFlush(false);
    return OK;
}

const configOption scriptOptions[] = {
    CONFIG_INT("busy-reply-threshold", scriptConf.busy_reply_threshold, 5000, 0, INT64_MAX,
               .alias = "lua-time-limit"),
    CONFIG_MEMORY("maxmemory-scripts", scriptConf.maxmemory_scripts, 0, 0, INT64_MAX),
    CONFIG_MEMORY("script-memory-limit", scriptConf.script_memory_limit, 0, 0, INT64_MAX),
    CONFIG_BOOL("lua-enable-insecure-api", scriptConf.lua_enable_insecure_api, false,
                .flags = CONFIG_HIDDEN | CONFIG_PROTECTED, .alias = "lua-enable-deprecated-api",
                .apply = applyInsecure),
    CONFIG_END,
};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MODULE, as far as it exists: there is one module, `lua`, the built-in engine of scripts. Main thread only. */
#include "base/base.h"
#include "cmd/cmd.h"
#include "cmd/module.h"
#include "cmd/procs.h"
#include "engine/reply.h"

enum { LUA_MODULE_VERSION = 1 };

void moduleReplyAll(ctx *c) {
    replyArray(c, 1);
    replyMap(c, 4);
    replyBulkText(c, "name");
    replyBulkText(c, "lua");
    replyBulkText(c, "ver");
    replyInteger(c, LUA_MODULE_VERSION);
    replyBulkText(c, "path");
    replyBulkText(c, "lua");
    replyBulkText(c, "args");
    replyArray(c, 0);
}

void moduleAppendInfo(str *out) {
    strAppendFormat(out,
                    "module:name=lua,ver=%d,api=1,filters=0,usedby=[],using=[],"
                    "options=[handle-repl-async-load|handle-atomic-slot-migration]\r\n",
                    LUA_MODULE_VERSION);
}

/* MODULE LIST. Reply: one map per module. */
void moduleListCommand(ctx *c) { moduleReplyAll(c); }

/* MODULE HELP. */
void moduleHelpCommand(ctx *c) {
    static const char *const lines[] = {"LIST", "    Return a list of loaded modules.", NULL};
    replyHelp(c, lines);
}

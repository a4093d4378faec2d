/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The key of a subcommand of DEBUG. Main thread only. */
#include "base/base.h"
#include "cmd/cmd.h"
#include "cmd/debug_priv.h"
#include "engine/reply.h"
#include "store/store.h"

const robj *debugFind(ctx *c) {
    hotCheck(c->argc > 2);
    slice key = c->argv[2];
    const robj *o = dbPeek(c->db, key, storeHash(key));
    if (!o) replyError(c, ERR_NO_KEY_TEXT);
    return o;
}

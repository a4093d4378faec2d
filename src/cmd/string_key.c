/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The key of a command on strings: its type is checked, or it is deleted. Main thread only. */
#include "base/base.h"
#include "cmd/cmd.h"
#include "cmd/string_priv.h"
#include "engine/hot.h"
#include "engine/key_event.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "store/store.h"

bool stringIsType(ctx *c, const robj *o) {
    if (likely(!o || objectType(o) == TYPE_STRING)) return true;
    replyError(c, ERR_WRONG_TYPE_TEXT);
    return false;
}

void stringDeleteKey(ctx *c) {
    hotCheck(c->argc > 1);
    (void)dbDelete(c->db, c->argv[1], c->key_hash, c->look); /* it was found before */
    slice words[2] = {SLICE("DEL"), c->argv[1]};
    ctxPropagateAs(c, 2, words);
    ctxKeyChanged(c, c->argv[1], &eventDel);
}

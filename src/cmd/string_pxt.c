/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GETPXT, MGETPXT: values of strings together with their expiry times, in one round trip. Main
 * thread only. */
#include "base/base.h"
#include "cmd/key_walk.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/reply.h"
#include "store/store.h"

static void replyTimed(ctx *c, const robj *o) {
    replyArray(c, 2);
    stringReply(c, o);
    replyInteger(c, objectExpire(o)); /* OBJECT_NO_EXPIRE is -1 */
}

/* GETPXT key. Reply: the value and its expiry time (Unix time in ms, -1: none); null if the key is
 * missing. */
void getpxtCommand(ctx *c) {
    hotCheck(c->argc == 2);
    const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->look);
    if (!stringIsType(c, o)) return;
    if (o) {
        replyTimed(c, o);
    } else {
        replyNull(c);
    }
}

/* MGETPXT key [key ...]. Reply: for each key what GETPXT replies; null for another type, too. */
void mgetpxtCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    replyArray(c, c->argc - 1);
    keyWalk w;
    keyWalkInit(&w, c, 1, c->argc, 1);
    while (keyWalkNext(&w)) {
        const robj *o = dbFindRead(c->db, w.key, w.hash, c->look);
        if (o && objectType(o) == TYPE_STRING) {
            replyTimed(c, o);
        } else {
            replyNull(c);
        }
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG subcommands about values that are compressed in memory. Main thread only. */
#include "base/base.h"
#include "cmd/debug_priv.h"
#include "engine/reply.h"
#include "store/compressed.h"
#include "store/dictionary.h"
#include "store/store.h"

/* DEBUG COMPRESS key. Compresses its value now, used or not; in a large hash those of its fields.
 * Reply: 1 if it is compressed, with the current dictionary of its class if that is better than the
 * one before, else 0. The number of nodes of a stream or long list that are compressed then. */
void debugCompress(ctx *c) {
    hotCheck(c->argc == 3);
    const robj *o = debugFind(c);
    if (!o) return;
    if (compressedHasNodes(o)) {
        nodesVisit v = {.min = 1, .idle = true, .whole = true, .deadline_us = INT64_MAX};
        (void)storeCompressNodes(c->db, o, &v); /* there is no deadline */
        replyInteger(c, (int64_t)compressedNodesOf(o));
        return;
    }
    bool compressed = objectIsTableOfFields(o)
                          ? storeCompressFields(c->db, (robj *)(uintptr_t)o, 1)
                          : storeCompressKey(c->db, o, 1) || objectIsCompressed(o);
    replyInteger(c, compressed);
}

/* DEBUG COMPRESSED key. Reply: the number of the dictionary its value, or one of its fields' in a
 * large hash, is compressed with, or 0. The number of nodes of a stream or long list that are
 * compressed. */
void debugCompressed(ctx *c) {
    hotCheck(c->argc == 3);
    const robj *o = debugFind(c);
    if (!o) return;
    if (compressedHasNodes(o)) {
        replyInteger(c, (int64_t)compressedNodesOf(o));
    } else if (objectIsTableOfFields(o)) {
        replyInteger(c, hashDictionary(o));
    } else {
        replyInteger(c, objectIsCompressed(o) ? compressedRead(o).dictionary : 0);
    }
}

/* DEBUG VALUE-DICTIONARY prefix text. Makes a dictionary of any text for the keys of this database
 * with this prefix ("user:"; "": those without one). Reply: its number. */
void debugValueDictionary(ctx *c) {
    hotCheck(c->argc == 4);
    uint32_t id;
    reason why = {""};
    if (dictionaryAdd(dbId(c->db), c->argv[2], c->argv[3], &id, &why) == OK) {
        replyInteger(c, id);
    } else {
        replyErrorFormat(c, "ERR %s", why.text);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bitmaps: strings read and written as bits, of which the first is the highest of the first byte. */
#include "base/base.h"
#include "base/number.h"
#include "cmd/procs.h"
#include "cmd/string_priv.h"
#include "engine/options.h"
#include "engine/reply.h"
#include "store/store.h"
#include "store/type_string.h"

/* Argument `i` as the offset of a bit that a string may have. False: the error was replied. */
static bool parseBitOffset(ctx *c, int i, uint64_t *out) {
    int64_t offset;
    if (!numberParseInt(c->argv[i], &offset) || offset < 0 || offset / 8 >= engineBulkMax()) {
        replyError(c, SLICE("ERR bit offset is not an integer or out of range"));
        return false;
    }
    *out = (uint64_t)offset;
    return true;
}

/* GETBIT key offset. Reply: the bit; 0 behind the end. */
void getbitCommand(ctx *c) {
    uint64_t offset;
    if (!parseBitOffset(c, 2, &offset)) return;
    const robj *o = dbFindRead(c->db, c->argv[1], c->key_hash, c->now_ms);
    if (!stringIsType(c, o)) return;
    replyInteger(c, o ? stringBit(o, offset) : 0);
}

/* SETBIT key offset value. Reply: the bit before. */
void setbitCommand(ctx *c) {
    uint64_t offset;
    int64_t bit;
    if (!parseBitOffset(c, 2, &offset)) return;
    if (!ctxArgIntIn(c, 3, 0, 1, &bit, "ERR bit is not an integer or out of range")) return;
    robj *o = dbFind(c->db, c->argv[1], c->key_hash, c->now_ms);
    if (!stringIsType(c, o)) return;
    bool was = o && stringBit(o, offset);
    size_t len = offset / 8 + 1;
    bool changes = was != (bool)bit || !o || stringLen(o) < len;
    char *text;
    status st = o ? stringStretch(&o, len, &text) : stringNewRaw(c->argv[1], len, &o, &text);
    if (st != OK) {
        stringReplyNoMemory(c);
        return;
    }
    unsigned mask = 0x80u >> offset % 8;
    text[offset / 8] = (char)(bit ? text[offset / 8] | (int)mask : text[offset / 8] & (int)~mask);
    dbPlace(c->db, c->key_hash, o); /* raw from now on, even if no bit changes */
    if (changes) ctxKeyChanged(c, c->argv[1], "setbit");
    replyInteger(c, was);
}

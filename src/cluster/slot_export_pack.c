/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The stream of an export, compressed (slot_export_priv.h), if repl-compression of both nodes
 * allows it. All that the link is given waits in `plain`, strings by reference, and is compressed
 * in parts between requests.
 *
 * Invariant: the bytes of a stream are compressed in the order in which they were given, and after
 * each turn the target can read all that was compressed. */
#include "base/base.h"
#include "cluster/slot_export.h"
#include "cluster/slot_export_priv.h"
#include "cluster/slot_pack.h"
#include "engine/deliver.h"
#include "engine/lifecycle.h"

enum {
    TURN_BYTES = 256 * 1024, /* compressed in a turn, and unsent at most before the next */
    PARTS_MAX = 64,          /* blocks that are compressed at a time */
};

void exportPackOffer(str *out) {
    if (slotPackHas(COMPRESS_ZSTD)) strAppendText(out, compressName(COMPRESS_ZSTD));
    if (!slotPackHas(COMPRESS_LZ4)) return;
    if (out->len) strAppendText(out, ",");
    strAppendText(out, compressName(COMPRESS_LZ4));
}

status exportPackBegin(slotJob *job, slice codec, reason *why) {
    exportWork *w = exportOf(job);
    check(!w->pack);
    w->codec = slotPackChoose(codec);
    if (w->codec == COMPRESS_NONE)
        return reasonSet(why, ERR_NOT_FOUND, "the codec %.*s was not offered", (int)codec.len,
                         codec.ptr);
    status st = packerNew(w->codec, &w->pack, why);
    if (st != OK) return st;
    logNotice("Slot migration %s is sent compressed: %s", slotMigrationLabel(job).text,
              compressName(w->codec));
    return OK;
}

void exportPackSoon(exportWork *w) {
    hotCheck(w->pack);
    if (!outbufPending(&w->plain)) loopLimitSleep(engineLoop(), 0);
}

/* Compresses up to `room` bytes. */
static status packSome(exportWork *w, size_t room, reason *why) {
    struct iovec parts[PARTS_MAX];
    status st = OK;
    while (st == OK && room && outbufPending(&w->plain)) {
        int count = outbufIovecs(&w->plain, parts, PARTS_MAX);
        size_t done = 0;
        check(count > 0);
        for (int i = 0; st == OK && i < count && room; i++) {
            size_t n = sizeMin(parts[i].iov_len, room);
            st = packerAdd(w->pack, sliceMake(parts[i].iov_base, n), why);
            done += n;
            room -= n;
        }
        outbufConsume(&w->plain, done);
        outbufReap(&w->plain);
    }
    return st;
}

static void packTurn(slotJob *job) {
    exportWork *w = exportOf(job);
    if (!w->pack || !w->who || !outbufPending(&w->plain)) return;
    size_t unsent = sessionOutputPending(w->who);
    if (unsent >= TURN_BYTES) return; /* when it has been written the loop turns again */
    reason why;
    str packed;
    status st = packSome(w, TURN_BYTES - unsent, &why);
    if (st == OK) st = packerFlush(w->pack, &packed, &why);
    if (st != OK) {
        str message = STR_EMPTY;
        strAppendFormat(&message, "The stream cannot be compressed: %s", why.text);
        exportFail(job, strText(&message));
        strFree(&message);
        return;
    }
    sessionDeliver(w->who, DELIVER_PUSH, strSlice(&packed));
    sessionWantWrite(w->who);
    strFree(&packed);
    if (outbufPending(&w->plain)) loopLimitSleep(engineLoop(), 0);
}

void slotExportPack(void) {
    hotCheck(threadIsMain());
    slotJob *next;
    for (slotJob *job = exportNext(NULL); job; job = next) {
        next = exportNext(job); /* a job may end */
        packTurn(job);
    }
}

void exportPackEnd(slotJob *job) {
    exportWork *w = exportOf(job);
    outbufClear(&w->plain);
    if (!w->pack) return;
    uint64_t plain = packerPlainBytes(w->pack), packed = packerPackedBytes(w->pack);
    if (packed)
        logNotice("Slot migration %s was sent compressed by %s: %llu bytes became %llu",
                  slotMigrationLabel(job).text, compressName(w->codec), (unsigned long long)plain,
                  (unsigned long long)packed);
    packerFree(w->pack);
    w->pack = NULL;
}

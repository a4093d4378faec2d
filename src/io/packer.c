/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed streams (packer.h). Invariant: what packerFlush() has returned so far ends a block of
 * the frame, so the peer can decompress all that was added before. */
#include "io/packer.h"

#include "base/base.h"

struct packer {
    compressor *frame;
    str packed; /* since the last flush */
    uint64_t plain_bytes, packed_bytes;
};

status packerNew(compressCodec codec, packer **out, reason *why) {
    check(codec != COMPRESS_NONE);
    compressor *frame = NULL;
    char head[COMPRESS_HEAD_LEN];
    const compressChecksums sums = {.blocks = true};
    status st = compressorNew(codec, sums, &frame, why);
    if (st != OK) return st;
    packer *p = memNew(packer);
    p->frame = frame;
    compressHeadPrint(head, codec, COMPRESS_STREAM);
    strAppend(&p->packed, head, sizeof(head));
    *out = p;
    return OK;
}

void packerFree(packer *p) {
    if (!p) return;
    compressorFree(p->frame);
    strFree(&p->packed);
    memFree(p);
}

status packerAdd(packer *p, slice bytes, reason *why) {
    hotCheck(p->frame);
    status st = compressorAdd(p->frame, bytes.ptr, bytes.len, &p->packed, why);
    if (st == OK) p->plain_bytes += bytes.len;
    return st;
}

status packerFlush(packer *p, str *out, reason *why) {
    hotCheck(p->frame);
    status st = compressorFlush(p->frame, &p->packed, why);
    if (st != OK) return st;
    p->packed_bytes += p->packed.len;
    *out = p->packed;
    p->packed = STR_EMPTY;
    hotCheck(p->packed_bytes > 0);
    return OK;
}

uint64_t packerPlainBytes(const packer *p) { return p->plain_bytes; }
uint64_t packerPackedBytes(const packer *p) { return p->packed_bytes; }

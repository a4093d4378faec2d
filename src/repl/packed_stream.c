/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed streams for replicas (packed_stream.h). Each replica has a packer of its own, which
 * is created with the first byte of its stream, so replicas that are not compressed have none.
 * Invariant: between two turns nothing is left in it that the replica could not read. */
#include "repl/packed_stream.h"

#include "base/base.h"
#include "io/packer.h"
#include "repl/replicas.h"

_Static_assert((int)PEER_LZ4 == COMPRESS_LZ4, "the numbers are the same");
_Static_assert((int)PEER_ZSTD == COMPRESS_ZSTD, "the numbers are the same");

static struct { uint64_t plain_bytes, packed_bytes; } totals;

static void giveUp(const replPeer *to, const reason *why) {
    logWarning("The stream of a replica cannot be compressed: %s. Its connection is closed",
               why->text);
    replicasThis()->env->close((replPeer *)(uintptr_t)to);
}

void packedStreamAdd(replPeer *to, slice bytes) {
    hotCheck(to->codec != PEER_PLAIN);
    reason why;
    replicaConn *conn = replicasConn(to);
    status st = conn->packed ? OK : packerNew((compressCodec)to->codec, &conn->packed, &why);
    if (st == OK) st = packerAdd(conn->packed, bytes, &why);
    if (st != OK) {
        giveUp(to, &why);
        return;
    }
    totals.plain_bytes += bytes.len;
}

void packedStreamSend(replPeer *to) {
    reason why;
    str bytes;
    packer *p = replicasConn(to)->packed;
    if (!p) return; /* it was given up */
    if (packerFlush(p, &bytes, &why) != OK) {
        giveUp(to, &why);
        return;
    }
    totals.packed_bytes += bytes.len;
    replicasThis()->env->send(to, strSlice(&bytes));
    strFree(&bytes);
}

void packedStreamPrintInfo(const replPeer *peer, str *out) {
    const packer *p = replicasConn(peer)->packed;
    if (peer->codec == PEER_PLAIN) return;
    strAppendFormat(out, ",compression=%s,uncompressed_bytes=%llu,compressed_bytes=%llu",
                    compressName((compressCodec)peer->codec),
                    (unsigned long long)(p ? packerPlainBytes(p) : 0),
                    (unsigned long long)(p ? packerPackedBytes(p) : 0));
}

void packedStreamResetTotals(void) { totals.plain_bytes = totals.packed_bytes = 0; }

void packedStreamPrintTotals(str *out) {
    strAppendField(out, "total_repl_uncompressed_bytes", totals.plain_bytes);
    strAppendField(out, "total_repl_compressed_bytes", totals.packed_bytes);
}

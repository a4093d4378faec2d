/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compressed streams for replicas (packed_stream.h). Each replica has a compressor of its own,
 * which is created with the first byte of its stream, so replicas that are not compressed have
 * none. Invariant: between two turns nothing is left in it that the replica could not read. */
#include "repl/packed_stream.h"

#include "base/base.h"
#include "io/compress.h"
#include "repl/replicas.h"

_Static_assert((int)PEER_LZ4 == COMPRESS_LZ4, "the numbers are the same");
_Static_assert((int)PEER_ZSTD == COMPRESS_ZSTD, "the numbers are the same");

struct packedStream {
    compressor *codec;
    str packed;
    uint64_t plain_bytes, packed_bytes;
};

static struct { uint64_t plain_bytes, packed_bytes; } totals;

static void giveUp(const replPeer *to, const reason *why) {
    logWarning("The stream of a replica cannot be compressed: %s. Its connection is closed",
               why->text);
    replicasThis()->env->close((replPeer *)(uintptr_t)to);
}

static packedStream *streamOf(const replPeer *to, reason *why) {
    replicaConn *conn = replicasConn(to);
    if (likely(conn->packed != NULL)) return conn->packed;
    compressor *codec;
    const compressChecksums sums = {.blocks = true};
    if (compressorNew((compressCodec)to->codec, sums, &codec, why) != OK) return NULL;
    packedStream *s = memNew(packedStream);
    char head[COMPRESS_HEAD_LEN];
    s->codec = codec;
    compressHeadPrint(head, (compressCodec)to->codec, COMPRESS_STREAM);
    strAppend(&s->packed, head, sizeof(head));
    conn->packed = s;
    return s;
}

void packedStreamAdd(replPeer *to, slice bytes) {
    hotCheck(to->codec != PEER_PLAIN);
    reason why;
    packedStream *s = streamOf(to, &why);
    if (!s || compressorAdd(s->codec, bytes.ptr, bytes.len, &s->packed, &why) != OK) {
        giveUp(to, &why);
        return;
    }
    s->plain_bytes += bytes.len;
    totals.plain_bytes += bytes.len;
}

void packedStreamSend(replPeer *to) {
    reason why;
    packedStream *s = replicasConn(to)->packed;
    if (!s) return; /* it was given up */
    if (compressorFlush(s->codec, &s->packed, &why) != OK) {
        giveUp(to, &why);
        return;
    }
    s->packed_bytes += s->packed.len;
    totals.packed_bytes += s->packed.len;
    replicasThis()->env->send(to, strSlice(&s->packed));
    strFree(&s->packed);
}

void packedStreamFree(packedStream *s) {
    if (!s) return;
    compressorFree(s->codec);
    strFree(&s->packed);
    memFree(s);
}

void packedStreamPrintInfo(const replPeer *peer, str *out) {
    const packedStream *s = replicasConn(peer)->packed;
    if (peer->codec == PEER_PLAIN) return;
    strAppendFormat(out, ",compression=%s,uncompressed_bytes=%llu,compressed_bytes=%llu",
                    compressName((compressCodec)peer->codec),
                    (unsigned long long)(s ? s->plain_bytes : 0),
                    (unsigned long long)(s ? s->packed_bytes : 0));
}

void packedStreamResetTotals(void) { totals.plain_bytes = totals.packed_bytes = 0; }

void packedStreamPrintTotals(str *out) {
    strAppendFormat(
        out, "total_repl_uncompressed_bytes:%llu\r\ntotal_repl_compressed_bytes:%llu\r\n",
        (unsigned long long)totals.plain_bytes, (unsigned long long)totals.packed_bytes);
}

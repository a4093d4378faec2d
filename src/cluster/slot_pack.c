/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The choice of a codec (slot_pack.h). Invariant: a codec that is chosen is one of this build, and
 * repl-compression allows it. */
#include "cluster/slot_pack.h"

#include "base/base.h"
#include "repl/role.h"

bool slotPackHas(compressCodec codec) {
    check(codec != COMPRESS_NONE);
    return codec <= replCodec() && compressHas(codec);
}

compressCodec slotPackChoose(slice codecs) {
    compressCodec best = COMPRESS_NONE;
    const char *end = codecs.ptr + codecs.len;
    for (const char *at = codecs.ptr; at < end;) {
        const char *stop = memchr(at, ',', (size_t)(end - at));
        if (!stop) stop = end;
        slice name = sliceMake(at, (size_t)(stop - at));
        for (compressCodec codec = COMPRESS_LZ4; codec <= COMPRESS_ZSTD; codec++) {
            if (sliceIs(name, compressName(codec)) && slotPackHas(codec) && codec > best)
                best = codec;
        }
        at = stop + 1;
    }
    check(best == COMPRESS_NONE || slotPackHas(best));
    return best;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfer.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "server.h"

typedef struct header {
    simTransfer what;
    uint32_t filling;
    uint64_t checksum;
} header;

static uint64_t checksumOf(const header *h, slice filling) {
    uint64_t sum = ((uint64_t)h->what.dataset << 32 ^ (uint32_t)h->what.stream_db) + 7;
    sum += (uint64_t)h->what.origin * 31 + h->what.is_fresh;
    for (size_t i = 0; i < filling.len; i++) sum = sum * 1099511628211u + (uint8_t)filling.ptr[i];
    return sum;
}

str transferEncode(const simTransfer *what) {
    char filling[20000];
    size_t len = randomUniform(randomUniform(3) ? 200 : sizeof(filling));
    for (size_t i = 0; i < len; i++) filling[i] = (char)randomNext();
    header h;
    memset(&h, 0, sizeof(h)); /* what is between the fields is sent, too */
    h.what.dataset = what->dataset;
    h.what.stream_db = what->stream_db;
    h.what.origin = what->origin;
    h.what.is_fresh = what->is_fresh;
    h.filling = (uint32_t)len;
    h.checksum = checksumOf(&h, sliceMake(filling, len));
    str out = STR_EMPTY;
    strAppend(&out, &h, sizeof(h));
    strAppend(&out, filling, len);
    if (sim_faults && randomUniform(sim_faults) == 0) out.ptr[randomUniform(out.len)] ^= 1;
    return out;
}

bool transferDecode(slice bytes, simTransfer *what) {
    header h;
    if (bytes.len < sizeof(h)) return false;
    memcpy(&h, bytes.ptr, sizeof(h));
    slice filling = sliceMake(bytes.ptr + sizeof(h), bytes.len - sizeof(h));
    *what = h.what;
    return filling.len == h.filling && checksumOf(&h, filling) == h.checksum;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hostile build only: see reader_hostile.h. Main thread only. */
#include "net/reader_hostile.h"

#ifdef HOSTILE_BUILD

#include "base/base.h"
#include "base/bytes.h"
#include "base/random.h"

int hostileBatchMax(int max) { return 1 + (int)randomUniform((uint64_t)max); }

static bool short_reads = true;

void hostileShortReads(bool on) { short_reads = on; }

size_t hostileReadMax(size_t max) {
    return !short_reads || randomUniform(4) ? max : 1 + randomUniform(sizeMin(max, 64));
}

void hostileMoveBuffer(client *cl, char **buf, size_t *len, size_t *pos) {
    hotCheck(threadIsMain());
    size_t rest = *len - *pos;
    char *moved = memAlloc(rest + REQUEST_READ_SLACK);
    memcpy(moved, *buf + *pos, rest);
    memset(*buf, 0xDB, *len);
    memFree(cl->in);
    cl->in = moved;
    cl->in_len = rest;
    *buf = moved;
    *len = rest;
    *pos = 0;
}

void hostilePoison(const request *requests, int count) {
    hotCheck(threadIsMain());
    for (int i = 0; i < count; i++) {
        slice raw = requests[i].raw;
        if (raw.len) memset((void *)(uintptr_t)raw.ptr, 0xDB, raw.len);
    }
}

bool hostileCloses(const client *cl) {
    slice name = sessionName(&cl->session);
    slice victim = SLICE("hostile-victim");
    return name.len >= victim.len && memcmp(name.ptr, victim.ptr, victim.len) == 0 &&
           randomUniform(16) == 0;
}

bool hostileMovesClient(void) { return randomUniform(16) == 0; }

#else
typedef int readerHostileIsEmpty; /* ISO C requires a declaration */
#endif

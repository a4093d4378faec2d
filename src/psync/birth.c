/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The birth of a dataset (birth.h): a random id that a server draws when it starts without a
 * dataset. It shows whether a primary still has the data that its replicas got from it.
 *
 * Invariant: a birth that this server begins is new and has an id. */
#include "psync/birth.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/random.h"

void birthBegin(replBirth *b) {
    *b = (replBirth){.is_new = true};
    randomHex(b->id, REPL_ID_LEN);
    hotCheck(strlen(b->id) == REPL_ID_LEN);
}

void birthLoaded(replBirth *b, slice id) {
    *b = (replBirth){.is_new = false};
    hotCheck(!b->id[0]);
    if (historyIsId(id)) memcpy(b->id, id.ptr, REPL_ID_LEN);
}

void birthAdopt(replBirth *b, const replBirth *of, bool had_keys, bool has_keys) {
    if (of) {
        *b = *of;
    } else if (has_keys) {
        *b = (replBirth){.is_new = false};
    } else {
        birthBegin(b); /* nothing shows that it is not new */
    }
    if (had_keys) b->is_new = false;
    if (b->is_new) hotCheck(b->id[0]);
}

size_t birthPrint(const replBirth *b, const char *process, char out[BIRTH_TEXT_MAX]) {
    hotCheck(strlen(process) == REPL_ID_LEN);
    int len =
        snprintf(out, BIRTH_TEXT_MAX, "OK %s %d %s", b->id[0] ? b->id : "-", b->is_new, process);
    check(len > 0);
    check(len < BIRTH_TEXT_MAX);
    return (size_t)len;
}

bool birthParse(slice reply, replBirth *out, char process[REPL_ID_LEN + 1]) {
    enum { PREFIX = 4, ENDING = 3 + REPL_ID_LEN }; /* "+OK ", " 1 <process>" */
    if (reply.len <= PREFIX + ENDING || memcmp(reply.ptr, "+OK ", PREFIX) != 0) return false;
    slice id = sliceMake(reply.ptr + PREFIX, reply.len - PREFIX - ENDING);
    const char *ending = id.ptr + id.len;
    bool is_unknown = sliceIs(id, "-");
    if (ending[0] != ' ' || (ending[1] != '0' && ending[1] != '1') || ending[2] != ' ')
        return false;
    if (is_unknown ? ending[1] == '1' : !historyIsId(id)) return false; /* a new one has an id */
    if (!historyIsId(sliceMake(ending + 3, REPL_ID_LEN))) return false;
    memcpy(process, ending + 3, REPL_ID_LEN);
    process[REPL_ID_LEN] = 0;
    *out = (replBirth){.is_new = ending[1] == '1'};
    if (!is_unknown) memcpy(out->id, id.ptr, REPL_ID_LEN);
    return true;
}

bool birthLosesKept(const replBirth *b, const replHistory *h, slice kept, slice id, int64_t from) {
    hotCheck(kept.len <= BIRTH_KEPT_MAX);
    if (!kept.len) return false;
    /* A stream of this process: nothing was lost since the replica has followed it. */
    if (sliceIs(id, h->id) || historyCovers(h, id, from)) return false;
    const char *comma = memchr(kept.ptr, ',', kept.len);
    slice refused = SLICE("");
    if (comma) {
        refused = sliceMake(comma + 1, kept.len - (size_t)(comma + 1 - kept.ptr));
        kept.len = (size_t)(comma - kept.ptr);
    }
    if (refused.len && sliceIs(refused, b->id)) return true;
    return b->is_new && !sliceIs(kept, b->id);
}

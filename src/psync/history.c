/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ids and the offset of a replication stream: when the stream begins, continues under another
 * id, or is restored, and which offsets of it are known here.
 *
 * Invariant: an id has REPL_ID_LEN characters. The second id is valid for offsets up to
 * second_offset, which is at most one more than the offset of the stream. */
#include "psync/history.h"

#include <string.h>

#include "base/base.h"
#include "base/random.h"

bool historyIsId(slice id) {
    if (id.len != REPL_ID_LEN) return false;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] <= ' ' || id.ptr[i] > '~') return false;
    }
    return true;
}

bool historyIsOffset(int64_t offset) { return offset >= 0 && offset <= REPL_OFFSET_MAX; }

static void newId(replHistory *h) {
    randomHex(h->id, REPL_ID_LEN);
    h->id_number++;
    h->id[REPL_ID_LEN] = 0;
    h->is_shared = false;
    hotCheck(strlen(h->id) == REPL_ID_LEN);
}

static void setId(replHistory *h, slice id) {
    check(id.len == REPL_ID_LEN);
    memcpy(h->id, id.ptr, REPL_ID_LEN);
    h->id[REPL_ID_LEN] = 0;
    h->id_number++;
    h->is_shared = true;
}

static void forgetSecond(replHistory *h) {
    memset(h->id2, '0', REPL_ID_LEN);
    h->id2[REPL_ID_LEN] = 0;
    h->second_offset = -1;
}

static void keepAsSecond(replHistory *h) {
    hotCheck(h->offset >= 0);
    memcpy(h->id2, h->id, sizeof(h->id2));
    h->second_offset = h->offset + 1;
    hotCheck(h->second_offset > 0);
}

void historyInit(replHistory *h) {
    h->offset = 0;
    historyRenew(h);
}

void historyRenew(replHistory *h) {
    newId(h);
    forgetSecond(h);
}

void historyBranch(replHistory *h) {
    keepAsSecond(h);
    newId(h);
    hotCheck(h->second_offset == h->offset + 1);
}

void historyAdopt(replHistory *h, slice id, int64_t offset) {
    hotCheck(id.len == REPL_ID_LEN);
    hotCheck(offset >= 0);
    setId(h, id);
    h->offset = offset;
    forgetSecond(h);
}

void historyContinueAs(replHistory *h, slice id) {
    hotCheck(id.len == REPL_ID_LEN);
    if (sliceIs(id, h->id)) return;
    keepAsSecond(h);
    setId(h, id);
}

void historyRestore(replHistory *h, slice id, int64_t offset) {
    hotCheck(id.len == REPL_ID_LEN);
    hotCheck(offset >= 0);
    historyAdopt(h, id, offset);
    historyBranch(h);
}

void historyShare(replHistory *h) { h->is_shared = true; }

const char *historyKnownId(const replHistory *h) {
    bool has_second = h->second_offset >= 0;
    return has_second && !h->is_shared && h->offset + 1 == h->second_offset ? h->id2 : h->id;
}

bool historyCovers(const replHistory *h, slice id, int64_t from) {
    if (id.len != REPL_ID_LEN) return false;
    if (sliceIs(id, h->id)) return true;
    return h->second_offset >= 0 && from <= h->second_offset && sliceIs(id, h->id2);
}

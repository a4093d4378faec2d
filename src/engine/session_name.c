/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of sessions. Main thread only. */
#include "engine/session_name.h"

#include "base/base.h"

const slice ERR_SESSION_NAME_TEXT =
    SLICE("ERR Client names cannot contain spaces, newlines or special characters.");

bool sessionNameIsValid(slice name) {
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] < '!' || name.ptr[i] > '~') return false;
    }
    return true;
}

void sessionSetName(session *s, slice name) {
    hotCheck(threadIsMain());
    hotCheck(sessionNameIsValid(name));
    if (!name.len && !sessionExtraFind(s)) return;
    str *to = &sessionExtraOf(s)->name;
    strClear(to);
    strAppendSlice(to, name);
}

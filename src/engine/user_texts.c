/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions that `acl` registers, and who listens to changes (user_texts.h). Without `acl`
 * there are no users. Main thread only. */
#include "engine/user_texts.h"

#include "base/base.h"

static const userTextsKeeper *keeper;
static userTextsListener *listener;

void userTextsSetKeeper(const userTextsKeeper *to) { keeper = to; }

void userTextsEach(userTextsVisitProc *visit, void *arg) {
    if (keeper) keeper->each(visit, arg);
}

bool userTextsPrint(bool is_role, slice name, str *out, bool *is_on) {
    return keeper && keeper->print(is_role, name, out, is_on);
}

status userTextsSet(bool is_role, slice name, slice rules, reason *why) {
    hotCheck(threadIsMain());
    if (!keeper) return reasonSet(why, ERR_DENIED, "there are no users");
    return keeper->set(is_role, name, rules, why);
}

bool userTextsRemove(bool is_role, slice name) {
    hotCheck(threadIsMain());
    return !keeper || keeper->remove(is_role, name);
}

bool userTextsTake(bool is_role, slice before, slice after) {
    return keeper && keeper->takes(is_role, before, after);
}

void userTextsListen(userTextsListener *proc) { listener = proc; }

void userTextsChanged(bool is_role, slice name) {
    if (listener) listener(is_role, name);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The default user: may do everything, and must give the password of `requirepass` when one is set.
 * Main thread only. */
#include "acl/acl.h"
#include "acl/acl_priv.h"
#include "base/base.h"
#include "engine/config.h"
#include "engine/session.h"

static bool passwordIsSet(void) { return aclConf.requirepass.len > 0; }

bool aclDefaultNeedsPassword(void) { return passwordIsSet(); }

/* Compares in time that depends only on the length of what was sent. */
static bool passwordIs(slice given) {
    const str *want = &aclConf.requirepass;
    unsigned char difference = given.len == want->len ? 0 : 1;
    for (size_t i = 0; i < given.len; i++) {
        difference |= (unsigned char)(given.ptr[i] ^ (want->len ? want->ptr[i % want->len] : 0));
    }
    return difference == 0;
}

static authVerdict authenticate(ctx *c, slice name, slice password, user **who) {
    (void)c; /* the verdict is the same for every caller */
    bool short_form = name.ptr == NULL;
    if (!short_form && !sliceEqual(name, SLICE("default"))) return AUTH_NOT_MINE;
    *who = NULL;
    if (!passwordIsSet()) return short_form ? AUTH_NO_PASSWORD : AUTH_GRANTED;
    return passwordIs(password) ? AUTH_GRANTED : AUTH_DENIED;
}

static void onSession(session *s, sessionEvent e) {
    if (e == SESSION_OPENED && passwordIsSet()) sessionSetAuthenticated(s, NULL, false);
}

const feature aclFeature = {
    .name = "acl", .options = aclOptions, .on_session = onSession, .on_auth = authenticate};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The default user: has all permissions, and must authenticate with `requirepass` if that is set.
 * Main thread only. */
#include "acl/acl.h"
#include "acl/acl_priv.h"
#include "base/base.h"
#include "config/config.h"
#include "engine/session.h"

static uint64_t denied; /* failed logins */

static bool passwordIsSet(void) { return aclConf.requirepass.len > 0; }

bool aclDefaultNeedsPassword(void) { return passwordIsSet(); }

/* Compares in time that depends only on the length of `given`. */
static bool passwordIs(slice given) {
    const str *want = &aclConf.requirepass;
    unsigned char difference = given.len == want->len ? 0 : 1;
    for (size_t i = 0; i < given.len; i++) {
        difference |= (unsigned char)(given.ptr[i] ^ (want->len ? want->ptr[i % want->len] : 0));
    }
    return difference == 0;
}

static authVerdict authenticate(ctx *c, slice name, slice password, user **who) {
    (void)c; /* the result does not depend on the caller */
    bool short_form = name.ptr == NULL;
    if (!short_form && !sliceEqual(name, SLICE("default"))) {
        denied++;
        return AUTH_NOT_MINE;
    }
    *who = NULL;
    if (!passwordIsSet()) return short_form ? AUTH_NO_PASSWORD : AUTH_GRANTED;
    if (passwordIs(password)) return AUTH_GRANTED;
    denied++;
    return AUTH_DENIED;
}

static void onSession(session *s, sessionEvent e) {
    if (e == SESSION_OPENED && passwordIsSet()) sessionSetAuthenticated(s, NULL, false);
}

/* Without further users only authentication can be denied. */
static void printStats(str *out) {
    static const char *const others[] = {"cmd", "key", "channel", "tls_cert", "db"};
    strAppendFormat(out, "acl_access_denied_auth:%llu\r\n", (unsigned long long)denied);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        strAppendFormat(out, "acl_access_denied_%s:0\r\n", others[i]);
}

static const infoSection sections[] = {{"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
                                       {0}};

/* A server configured with users must not start and let every client in. */
static status init(reason *why) {
    if (aclConf.user_line_count == 0 && aclConf.aclfile[0] == 0) return OK;
    return reasonSet(why, ERR_DENIED,
                     "this version of the server has no ACL users: start it without %s",
                     aclConf.user_line_count ? "user lines" : "aclfile");
}

const feature aclFeature = {.name = "acl",
                            .init = init,
                            .options = aclOptions,
                            .info = sections,
                            .on_session = onSession,
                            .on_auth = authenticate};

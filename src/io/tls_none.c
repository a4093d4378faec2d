/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions of tls.h in a build without TLS. */
#ifndef HAVE_TLS

#include "io/tls.h"

#include "base/assert.h"

const connType connTls = {.name = "tls"};

bool tlsIsSupported(void) { return false; }

tlsContext *tlsContextNew(const tlsSettings *settings, reason *why) {
    (void)settings;
    (void)reasonSet(why, ERR_DENIED, "Failed finding TLS support.");
    return NULL;
}

void tlsContextFree(tlsContext *context) { (void)context; }

const tlsCertificate *tlsContextCertificate(const tlsContext *context, tlsRole role) {
    static const tlsCertificate none = {.serial = "none"};
    (void)context, (void)role;
    return &none;
}

status tlsFingerprint(const tlsSettings *settings, uint8_t out[TLS_FINGERPRINT_SIZE], reason *why) {
    (void)settings, (void)out;
    return reasonSet(why, ERR_DENIED, "Failed finding TLS support.");
}

status tlsAccept(conn *c, const tlsContext *context, tlsVerify verify) {
    (void)c, (void)context, (void)verify;
    return ERR_DENIED;
}

status tlsConnect(conn *c, const tlsContext *context, const char *name, bool check_name) {
    (void)c, (void)context, (void)name, (void)check_name;
    return ERR_DENIED;
}

bool tlsPeerIsVerified(const conn *c) {
    (void)c;
    return false;
}

bool tlsPeerCommonName(const conn *c, str *out) {
    (void)c, (void)out;
    return false;
}

bool tlsPeerPem(const conn *c, str *out) {
    (void)c, (void)out;
    return false;
}

void tlsPeerUris(const conn *c, bool (*visit)(void *arg, slice uri), void *arg) {
    (void)c, (void)visit, (void)arg;
}

size_t tlsMemory(const conn *c) {
    (void)c;
    return 0;
}

void tlsBlockWrites(bool on) { (void)on; }

#endif

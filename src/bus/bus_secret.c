/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end's part of the exchange by which both ends prove that they know cluster-bus-secret
 * (bus_secret.h).
 *
 * Invariant: a proof covers the direction and both nonces, so it can neither be replayed nor be
 * reflected; proofs are compared in constant time. Pure: nonces come from the caller. */
#include "bus/bus_secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <limits.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

static const uint8_t magic[SECRET_MAGIC_LEN] = {'R', 'C', 's', 'c', 0, 0, 0, 1};

/* The proof of one end. */
static void prove(const busSecret *s, bool inbound, slice secret, uint8_t out[SECRET_MAC_LEN]) {
    uint8_t text[8 + sizeof(s->nonces)];
    unsigned len = SECRET_MAC_LEN;
    check(secret.len > 0);
    check(secret.len <= INT_MAX);
    memcpy(text, inbound ? "inbound " : "outbound", 8);
    memcpy(text + 8, s->nonces, sizeof(s->nonces));
    const unsigned char *done =
        HMAC(EVP_sha256(), secret.ptr, (int)secret.len, text, sizeof(text), out, &len);
    check(done == out);
    check(len == SECRET_MAC_LEN);
}

static bool isProof(const busSecret *s, bool inbound, slice secret, const uint8_t *mac) {
    uint8_t expected[SECRET_MAC_LEN];
    prove(s, inbound, secret, expected);
    return CRYPTO_memcmp(mac, expected, SECRET_MAC_LEN) == 0;
}

static void appendProof(const busSecret *s, slice secret, str *out) {
    uint8_t mac[SECRET_MAC_LEN];
    prove(s, s->is_inbound, secret, mac);
    strAppend(out, mac, sizeof(mac));
}

void busSecretInit(busSecret *s, bool is_inbound, const uint8_t nonce[SECRET_NONCE_LEN], str *out) {
    *s = (busSecret){.is_inbound = is_inbound, .verdict = SECRET_PENDING};
    memcpy(s->nonces[is_inbound], nonce, SECRET_NONCE_LEN);
    if (is_inbound) return;
    strAppend(out, magic, SECRET_MAGIC_LEN);
    strAppend(out, nonce, SECRET_NONCE_LEN);
}

/* The length of what the peer sends next. */
static size_t wantedLen(const busSecret *s) {
    if (!s->is_inbound) return SECRET_ANSWER_LEN;
    return s->has_peer_nonce ? SECRET_MAC_LEN : SECRET_MAGIC_LEN + SECRET_NONCE_LEN;
}

/* False as soon as the input cannot be what is expected: a node without the secret begins with a
 * message, which may be shorter, and would wait. */
static bool beginsWell(const busSecret *s) {
    if (s->is_inbound && s->has_peer_nonce) return true;
    return memcmp(s->input, magic, sizeMin(s->input_len, SECRET_MAGIC_LEN)) == 0;
}

static void takeNonce(busSecret *s) {
    memcpy(s->nonces[!s->is_inbound], s->input + SECRET_MAGIC_LEN, SECRET_NONCE_LEN);
    s->has_peer_nonce = true;
}

/* The peer's next part is complete. */
static secretVerdict takePart(busSecret *s, slice secret, str *out) {
    if (s->is_inbound && !s->has_peer_nonce) {
        takeNonce(s);
        strAppend(out, magic, SECRET_MAGIC_LEN);
        strAppend(out, s->nonces[1], SECRET_NONCE_LEN);
        appendProof(s, secret, out);
        return SECRET_PENDING;
    }
    if (s->is_inbound) return isProof(s, false, secret, s->input) ? SECRET_PROVEN : SECRET_REFUSED;
    takeNonce(s);
    if (!isProof(s, true, secret, s->input + SECRET_MAGIC_LEN + SECRET_NONCE_LEN))
        return SECRET_REFUSED;
    appendProof(s, secret, out);
    return SECRET_PROVEN;
}

secretVerdict busSecretTake(busSecret *s, slice secret, slice *bytes, str *out) {
    while (s->verdict == SECRET_PENDING && bytes->len) {
        size_t wanted = wantedLen(s), taken = sizeMin(wanted - s->input_len, bytes->len);
        check(s->input_len + taken <= sizeof(s->input));
        memcpy(s->input + s->input_len, bytes->ptr, taken);
        s->input_len += taken;
        *bytes = sliceMake(bytes->ptr + taken, bytes->len - taken);
        if (!beginsWell(s)) {
            s->verdict = SECRET_REFUSED;
        } else if (s->input_len == wanted) {
            s->verdict = takePart(s, secret, out);
            s->input_len = 0;
        }
    }
    return s->verdict;
}

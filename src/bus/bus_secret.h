/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What both ends of a connection of the cluster bus do before the first message if
 * cluster-bus-secret is set: each proves that it knows the secret, without sending it. A state
 * machine of one end: bytes in, bytes out, a verdict.
 *
 *   outbound end                              inbound end
 *   hello: MAGIC, nonce A            ->
 *                                    <-       answer: MAGIC, nonce B, HMAC("inbound", A, B)
 *   proof: HMAC("outbound", A, B)    ->
 *   messages                         <->      messages
 *
 * The HMAC is HMAC-SHA256 with the secret as the key; nonces are random and used once, so nothing
 * can be replayed, and the direction is part of what is authenticated, so nothing can be reflected.
 * The magic number is not that of messages: a node without the secret closes the connection, as
 * this one does when it gets something else.
 *
 * It keeps nodes and strangers out that do not know the secret. It does not encrypt, and who can
 * change the bytes of a connection between two nodes can take it over after the exchange; TLS
 * protects against both. A connecting stranger gets an HMAC to try guesses on, so the secret has to
 * be long and random.
 *
 * One thread at a time. */
#ifndef BUS_BUS_SECRET_H
#define BUS_BUS_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"

enum {
    SECRET_NONCE_LEN = 32,
    SECRET_MAC_LEN = 32,
    SECRET_MAGIC_LEN = 8,
    SECRET_ANSWER_LEN = SECRET_MAGIC_LEN + SECRET_NONCE_LEN + SECRET_MAC_LEN,
};

typedef enum secretVerdict {
    SECRET_PENDING,
    SECRET_PROVEN, /* messages may follow */
    SECRET_REFUSED /* the connection must be closed; nothing more is taken or sent */
} secretVerdict;

/* One end of a connection. */
typedef struct busSecret {
    bool is_inbound;
    secretVerdict verdict;
    bool has_peer_nonce;                 /* inbound: what comes next is the proof */
    uint8_t nonces[2][SECRET_NONCE_LEN]; /* of the outbound end, of the inbound end */
    uint8_t input[SECRET_ANSWER_LEN];
    size_t input_len;
} busSecret;

/* `nonce` must be unpredictable, and new for each connection. Appends the first bytes to send to
 * `out`. */
void busSecretInit(busSecret *s, bool is_inbound, const uint8_t nonce[SECRET_NONCE_LEN], str *out);
/* Takes from the start of `bytes` what belongs to the exchange; appends what is to be sent to
 * `out`. Messages that follow stay in `bytes`. */
secretVerdict busSecretTake(busSecret *s, slice secret, slice *bytes, str *out);

#endif

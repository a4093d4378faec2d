/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exchange before the first message of a bus connection: whatever a stranger sends, in
 * whichever pieces, no end regards it as proven, and nothing is sent but what the exchange allows;
 * the same bytes in other pieces have the same result.
 *
 * Input: the first byte: bit 0: the inbound end; then lengths of pieces and their bytes. */
#include <string.h>

#include "base/base.h"
#include "bus/bus_secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t nonce[SECRET_NONCE_LEN] = {1, 2, 3};

/* Begins with a valid magic number if the input asks for it, so that more than that is reached. */
static str inputOf(const uint8_t *data, size_t size) {
    static const char magic[] = {'R', 'C', 's', 'c', 0, 0, 0, 1};
    str s = STR_EMPTY;
    if (data[0] & 2) strAppend(&s, magic, sizeof(magic));
    strAppend(&s, data + 1, size - 1);
    return s;
}

static void checkEnd(const busSecret *s, size_t sent, size_t left) {
    check(s->verdict != SECRET_PROVEN); /* nobody guesses a proof */
    size_t hello = SECRET_MAGIC_LEN + SECRET_NONCE_LEN;
    check(sent <= (s->is_inbound ? SECRET_ANSWER_LEN : hello));
    if (s->verdict == SECRET_PENDING) check(left == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    size_t before = memUsed();
    busSecret whole, pieces;
    str sent = STR_EMPTY, sent_in_pieces = STR_EMPTY, input = inputOf(data, size);
    bool inbound = data[0] & 1;
    busSecretInit(&whole, inbound, nonce, &sent);
    busSecretInit(&pieces, inbound, nonce, &sent_in_pieces);
    slice rest = strSlice(&input);
    (void)busSecretTake(&whole, SLICE("secret"), &rest, &sent); /* in whole.verdict */
    checkEnd(&whole, sent.len, rest.len);
    slice all = strSlice(&input);
    while (all.len) {
        slice part = sliceMake(all.ptr, sizeMin(1u + (unsigned char)all.ptr[0] % 7u, all.len));
        slice left = part;
        (void)busSecretTake(&pieces, SLICE("secret"), &left, &sent_in_pieces); /* as above */
        all = sliceMake(all.ptr + part.len, all.len - part.len);
    }
    check(pieces.verdict == whole.verdict);
    check(sliceEqual(strSlice(&sent), strSlice(&sent_in_pieces)));
    strFree(&sent);
    strFree(&sent_in_pieces);
    strFree(&input);
    check(memUsed() == before);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The exchange before the first message of a connection: two ends with the same secret prove it to
 * each other, however the bytes are cut; all others are refused, and nothing can be replayed or
 * reflected. */
#include "bus_test.h"

#include "base/base.h"
#include "bus/bus_secret.h"

#define SECRET SLICE("a secret of some length")
enum { HELLO_LEN = SECRET_MAGIC_LEN + SECRET_NONCE_LEN };

static const uint8_t nonce_a[SECRET_NONCE_LEN] = {1, 2, 3}, nonce_b[SECRET_NONCE_LEN] = {9, 8, 7};

typedef struct pair {
    busSecret out, in;
    str to_in, to_out; /* bytes under way */
} pair;

static void pairInit(pair *p, const uint8_t a[SECRET_NONCE_LEN],
                     const uint8_t b[SECRET_NONCE_LEN]) {
    memset(p, 0, sizeof(*p));
    busSecretInit(&p->out, false, a, &p->to_in);
    busSecretInit(&p->in, true, b, &p->to_out);
    assert_int_equal(p->to_in.len, HELLO_LEN);
    assert_int_equal(p->to_out.len, 0);
}

static void pairClear(pair *p) {
    strFree(&p->to_in);
    strFree(&p->to_out);
}

/* Gives `bytes` to one end in pieces; what is left. */
static slice give(busSecret *s, slice secret, slice bytes, size_t piece, str *out) {
    while (bytes.len) {
        slice part = sliceMake(bytes.ptr, sizeMin(piece, bytes.len)), rest = part;
        secretVerdict v = busSecretTake(s, secret, &rest, out);
        bytes = sliceMake(rest.ptr, bytes.len - (part.len - rest.len));
        if (v != SECRET_PENDING) break;
        assert_int_equal(rest.len, 0);
    }
    return bytes;
}

/* The whole exchange. */
static void run(pair *p, slice out_secret, slice in_secret, size_t piece) {
    give(&p->in, in_secret, strSlice(&p->to_in), piece, &p->to_out);
    strClear(&p->to_in);
    give(&p->out, out_secret, strSlice(&p->to_out), piece, &p->to_in);
    strClear(&p->to_out);
    give(&p->in, in_secret, strSlice(&p->to_in), piece, &p->to_out);
}

static void equal_secrets_are_proven_however_the_bytes_are_cut(void **state) {
    for (size_t piece = 1; piece <= 120; piece++) {
        pair p;
        pairInit(&p, nonce_a, nonce_b);
        run(&p, SECRET, SECRET, piece);
        assert_int_equal(p.out.verdict, SECRET_PROVEN);
        assert_int_equal(p.in.verdict, SECRET_PROVEN);
        pairClear(&p);
    }
}

static void messages_after_the_proof_are_left(void **state) {
    pair p;
    pairInit(&p, nonce_a, nonce_b);
    give(&p.in, SECRET, strSlice(&p.to_in), 1000, &p.to_out);
    strClear(&p.to_in);
    give(&p.out, SECRET, strSlice(&p.to_out), 1000, &p.to_in);
    assert_int_equal(p.to_in.len, SECRET_MAC_LEN);
    strAppendText(&p.to_in, "RCmb and more");
    slice rest = give(&p.in, SECRET, strSlice(&p.to_in), 1000, &p.to_out);
    assert_int_equal(p.in.verdict, SECRET_PROVEN);
    assert_true(sliceEqual(rest, SLICE("RCmb and more")));
    pairClear(&p);
}

static void different_secrets_are_refused_by_the_outbound_end_first(void **state) {
    static const char *const others[] = {"A secret of some length", "a secret of some lengt", "x"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        pair p;
        pairInit(&p, nonce_a, nonce_b);
        run(&p, sliceOf(others[i]), SECRET, 1000);
        assert_int_equal(p.out.verdict, SECRET_REFUSED);
        assert_int_equal(p.in.verdict, SECRET_PENDING);
        assert_int_equal(p.to_in.len, 0); /* no proof for a stranger */
        pairClear(&p);
    }
}

static void a_wrong_proof_is_refused_by_the_inbound_end(void **state) {
    for (int bit = 0; bit < SECRET_MAC_LEN * 8; bit++) {
        pair p;
        pairInit(&p, nonce_a, nonce_b);
        give(&p.in, SECRET, strSlice(&p.to_in), 1000, &p.to_out);
        strClear(&p.to_in);
        give(&p.out, SECRET, strSlice(&p.to_out), 1000, &p.to_in);
        p.to_in.ptr[bit / 8] = (char)(p.to_in.ptr[bit / 8] ^ (1 << bit % 8));
        give(&p.in, SECRET, strSlice(&p.to_in), 1000, &p.to_out);
        assert_int_equal(p.in.verdict, SECRET_REFUSED);
        pairClear(&p);
    }
}

static void any_changed_bit_of_the_answer_is_refused(void **state) {
    for (int bit = 0; bit < SECRET_ANSWER_LEN * 8; bit++) {
        pair p;
        pairInit(&p, nonce_a, nonce_b);
        give(&p.in, SECRET, strSlice(&p.to_in), 1000, &p.to_out);
        strClear(&p.to_in);
        p.to_out.ptr[bit / 8] = (char)(p.to_out.ptr[bit / 8] ^ (1 << bit % 8));
        give(&p.out, SECRET, strSlice(&p.to_out), 1000, &p.to_in);
        assert_int_equal(p.out.verdict, SECRET_REFUSED);
        assert_int_equal(p.to_in.len, 0);
        pairClear(&p);
    }
}

/* A proof was recorded; it is sent again on a connection with the same first nonce. */
static void a_recorded_proof_is_worth_nothing(void **state) {
    static const uint8_t nonce_c[SECRET_NONCE_LEN] = {5};
    pair first, second;
    pairInit(&first, nonce_a, nonce_b);
    run(&first, SECRET, SECRET, 1000);
    pairInit(&second, nonce_a, nonce_c);
    give(&second.in, SECRET, strSlice(&second.to_in), 1000, &second.to_out);
    give(&second.in, SECRET, strSlice(&first.to_in), 1000, &second.to_out);
    assert_int_equal(second.in.verdict, SECRET_REFUSED);
    pairClear(&first);
    pairClear(&second);
}

/* A stranger that is asked for a proof connects to the node that asks, with the same nonces, to get
 * one. */
static void a_reflected_proof_is_worth_nothing(void **state) {
    pair p;
    pairInit(&p, nonce_a, nonce_b);
    give(&p.in, SECRET, strSlice(&p.to_in), 1000, &p.to_out);
    slice proof = sliceMake(p.to_out.ptr + HELLO_LEN, SECRET_MAC_LEN);
    give(&p.in, SECRET, proof, 1000, &p.to_in);
    assert_int_equal(p.in.verdict, SECRET_REFUSED);
    pairClear(&p);
}

/* A node without a secret begins with a message; its first wrong byte is enough. */
static void another_magic_number_is_refused_at_once(void **state) {
    pair p;
    pairInit(&p, nonce_a, nonce_b);
    give(&p.in, SECRET, SLICE("RCm"), 1000, &p.to_out);
    assert_int_equal(p.in.verdict, SECRET_REFUSED);
    assert_int_equal(p.to_out.len, 0);
    give(&p.out, SECRET, SLICE("X"), 1000, &p.to_in);
    assert_int_equal(p.out.verdict, SECRET_REFUSED);
    slice later = SLICE("RCsc");
    assert_int_equal(busSecretTake(&p.in, SECRET, &later, &p.to_out), SECRET_REFUSED);
    assert_int_equal(later.len, 4); /* nothing more is taken */
    pairClear(&p);
}

/* HMAC-SHA256 of "inbound ", 32 bytes 0, 32 bytes 1 with the key "key", from Python's hmac. */
static void the_proof_is_an_hmac_sha256(void **state) {
    static const uint8_t zeros[SECRET_NONCE_LEN];
    uint8_t ones[SECRET_NONCE_LEN];
    memset(ones, 1, sizeof(ones));
    pair p;
    pairInit(&p, zeros, ones);
    give(&p.in, SLICE("key"), strSlice(&p.to_in), 1000, &p.to_out);
    str hex = STR_EMPTY;
    for (size_t i = HELLO_LEN; i < p.to_out.len; i++)
        strAppendFormat(&hex, "%02x", (unsigned char)p.to_out.ptr[i]);
    assert_string_equal(strText(&hex),
                        "29844c7c62f7b81f10d0188cfb837a26c2ed86a95098bbf9d305e2ec9975027c");
    strFree(&hex);
    pairClear(&p);
}

int test_bus_secret(void);
int test_bus_secret(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_secrets_are_proven_however_the_bytes_are_cut),
        cmocka_unit_test(messages_after_the_proof_are_left),
        cmocka_unit_test(different_secrets_are_refused_by_the_outbound_end_first),
        cmocka_unit_test(a_wrong_proof_is_refused_by_the_inbound_end),
        cmocka_unit_test(any_changed_bit_of_the_answer_is_refused),
        cmocka_unit_test(a_recorded_proof_is_worth_nothing),
        cmocka_unit_test(a_reflected_proof_is_worth_nothing),
        cmocka_unit_test(another_magic_number_is_refused_at_once),
        cmocka_unit_test(the_proof_is_an_hmac_sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A codec for the tests of lists and streams (coded_nodes.h): LZF, after the number of the
 * dictionary; and a count of the nodes. */
#include "coded_nodes.h"

#include "ds_test.h"

#include <lzf.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

static struct { int64_t nodes[256], text_bytes, coded_bytes; } counted;

/* The first byte is the dictionary. */
static void expand(unsigned dictionary, slice coded, void *out, size_t len) {
    assert_int_equal((uint8_t)coded.ptr[0], dictionary);
    unsigned size = lzf_decompress(coded.ptr + 1, (unsigned)coded.len - 1, out, (unsigned)len);
    assert_int_equal(size, len);
}

static void count(unsigned dictionary, size_t len, size_t coded_len, bool more) {
    int64_t sign = more ? 1 : -1;
    counted.nodes[dictionary] += sign;
    counted.text_bytes += sign * (int64_t)len;
    counted.coded_bytes += sign * (int64_t)coded_len;
    assert_true(counted.nodes[dictionary] >= 0);
}

static nodeRead readNode(bool again) {
    uint64_t dice = randomUniform(4);
    return dice == 0 ? NODE_STAYS : dice == 1 || !again ? NODE_NOTED : NODE_EXPANDS;
}

static slice code(void *arg, slice text, size_t most) {
    const nodeVisit *v = arg;
    static char room[NODE_TEXT_MAX];
    if (most < 2) return SLICE("");
    room[0] = (char)v->dictionary;
    unsigned cap = (unsigned)(most < sizeof(room) ? most : sizeof(room)) - 1;
    unsigned size = lzf_compress(text.ptr, (unsigned)text.len, room + 1, cap);
    return size ? sliceMake(room, size + 1) : SLICE("");
}

static bool isOver(void *arg) {
    (void)arg;
    return randomUniform(5) == 0;
}

const nodeVisit *randomVisit(void) {
    static const nodeCodec codec = {expand, count, readNode};
    static nodeVisit visit;
    nodeCodecSet(&codec);
    visit = (nodeVisit){.min = (size_t)randomUniform(40),
                        .dictionary = 1 + (unsigned)randomUniform(255),
                        .idle = randomUniform(2),
                        .whole = randomUniform(3) == 0,
                        .code = code,
                        .is_over = isOver,
                        .arg = &visit};
    return &visit;
}

void assertNoneCoded(void) {
    for (int i = 0; i < 256; i++) assert_int_equal(counted.nodes[i], 0);
    assert_int_equal(counted.text_bytes, 0);
    assert_int_equal(counted.coded_bytes, 0);
}

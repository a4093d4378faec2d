/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of the cluster bus: whatever the bytes are, reading stays within them, and what was read
 * is written again to a message that reads the same.
 *
 * Input: one message, whose signature and length are set here so that most inputs reach what
 * follows; an odd first byte leaves them as they are. */
#include <string.h>

#include "base/base.h"
#include "bus/message_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void checkWithin(slice part, slice whole) {
    if (!part.len) return;
    check(part.ptr >= whole.ptr);
    check(part.ptr + part.len <= whole.ptr + whole.len);
}

static void checkText(slice part, slice whole) {
    checkWithin(part, whole);
    if (part.len) check(!memchr(part.ptr, 0, part.len));
}

static void checkExtensions(const messageExtensions *e, slice whole) {
    const slice texts[] = {e->hostname, e->human_name, e->availability_zone, e->client_ipv4,
                           e->client_ipv6};
    for (size_t i = 0; i < COUNT_OF(texts); i++) checkText(texts[i], whole);
    if (e->shard_id) checkWithin(sliceMake(e->shard_id, NODE_ID_LEN), whole);
    check(e->forgotten_count <= MESSAGE_FORGOTTEN_MAX);
    for (int i = 0; i < e->forgotten_count; i++)
        checkWithin(sliceMake(e->forgotten[i].id, NODE_ID_LEN), whole);
}

static void writeVoters(messageWriter *w, slice bytes) {
    voterSet set;
    if (!bytes.len || !messageReadVoters(bytes, &set)) return;
    for (int i = 1; i < set.count; i++) check(memcmp(set.ids[i - 1], set.ids[i], NODE_ID_LEN) < 0);
    messageAddVoters(w, &set);
    memFree(set.ids);
}

static void writeGossip(const message *m, str *out, slice whole) {
    messageWriter w = m->is_short ? messageBeginShort(out, (messageType)m->type, &m->header)
                                  : messageBegin(out, (messageType)m->type, &m->header);
    char id[NODE_ID_LEN];
    size_t at = 0;
    for (int i = 0; i < m->gossip_count; i++) {
        gossipEntry g = messageNextGossip(m, &at, id);
        if (!m->is_short) checkWithin(sliceMake(g.id, NODE_ID_LEN), whole);
        checkText(g.ip, whole);
        if (g.ip.len == NODE_IP_MAX) g.ip.len--; /* a text that no NUL ends is shortened */
        messageAddGossip(&w, &g);
    }
    messageExtensions e;
    messageReadExtensions(m, &e);
    checkExtensions(&e, whole);
    checkWithin(e.voters, whole);
    if (m->header.flags & MESSAGE_HAS_EXTENSIONS) {
        messageAddExtensions(&w, &e);
        writeVoters(&w, e.voters);
    }
    messageEnd(&w);
}

/* A reason that this version does not know cannot be written, and is replaced by one that can. */
static void writeNack(const message *m, str *out) {
    bool is_known = m->nack != NACK_NONE && m->nack < NACK_REASONS;
    enum nackReason why = is_known ? (enum nackReason)m->nack : NACK_REASONS - 1;
    messageWriteNack(out, &m->header, m->epoch, why);
}

static void writeAgain(const message *m, str *out, slice whole) {
    const messageHeader *h = m->is_light ? NULL : &m->header;
    switch (m->type) {
    case MESSAGE_PING:
    case MESSAGE_PONG:
    case MESSAGE_MEET: writeGossip(m, out, whole); break;
    case MESSAGE_FAIL: messageWriteFail(out, h, m->id); break;
    case MESSAGE_UPDATE: messageWriteUpdate(out, h, m->epoch, m->id, m->slots); break;
    case MESSAGE_PUBLISH:
    case MESSAGE_PUBLISH_SHARD:
        checkWithin(m->channel, whole);
        checkWithin(m->text, whole);
        messageWritePublish(out, (messageType)m->type, h, m->channel, m->text);
        break;
    case MESSAGE_MODULE:
        checkWithin(m->payload, whole);
        messageWriteModule(out, h, m->module_id, m->module_type, m->payload);
        break;
    case MESSAGE_AUTH_NACK: writeNack(m, out); break;
    default: messageWriteEmpty(out, (messageType)m->type, h);
    }
}

static void readAll(slice whole) {
    message m, again;
    reason why;
    str first = STR_EMPTY, second = STR_EMPTY;
    status st = messageRead(whole, &m, &why);
    if (st == ERR_SYNTAX) check(why.text[0] != 0);
    if (st != OK || m.type >= MESSAGE_TYPES) return;
    if (!m.is_light && m.header.ip.len == NODE_IP_MAX) m.header.ip.len--;
    writeAgain(&m, &first, whole);
    check(messageRead(strSlice(&first), &again, &why) == OK);
    check(again.type == m.type);
    check(again.is_light == m.is_light);
    check(again.is_short == m.is_short);
    writeAgain(&again, &second, strSlice(&first));
    check(sliceEqual(strSlice(&first), strSlice(&second)));
    strFree(&first);
    strFree(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t before = memUsed(), length;
    if (size < 1) return 0;
    bool as_it_is = data[0] & 1;
    /* A copy of its own, so that reading beyond its end is noticed. */
    char *copy = memDup(data + 1, size - 1);
    size--;
    if (!as_it_is && size >= MESSAGE_PEEK_BYTES) {
        memcpy(copy, MESSAGE_SIGNATURE, 4);
        storeBig32(copy + AT_LENGTH, (uint32_t)size);
        storeBig16(copy + AT_VERSION, MESSAGE_VERSION);
    }
    if (messagePeek(sliceMake(copy, size), &length) == OK && length <= size)
        readAll(sliceMake(copy, length));
    memFree(copy);
    check(memUsed() == before);
    return 0;
}

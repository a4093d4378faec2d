/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a Sentinel gets from others: hello messages, INFO of servers, replies about votes. Whatever
 * comes, in ticks of a failover, epochs stay within their bounds and never decrease, strangers are
 * few, an own id is nobody else's, and the state can be written and read.
 *
 * Input: texts with a zero byte between them; the first byte of each says what it is. */
#include <string.h>

#include "../c/sentinel/quiet_env.h"
#include "sentinel/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool needs_password;
static bool needsPassword(sentinelView *v) {
    (void)v;
    return needs_password;
}

static sentinelEnv env;

static void begin(sentinelView *v, sentinelInstance **primary) {
    sentinelInstance *other;
    env = quietEnv();
    env.needs_password = needsPassword;
    sentinelViewInit(v, &env, NULL);
    memcpy(v->id, "1111111111111111111111111111111111111111", SENTINEL_ID_LEN + 1);
    v->now_ms = 1000000;
    v->periods.tilt_trigger = 1000000;
    check(sentinelAddPrimary(v, SLICE("mym"), SLICE("10.0.0.2"), 6379, 2, primary) == OK);
    check(sentinelAddReplica(v, *primary, SLICE("10.0.0.3"), 6379, &other) == OK);
    check(sentinelAddPeer(v, *primary, SLICE("10.0.0.8"), 26379,
                          SLICE("2222222222222222222222222222222222222222"), &other) == OK);
}

static sentinelInstance *firstOf(const list *l) {
    listNode *node = listFirst(l);
    return node ? CONTAINER_OF(node, sentinelInstance, node) : NULL;
}

static void replyVote(sentinelView *v, sentinelInstance *peer, slice text) {
    sentinelReply r = {.kind = REPLY_ARRAY, .count = 3};
    r.items[0].kind = r.items[2].kind = REPLY_INTEGER;
    r.items[1].kind = REPLY_BULK;
    r.items[0].integer = 1;
    r.items[1].text = text;
    r.items[2].integer = (int64_t)v->current_epoch;
    sentinelAskReplied(v, peer, &r, text.len % 2);
}

/* What a text is: a letter before it. */
static void give(sentinelView *v, sentinelInstance *primary, char kind, slice text) {
    sentinelInstance *replica = firstOf(&primary->replicas), *peer = firstOf(&primary->sentinels);
    switch (kind) {
    case 'h': sentinelHello(v, text, false); break;
    case 'd': sentinelHello(v, text, true); break;
    case 'p': sentinelInfo(v, primary, text); break;
    case 'r':
        if (replica) sentinelInfo(v, replica, text);
        break;
    case 'v':
        if (peer) replyVote(v, peer, text);
        break;
    case 'c': sentinelVote(v, primary, v->current_epoch + 1, text); break;
    case 'o':
        if (!(primary->flags & INSTANCE_FAILOVER))
            (void)!sentinelOrderFailover(v, primary, text.len > 0); /* it may be impossible */
        break;
    default: v->now_ms += kind * 100; break;
    }
}

static void ignore(void *arg, slice line, bool is_default) {
    (void)is_default;
    (void)arg;
    check(line.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sentinelView v;
    sentinelInstance *primary;
    if (!size) return 0;
    logSetLevel(LOG_NOTHING);
    needs_password = data[0] & 1;
    slice rest = sliceMake(data + 1, size - 1);
    begin(&v, &primary);
    while (rest.len) {
        const char *end = memchr(rest.ptr, 0, rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        uint64_t epoch = v.current_epoch, config = primary->config_epoch;
        if (len) give(&v, primary, rest.ptr[0], sliceMake(rest.ptr + 1, len - 1));
        rest = sliceMake(rest.ptr + len + (end != NULL), rest.len - len - (end != NULL));
        v.now_ms += 100;
        sentinelTick(&v);
        check(v.current_epoch >= epoch);
        check(v.current_epoch <= SENTINEL_EPOCH_MAX);
        check(primary->config_epoch >= config);
        check(primary->strangers.count <= SENTINEL_STRANGERS_MAX);
        check(!sentinelFindPeer(primary, sliceOf(v.id)));
    }
    sentinelLinesWrite(&v, ignore, NULL);
    sentinelViewClear(&v);
    return 0;
}

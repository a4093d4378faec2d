/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending of invalidations. They are written in the protocol of the session that receives them: a
 * push in RESP3, a message of the channel __redis__:invalidate in RESP2, which only sessions with
 * subscriptions can read. */
#include <sys/uio.h>

#include "base/base.h"
#include "engine/deliver.h"
#include "pubsub/tracking.h"
#include "resp/resp.h"

session *invalidationTarget(tracker *t) {
    if (!t->redirect) return trackerProto(t, t->who) == 3 ? t->who : NULL;
    if (t->target) {
        bool can_read = t->target->proto == 3 || t->target->flags & SESSION_PUBSUB;
        return can_read ? t->target : NULL;
    }
    t->flags |= TRACK_BROKEN;
    if (t->who->proto == 3) {
        str push = STR_EMPTY;
        strAppendFormat(&push, ">2\r\n$21\r\ntracking-redir-broken\r\n:%llu\r\n",
                        (unsigned long long)t->redirect);
        sessionDeliver(t->who, DELIVER_PUSH, strSlice(&push));
        strFree(&push);
    }
    return NULL;
}

static void append(outbuf *out, int proto, const slice *keys, int64_t count) {
    hotCheck(proto == 2 || proto == 3);
    if (proto == 3) {
        respPush(out, 3, 2);
        respBulk(out, SLICE("invalidate"));
    } else {
        respArray(out, 3);
        respBulk(out, SLICE("message"));
        respBulk(out, SLICE("__redis__:invalidate"));
    }
    if (count < 0) {
        respNull(out, proto);
        return;
    }
    respArray(out, count);
    for (int64_t i = 0; i < count; i++) respBulk(out, keys[i]);
}

blob *invalidationEncode(int proto, const slice *keys, int64_t count) {
    hotCheck(proto == 2 || proto == 3);
    outbuf out;
    outbufInit(&out);
    append(&out, proto, keys, count);
    blob *b = blobNewMessage(outbufPending(&out));
    struct iovec parts[8];
    while (outbufPending(&out)) {
        size_t taken = 0;
        int filled = outbufIovecs(&out, parts, COUNT_OF(parts));
        for (int i = 0; i < filled; i++) {
            memcpy(b->bytes + b->len, parts[i].iov_base, parts[i].iov_len);
            b->len += parts[i].iov_len;
            taken += parts[i].iov_len;
        }
        outbufConsume(&out, taken);
    }
    outbufClear(&out);
    return b;
}

void invalidate(tracker *t, const slice *keys, int64_t count) {
    hotCheck(count >= -1);
    session *target = invalidationTarget(t);
    if (!target) return;
    blob *bytes = invalidationEncode(trackerProto(t, target), keys, count);
    sessionDeliver(target, DELIVER_PUSH, sliceMake(bytes->bytes, bytes->len));
    blobRelease(bytes);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages to other nodes that wait until replicas have confirmed the changes made before
 * (held_messages.h). The offset that a message waits for is known only at the end of its turn: a
 * transaction is propagated when it ends, after its PUBLISH.
 *
 * Invariant: in the list messages with a known offset come first, in ascending order; those whose
 * offset is not known yet follow. */
#include "cluster/held_messages.h"

#include "base/base.h"
#include "bus/bus.h"
#include "cluster/server_bus.h"
#include "cluster/server_map.h"
#include "cluster/slot_stats.h"
#include "ds/list.h"
#include "engine/hot.h"
#include "repl/role.h"

typedef enum heldKind { HELD_PUBLISH, HELD_PUBLISH_SHARD, HELD_MODULE } heldKind;

typedef struct heldMessage {
    listNode node;
    heldKind kind;
    int64_t offset; /* leaves when this one is confirmed; -1: not known yet */
    int64_t until_ms;
    str channel, text;  /* of HELD_MODULE: the id of the node, empty: all; the payload */
    uint64_t module_id; /* HELD_MODULE */
    uint8_t type;
} heldMessage;

static struct {
    list all;
    size_t bytes;
} held;

static size_t bytesOf(const heldMessage *m) { return sizeof(*m) + m->channel.len + m->text.len; }

static void removeMessage(heldMessage *m) {
    hotCheck(held.bytes >= bytesOf(m));
    held.bytes -= bytesOf(m);
    listRemove(&held.all, &m->node);
    strFree(&m->channel);
    strFree(&m->text);
    memFree(m);
}

/* NULL: nothing has to wait. */
static heldMessage *hold(heldKind kind, slice channel, slice text) {
    if (!held.all.head.next) listInit(&held.all);
    if (likely(!replQuorumIsOn()) && listIsEmpty(&held.all)) return NULL;
    heldMessage *m = memNew(heldMessage);
    *m = (heldMessage){.kind = kind,
                       .offset = -1,
                       .until_ms = clockMonoMs() + replQuorumTimeoutMs(),
                       .channel = strNew(channel),
                       .text = strNew(text)};
    listAppend(&held.all, &m->node);
    held.bytes += bytesOf(m);
    return m;
}

/* ------------------------------------------------------------------ sending */

static void publishNow(bool shard, slice channel, slice text) {
    busPublish(&serverBus, shard, channel, text);
    if (shard) slotStatsDelivered(channel, text);
}

static void sendNow(const heldMessage *m) {
    slice channel = strSlice(&m->channel), text = strSlice(&m->text);
    if (m->kind != HELD_MODULE) {
        publishNow(m->kind == HELD_PUBLISH_SHARD, channel, text);
        return;
    }
    const clusterNode *to = channel.len ? clusterMapFind(&serverMap, channel) : NULL;
    if (channel.len && !to) return;                                   /* it was forgotten */
    (void)busSendModule(&serverBus, to, m->module_id, m->type, text); /* nobody asks any more */
}

void heldMessagePublish(bool shard, slice channel, slice text) {
    if (!hold(shard ? HELD_PUBLISH_SHARD : HELD_PUBLISH, channel, text))
        publishNow(shard, channel, text);
}

bool heldMessageSend(const clusterNode *to, uint64_t module_id, uint8_t type, slice payload) {
    slice id = to ? sliceMake(to->id, NODE_ID_LEN) : SLICE("");
    heldMessage *m = hold(HELD_MODULE, id, payload);
    if (!m) return busSendModule(&serverBus, to, module_id, type, payload);
    m->module_id = module_id;
    m->type = type;
    return true;
}

static void noteOffsets(void) {
    int64_t offset = replLastChange();
    for (listNode *n = held.all.head.prev; n != &held.all.head; n = n->prev) {
        heldMessage *m = LIST_OWNER(n, heldMessage, node);
        if (m->offset >= 0) return;
        m->offset = offset;
    }
}

void heldMessagesRelease(void) {
    if (likely(!held.all.count)) return;
    if (!engineHot.current) noteOffsets();
    int64_t now_ms = clockMonoMs();
    size_t dropped = 0;
    while (!listIsEmpty(&held.all)) {
        heldMessage *m = LIST_OWNER(listFirst(&held.all), heldMessage, node);
        bool lost = replIsReplica() || now_ms >= m->until_ms ||
                    held.bytes > (size_t)replQuorumOutputLimit();
        if (!lost && (m->offset < 0 || !replIsConfirmed(m->offset))) break;
        if (lost) {
            dropped++;
        } else {
            sendNow(m);
        }
        removeMessage(m);
    }
    if (dropped)
        logWarning("Dropped %zu messages to other nodes that were not confirmed by enough replicas "
                   "(replication-quorum).",
                   dropped);
}

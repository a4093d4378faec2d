/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cluster's configuration file: one line per node and one with epochs. Although only the server
 * writes it, everything read is validated. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "base/random.h"
#include "cluster/nodes.h"
#include "engine/hot.h"
#include "io/file.h"

enum { FILE_MAX_BYTES = 64 << 20 };

/* ------------------------------------------------------------------ writing */

status nodesSave(const char *path, reason *why) {
    str text = STR_EMPTY;
    for (int i = 0; i < nodeCount(); i++) {
        if (nodeAt(i)->flags & NODE_HANDSHAKE) continue;
        nodeDescribe(&text, nodeAt(i), true);
        strAppendByte(&text, '\n');
    }
    strAppendFormat(&text, "vars currentEpoch %llu lastVoteEpoch %llu\n",
                    (unsigned long long)nodesEpoch(), (unsigned long long)nodesVoteEpoch());
    status st = fileReplace(path, strSlice(&text), 0644, why);
    strFree(&text);
    return st;
}

/* ------------------------------------------------------------------ reading */

/* Removes and returns the part of `rest` before `stop`; all of it if `stop` is missing. */
static slice takeUntil(slice *rest, char stop) {
    const char *end = rest->len ? memchr(rest->ptr, stop, rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    slice word = sliceMake(rest->ptr, len);
    size_t used = end ? len + 1 : len;
    *rest = sliceMake(rest->ptr + used, rest->len - used);
    return word;
}

static bool isId(slice text) {
    if (text.len != NODE_ID_LEN) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!memchr("0123456789abcdef", text.ptr[i], 16)) return false;
    }
    return true;
}

static bool parsePort(slice text, int *out) {
    int64_t port;
    if (!numberParseInt(text, &port) || port < 0 || port > 65535) return false;
    *out = (int)port;
    return true;
}

static void setText(str *to, slice text) {
    strFree(to);
    *to = strNew(text);
}

/* "ip:port@busport,hostname,name=value,..."; unknown names are ignored. */
static bool parseAddress(slice text, clusterNode *n) {
    slice host = takeUntil(&text, ','), hostname = takeUntil(&text, ',');
    slice before_bus = takeUntil(&host, '@');
    size_t colon = before_bus.len;
    while (colon > 0 && before_bus.ptr[colon - 1] != ':') colon--;
    if (colon == 0) return false;
    slice port = sliceMake(before_bus.ptr + colon, before_bus.len - colon);
    if (!parsePort(port, &n->port) || !parsePort(host, &n->bus_port)) return false;
    setText(&n->ip, sliceMake(before_bus.ptr, colon - 1));
    setText(&n->hostname, hostname);
    while (text.len) {
        slice value = takeUntil(&text, ','), name = takeUntil(&value, '=');
        if (sliceEqual(name, SLICE("shard-id"))) {
            if (!isId(value)) return false;
            memcpy(n->shard_id, value.ptr, NODE_ID_LEN);
        } else if (sliceEqual(name, SLICE("nodename"))) {
            setText(&n->human_name, value);
        } else if (sliceEqual(name, SLICE("tls-port")) && !parsePort(value, &n->tls_port)) {
            return false;
        }
    }
    return true;
}

static bool parseFlags(slice text, uint32_t *out) {
    static const struct {
        const char *word;
        uint32_t flag;
    } words[] = {
        {"myself", NODE_MYSELF},
        {"master", NODE_PRIMARY},
        {"slave", NODE_REPLICA},
        {"fail?", NODE_MAYBE_FAILED},
        {"fail", NODE_FAILED},
        {"handshake", NODE_HANDSHAKE},
        {"noaddr", NODE_NO_ADDRESS},
        {"nofailover", NODE_NO_FAILOVER},
        {"noflags", 0},
    };
    *out = 0;
    while (text.len) {
        slice word = takeUntil(&text, ',');
        size_t i = 0;
        while (i < COUNT_OF(words) && !sliceIs(word, words[i].word)) i++;
        if (i == COUNT_OF(words)) return false;
        *out |= words[i].flag;
    }
    return true;
}

/* "7" or "7-9". Slots being migrated ("[7->-id]") keep their owner. */
static bool parseSlots(slice text, clusterNode *n) {
    while (text.len) {
        slice range = takeUntil(&text, ' ');
        if (range.len && range.ptr[0] == '[') {
            logNotice("Cluster config: %.*s is not taken up again", (int)range.len, range.ptr);
            continue;
        }
        int64_t first, last;
        slice start = takeUntil(&range, '-');
        if (!numberParseInt(start, &first)) return false;
        last = first;
        if (range.len && !numberParseInt(range, &last)) return false;
        if (first < 0 || last >= SLOT_COUNT || first > last) return false;
        for (int64_t slot = first; slot <= last; slot++) slotSetOwner((int)slot, n);
    }
    return true;
}

/* The node with that id; added if it is not known yet. */
static clusterNode *findOrAddNode(slice id) {
    clusterNode *n = nodeFind(id);
    return n ? n : nodeAdd(id.ptr);
}

/* Sets the id of this node to that in the file. */
static clusterNode *setMyId(slice id) {
    clusterNode *myself = nodeMyself();
    memcpy(myself->id, id.ptr, NODE_ID_LEN);
    return myself;
}

/* Parses the fields after the node's id. */
static bool parseFields(slice rest, slice address, uint32_t flags, clusterNode *n) {
    slice primary = takeUntil(&rest, ' ');
    uint64_t epoch;
    if (!parseAddress(address, n)) return false;
    if (!sliceEqual(primary, SLICE("-")) && !isId(primary)) return false;
    if (!numberParseInt(takeUntil(&rest, ' '), &n->ping_sent_ms)) return false;
    if (!numberParseInt(takeUntil(&rest, ' '), &n->pong_ms)) return false;
    if (!numberParseUint(takeUntil(&rest, ' '), &epoch)) return false;
    (void)takeUntil(&rest, ' '); /* the link state */
    /* Ping times are restarted with the current time. */
    if (n->ping_sent_ms) n->ping_sent_ms = engineHot.now_ms;
    if (n->pong_ms) n->pong_ms = engineHot.now_ms;
    n->flags = flags;
    n->epoch = epoch;
    n->primary = primary.len == NODE_ID_LEN ? findOrAddNode(primary) : NULL;
    return parseSlots(rest, n);
}

static bool parseLine(slice line) {
    slice id = takeUntil(&line, ' ');
    uint32_t flags;
    if (sliceEqual(id, SLICE("vars"))) {
        uint64_t current, vote;
        slice words[4];
        for (int i = 0; i < 4; i++) words[i] = takeUntil(&line, ' ');
        if (!sliceEqual(words[0], SLICE("currentEpoch")) || !numberParseUint(words[1], &current))
            return false;
        if (!sliceEqual(words[2], SLICE("lastVoteEpoch")) || !numberParseUint(words[3], &vote))
            return false;
        nodesSetEpochs(current, vote);
        return true;
    }
    slice address = takeUntil(&line, ' ');
    if (!isId(id) || !parseFlags(takeUntil(&line, ' '), &flags)) return false;
    return parseFields(line, address, flags, flags & NODE_MYSELF ? setMyId(id) : findOrAddNode(id));
}

/* The line of this node is parsed before others refer to its id. */
static bool isOwnLine(slice line) {
    takeUntil(&line, ' ');
    takeUntil(&line, ' ');
    slice flags = takeUntil(&line, ' ');
    return flags.len >= 6 && memcmp(flags.ptr, "myself", 6) == 0;
}

static bool parseAll(slice text, bool own) {
    while (text.len) {
        slice line = takeUntil(&text, '\n');
        if (line.len && isOwnLine(line) == own && !parseLine(line)) return false;
    }
    return true;
}

status nodesLoad(const char *path, bool *found, reason *why) {
    str text = STR_EMPTY;
    status st = fileReadAll(path, FILE_MAX_BYTES, &text, why);
    *found = st != ERR_NOT_FOUND;
    if (st == ERR_NOT_FOUND) return OK;
    if (st == OK && text.len == 0) {
        strFree(&text);
        *found = false; /* created but never written */
        return OK;
    }
    if (st == OK && !(parseAll(strSlice(&text), true) && parseAll(strSlice(&text), false))) {
        st = reasonSet(why, ERR_SYNTAX,
                       "Unrecoverable error: corrupted cluster config file \"%s\".", path);
    }
    strFree(&text);
    if (st != OK) return st;
    uint64_t epoch = nodesEpoch();
    for (int i = 0; i < nodeCount(); i++) {
        if (nodeAt(i)->epoch > epoch) epoch = nodeAt(i)->epoch;
    }
    nodesSetEpochs(epoch, nodesVoteEpoch());
    return OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints a map as the text of the configuration file, and parses such a text: one line per node,
 * and a last line `vars` with epochs, the set of voters and the ids of forgotten nodes. A file may
 * be damaged or edited by hand, so everything that is read is validated; the first invalid line is
 * reported. */
#include <limits.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/number.h"
#include "bus/map.h"
#include "bus/map_blacklist.h"
#include "bus/valid.h"
#include "bus/voters.h"

/* NODE_HAS_LINE is set while a text is read, for nodes that have a line in it. */
enum { NODE_HAS_LINE = 1u << 30, SHOWN_BYTES_MAX = 200 };

typedef struct reading {
    clusterMap *map;
    bool tls;
    int64_t now_ms;
} reading;

/* ------------------------------------------------------------------ writing */

static void printWithEpoch(str *out, const char *name, const char *id, uint64_t epoch) {
    if (id[0])
        strAppendFormat(out, " %sFor %.*s %sEpoch %llu", name, NODE_ID_LEN, id, name,
                        (unsigned long long)epoch);
}

/* Valkey skips variables that it does not know. */
static void printVoters(str *out, const voterSet *set) {
    if (!set->stamp.term) return;
    strAppendFormat(out, " votersTerm %llu votersVersion %u votersRule %d",
                    (unsigned long long)set->stamp.term, set->stamp.version, (int)set->rule);
    for (int i = 0; i < set->count; i++)
        strAppendFormat(out, "%s%.*s", i ? "," : " voters ", NODE_ID_LEN, set->ids[i]);
}

static void printForgotten(str *out, const clusterMap *m) {
    int64_t left_ms;
    bool any = false;
    for (int i = 0; i < m->forbidden_count; i++) {
        slice id = sliceMake(clusterMapForbidden(m, i, 0, &left_ms), NODE_ID_LEN);
        if (clusterMapFind(m, id)) continue;
        strAppendFormat(out, "%s%.*s", any ? "," : " forgotten ", NODE_ID_LEN, id.ptr);
        any = true;
    }
}

void clusterMapPrint(const clusterMap *m, bool tls, str *out) {
    for (int i = 0; i < m->node_count; i++) {
        if (m->nodes[i]->flags & NODE_HANDSHAKE) continue;
        clusterNodePrint(out, m, m->nodes[i], tls);
        strAppendByte(out, '\n');
    }
    strAppendFormat(out, "vars currentEpoch %llu lastVoteEpoch %llu",
                    (unsigned long long)m->current_epoch, (unsigned long long)m->vote_epoch);
    printWithEpoch(out, "held", m->held_for, m->held_epoch);
    printWithEpoch(out, "paused", m->paused_for, m->paused_epoch);
    printVoters(out, &m->voters);
    printForgotten(out, m);
    strAppendByte(out, '\n');
}

/* ------------------------------------------------------------------ words */

/* Removes and returns the part of `rest` before `stop`; all of it if `stop` is missing. */
static slice takeUntil(slice *rest, char stop) {
    const char *end = rest->len ? memchr(rest->ptr, stop, rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    slice word = sliceMake(rest->ptr, len);
    size_t used = end ? len + 1 : len;
    *rest = sliceMake(rest->ptr + used, rest->len - used);
    return word;
}

static bool parsePort(slice text, int *out) {
    int64_t port;
    if (!numberParseInt(text, &port) || port < 0 || port > 65535) return false;
    *out = (int)port;
    return true;
}

static bool parsePriority(slice text, int *out) {
    int64_t priority;
    if (!numberParseInt(text, &priority) || priority < 0 || priority > INT_MAX) return false;
    *out = (int)priority;
    return true;
}

static bool setText(reading *r, str *to, slice text, bool valid) {
    if (valid) clusterMapSetText(r->map, to, text);
    return valid;
}

/* ------------------------------------------------------------------ the address of a node */

/* A field "name=value" after the address. */
static bool parseField(reading *r, slice name, slice value, clusterNode *n) {
    if (sliceIs(name, "tls-port")) return parsePort(value, &n->tls_port);
    if (sliceIs(name, "tcp-port")) return parsePort(value, &n->tcp_port);
    if (sliceIs(name, "client-tcp-port")) return parsePort(value, &n->client_tcp_port);
    if (sliceIs(name, "client-tls-port")) return parsePort(value, &n->client_tls_port);
    if (sliceIs(name, "replica-priority")) return parsePriority(value, &n->replica_priority);
    if (sliceIs(name, "client-ipv4"))
        return setText(r, &n->client_ipv4, value, validIsAddress(AF_INET, value));
    if (sliceIs(name, "client-ipv6"))
        return setText(r, &n->client_ipv6, value, validIsAddress(AF_INET6, value));
    if (sliceIs(name, "availability-zone"))
        return setText(r, &n->availability_zone, value, validIsFileText(value));
    if (sliceIs(name, "nodename")) return setText(r, &n->human_name, value, validIsPlain(value));
    if (!sliceIs(name, "shard-id") || !validIsId(value)) return false;
    clusterMapSetShard(r->map, n, value.ptr);
    return true;
}

/* "ip:port@busport,hostname,name=value,...". Without a bus port it is 10000 above the port. */
static bool parseAddress(reading *r, slice text, clusterNode *n) {
    slice host = takeUntil(&text, ','), hostname = takeUntil(&text, ',');
    slice before_bus = takeUntil(&host, '@');
    size_t colon = before_bus.len;
    while (colon > 0 && before_bus.ptr[colon - 1] != ':') colon--;
    if (colon == 0) return false;
    slice port = sliceMake(before_bus.ptr + colon, before_bus.len - colon);
    slice ip = sliceMake(before_bus.ptr, colon - 1);
    int first;
    if (!parsePort(port, &first)) return false;
    *(r->tls ? &n->tls_port : &n->tcp_port) = first;
    if (host.len ? !parsePort(host, &n->bus_port) : first > 65535 - CLUSTER_BUS_PORT_OFFSET)
        return false;
    if (!host.len) n->bus_port = first + CLUSTER_BUS_PORT_OFFSET;
    if (!setText(r, &n->ip, ip, validIsIp(ip))) return false;
    if (!setText(r, &n->hostname, hostname, validIsHostname(hostname))) return false;
    while (text.len) {
        slice value = takeUntil(&text, ','), name = takeUntil(&value, '=');
        if (!parseField(r, name, value, n)) return false;
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
        {"primary", NODE_PRIMARY},
        {"slave", NODE_REPLICA},
        {"replica", NODE_REPLICA},
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
    return !(*out & NODE_PRIMARY && *out & NODE_REPLICA);
}

/* ------------------------------------------------------------------ the rest of a node's line */

/* The node with that id; added if it is not known yet. */
static clusterNode *findOrAdd(reading *r, slice id) {
    clusterNode *n = clusterMapFind(r->map, id);
    return n ? n : clusterMapAdd(r->map, id.ptr, r->now_ms);
}

/* "[7->-id]": this node gives the slot to another one; "[7-<-id]": it gets it. */
static bool parseOpenSlot(reading *r, slice text, const clusterNode *n) {
    int64_t slot;
    text = sliceMake(text.ptr + 1, text.len - 1);
    slice number = takeUntil(&text, '-');
    if (!numberParseInt(number, &slot) || slot < 0 || slot >= SLOT_COUNT) return false;
    if (text.len != NODE_ID_LEN + 3 || text.ptr[1] != '-' || text.ptr[text.len - 1] != ']')
        return false;
    if (!memchr("<>", text.ptr[0], 2)) return false;
    slice id = sliceMake(text.ptr + 2, NODE_ID_LEN);
    if (!validIsId(id) || n != r->map->myself || sliceEqual(id, clusterNodeId(n))) return false;
    enum openKind kind = text.ptr[0] == '>' ? SLOT_MIGRATING : SLOT_IMPORTING;
    clusterMapSetOpenSlot(r->map, kind, (int)slot, findOrAdd(r, id));
    return true;
}

/* "7", "7-9", or a slot that is being moved. */
static bool parseSlots(reading *r, slice text, clusterNode *n) {
    while (text.len) {
        slice range = takeUntil(&text, ' ');
        if (!range.len) continue;
        if (range.ptr[0] == '[') {
            if (!parseOpenSlot(r, range, n)) return false;
            continue;
        }
        int64_t first, last;
        slice start = takeUntil(&range, '-');
        if (!numberParseInt(start, &first)) return false;
        last = first;
        if (range.len && !numberParseInt(range, &last)) return false;
        if (first < 0 || last >= SLOT_COUNT || first > last) return false;
        for (int64_t slot = first; slot <= last; slot++) clusterMapSetOwner(r->map, (int)slot, n);
    }
    return true;
}

static bool parsePrimary(reading *r, slice id, uint32_t flags, clusterNode *n) {
    if (sliceEqual(id, SLICE("-"))) id = SLICE("");
    if (id.len && (!validIsId(id) || !(flags & NODE_REPLICA))) return false;
    if (sliceEqual(id, clusterNodeId(n))) return false;
    if (flags & NODE_REPLICA) clusterMapSetPrimary(r->map, n, id.len ? findOrAdd(r, id) : NULL);
    return true;
}

/* Parses the fields after the flags. */
static bool parseFields(reading *r, slice rest, slice address, uint32_t flags, clusterNode *n) {
    slice primary = takeUntil(&rest, ' ');
    uint64_t epoch;
    if (!parseAddress(r, address, n)) return false;
    /* Own shard ids of replicas are replaced by their primary's when all lines have been read. */
    char shard_id[NODE_ID_LEN];
    memcpy(shard_id, n->shard_id, NODE_ID_LEN);
    if (!parsePrimary(r, primary, flags, n)) return false;
    clusterMapSetShard(r->map, n, shard_id);
    if (!numberParseInt(takeUntil(&rest, ' '), &n->ping_sent_ms)) return false;
    if (!numberParseInt(takeUntil(&rest, ' '), &n->pong_ms)) return false;
    if (!numberParseUint(takeUntil(&rest, ' '), &epoch)) return false;
    slice link = takeUntil(&rest, ' ');
    if (!sliceIs(link, "connected") && !sliceIs(link, "disconnected")) return false;
    /* Ping times are restarted with the current time. */
    if (n->ping_sent_ms) n->ping_sent_ms = r->now_ms;
    if (n->pong_ms) n->pong_ms = r->now_ms;
    clusterMapSetFlags(r->map, n, flags & ~(uint32_t)(NODE_PRIMARY | NODE_REPLICA | NODE_MYSELF),
                       0);
    if (n->flags & NODE_FAILED) n->failed_ms = r->now_ms;
    clusterMapSetNodeEpoch(r->map, n, epoch);
    return parseSlots(r, rest, n);
}

/* ------------------------------------------------------------------ lines */

/* "id,id,...", in order. */
static bool parseMembers(slice text, voterSet *set) {
    size_t count = (text.len + 1) / (NODE_ID_LEN + 1);
    if (text.len != count * (NODE_ID_LEN + 1) - 1) return false;
    set->ids = memAlloc(count * NODE_ID_LEN);
    set->count = (int)count;
    for (size_t i = 0; i < count; i++) {
        slice id = takeUntil(&text, ',');
        if (!validIsId(id)) return false;
        memcpy(set->ids[i], id.ptr, NODE_ID_LEN);
        if (i && memcmp(set->ids[i - 1], set->ids[i], NODE_ID_LEN) >= 0) return false;
    }
    return text.len == 0;
}

static bool parseVoters(reading *r, uint64_t term, uint64_t version, uint64_t rule, slice members) {
    voterSet set = {.stamp = {term, (uint32_t)version}, .rule = (voterRule)rule};
    bool valid = rule < VOTER_RULES && version <= UINT32_MAX && term <= r->map->current_epoch;
    valid = valid && (rule == VOTERS_OWNERS) == (members.len == 0);
    if (valid && members.len) valid = parseMembers(members, &set);
    if (valid && term) (void)votersInstall(r->map, &set);
    memFree(set.ids);
    return valid;
}

/* "id,id,...": they may be added again, but not because they ask. */
static bool parseForgotten(reading *r, slice text) {
    while (text.len) {
        slice id = takeUntil(&text, ',');
        if (!validIsId(id)) return false;
        clusterMapForbid(r->map, id, r->now_ms);
    }
    return true;
}

static bool parseVars(reading *r, slice line) {
    enum { CURRENT, VOTE, HELD, PAUSED, TERM, VERSION, RULE, EPOCHS };
    static const char *const names[EPOCHS] = {"currentEpoch", "lastVoteEpoch", "heldEpoch",
                                              "pausedEpoch",  "votersTerm",    "votersVersion",
                                              "votersRule"};
    uint64_t epochs[EPOCHS] = {0};
    slice ids[2] = {SLICE(""), SLICE("")}, members = SLICE("");
    while (line.len) {
        slice name = takeUntil(&line, ' '), value = takeUntil(&line, ' ');
        int i = 0;
        while (i < EPOCHS && !sliceIs(name, names[i])) i++;
        if (i < EPOCHS) {
            if (!numberParseUint(value, &epochs[i])) return false;
        } else if (sliceIs(name, "heldFor") || sliceIs(name, "pausedFor")) {
            if (!validIsId(value)) return false;
            ids[sliceIs(name, "pausedFor")] = value;
        } else if (sliceIs(name, "voters")) {
            members = value;
        } else if (sliceIs(name, "forgotten")) {
            if (!parseForgotten(r, value)) return false;
        } else if (!sliceIs(name, "crc64")) { /* file_choice.h has checked it */
            logNotice("Skipping unknown cluster config variable '%.*s'", (int)name.len, name.ptr);
        }
    }
    uint64_t current = epochs[CURRENT];
    if (current < r->map->current_epoch || epochs[VOTE] < r->map->vote_epoch) return false;
    if (epochs[HELD] > current || epochs[PAUSED] > current) return false;
    clusterMapSetEpochs(r->map, current, epochs[VOTE]);
    if (ids[0].len) clusterMapSetHold(r->map, ids[0].ptr, epochs[HELD]);
    if (ids[1].len) clusterMapSetPause(r->map, ids[1].ptr, epochs[PAUSED]);
    return parseVoters(r, epochs[TERM], epochs[VERSION], epochs[RULE], members);
}

/* The line of this node is parsed before others refer to its id. */
static bool isOwnLine(slice line) {
    takeUntil(&line, ' ');
    takeUntil(&line, ' ');
    slice flags = takeUntil(&line, ' ');
    return flags.len >= 6 && memcmp(flags.ptr, "myself", 6) == 0;
}

static bool parseLine(reading *r, slice line) {
    bool own = isOwnLine(line);
    slice id = takeUntil(&line, ' ');
    if (sliceIs(id, "vars")) return parseVars(r, line);
    slice address = takeUntil(&line, ' ');
    uint32_t flags;
    if (!validIsId(id) || !parseFlags(takeUntil(&line, ' '), &flags)) return false;
    if (own != ((flags & NODE_MYSELF) != 0)) return false;
    clusterNode *n = own ? r->map->myself : findOrAdd(r, id);
    if (n->flags & NODE_HAS_LINE) {
        logWarning("Duplicate nodeid detected: %.*s", NODE_ID_LEN, id.ptr);
        return false;
    }
    if (own) clusterMapSetId(r->map, n, id.ptr);
    n->flags |= NODE_HAS_LINE;
    return parseFields(r, line, address, flags, n);
}

static status parseAll(reading *r, slice text, bool own, reason *why) {
    for (int number = 1; text.len; number++) {
        slice line = takeUntil(&text, '\n');
        if (!line.len || isOwnLine(line) != own || parseLine(r, line)) continue;
        str shown = STR_EMPTY;
        strAppendQuoted(&shown, sliceMake(line.ptr, sizeMin(line.len, SHOWN_BYTES_MAX)));
        status st = reasonSet(why, ERR_SYNTAX, "%s (line %d)", strText(&shown), number);
        strFree(&shown);
        return st;
    }
    return OK;
}

/* Applies what depends on all lines: nodes that have none are removed, replicas belong to the shard
 * of their primary. */
static void settle(clusterMap *m) {
    for (int i = m->node_count - 1; i > 0; i--) {
        if (!(m->nodes[i]->flags & NODE_HAS_LINE)) clusterMapRemove(m, m->nodes[i]);
    }
    for (int i = 0; i < m->node_count; i++) {
        clusterNode *n = m->nodes[i];
        n->flags &= ~(uint32_t)NODE_HAS_LINE;
        if (!n->primary || !memcmp(n->shard_id, n->primary->shard_id, NODE_ID_LEN)) continue;
        logNotice("Node %.40s has a different shard id (%.40s) than its primary %.40s (%.40s). "
                  "Updating replica's shard id to match primary's shard id.",
                  n->id, n->shard_id, n->primary->id, n->primary->shard_id);
        clusterMapSetShard(m, n, n->primary->shard_id);
    }
    clusterMapSetEpochs(m, clusterMapGreatestEpoch(m), m->vote_epoch);
}

status clusterMapParse(clusterMap *m, slice text, bool tls, int64_t now_ms, reason *why) {
    reading r = {m, tls, now_ms};
    clusterMapInit(m, now_ms);
    status st = parseAll(&r, text, true, why);
    if (st == OK && !(m->myself->flags & NODE_HAS_LINE))
        st = reasonSet(why, ERR_SYNTAX, "no line with the flag 'myself'");
    if (st == OK) st = parseAll(&r, text, false, why);
    if (st == OK) settle(m);
    if (st != OK) clusterMapClear(m);
    return st;
}

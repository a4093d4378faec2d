/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes of a cluster (cluster_nodes.h). */
#include "tools/cli/cluster_nodes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <valkey/valkey.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/number.h"
#include "tools/server_uri.h"

enum { FIELDS_BEFORE_SLOTS = 8, PORT_MAX = 65535 };

/* ------------------------------------------------------------------ life */

clusterNode *clusterNodeNew(const char *host, int port, int bus_port) {
    clusterNode *node = memNew(clusterNode);
    strAppendText(&node->host, host);
    node->port = port;
    node->bus_port = bus_port;
    return node;
}

void clusterNodeFree(clusterNode *node) {
    if (!node) return;
    if (node->link) valkeyFree(node->link);
    strFree(&node->host);
    strFree(&node->flags);
    memFree(node->migrating.list);
    memFree(node->importing.list);
    memFree(node);
}

void clusterNodesAdd(clusterNodes *nodes, clusterNode *node) {
    nodes->list = memRealloc(nodes->list, sizeof(*nodes->list) * ((size_t)nodes->count + 1));
    nodes->list[nodes->count++] = node;
}

void clusterNodesClear(clusterNodes *nodes) {
    for (int i = 0; i < nodes->count; i++) clusterNodeFree(nodes->list[i]);
    memFree(nodes->list);
    *nodes = (clusterNodes){0};
}

static void openSlotsAdd(openSlots *slots, int slot, const char *peer) {
    slots->list = memRealloc(slots->list, sizeof(*slots->list) * ((size_t)slots->count + 1));
    openSlot *added = &slots->list[slots->count++];
    *added = (openSlot){.slot = slot};
    memcpy(added->peer, peer, NODE_ID_MAX);
}

/* ------------------------------------------------------------------ parsing */

static bool parsePort(slice text, int *out) {
    int64_t number;
    if (!numberParseInt(text, &number) || number < 0 || number > PORT_MAX) return false;
    *out = (int)number;
    return true;
}

static const char *findLast(slice text, char wanted) {
    for (size_t i = text.len; i > 0; i--) {
        if (text.ptr[i - 1] == wanted) return &text.ptr[i - 1];
    }
    return NULL;
}

/* "host:port@busport" or "host:port"; `host` borrows from the text. */
static bool splitAddress(slice text, slice *host, int *port, int *bus_port) {
    const char *at = findLast(text, '@');
    int bus = 0;
    if (at) {
        size_t before = (size_t)(at - text.ptr);
        if (!parsePort(sliceMake(at + 1, text.len - before - 1), &bus)) return false;
        text.len = before;
    }
    const char *colon = findLast(text, ':');
    if (!colon) return false;
    size_t len = (size_t)(colon - text.ptr);
    int number;
    if (!parsePort(sliceMake(colon + 1, text.len - len - 1), &number)) return false;
    *host = sliceMake(text.ptr, len);
    *port = number;
    *bus_port = bus;
    return true;
}

bool clusterNodeParseAddress(const char *text, str *host, int *port, int *bus_port) {
    slice address = sliceOf(text);
    const char *at = findLast(address, '@');
    if (at) address.len = (size_t)(at - text);
    const char *colon = findLast(address, ':');
    if (!colon) return false;
    *port = atoi(colon + 1);
    *bus_port = at ? atoi(at + 1) : 0;
    strClear(host);
    strAppendSlice(host, serverHostBare(sliceMake(text, (size_t)(colon - text))));
    return true;
}

/* Takes the text up to `separator`, and the separator, from the start of `rest`. */
static slice takeWord(slice *rest, char separator) {
    const char *end = memchr(rest->ptr, separator, rest->len);
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len;
    slice word = sliceMake(rest->ptr, len);
    size_t taken = end ? len + 1 : len;
    rest->ptr += taken;
    rest->len -= taken;
    return word;
}

static bool parseId(slice text, char *out) {
    if (text.len != NODE_ID_MAX) return false;
    memcpy(out, text.ptr, NODE_ID_MAX);
    out[NODE_ID_MAX] = 0;
    return true;
}

static bool parseSlot(slice text, int *out) {
    int64_t number;
    if (!numberParseInt(text, &number) || number < 0 || number >= SLOT_COUNT) return false;
    *out = (int)number;
    return true;
}

/* "[5->-id]" or "[5-<-id]" */
static bool parseOpenSlot(slice text, clusterNode *node) {
    const size_t around = strlen("[->-]") + NODE_ID_MAX;
    if (text.len <= around || text.ptr[text.len - 1] != ']') return false;
    int slot;
    const char *arrow = text.ptr + text.len - 1 - NODE_ID_MAX - 3;
    if (!parseSlot(sliceMake(text.ptr + 1, text.len - around), &slot)) return false;
    if (!memcmp(arrow, "->-", 3)) {
        openSlotsAdd(&node->migrating, slot, arrow + 3);
    } else if (!memcmp(arrow, "-<-", 3)) {
        openSlotsAdd(&node->importing, slot, arrow + 3);
    } else {
        return false;
    }
    return true;
}

/* A slot, a range or an open slot. */
static bool parseSlots(slice text, clusterNode *node) {
    if (text.len && text.ptr[0] == '[') return parseOpenSlot(text, node);
    slice rest = text;
    slice start = takeWord(&rest, '-');
    int first, last;
    if (!parseSlot(start, &first)) return false;
    last = first;
    if (start.len < text.len && (!parseSlot(rest, &last) || last < first)) return false;
    for (int slot = first; slot <= last; slot++) slotSetAdd(&node->slots, slot);
    return true;
}

static void parseFlags(slice text, clusterNode *out, bool *is_myself) {
    bool no_address = false;
    *is_myself = false;
    while (text.len) {
        slice flag = takeWord(&text, ',');
        if (sliceIs(flag, "myself")) {
            *is_myself = true;
            continue;
        }
        if (sliceIs(flag, "slave")) out->is_replica = true;
        if (sliceIs(flag, "noaddr") || sliceIs(flag, "handshake")) no_address = true;
        if (out->flags.len) strAppendByte(&out->flags, ',');
        strAppendSlice(&out->flags, flag);
    }
    out->has_address = !no_address;
}

bool clusterNodeParseLine(slice line, clusterNode *out, bool *is_myself) {
    slice field[FIELDS_BEFORE_SLOTS];
    slice rest = line;
    for (int i = 0; i < FIELDS_BEFORE_SLOTS; i++) {
        field[i] = takeWord(&rest, ' ');
        if (!field[i].len) return false;
    }
    slice address = field[1], host;
    address = takeWord(&address, ','); /* host name and other values follow */
    if (!parseId(field[0], out->id)) return false;
    if (!splitAddress(address, &host, &out->port, &out->bus_port)) return false;
    strClear(&out->host);
    strAppendSlice(&out->host, host);
    parseFlags(field[2], out, is_myself);
    if (field[3].len != 1 && !parseId(field[3], out->primary)) return false;
    if (!numberParseUint(field[6], &out->epoch)) return false;
    while (rest.len) {
        if (!parseSlots(takeWord(&rest, ' '), out)) return false;
    }
    return true;
}

/* Moves what was parsed into the node that was asked, which keeps host, port and connection. */
static void mergeSelf(clusterNode *self, clusterNode *parsed) {
    strFree(&parsed->host);
    parsed->host = self->host;
    parsed->port = self->port;
    if (self->bus_port) parsed->bus_port = self->bus_port;
    parsed->link = self->link;
    strFree(&self->flags);
    memFree(self->migrating.list);
    memFree(self->importing.list);
    *self = *parsed;
    memFree(parsed);
}

bool clusterNodesParse(slice reply, clusterNode *self, clusterNodes *others) {
    bool found = false;
    while (reply.len) {
        slice line = takeWord(&reply, '\n');
        if (!line.len) continue;
        bool is_myself;
        clusterNode *node = clusterNodeNew("", 0, 0);
        if (!clusterNodeParseLine(line, node, &is_myself)) {
            clusterNodeFree(node);
            return false;
        }
        if (!is_myself) {
            clusterNodesAdd(others, node);
        } else if (found) {
            clusterNodeFree(node);
            return false;
        } else {
            found = true;
            mergeSelf(self, node);
        }
    }
    return found;
}

/* ------------------------------------------------------------------ signatures */

static int compareLines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool clusterNodesSignature(slice reply, str *out) {
    char **lines = NULL;
    size_t count = 0;
    bool valid = true;
    while (reply.len && valid) {
        slice line = takeWord(&reply, '\n');
        if (!line.len) continue;
        bool is_myself;
        clusterNode *node = clusterNodeNew("", 0, 0);
        valid = clusterNodeParseLine(line, node, &is_myself);
        if (valid && node->slots.count) {
            str text = STR_EMPTY;
            strAppendFormat(&text, "%s:", node->id);
            slotSetPrint(&node->slots, &text);
            lines = memRealloc(lines, (count + 1) * sizeof(*lines));
            lines[count++] = text.ptr;
        }
        clusterNodeFree(node);
    }
    if (count) qsort(lines, count, sizeof(*lines), compareLines);
    for (size_t i = 0; i < count; i++) {
        if (valid) strAppendFormat(out, "%s\n", lines[i]);
        memFree(lines[i]);
    }
    memFree(lines);
    return valid;
}

/* ------------------------------------------------------------------ searching */

clusterNode *clusterNodesFind(const clusterNodes *nodes, const char *prefix) {
    size_t len = strlen(prefix);
    for (int i = 0; i < nodes->count; i++) {
        if (!strncasecmp(nodes->list[i]->id, prefix, len)) return nodes->list[i];
    }
    return NULL;
}

clusterNode *clusterNodesFindId(const clusterNodes *nodes, const char *id) {
    for (int i = 0; i < nodes->count; i++) {
        if (!strcasecmp(nodes->list[i]->id, id)) return nodes->list[i];
    }
    return NULL;
}

void clusterNodesCountReplicas(clusterNodes *nodes) {
    for (int i = 0; i < nodes->count; i++) nodes->list[i]->replica_count = 0;
    for (int i = 0; i < nodes->count; i++) {
        if (!nodes->list[i]->is_replica) continue;
        clusterNode *primary = clusterNodesFindId(nodes, nodes->list[i]->primary);
        if (primary) primary->replica_count++;
    }
}

/* ------------------------------------------------------------------ printing */

void clusterNodeDescribe(const clusterNode *node, int indent, bool with_slots, str *out) {
    strAppendFormat(out, "%*s%c: %s %s:%d\n", indent, "", node->is_replica ? 'S' : 'M', node->id,
                    strText(&node->host), node->port);
    if (with_slots) {
        strAppendFormat(out, "%*s   slots:", indent, "");
        slotSetPrint(&node->slots, out);
        strAppendFormat(out, " (%d slots) %s\n", node->slots.count, strText(&node->flags));
    }
    if (node->is_replica) {
        strAppendFormat(out, "%*s   replicates %s\n", indent, "", node->primary);
    } else if (node->replica_count) {
        strAppendFormat(out, "%*s   %d additional replica(s)\n", indent, "", node->replica_count);
    }
}

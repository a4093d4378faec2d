/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The servers under test; see the header. */
#include "tools/benchmark/target.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/hash.h"

const char *targetName(const endpoint *at) {
    static _Thread_local char name[256];
    if (at->socket) return at->socket;
    snprintf(name, sizeof(name), "%s:%d", at->host, at->port);
    return name;
}

static void cannotConnect(const endpoint *at, const char *why) {
    fprintf(stderr, "Could not connect to server at %s: %s\n", targetName(at), why);
    exit(1);
}

/* A handshake that failed, or a connection that was lost. */
static void lost(const valkeyContext *c) {
    fprintf(stderr, "Error: %s\n", c->errstr);
    exit(1);
}

/* ------------------------------------------------------------------ connections */

static valkeyContext *begin(const benchOptions *o, const endpoint *at, int flags) {
    valkeyOptions v = {.options = flags | VALKEY_OPT_PREFER_IP_UNSPEC};
    if (at->socket) {
        VALKEY_OPTIONS_SET_UNIX(&v, at->socket);
    } else {
        VALKEY_OPTIONS_SET_TCP(&v, at->host, at->port);
        if (o->mptcp) v.options |= VALKEY_OPT_MPTCP;
    }
    if (o->tls.on) toolTlsLoad(&o->tls);
    valkeyContext *c = valkeyConnectWithOptions(&v);
    if (!c || c->err) cannotConnect(at, c ? c->errstr : "out of memory");
    return c;
}

valkeyContext *targetBegin(const benchOptions *o, const endpoint *at) {
    return begin(o, at, VALKEY_OPT_NONBLOCK);
}

bool targetEstablish(const benchOptions *o, const endpoint *at, valkeyContext *c, bool *secured) {
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) == 0) return false;
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) error = errno;
    if (error) cannotConnect(at, strerror(error));
    if (o->tls.on && !*secured && !toolTlsBegin(c)) lost(c);
    *secured = true;
    return true;
}

/* The reply of a command, which must not be an error. */
static valkeyReply *mustReply(const endpoint *at, valkeyContext *c, valkeyReply *r) {
    if (!r) lost(c);
    if (r->type != VALKEY_REPLY_ERROR) return r;
    fprintf(stderr, "Node %s replied with error:\n%s\n", targetName(at), r->str);
    exit(1);
}

valkeyContext *targetConnect(const benchOptions *o, const endpoint *at) {
    valkeyContext *c = begin(o, at, 0);
    if (o->tls.on && !toolTlsBegin(c)) lost(c);
    if (o->password && o->user)
        freeReplyObject(mustReply(at, c, valkeyCommand(c, "AUTH %s %s", o->user, o->password)));
    if (o->password && !o->user)
        freeReplyObject(mustReply(at, c, valkeyCommand(c, "AUTH %s", o->password)));
    return c;
}

char *targetPrefix(const benchOptions *o, const targetNode *node, size_t *len, int *commands) {
    str out = STR_EMPTY;
    char db[16];
    snprintf(db, sizeof(db), "%d", o->dbnum);
    const struct {
        bool on;
        int argc;
        const char *argv[3];
    } list[] = {
        {o->password && o->user, 3, {"AUTH", o->user, o->password}},
        {o->password && !o->user, 2, {"AUTH", o->password}},
        {o->tracking, 3, {"CLIENT", "TRACKING", "on"}},
        {o->dbnum != 0, 2, {"SELECT", db}},
        {o->resp3, 2, {"HELLO", "3"}},
        {node->replica, 1, {"READONLY"}},
    };
    *commands = 0;
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        if (!list[i].on) continue;
        char *bytes;
        long long n =
            valkeyFormatCommandArgv(&bytes, list[i].argc, (const char **)list[i].argv, NULL);
        check(n > 0);
        strAppend(&out, bytes, (size_t)n);
        valkeyFreeCommand(bytes);
        ++*commands;
    }
    *len = out.len;
    char *copy = memDup(strText(&out), out.len);
    strFree(&out);
    return copy;
}

void targetCommand(const target *t, int argc, const char **argv) {
    for (int i = 0; i < t->count; i++) {
        if (t->nodes[i].replica) continue;
        const endpoint *at = &t->nodes[i].at;
        valkeyContext *c = targetConnect(t->options, at);
        freeReplyObject(mustReply(at, c, valkeyCommandArgv(c, argc, argv, NULL)));
        valkeyFree(c);
    }
}

/* The number after "name:" in a text. */
static double infoField(const char *text, const char *name) {
    const char *p = strstr(text, name);
    return p ? strtod(p + strlen(name), NULL) : 0;
}

void targetMemory(const target *t, double *bytes, double *keys) {
    *bytes = *keys = 0;
    for (int i = 0; i < t->count; i++) {
        if (t->nodes[i].replica) continue;
        const endpoint *at = &t->nodes[i].at;
        valkeyContext *c = targetConnect(t->options, at);
        if (t->options->dbnum) freeReplyObject(valkeyCommand(c, "SELECT %d", t->options->dbnum));
        valkeyReply *r = mustReply(at, c, valkeyCommand(c, "INFO memory"));
        *bytes += infoField(r->str, "\nused_memory:") - infoField(r->str, "\nmem_clients_normal:");
        freeReplyObject(r);
        r = mustReply(at, c, valkeyCommand(c, "DBSIZE"));
        *keys += (double)r->integer;
        freeReplyObject(r);
        valkeyFree(c);
    }
}

/* ------------------------------------------------------------------ configuration */

/* The value of a directive; NULL if the user may not read it. */
static char *readConfig(const endpoint *at, valkeyContext *c, const char *name, bool *denied) {
    valkeyReply *r = valkeyCommand(c, "CONFIG GET %s", name);
    char *value = NULL;
    if (!r) lost(c);
    if (r->type == VALKEY_REPLY_ERROR) {
        if (!strncmp(r->str, "NOAUTH", 6) || !strncmp(r->str, "WRONGPASS", 9)) mustReply(at, c, r);
        *denied = true;
    } else if (r->elements == 2 && r->element[1]->str) {
        value = memDup(r->element[1]->str, r->element[1]->len);
    }
    freeReplyObject(r);
    return value;
}

static void readNodeConfig(const benchOptions *o, targetNode *n) {
    bool denied = false;
    valkeyContext *c = targetConnect(o, &n->at);
    n->save = readConfig(&n->at, c, "save", &denied);
    n->appendonly = readConfig(&n->at, c, "appendonly", &denied);
    if (denied) fprintf(stderr, "WARNING: Could not fetch server CONFIG\n");
    valkeyFree(c);
}

/* ------------------------------------------------------------------ cluster */

static targetNode *addNode(target *t, const valkeyReply *r, const char *host, bool replica) {
    const char *id = r->elements > 2 && r->element[2]->str ? r->element[2]->str : "";
    for (int i = 0; i < t->count; i++) {
        if (!strcmp(t->nodes[i].id, id)) return &t->nodes[i];
    }
    t->nodes = memRealloc(t->nodes, (size_t)(t->count + 1) * sizeof(*t->nodes));
    targetNode *n = &t->nodes[t->count++];
    *n = (targetNode){.replica = replica};
    const char *name = r->element[0]->str && r->element[0]->len > 0 ? r->element[0]->str : host;
    n->at.host = memDup(name, strlen(name));
    n->at.port = (int)r->element[1]->integer;
    snprintf(n->id, sizeof(n->id), "%s", id);
    return n;
}

static void addSlots(targetNode *n, long long from, long long to) {
    if (from < 0 || to > 16383 || to < from) return;
    n->slots = memRealloc(n->slots, (size_t)(n->slot_count + to - from + 1) * sizeof(*n->slots));
    for (long long slot = from; slot <= to; slot++) n->slots[n->slot_count++] = (uint16_t)slot;
}

/* Enters the nodes of one range of CLUSTER SLOTS: from, to, primary, replicas. */
static void addRange(target *t, const valkeyReply *range, const char *host) {
    if (range->type != VALKEY_REPLY_ARRAY) return;
    for (size_t i = 2; i < range->elements; i++) {
        const valkeyReply *r = range->element[i];
        bool replica = i > 2;
        if (r->type != VALKEY_REPLY_ARRAY || r->elements < 2) continue;
        if (t->options->read_from == READ_PRIMARIES && replica) continue;
        if (t->options->read_from == READ_REPLICAS && !replica) continue;
        addSlots(addNode(t, r, host, replica), range->element[0]->integer,
                 range->element[1]->integer);
    }
}

static bool readCluster(target *t, endpoint server) {
    valkeyContext *c = targetConnect(t->options, &server);
    valkeyReply *r = valkeyCommand(c, "CLUSTER SLOTS");
    bool ok = r && r->type == VALKEY_REPLY_ARRAY;
    if (ok) {
        const char *host = server.host ? server.host : "127.0.0.1";
        for (size_t i = 0; i < r->elements; i++) addRange(t, r->element[i], host);
    } else {
        fprintf(stderr, "Failed to fetch cluster configuration\nCLUSTER SLOTS ERROR: %s\n",
                r && r->str ? r->str : c->errstr);
    }
    freeReplyObject(r);
    valkeyFree(c);
    return ok && t->count > 0;
}

static void printNodes(const target *t) {
    static const char *const kinds[] = {"primary", "replica", "cluster"};
    printf("Cluster has %d %s nodes:\n\n", t->count, kinds[t->options->read_from]);
    for (int i = 0; i < t->count; i++) {
        const targetNode *n = &t->nodes[i];
        printf("Node %d(%s): %s %s\n", i, n->replica ? "Replica" : "Primary", n->id,
               targetName(&n->at));
    }
    printf("\n");
}

void targetInit(target *t, const benchOptions *o, endpoint server) {
    *t = (target){.options = o};
    if (!o->cluster) {
        t->nodes = memNew(targetNode);
        t->nodes[0].at = server;
        t->count = 1;
    } else if (!readCluster(t, server)) {
        fprintf(stderr, "Failed to fetch cluster configuration from %s\n", targetName(&server));
        exit(1);
    } else {
        printNodes(t);
        targetTag(0); /* builds the table before there are threads */
    }
    for (int i = 0; i < t->count; i++) readNodeConfig(o, &t->nodes[i]);
}

bool targetRefreshSlots(const target *t, target *fresh) {
    *fresh = (target){.options = t->options};
    return readCluster(fresh, t->nodes[0].at);
}

void targetFree(target *t) {
    for (int i = 0; i < t->count; i++) {
        targetNode *n = &t->nodes[i];
        if (t->options->cluster) memFree((char *)n->at.host);
        memFree(n->save);
        memFree(n->appendonly);
        memFree(n->slots);
    }
    memFree(t->nodes);
    *t = (target){0};
}

/* ------------------------------------------------------------------ hash tags */

const char *targetTag(int slot) {
    static char tags[16384][4];
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if (!tags[0][0]) {
        /* Every slot has some of these 238,328 names. */
        for (int i = 0; i < 62 * 62 * 62; i++) {
            char name[4] = {letters[i / 3844], letters[i / 62 % 62], letters[i % 62], 0};
            memcpy(tags[crc16(name, 3) & 16383], name, 4);
        }
    }
    return tags[slot];
}

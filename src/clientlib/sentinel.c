/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client that asks Sentinels for the address of a primary or a replica: valkey/sentinel.h.
 *
 * Invariant: when `con` was made, the server had the role for which a Sentinel gave its address.
 * The connection with a Sentinel (RESP3) is subscribed to +switch-master before it is asked for the
 * address. So no switch is missed while that connection is open. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <valkey/sentinel.h>

#include "clientlib/client_priv.h"

enum { PAUSE_MS = 100, SENTINEL_TIMEOUT_S = 1, WATCH_RETRY_MS = 1000, HOST_MAX = 256 };

struct valkeySentinelState {
    char **sentinels; /* "host:port"; the one that has replied last comes first */
    int count;
    char *name, *sentinel_username, *sentinel_password, *username, *password;
    int use_replica, select_db, wait_ms;
    struct timeval *connect_timeout, *command_timeout;
    int (*on_connect)(valkeyContext *c, int is_sentinel, void *data);
    void *on_connect_data;
    valkeyContext *watch; /* with a Sentinel; NULL: none now */
    long long watch_tried_ms;
    bool is_switched; /* a message has announced another primary */
};

typedef struct valkeySentinelState sentinelState;

static bool fail(valkeySentinelContext *sc, int type, const char *text) {
    sc->err = type;
    snprintf(sc->errstr, sizeof(sc->errstr), "%s", text);
    return false;
}

/* ------------------------------------------------------------------ addresses */

/* Splits "host:port"; IPv6 addresses have colons, too. */
static bool splitAddr(const char *addr, char host[HOST_MAX], int *port) {
    const char *colon = strrchr(addr, ':');
    if (!colon || colon == addr || colon - addr >= HOST_MAX) return false;
    size_t len = (size_t)(colon - addr);
    bool bracket = len > 2 && addr[0] == '[' && addr[len - 1] == ']';
    memcpy(host, addr + bracket, len - 2 * bracket);
    host[len - 2 * bracket] = '\0';
    char *end;
    long number = strtol(colon + 1, &end, 10);
    *port = (int)number;
    return *end == '\0' && number > 0 && number <= 65535;
}

static bool takeAddrs(sentinelState *s, const char *list) {
    char host[HOST_MAX];
    int port;
    while (*list) {
        size_t len = strcspn(list, ",");
        char **more = vk_realloc(s->sentinels, sizeof(*more) * (size_t)(s->count + 1));
        if (!more) return false;
        s->sentinels = more;
        char *addr = vk_calloc(1, len + 1);
        if (!addr) return false;
        memcpy(addr, list, len);
        s->sentinels[s->count++] = addr;
        if (!splitAddr(addr, host, &port)) return false;
        list += len + (list[len] == ',');
    }
    return s->count > 0;
}

/* ------------------------------------------------------------------ connections */

/* Sends a command and returns its reply, which is not an error; NULL: the connection or the command
 * has failed. */
static valkeyReply *ask(valkeySentinelContext *sc, valkeyContext *c, int argc, const char **argv) {
    valkeyReply *r = valkeyCommandArgv(c, argc, argv, NULL);
    if (!r) {
        fail(sc, c->err, c->errstr);
    } else if (r->type == VALKEY_REPLY_ERROR) {
        fail(sc, VALKEY_ERR_OTHER, r->str);
        freeReplyObject(r);
        r = NULL;
    }
    return r;
}

static bool askOk(valkeySentinelContext *sc, valkeyContext *c, int argc, const char **argv) {
    valkeyReply *r = ask(sc, c, argc, argv);
    freeReplyObject(r);
    return r != NULL;
}

static bool authenticate(valkeySentinelContext *sc, valkeyContext *c, const char *user,
                         const char *password) {
    if (!password) return true;
    const char *both[] = {"AUTH", user, password}, *one[] = {"AUTH", password};
    return user ? askOk(sc, c, 3, both) : askOk(sc, c, 2, one);
}

static valkeyContext *dial(valkeySentinelContext *sc, const char *host, int port,
                           bool is_sentinel) {
    const sentinelState *s = sc->state;
    struct timeval second = {.tv_sec = SENTINEL_TIMEOUT_S};
    valkeyOptions o = {.options = is_sentinel ? VALKEY_OPT_NO_PUSH_AUTOFREE : 0};
    VALKEY_OPTIONS_SET_TCP(&o, host, port);
    o.connect_timeout = s->connect_timeout ? s->connect_timeout : &second;
    o.command_timeout = is_sentinel ? &second : s->command_timeout;
    valkeyContext *c = valkeyConnectWithOptions(&o);
    if (!c) {
        fail(sc, VALKEY_ERR_OOM, "Out of memory");
        return NULL;
    }
    bool ok = !c->err;
    if (ok && s->on_connect)
        ok = s->on_connect(c, is_sentinel, s->on_connect_data) == VALKEY_OK && !c->err;
    if (!ok) {
        fail(sc, c->err ? c->err : VALKEY_ERR_OTHER, c->errstr);
    } else {
        ok = authenticate(sc, c, is_sentinel ? s->sentinel_username : s->username,
                          is_sentinel ? s->sentinel_password : s->password);
    }
    if (ok) return c;
    valkeyFree(c);
    return NULL;
}

static void dropServer(valkeySentinelContext *sc) {
    valkeyFree(sc->con);
    sc->con = NULL;
}

static void dropWatch(sentinelState *s) {
    valkeyFree(s->watch);
    s->watch = NULL;
}

/* ------------------------------------------------------------------ what a Sentinel tells */

static bool isText(const valkeyReply *r, const char *text) {
    return (r->type == VALKEY_REPLY_STRING || r->type == VALKEY_REPLY_STATUS) &&
           strcmp(r->str, text) == 0;
}

/* Notes a message "+switch-master": NAME, old address, new address. Frees it. */
static void noteMessage(sentinelState *s, valkeyReply *r) {
    size_t len = strlen(s->name);
    if (r->elements == 3 && isText(r->element[0], "message") &&
        r->element[2]->type == VALKEY_REPLY_STRING && r->element[2]->len > len &&
        !memcmp(r->element[2]->str, s->name, len) && r->element[2]->str[len] == ' ')
        s->is_switched = true;
    freeReplyObject(r);
}

/* Reads the messages that have been received, some of them perhaps with an earlier reply. Drops the
 * connection if it has ended. */
static void readMessages(sentinelState *s) {
    void *r;
    while (s->watch) {
        while (valkeyGetReplyFromReader(s->watch, &r) == VALKEY_OK && r) noteMessage(s, r);
        if (!s->watch->err && !vkSocketWait(s->watch, POLLIN, 0)) return;
        if (s->watch->err || valkeyBufferRead(s->watch) != VALKEY_OK) dropWatch(s);
    }
}

/* The reply to a command of the Sentinel; messages may come before it. */
static valkeyReply *askSentinel(valkeySentinelContext *sc, int argc, const char **argv) {
    sentinelState *s = sc->state;
    valkeyReply *r = ask(sc, s->watch, argc, argv);
    void *next = NULL;
    while (r && r->type == VALKEY_REPLY_PUSH) {
        noteMessage(s, r);
        r = NULL;
        if (valkeyGetReply(s->watch, &next) != VALKEY_OK) {
            fail(sc, s->watch->err, s->watch->errstr);
            return NULL;
        }
        r = next;
    }
    return r;
}

/* Subscribes. The confirmation is a message, which is read with the next reply. */
static bool subscribe(valkeySentinelContext *sc) {
    const char *protocol[] = {"HELLO", "3"};
    const char *channel[] = {"SUBSCRIBE", "+switch-master"};
    valkeyContext *watch = sc->state->watch;
    if (!askOk(sc, watch, 2, protocol)) return false;
    if (valkeyAppendCommandArgv(watch, 2, channel, NULL) == VALKEY_OK) return true;
    return fail(sc, watch->err, watch->errstr);
}

static bool connectSentinel(valkeySentinelContext *sc, int number) {
    sentinelState *s = sc->state;
    char host[HOST_MAX];
    int port;
    s->watch_tried_ms = vkNowMs();
    dropWatch(s);
    if (!splitAddr(s->sentinels[number], host, &port)) return false;
    s->watch = dial(sc, host, port, true);
    if (!s->watch) return false;
    s->is_switched = false;
    if (subscribe(sc)) return true;
    dropWatch(s);
    return false;
}

/* ------------------------------------------------------------------ the server */

/* Connects to a server; fails unless it has the role for which a Sentinel gave its address. */
static bool connectServer(valkeySentinelContext *sc, const char *host, int port, bool is_replica) {
    const sentinelState *s = sc->state;
    const char *role[] = {"ROLE"};
    char db[16], text[64];
    valkeyContext *c = dial(sc, host, port, false);
    if (!c) return false;
    valkeyReply *r = ask(sc, c, 1, role);
    bool ok = r != NULL;
    if (ok && (r->elements == 0 || !isText(r->element[0], is_replica ? "slave" : "master"))) {
        snprintf(text, sizeof(text), "The server is not a %s", is_replica ? "replica" : "primary");
        ok = fail(sc, VALKEY_ERR_OTHER, text);
    }
    freeReplyObject(r);
    snprintf(db, sizeof(db), "%d", s->select_db);
    const char *select[] = {"SELECT", db};
    if (ok && s->select_db) ok = askOk(sc, c, 2, select);
    if (ok && !vkCopyString(&sc->host, host)) ok = fail(sc, VALKEY_ERR_OOM, "Out of memory");
    if (!ok) {
        valkeyFree(c);
        return false;
    }
    dropServer(sc);
    sc->con = c;
    sc->port = port;
    return true;
}

static const char *field(const valkeyReply *map, const char *name) {
    for (size_t i = 0; i + 1 < map->elements; i += 2) {
        if (isText(map->element[i], name) && map->element[i + 1]->str)
            return map->element[i + 1]->str;
    }
    return "";
}

/* Connects to one of the replicas that are up, beginning with a random one. */
static bool connectReplica(valkeySentinelContext *sc) {
    const char *list[] = {"SENTINEL", "SLAVES", sc->state->name};
    valkeyReply *r = askSentinel(sc, 3, list);
    bool ok = false;
    size_t first = (size_t)vkNowUs();
    for (size_t i = 0; r && i < r->elements && !ok; i++) {
        const valkeyReply *replica = r->element[(first + i) % r->elements];
        const char *flags = field(replica, "flags");
        if (strstr(flags, "s_down") || strstr(flags, "disconnected")) continue;
        ok = connectServer(sc, field(replica, "ip"), atoi(field(replica, "port")), true);
    }
    freeReplyObject(r);
    return ok;
}

static bool connectPrimary(valkeySentinelContext *sc) {
    const char *get[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", sc->state->name};
    valkeyReply *r = askSentinel(sc, 3, get);
    bool ok = r != NULL;
    if (ok && (r->elements != 2 || !r->element[0]->str || !r->element[1]->str))
        ok = fail(sc, VALKEY_ERR_OTHER, "The Sentinel does not know the primary");
    if (ok) ok = connectServer(sc, r->element[0]->str, atoi(r->element[1]->str), false);
    freeReplyObject(r);
    return ok;
}

/* Asks the Sentinels in turn until one has named a server that can be used; that Sentinel is asked
 * first from then on. */
static bool findOnce(valkeySentinelContext *sc) {
    sentinelState *s = sc->state;
    for (int i = 0; i < s->count; i++) {
        if (!connectSentinel(sc, i)) continue;
        if (!(s->use_replica && connectReplica(sc)) && !connectPrimary(sc)) continue;
        char *addr = s->sentinels[i];
        memmove(s->sentinels + 1, s->sentinels, sizeof(*s->sentinels) * (size_t)i);
        s->sentinels[0] = addr;
        sc->err = 0;
        sc->errstr[0] = '\0';
        return true;
    }
    return false;
}

static bool find(valkeySentinelContext *sc, long long until_ms) {
    while (!findOnce(sc)) {
        if (sc->err == VALKEY_ERR_OOM || vkNowMs() >= until_ms) return false;
        vkSleepMs(PAUSE_MS);
    }
    return true;
}

static long long waitUntil(const valkeySentinelContext *sc) {
    return vkNowMs() + sc->state->wait_ms;
}

static bool ready(valkeySentinelContext *sc, long long until_ms) {
    sentinelState *s = sc->state;
    sc->err = 0;
    sc->errstr[0] = '\0';
    readMessages(s);
    /* No reply is pending, so input means that the server has closed the connection. */
    if (sc->con && (sc->con->err || vkSocketWait(sc->con, POLLIN, 0))) dropServer(sc);
    if (s->is_switched) dropServer(sc);
    if (!sc->con) return find(sc, until_ms);
    if (!s->watch && vkNowMs() - s->watch_tried_ms >= WATCH_RETRY_MS && !findOnce(sc)) {
        /* No Sentinel can be reached: the present server is still used. */
        sc->err = 0;
        sc->errstr[0] = '\0';
    }
    return true;
}

/* ------------------------------------------------------------------ the interface */

static bool takeOptions(sentinelState *s, const valkeySentinelOptions *o) {
    s->use_replica = o->use_replica;
    s->select_db = o->select_db;
    s->wait_ms = o->wait_ms > 0 ? o->wait_ms : VALKEY_SENTINEL_WAIT_MS;
    s->on_connect = o->on_connect;
    s->on_connect_data = o->on_connect_data;
    return vkCopyString(&s->name, o->name) &&
           vkCopyString(&s->sentinel_username, o->sentinel_username) &&
           vkCopyString(&s->sentinel_password, o->sentinel_password) &&
           vkCopyString(&s->username, o->username) && vkCopyString(&s->password, o->password) &&
           vkCopyTimeout(&s->connect_timeout, o->connect_timeout) &&
           vkCopyTimeout(&s->command_timeout, o->command_timeout) && takeAddrs(s, o->sentinels);
}

valkeySentinelContext *valkeySentinelConnect(const valkeySentinelOptions *options) {
    if (!options->sentinels || !options->name || !options->name[0]) return NULL;
    valkeySentinelContext *sc = vk_calloc(1, sizeof(*sc));
    if (!sc) return NULL;
    sc->state = vk_calloc(1, sizeof(*sc->state));
    if (!sc->state || !takeOptions(sc->state, options)) {
        valkeySentinelFree(sc);
        return NULL;
    }
    (void)find(sc, waitUntil(sc)); /* a failure is in sc->err */
    return sc;
}

void valkeySentinelFree(valkeySentinelContext *sc) {
    if (!sc) return;
    dropServer(sc);
    vk_free(sc->host);
    sentinelState *s = sc->state;
    if (s) {
        dropWatch(s);
        for (int i = 0; i < s->count; i++) vk_free(s->sentinels[i]);
        void *const blocks[] = {s->sentinels,         s->name,           s->sentinel_username,
                                s->sentinel_password, s->username,       s->password,
                                s->connect_timeout,   s->command_timeout};
        for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) vk_free(blocks[i]);
        vk_free(s);
    }
    vk_free(sc);
}

int valkeySentinelCheck(valkeySentinelContext *sc) {
    return ready(sc, waitUntil(sc)) ? VALKEY_OK : VALKEY_ERR;
}

/* Sends a formatted command and returns its reply. A primary that has become a replica is replaced
 * by the new one until the time is over. */
static void *command(valkeySentinelContext *sc, const char *cmd, size_t len) {
    long long until_ms = waitUntil(sc);
    for (;;) {
        void *reply = NULL;
        if (!ready(sc, until_ms)) return NULL;
        if (valkeyAppendFormattedCommand(sc->con, cmd, len) != VALKEY_OK ||
            valkeyGetReply(sc->con, &reply) != VALKEY_OK) {
            fail(sc, sc->con->err, sc->con->errstr);
            dropServer(sc);
            return NULL;
        }
        const valkeyReply *r = reply;
        bool is_refused = r->type == VALKEY_REPLY_ERROR && !strncmp(r->str, "READONLY", 8) &&
                          !sc->state->use_replica;
        if (!is_refused || vkNowMs() >= until_ms) return reply;
        freeReplyObject(reply);
        dropServer(sc);
        vkSleepMs(PAUSE_MS);
    }
}

/* Sends `text` and frees it. `len` is its length; -1: memory was exhausted; other negative numbers:
 * the format is invalid. */
static void *formatted(valkeySentinelContext *sc, char *text, long long len) {
    void *reply = NULL;
    if (len >= 0) {
        reply = command(sc, text, (size_t)len);
    } else if (len == -1) {
        fail(sc, VALKEY_ERR_OOM, "Out of memory");
    } else {
        fail(sc, VALKEY_ERR_OTHER, "Invalid format string");
    }
    vkTextFree(text);
    return reply;
}

void *valkeySentinelvCommand(valkeySentinelContext *sc, const char *format, va_list ap) {
    char *text = vkTextNew();
    return formatted(sc, text, text ? vkAppendFormat(&text, format, ap) : -1);
}

void *valkeySentinelCommand(valkeySentinelContext *sc, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    void *reply = valkeySentinelvCommand(sc, format, ap);
    va_end(ap);
    return reply;
}

void *valkeySentinelCommandArgv(valkeySentinelContext *sc, int argc, const char **argv,
                                const size_t *argvlen) {
    char *text = vkTextNew();
    return formatted(sc, text, text ? vkAppendArgv(&text, argc, argv, argvlen) : -1);
}

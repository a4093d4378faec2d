/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server that is backed up (source.h). Invariant: `offset` counts the bytes of the stream that
 * sourceRead() has returned, so a link can be continued there by another one. */
#include "tools/backup/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "tools/cli/info.h"
#include "tools/cli/interrupt.h"

enum { REPLY_LIMIT_S = 30, CONNECT_LIMIT_S = 5, FIELD_MAX = 256, REPLICAS_MAX = 64 };
static const char name_of_client[] = "valkey-backup";

static void remember(backupSource *s, const char *host, int port) {
    if (!*host || port <= 0) return;
    for (int i = 0; i < s->known_count; i++) {
        if (s->known[i].port == port && !strcmp(strText(&s->known[i].host), host)) return;
    }
    s->known = memRealloc(s->known, sizeof(*s->known) * (size_t)(s->known_count + 1));
    s->known[s->known_count++] = (sourceAddress){.host = strNew(sliceOf(host)), .port = port};
}

void sourceInit(backupSource *s, const cliOptions *options, const char *host, int port) {
    *s = (backupSource){.options = options, .sync = memNew(fullSync)};
    remember(s, host, port);
}

void sourceDisconnect(backupSource *s) {
    valkeyFree(s->control);
    valkeyFree(s->stream);
    s->control = s->stream = NULL;
}

void sourceClear(backupSource *s) {
    sourceDisconnect(s);
    for (int i = 0; i < s->known_count; i++) strFree(&s->known[i].host);
    memFree(s->known);
    memFree(s->sync);
    strFree(&s->at.host);
    strFree(&s->server);
    strFree(&s->version);
}

/* ------------------------------------------------------------------ commands */

static status failure(const backupSource *s, const valkeyContext *c, reason *why) {
    return reasonSet(why, ERR_IO, "%s:%d: %s", strText(&s->at.host), s->at.port,
                     c ? c->errstr : "out of memory");
}

/* Takes a reply, which may be NULL. */
static status accept(const backupSource *s, const valkeyContext *c, valkeyReply *reply,
                     valkeyReply **out, reason *why) {
    if (!reply) return failure(s, c, why);
    if (reply->type == VALKEY_REPLY_ERROR) {
        (void)reasonSet(why, ERR_DENIED, "%s:%d: %s", strText(&s->at.host), s->at.port, reply->str);
        freeReplyObject(reply);
        return ERR_DENIED;
    }
    if (out) {
        *out = reply;
    } else {
        freeReplyObject(reply);
    }
    return OK;
}

status sourceCommand(backupSource *s, valkeyReply **out, reason *why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    valkeyReply *reply = valkeyvCommand(s->control, format, args);
    va_end(args);
    return accept(s, s->control, reply, out, why);
}

static status logIn(const backupSource *s, valkeyContext *c, reason *why) {
    status st = OK;
    if (s->options->password) st = accept(s, c, connectionLogIn(s->options, c), NULL, why);
    if (st != OK) return st;
    /* A server that refuses the name is backed up as well. */
    freeReplyObject(valkeyCommand(c, "CLIENT SETNAME %s", name_of_client));
    return OK;
}

static status openLink(const backupSource *s, valkeyContext **out, reason *why) {
    const cliOptions *o = s->options;
    cliOptions bounded = *o; /* an address that a server tells may lead nowhere */
    if (!(o->timeout_s > 0)) bounded.timeout_s = CONNECT_LIMIT_S;
    bool by_path =
        o->unix_socket && s->at.port == o->port && sliceIs(strSlice(&s->at.host), o->host);
    valkeyContext *c = by_path ? connectionOpenUnix(o, o->unix_socket)
                               : connectionOpen(&bounded, strText(&s->at.host), s->at.port);
    status st = c && !c->err ? OK : failure(s, c, why);
    if (st == OK) {
        struct timeval limit = {.tv_sec = REPLY_LIMIT_S};
        (void)valkeySetTimeout(c, limit); /* else a reply may take as long as it likes */
        valkeyEnableKeepAliveWithInterval(c, VALKEY_KEEPALIVE_INTERVAL);
        st = logIn(s, c, why);
    }
    if (st != OK) {
        valkeyFree(c);
        c = NULL;
    }
    *out = c;
    return st;
}

/* ------------------------------------------------------------------ which server */

/* Takes the address out of "ip=127.0.0.1,port=6380,state=online,..."; false if it is not online. */
static bool parseReplica(const char *text, char host[FIELD_MAX], int *port) {
    const char *at = strstr(text, ",port=");
    if (strncmp(text, "ip=", 3) != 0 || !at || !strstr(text, ",state=online,")) return false;
    snprintf(host, FIELD_MAX, "%.*s", (int)sizeMin((size_t)(at - text - 3), FIELD_MAX - 1),
             text + 3);
    *port = atoi(at + 6);
    return *port > 0;
}

/* Reads what the control connection's server says about itself. */
static status lookAround(backupSource *s, bool *link_is_up, reason *why) {
    valkeyReply *reply;
    char text[FIELD_MAX], name[32], host[FIELD_MAX];
    int port;
    status st = sourceCommand(s, &reply, why, "INFO");
    if (st != OK) return st;
    const char *info = reply->str ? reply->str : "";
    s->is_primary = !strcmp(infoText(info, "role", text, sizeof(text)), "master");
    *link_is_up =
        s->is_primary || !strcmp(infoText(info, "master_link_status", text, sizeof(text)), "up");
    if (!s->is_primary)
        remember(s, infoText(info, "master_host", text, sizeof(text)),
                 (int)infoNumber(info, "master_port"));
    s->has_replicas = false;
    for (int i = 0; i < REPLICAS_MAX; i++) {
        snprintf(name, sizeof(name), "slave%d", i);
        if (!*infoText(info, name, text, sizeof(text))) break;
        if (!parseReplica(text, host, &port)) continue;
        remember(s, host, port);
        s->has_replicas = true;
    }
    strClear(&s->server);
    strClear(&s->version);
    infoText(info, "valkey_version", text, sizeof(text));
    strAppendText(&s->server, *text ? "valkey" : "redis");
    strAppendText(&s->version, *text ? text : infoText(info, "redis_version", text, sizeof(text)));
    freeReplyObject(reply);
    return OK;
}

static status connectTo(backupSource *s, int index, bool *link_is_up, reason *why) {
    sourceDisconnect(s);
    strClear(&s->at.host);
    strAppendSlice(&s->at.host, strSlice(&s->known[index].host));
    s->at.port = s->known[index].port;
    status st = openLink(s, &s->control, why);
    if (st == OK) st = lookAround(s, link_is_up, why);
    return st;
}

status sourceConnect(backupSource *s, bool any, reason *why) {
    int fallback = -1;
    bool up;
    reason first;
    for (int i = 0; i < s->known_count; i++) { /* others may become known on the way */
        status st = connectTo(s, i, &up, i == 0 ? &first : why);
        if (st == ERR_DENIED && i == 0) *why = first;
        if (st == ERR_DENIED && i == 0) return st;
        if (st == OK && up && (any || !s->is_primary)) return OK;
        if (st == OK && up && fallback < 0) fallback = i;
    }
    if (fallback < 0) {
        *why = first;
        return ERR_IO;
    }
    return connectTo(s, fallback, &up, why);
}

status sourceRefresh(backupSource *s, reason *why) {
    bool link_is_up; /* sourceMark() looks at it each second */
    return lookAround(s, &link_is_up, why);
}

/* ------------------------------------------------------------------ marks */

static bool readMark(const backupSource *s, const valkeyReply *reply, backupMark *out) {
    char id[FIELD_MAX], role[FIELD_MAX], link[FIELD_MAX];
    if (reply->type != VALKEY_REPLY_ARRAY || reply->elements != 2) return false;
    const valkeyReply *time = reply->element[0], *info = reply->element[1];
    if (time->type != VALKEY_REPLY_ARRAY || time->elements != 2 || !info->str) return false;
    out->time_ms = atoll(time->element[0]->str) * 1000 + atoll(time->element[1]->str) / 1000;
    out->offset = infoNumber(info->str, "master_repl_offset");
    bool up = !strcmp(infoText(info->str, "role", role, sizeof(role)), "master") ||
              !strcmp(infoText(info->str, "master_link_status", link, sizeof(link)), "up");
    return up && !strcmp(infoText(info->str, "master_replid", id, sizeof(id)), s->repl_id);
}

status sourceMark(backupSource *s, backupMark *out, reason *why) {
    static const char *const commands[] = {"MULTI", "TIME", "INFO replication", "EXEC"};
    const int count = sizeof(commands) / sizeof(*commands);
    for (int i = 0; i < count; i++) {
        if (valkeyAppendCommand(s->control, commands[i]) != VALKEY_OK)
            return failure(s, s->control, why);
    }
    status st = OK;
    for (int i = 0; i < count; i++) {
        void *reply = NULL;
        valkeyReply *last = NULL;
        if (valkeyGetReply(s->control, &reply) != VALKEY_OK) return failure(s, s->control, why);
        status got = accept(s, s->control, reply, &last, why);
        if (st == OK) st = got;
        if (st == OK && i == count - 1 && !readMark(s, last, out))
            st = reasonSet(why, ERR_AGAIN, "%s:%d: follows another stream, or has lost its primary",
                           strText(&s->at.host), s->at.port);
        freeReplyObject(last);
    }
    return st;
}

/* ------------------------------------------------------------------ the stream */

static status announce(backupSource *s, bool stays, reason *why) {
    valkeyContext *c = s->stream;
    status st =
        accept(s, c, valkeyCommand(c, "REPLCONF capa psync2 " FULL_SYNC_CAPABILITIES), NULL, why);
    /* Ours then counts this reader as no replica; other servers refuse the word. */
    valkeyReply *reply = st == OK ? valkeyCommand(c, "REPLCONF backup 1") : NULL;
    s->knows_backups = reply && reply->type == VALKEY_REPLY_STATUS;
    freeReplyObject(reply);
    /* Not known to servers before Valkey 8. */
    if (st == OK) freeReplyObject(valkeyCommand(c, "REPLCONF version %s", strText(&s->version)));
    if (st == OK && !stays) freeReplyObject(valkeyCommand(c, "REPLCONF rdb-only 1"));
    return st == OK && c->err ? failure(s, c, why) : st;
}

static status readOffer(backupSource *s, const char *id, int64_t from, bool *continues,
                        reason *why) {
    const char *line = s->sync->line;
    char found[REPL_ID_LEN + 1];
    long long offset;
    *continues = !strncmp(line, "+CONTINUE", 9);
    if (*continues) {
        bool named = sscanf(line, "+CONTINUE %40s", found) == 1;
        memcpy(s->repl_id, named ? found : id, REPL_ID_LEN + 1);
        s->offset = from;
        return OK;
    }
    if (sscanf(line, "+FULLRESYNC %40s %lld", found, &offset) != 2)
        return reasonSet(why, ERR_AGAIN, "%s:%d: %s", strText(&s->at.host), s->at.port, line);
    memcpy(s->repl_id, found, REPL_ID_LEN + 1);
    s->offset = offset;
    return OK;
}

status sourceBegin(backupSource *s, const char *id, int64_t from, bool stays, bool *continues,
                   reason *why) {
    valkeyFree(s->stream);
    status st = openLink(s, &s->stream, why);
    if (st == OK) st = announce(s, stays, why);
    if (st != OK) return st;
    s->sync->buffered = 0;
    if (id) {
        valkeyAppendCommand(s->stream, "PSYNC %s %lld", id, (long long)from + 1);
    } else {
        valkeyAppendCommand(s->stream, "PSYNC ? -1");
    }
    if (!fullSyncSend(s->stream) || !fullSyncReadLine(s->stream, s->sync))
        return reasonSet(why, ERR_IO, "%s:%d: the connection was lost", strText(&s->at.host),
                         s->at.port);
    return readOffer(s, id, from, continues, why);
}

bool sourceReceive(backupSource *s, const fullSyncSink *sink, jobProgress *progress) {
    uint64_t received;
    if (!fullSyncReadLine(s->stream, s->sync) || !fullSyncHasSnapshot(s->sync)) return false;
    progress->total = s->sync->has_marker ? 0 : s->sync->length;
    bool done = fullSyncReceive(s->stream, s->sync, sink, progress, &received);
    jobProgressEnd(progress, received);
    return done;
}

status sourceRead(backupSource *s, int timeout_ms, const char **bytes, size_t *len, reason *why) {
    fullSync *sync = s->sync;
    *bytes = sync->buffer;
    *len = sync->buffered; /* what has come with the full copy */
    sync->buffered = 0;
    if (!*len && interruptWait(s->stream, timeout_ms)) {
        ssize_t count = s->stream->funcs->read(s->stream, sync->buffer, FULL_SYNC_PART_BYTES);
        if (count < 0) return failure(s, s->stream, why);
        *len = (size_t)count;
    }
    s->offset += (int64_t)*len;
    return OK;
}

status sourceAcknowledge(backupSource *s, reason *why) {
    bool sent =
        valkeyAppendCommand(s->stream, "REPLCONF ACK 0") == VALKEY_OK && fullSyncSend(s->stream);
    return sent ? OK : failure(s, s->stream, why);
}

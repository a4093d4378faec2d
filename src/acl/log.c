/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ACL LOG. Equal refusals within a minute are one entry, which moves to the front; ten entries are
 * compared. Entries over `acllog-max-len` are dropped when one is added. Main thread only. */
#include "acl/log.h"

#include "acl/acl_priv.h"
#include "acl/private_user.h"
#include "base/base.h"
#include "ds/list.h"
#include "engine/reply.h"
#include "engine/session_report.h"
#include "engine/user.h"

enum { COMPARED_ENTRIES = 10, SAME_ENTRY_MS = 60000 };

typedef enum logReason {
    REASON_COMMAND,
    REASON_KEY,
    REASON_CHANNEL,
    REASON_AUTH,
    REASON_DATABASE,
    REASON_TLS_CERT,
    REASON_COUNT,
} logReason;

static const char *const reason_names[REASON_COUNT] = {"command", "key",      "channel",
                                                       "auth",    "database", "tls-cert"};

typedef struct logEntry {
    listNode node;
    int64_t id;
    uint64_t count;
    logReason reason;
    const char *context;
    str object, user, client;
    int64_t created_ms, updated_ms;
} logEntry;

static struct {
    list entries; /* newest first */
    int64_t next_id;
    uint64_t denied[REASON_COUNT];
} aclLog;

static void entryDrop(logEntry *e) {
    listRemove(&aclLog.entries, &e->node);
    strFree(&e->object);
    strFree(&e->user);
    strFree(&e->client);
    memFree(e);
}

static void initEntries(void) {
    if (!aclLog.entries.head.next) listInit(&aclLog.entries);
}

void aclLogReset(void) {
    initEntries();
    while (!listIsEmpty(&aclLog.entries))
        entryDrop(LIST_OWNER(listFirst(&aclLog.entries), logEntry, node));
}

static const char *contextOf(const ctx *c) {
    if (c->origin == ORIGIN_SCRIPT) return c->flags & CTX_BY_ENGINE ? "script" : "lua";
    if (c->origin == ORIGIN_MODULE) return "module";
    return c->flags & CTX_IN_MULTI || c->who->flags & SESSION_IN_MULTI ? "multi" : "toplevel";
}

static logEntry *findSame(logReason reason, const char *context, slice object, slice name) {
    listNode *n = listFirst(&aclLog.entries);
    for (int i = 0; n && i < COMPARED_ENTRIES; i++, n = listNext(&aclLog.entries, n)) {
        logEntry *e = LIST_OWNER(n, logEntry, node);
        if (e->reason == reason && strcmp(e->context, context) == 0 &&
            sliceEqual(strSlice(&e->object), object) && sliceEqual(strSlice(&e->user), name) &&
            engineHot.now_ms - e->updated_ms <= SAME_ENTRY_MS)
            return e;
    }
    return NULL;
}

static void note(const session *s, const char *context, logReason reason, slice object,
                 slice name) {
    initEntries();
    aclLog.denied[reason]++;
    if (aclConf.acllog_max_len == 0) {
        aclLogReset();
        return;
    }
    logEntry *e = findSame(reason, context, object, name);
    if (e) {
        listRemove(&aclLog.entries, &e->node);
    } else {
        e = memNew(logEntry);
        e->id = aclLog.next_id++;
        e->reason = reason;
        e->context = context;
        e->object = strNew(object);
        e->user = strNew(name);
        e->created_ms = engineHot.now_ms;
    }
    e->count++;
    e->updated_ms = engineHot.now_ms;
    strClear(&e->client);
    if (s) sessionDescribe(s, &e->client);
    listPrepend(&aclLog.entries, &e->node);
    while ((int64_t)aclLog.entries.count > aclConf.acllog_max_len)
        entryDrop(LIST_OWNER(aclLog.entries.head.prev, logEntry, node));
}

/* The session that can be described: a call of a module has one of its own. */
static const session *clientOf(const ctx *c) {
    const ctx *at = c;
    while (at->outer && at->who->flags & SESSION_INTERNAL) at = at->outer;
    return at->who;
}

void aclLogRefusal(const ctx *c, aclVerdict verdict, slice object) {
    hotCheck(threadIsMain());
    static const logReason reasons[] = {[ACL_DENIED_DATABASE] = REASON_DATABASE,
                                        [ACL_DENIED_COMMAND] = REASON_COMMAND,
                                        [ACL_DENIED_KEY] = REASON_KEY,
                                        [ACL_DENIED_CHANNEL] = REASON_CHANNEL};
    check(verdict != ACL_ALLOWED);
    note(clientOf(c), contextOf(c), reasons[verdict], object, userNameOf(c->who));
}

void aclLogFailedLogin(const ctx *c, slice name) {
    note(c->who, contextOf(c), REASON_AUTH, c->argv[0], name);
}

void aclLogCertificate(const session *s, slice name) {
    note(s, "toplevel", REASON_TLS_CERT, SLICE(""), name);
}

void aclLogByModule(const session *s, aclRefusal what, slice object, slice user_name) {
    static const logReason reasons[] = {[ACL_REFUSES_DATABASE] = REASON_DATABASE,
                                        [ACL_REFUSES_COMMAND] = REASON_COMMAND,
                                        [ACL_REFUSES_KEY] = REASON_KEY,
                                        [ACL_REFUSES_CHANNEL] = REASON_CHANNEL,
                                        [ACL_REFUSES_LOGIN] = REASON_AUTH};
    check(what != ACL_REFUSES_NOTHING);
    note(s, "module", reasons[what], object, user_name);
}

void aclLogCountFailedLogin(void) { aclLog.denied[REASON_AUTH]++; }

static void replyEntry(ctx *c, const logEntry *e) {
    replyMap(c, 10);
    replyBulkText(c, "count");
    replyInteger(c, (int64_t)e->count);
    replyBulkText(c, "reason");
    replyBulkText(c, reason_names[e->reason]);
    replyBulkText(c, "context");
    replyBulkText(c, e->context);
    replyBulkText(c, "object");
    replyBulk(c, strSlice(&e->object));
    replyBulkText(c, "username");
    replyBulk(c, strSlice(&e->user));
    replyBulkText(c, "age-seconds");
    replyDouble(c, (double)(c->now_ms - e->updated_ms) / 1000);
    replyBulkText(c, "client-info");
    replyBulk(c, strSlice(&e->client));
    replyBulkText(c, "entry-id");
    replyInteger(c, e->id);
    replyBulkText(c, "timestamp-created");
    replyInteger(c, e->created_ms);
    replyBulkText(c, "timestamp-last-updated");
    replyInteger(c, e->updated_ms);
}

void aclLogReply(ctx *c, int64_t max) {
    hotCheck(threadIsMain());
    initEntries();
    int64_t count = (int64_t)aclLog.entries.count;
    if (max < count) count = max > 0 ? max : 0;
    replyArray(c, count);
    listNode *n = listFirst(&aclLog.entries);
    for (int64_t i = 0; i < count; i++, n = listNext(&aclLog.entries, n))
        replyEntry(c, LIST_OWNER(n, logEntry, node));
}

void aclLogPrintStats(str *out) {
    hotCheck(threadIsMain());
    static const struct {
        const char *name;
        logReason reason;
    } fields[] = {{"acl_access_denied_auth", REASON_AUTH},
                  {"acl_access_denied_cmd", REASON_COMMAND},
                  {"acl_access_denied_key", REASON_KEY},
                  {"acl_access_denied_channel", REASON_CHANNEL},
                  {"acl_access_denied_tls_cert", REASON_TLS_CERT},
                  {"acl_access_denied_db", REASON_DATABASE}};
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        strAppendField(out, fields[i].name, aclLog.denied[fields[i].reason]);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A listener for tests, only in builds with checks: writes a line for each server event to the file
 * named by the variable VALKEY_RECORD_EVENTS; without the variable it does not listen. Main thread
 * only. */
#include "engine/engine.h"

#ifdef HOT_CHECKS

#include <stdlib.h>

#include "base/base.h"
#include "engine/child.h"
#include "engine/server_event.h"
#include "io/append_file.h"

static appendFile record_file;

static const char *phaseName(serverEventPhase phase) {
    static const char *const names[] = {"begins", "ended", "failed"};
    return names[phase];
}

static void describeLoading(const serverEvent *e, str *out) {
    static const char *const sources[] = {"rdb", "aof", "primary"};
    strAppendText(out, phaseName(e->phase));
    if (e->phase == EVENT_BEGINS) strAppendFormat(out, " %s", sources[e->loading.source]);
}

static void describe(const serverEvent *e, str *out) {
    switch (e->kind) {
    case SERVER_ROLE:
        strAppendFormat(out, "role %s %.*s %d", e->role.is_replica ? "replica" : "primary",
                        (int)e->role.host.len, e->role.host.ptr, e->role.port);
        break;
    case SERVER_REPLICA: strAppendFormat(out, "replica online %d", e->replica.online); break;
    case SERVER_LINK: strAppendFormat(out, "link up %d", e->link.up); break;
    case SERVER_LOADING:
        strAppendText(out, "loading ");
        describeLoading(e, out);
        break;
    case SERVER_LOADING_BESIDE:
        strAppendFormat(out, "loading-beside %s", phaseName(e->phase));
        break;
    case SERVER_LOADING_PROGRESS:
        strAppendFormat(out, "progress %s", e->progress.is_aof ? "aof" : "rdb");
        break;
    case SERVER_PERSISTENCE:
        strAppendFormat(out, "persistence %s%s%s", phaseName(e->phase),
                        e->persistence.is_aof ? " aof" : " rdb",
                        e->persistence.in_foreground ? " foreground" : "");
        break;
    case SERVER_FLUSH:
        strAppendFormat(out, "flush %s %d%s", phaseName(e->phase), e->flush.db_id,
                        e->flush.later ? " later" : "");
        break;
    case SERVER_SWAP: strAppendFormat(out, "swap %d %d", e->swap.first, e->swap.second); break;
    case SERVER_CHILD:
        strAppendFormat(out, "child %s %s", phaseName(e->phase),
                        childKindName((childKind)e->child.kind));
        break;
    case SERVER_SHUTDOWN: strAppendText(out, "shutdown"); break;
    case SERVER_CONFIG:
        strAppendText(out, "config");
        for (int i = 0; i < e->config.count; i++)
            strAppendFormat(out, " %.*s", (int)e->config.names[i].len, e->config.names[i].ptr);
        break;
    case SERVER_CLIENT:
        strAppendFormat(out, "client %llu connected %d", (unsigned long long)e->client.who->id,
                        e->client.connected);
        break;
    case SERVER_LOGIN:
        strAppendFormat(out, "login %.*s %s", (int)e->login.name.len, e->login.name.ptr,
                        e->login.granted ? "granted" : "denied");
        break;
    case SERVER_ACL_REFUSAL:
        strAppendFormat(out, "acl-refusal %d %.*s", (int)e->acl_refusal.what,
                        (int)e->acl_refusal.object.len, e->acl_refusal.object.ptr);
        break;
    case SERVER_SLOT_MIGRATION:
        strAppendFormat(out, "slot-migration %s %s", phaseName(e->phase),
                        e->slots.is_import ? "import" : "export");
        break;
    case SERVER_CRON:
    case SERVER_EVENT_KINDS: break;
    }
}

static void record(const serverEvent *e) {
    str line = STR_EMPTY;
    describe(e, &line);
    strAppendText(&line, "\n");
    check(appendFileWrite(&record_file, strSlice(&line)) == (int64_t)line.len);
    strFree(&line);
}

static status init(reason *why) {
    const char *path = getenv("VALKEY_RECORD_EVENTS");
    if (!path) return OK;
    status st = appendFileOpen(&record_file, path, false, why);
    if (st != OK) return st;
    serverEventsListen(record, ((1u << SERVER_EVENT_KINDS) - 1) & ~(1u << SERVER_CRON));
    return OK;
}

const feature recordEventsFeature = {.name = "record-events", .init = init};

#endif

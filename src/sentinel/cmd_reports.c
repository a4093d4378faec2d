/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands of SENTINEL that only report state. */
#include "base/base.h"
#include "base/number.h"
#include "io/process.h"
#include "monitor/machine.h"
#include "sentinel/cmd_priv.h"

sentinelInstance *cmdPrimary(ctx *c) {
    hotCheck(c->argc > 2);
    sentinelInstance *primary = sentinelFindPrimary(serverViewNow(), c->argv[2]);
    if (!primary) replyError(c, SLICE("ERR No such master with that name"));
    return primary;
}

/* ------------------------------------------------------------------ the map of an instance */

typedef struct fieldMap {
    ctx *c;
    const sentinelView *v;
    int count;
} fieldMap;

static void addText(fieldMap *m, const char *name, slice value) {
    replyBulkText(m->c, name);
    replyBulk(m->c, value);
    m->count++;
}

static void addNumber(fieldMap *m, const char *name, int64_t value) {
    char digits[NUMBER_TEXT_MAX];
    addText(m, name, sliceMake(digits, numberPrintInt(digits, value)));
}

/* How long ago; 0: never. */
static void addAge(fieldMap *m, const char *name, int64_t at_ms) {
    hotCheck(at_ms >= 0);
    addNumber(m, name, at_ms ? m->v->now_ms - at_ms : 0);
}

static void addFlags(fieldMap *m, const sentinelInstance *i) {
    static const char *const names[] = {
        "master_down",      "failover_in_progress", "promoted",       "reconf_sent",
        "reconf_inprog",    "reconf_done",          "force_failover", "coordinated_failover",
        "script_kill_sent", "master_reboot"};
    str text = STR_EMPTY;
    if (i->flags & INSTANCE_SDOWN) strAppendText(&text, "s_down,");
    if (i->flags & INSTANCE_ODOWN) strAppendText(&text, "o_down,");
    strAppendFormat(&text, "%s,", sentinelKindName(i->kind));
    if (!sentinelIsConnected(i)) strAppendText(&text, "disconnected,");
    for (size_t bit = 0; bit < COUNT_OF(names); bit++) {
        if (i->flags & (uint32_t)INSTANCE_PRIMARY_DOWN << bit)
            strAppendFormat(&text, "%s,", names[bit]);
    }
    if (i->sync.keeps_lost_data)
        strAppendFormat(&text, "%s,",
                        i->kind == INSTANCE_REPLICA ? "keeps_lost_data" : "lost_data");
    addText(m, "flags", sliceMake(text.ptr, text.len - 1));
    strFree(&text);
}

static void addPrimary(fieldMap *m, const sentinelInstance *i) {
    addNumber(m, "config-epoch", (int64_t)i->config_epoch);
    addNumber(m, "num-slaves", (int64_t)i->replicas.count);
    addNumber(m, "num-other-sentinels", (int64_t)i->sentinels.count);
    addNumber(m, "quorum", i->quorum);
    addNumber(m, "failover-timeout", i->failover_timeout_ms);
    addNumber(m, "parallel-syncs", i->parallel_syncs);
    if (i->refused_after_ms) addNumber(m, "refused-after-milliseconds", i->refused_after_ms);
    if (i->notification_script.len)
        addText(m, "notification-script", strSlice(&i->notification_script));
    if (i->reconfig_script.len) addText(m, "client-reconfig-script", strSlice(&i->reconfig_script));
}

static void addReplica(fieldMap *m, const sentinelInstance *i) {
    addNumber(m, "master-link-down-time", i->link_down_ms);
    addText(m, "master-link-status", i->link_up ? SLICE("ok") : SLICE("err"));
    addText(m, "master-host", i->reported_host.len ? strSlice(&i->reported_host) : SLICE("?"));
    addNumber(m, "master-port", i->reported_port);
    addNumber(m, "slave-priority", i->priority);
    addNumber(m, "slave-repl-offset", (int64_t)i->offset);
    addNumber(m, "replica-announced", i->is_announced);
}

static void replyInstance(ctx *c, const sentinelInstance *i) {
    hotCheck(i->link);
    const sentinelLink *l = i->link;
    fieldMap m = {.c = c, .v = &serverView};
    respDeferred mark = respDeferBegin(c->out);
    addText(&m, "name", strSlice(&i->name));
    addText(&m, "ip", sentinelAddrText(m.v, &i->addr));
    addNumber(&m, "port", i->addr.port);
    addText(&m, "runid", strSlice(&i->runid));
    addFlags(&m, i);
    addNumber(&m, "link-pending-commands", l->pending_count);
    addNumber(&m, "link-refcount", l->users);
    if (i->flags & INSTANCE_FAILOVER)
        addText(&m, "failover-state", sliceOf(sentinelStepName(i->step)));
    addAge(&m, "last-ping-sent", l->ping_since_ms);
    addAge(&m, "last-ok-ping-reply", l->ping_good_ms);
    addAge(&m, "last-ping-reply", l->ping_reply_ms);
    if (i->flags & INSTANCE_SDOWN) addAge(&m, "s-down-time", i->sdown_since_ms);
    if (i->flags & INSTANCE_ODOWN) addAge(&m, "o-down-time", i->odown_since_ms);
    const sentinelInstance *primary = i->primary ? i->primary : i;
    addNumber(&m, "down-after-milliseconds", primary->down_after_ms);
    if (i->kind == INSTANCE_SENTINEL) {
        addAge(&m, "last-hello-message", i->hello_seen_ms);
        addText(&m, "voted-leader", i->leader.len ? strSlice(&i->leader) : SLICE("?"));
        addNumber(&m, "voted-leader-epoch", (int64_t)i->leader_epoch);
    } else {
        addAge(&m, "info-refresh", i->info_ms);
        addText(&m, "role-reported", i->role_is_replica ? SLICE("slave") : SLICE("master"));
        addAge(&m, "role-reported-time", i->role_since_ms);
        if (i->kind == INSTANCE_PRIMARY) addPrimary(&m, i);
        if (i->kind == INSTANCE_REPLICA) addReplica(&m, i);
    }
    respDeferEnd(c->out, mark, '%', c->proto, m.count);
}

/* ------------------------------------------------------------------ lists */

/* SENTINEL PRIMARIES. Reply: a map of each primary. */
void sentinelPrimariesCommand(ctx *c) {
    const sentinelView *v = serverViewNow();
    replyArray(c, (int64_t)v->primaries.count);
    SENTINEL_EACH(primary, &v->primaries) replyInstance(c, primary);
}
void sentinelMastersCommand(ctx *c) { sentinelPrimariesCommand(c); }

/* SENTINEL PRIMARY name. Reply: its map. */
void sentinelPrimaryCommand(ctx *c) {
    sentinelInstance *primary = cmdPrimary(c);
    if (primary) replyInstance(c, primary);
}
void sentinelMasterCommand(ctx *c) { sentinelPrimaryCommand(c); }

/* SENTINEL REPLICAS name. Reply: maps of those that want to be shown. */
void sentinelReplicasCommand(ctx *c) {
    sentinelInstance *primary = cmdPrimary(c);
    if (!primary) return;
    int count = 0;
    SENTINEL_EACH(i, &primary->replicas) count += i->is_announced;
    replyArray(c, count);
    SENTINEL_EACH(i, &primary->replicas) {
        if (i->is_announced) replyInstance(c, i);
    }
}
void sentinelSlavesCommand(ctx *c) { sentinelReplicasCommand(c); }

/* SENTINEL SENTINELS name. Reply: maps of the others. */
void sentinelSentinelsCommand(ctx *c) {
    sentinelInstance *primary = cmdPrimary(c);
    if (!primary) return;
    replyArray(c, (int64_t)primary->sentinels.count);
    SENTINEL_EACH(i, &primary->sentinels) replyInstance(c, i);
}

/* SENTINEL GET-PRIMARY-ADDR-BY-NAME name. Reply: address and port. */
void sentinelGetPrimaryAddrByNameCommand(ctx *c) {
    const sentinelView *v = serverViewNow();
    sentinelInstance *primary = sentinelFindPrimary(v, c->argv[2]);
    if (!primary) {
        replyNullArray(c);
        return;
    }
    const sentinelAddr *addr = sentinelCurrentAddr(primary);
    char digits[NUMBER_TEXT_MAX];
    replyArray(c, 2);
    replyBulk(c, sentinelAddrText(v, addr));
    replyBulk(c, sliceMake(digits, numberPrintInt(digits, addr->port)));
}
void sentinelGetMasterAddrByNameCommand(ctx *c) { sentinelGetPrimaryAddrByNameCommand(c); }

/* ------------------------------------------------------------------ others */

/* SENTINEL MYID. Reply: the id. */
void sentinelMyidCommand(ctx *c) { replyBulkText(c, serverViewNow()->id); }

/* SENTINEL CKQUORUM name. Reply: whether a failover is possible. */
void sentinelCkquorumCommand(ctx *c) {
    sentinelInstance *primary = cmdPrimary(c);
    if (!primary) return;
    int usable = 1, voters = (int)primary->sentinels.count + 1;
    SENTINEL_EACH(i, &primary->sentinels) usable += !(i->flags & (INSTANCE_SDOWN | INSTANCE_ODOWN));
    if (!serverSentinelCanSave()) {
        replyError(c,
                   SLICE("NOQUORUM This Sentinel cannot save its configuration file, so it gives "
                         "no vote and starts no failover"));
        return;
    }
    bool no_quorum = usable < primary->quorum, no_majority = usable < voters / 2 + 1;
    str text = STR_EMPTY;
    if (!no_quorum && !no_majority) {
        strAppendFormat(&text,
                        "OK %d usable Sentinels. Quorum and failover authorization can be reached",
                        usable);
        replyStatus(c, strSlice(&text));
    } else {
        strAppendFormat(&text, "NOQUORUM %d usable Sentinels. %s%s%s", usable,
                        no_quorum ? "Not enough available Sentinels to reach the specified quorum "
                                    "for this master"
                                  : "",
                        no_quorum && no_majority ? ". " : "",
                        no_majority ? "Not enough available Sentinels to reach the majority and "
                                      "authorize a failover"
                                    : "");
        replyError(c, strSlice(&text));
    }
    strFree(&text);
}

static void replyCachedInfo(ctx *c, const sentinelInstance *i) {
    replyArray(c, 2);
    replyInteger(c, i->info_ms ? serverView.now_ms - i->info_ms : 0);
    if (i->info.len) {
        replyBulk(c, strSlice(&i->info));
    } else {
        replyNull(c);
    }
}

/* SENTINEL INFO-CACHE name... Reply: the last INFO of each primary and its replicas. */
void sentinelInfoCacheCommand(ctx *c) {
    const sentinelView *v = serverViewNow();
    int count = 0;
    respDeferred mark = respDeferBegin(c->out);
    SENTINEL_EACH(primary, &v->primaries) {
        bool wanted = false;
        for (int i = 2; i < c->argc; i++)
            wanted = wanted || sliceEqual(c->argv[i], strSlice(&primary->name));
        if (!wanted) continue;
        replyBulk(c, strSlice(&primary->name));
        replyArray(c, (int64_t)primary->replicas.count + 1);
        replyCachedInfo(c, primary);
        SENTINEL_EACH(replica, &primary->replicas) replyCachedInfo(c, replica);
        count += 2;
    }
    respDeferEnd(c->out, mark, '*', c->proto, count);
}

static void replyJob(ctx *c, const scriptJob *job, int64_t now_ms) {
    replyMap(c, 5);
    replyBulkText(c, "argv");
    replyArray(c, job->count);
    for (int i = 0; i < job->count; i++) replyBulk(c, strSlice(&job->args[i]));
    fieldMap m = {.c = c, .v = &serverView};
    addText(&m, "flags", job->running ? SLICE("running") : SLICE("scheduled"));
    addNumber(&m, "pid", job->running && job->process ? processId(job->process) : 0);
    if (job->running) {
        addNumber(&m, "run-time", now_ms - job->start_ms);
    } else {
        addNumber(&m, "run-delay", job->start_ms > now_ms ? job->start_ms - now_ms : 0);
    }
    addNumber(&m, "retry-num", job->tries);
}

/* SENTINEL PENDING-SCRIPTS. Reply: maps of scripts that run or wait. */
void sentinelPendingScriptsCommand(ctx *c) {
    const sentinelView *v = serverViewNow();
    const list *jobs = &serverScripts.jobs;
    replyArray(c, (int64_t)jobs->count);
    for (listNode *at = listFirst(jobs); at; at = listNext(jobs, at))
        replyJob(c, CONTAINER_OF(at, scriptJob, node), v->now_ms);
}

void sentinelHelpCommand(ctx *c) {
    static const char *const lines[] = {
        "CKQUORUM <primary-name>",
        "    Check if the current Sentinel configuration is able to reach the quorum",
        "    needed to failover a primary and the majority needed to authorize the",
        "    failover.",
        "CONFIG SET param value [param value ...]",
        "    Set a global Sentinel configuration parameter.",
        "CONFIG GET <param> [param param param ...]",
        "    Get global Sentinel configuration parameter.",
        "DEBUG [<param> <value> ...]",
        "    Show a list of configurable time parameters and their values (milliseconds).",
        "    Or update current configurable parameters values (one or more).",
        "GET-PRIMARY-ADDR-BY-NAME <primary-name>",
        "    Return the ip and port number of the primary with that name.",
        "FAILOVER <primary-name> [COORDINATED]",
        "    Manually failover a primary node without asking for agreement from other",
        "    Sentinels",
        "FLUSHCONFIG",
        "    Force Sentinel to rewrite its configuration on disk, including the current",
        "    Sentinel state.",
        "INFO-CACHE <primary-name>",
        "    Return last cached INFO output from primaries and all its replicas.",
        "IS-PRIMARY-DOWN-BY-ADDR <ip> <port> <current-epoch> <runid>",
        "    Check if the primary specified by ip:port is down from current Sentinel's",
        "    point of view.",
        "PRIMARY <primary-name>",
        "    Show the state and info of the specified primary.",
        "PRIMARIES",
        "    Show a list of monitored primaries and their state.",
        "MONITOR <name> <ip> <port> <quorum>",
        "    Start monitoring a new primary with the specified name, ip, port and quorum.",
        "MYID",
        "    Return the ID of the Sentinel instance.",
        "PENDING-SCRIPTS",
        "    Get pending scripts information.",
        "REMOVE <primary-name>",
        "    Remove primary from Sentinel's monitor list.",
        "REPLICAS <primary-name>",
        "    Show a list of replicas for this primary and their states.",
        "RESET <pattern>",
        "    Reset primaries for specific primary name matching this pattern.",
        "SENTINELS <primary-name>",
        "    Show a list of Sentinel instances for this primary and their state.",
        "SET <primary-name> <option> <value> [<option> <value> ...]",
        "    Set configuration parameters for certain primaries.",
        "SIMULATE-FAILURE [CRASH-AFTER-ELECTION] [CRASH-AFTER-PROMOTION] [HELP]",
        "    Simulate a Sentinel crash.",
        NULL};
    replyHelp(c, lines);
}

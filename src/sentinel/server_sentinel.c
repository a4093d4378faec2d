/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the state machines of Sentinel (monitor/) in this process: ticks, the configuration file,
 * scripts, INFO and events.
 *
 * Invariant: a vote of this Sentinel, and an epoch that it begins, are in the file before they are
 * sent: save() writes it at once. Main thread only. */
#include "sentinel/server_sentinel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/base.h"
#include "base/random.h"
#include "config/config.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"
#include "engine/tick.h"
#include "engine/timer.h"
#include "io/process.h"
#include "monitor/machine.h"
#include "net/net.h"
#include "pubsub/pubsub.h"
#include "sentinel/lines.h"
#include "sentinel/sentinel.h"
#include "sentinel/server_links.h"

enum { HZ_MIN = 10, HZ_RANGE = 10, CRASH_EXIT = 99 };

sentinelView serverView;
scriptQueue serverScripts;
static bool is_running;
static bool save_is_due; /* at the end of this turn */
static bool is_unsaved;  /* the last save has failed */

bool serverSentinelIsRunning(void) { return is_running; }

bool serverSentinelCanSave(void) { return !is_unsaved || serverSentinelSave(); }

/* The wall clock: a failover that was started before a restart counts, and jumps are noticed. */
sentinelView *serverViewNow(void) {
    hotCheck(threadIsMain());
    serverView.now_ms = clockWallMs();
    serverView.mono_ms = clockMonoMs();
    return &serverView;
}

/* ------------------------------------------------------------------ the environment */

static void event(sentinelView *v, logLevel level, const char *name, slice text,
                  const sentinelInstance *notify) {
    hotCheck(v == &serverView);
    logWrite(level, "%s%s%.*s", name, name[0] ? " " : "", (int)text.len, text.ptr);
    if (!name[0]) return;
    if (level > LOG_DEBUG) pubsubDeliver(false, sliceOf(name), text);
    if (!notify || !notify->notification_script.len) return;
    slice args[] = {sliceOf(name), text};
    scriptsAdd(&serverScripts, strSlice(&notify->notification_script), COUNT_OF(args), args);
}

bool serverSentinelSave(void) {
    reason why;
    hotCheck(threadIsMain());
    save_is_due = false;
    is_unsaved = configRewrite(CONFIG_REWRITE_NO_DATASET, &why) != OK;
    if (!is_unsaved) {
        logNotice("Sentinel new configuration saved on disk");
        return true;
    }
    logWarning("WARNING: Sentinel was not able to save the new configuration on disk!!!: %s",
               why.text);
    return false;
}

static bool save(sentinelView *v) {
    hotCheck(v == &serverView);
    return serverSentinelSave();
}

static void saveSoon(sentinelView *v) {
    hotCheck(v == &serverView);
    save_is_due = true;
}

static void saveTurn(void) {
    hotCheck(threadIsMain());
    if (save_is_due) (void)serverSentinelSave(); /* a failure is logged */
}

static void runScript(sentinelView *v, slice path, int count, const slice *args) {
    hotCheck(v == &serverView);
    scriptsAdd(&serverScripts, path, count, args);
}

static uint64_t drawRandom(sentinelView *v, uint64_t bound) {
    hotCheck(v == &serverView);
    return randomUniform(bound);
}

static int ownPort(sentinelView *v) {
    hotCheck(v == &serverView);
    return netReplicationPort();
}

static void crash(sentinelView *v) {
    hotCheck(v == &serverView);
    logWarning("Sentinel CRASH because of SENTINEL simulate-failure");
    (void)fflush(stdout); /* nothing of it matters more than the exit code */
    _exit(CRASH_EXIT);
}

static slice ownPassword(sentinelView *v) {
    static str password;
    const configOption *o = configFind(SLICE("requirepass"));
    hotCheck(v == &serverView);
    strClear(&password);
    if (o) configGet(o, &password);
    return strSlice(&password);
}

static bool needsPassword(sentinelView *v) {
    hotCheck(v == &serverView);
    return aclDefaultNeedsPassword();
}

static const sentinelEnv env = {.connect = serverLinkConnect,
                                .disconnect = serverLinkDisconnect,
                                .send = serverLinkSend,
                                .event = event,
                                .save = save,
                                .save_soon = saveSoon,
                                .run_script = runScript,
                                .random = drawRandom,
                                .resolve = serverLinkResolve,
                                .own_ip = serverLinkOwnIp,
                                .own_port = ownPort,
                                .crash = crash,
                                .own_password = ownPassword,
                                .needs_password = needsPassword};

/* ------------------------------------------------------------------ scripts */

static void scriptEnded(void *arg, const processEnd *end) {
    scriptJob *job = arg;
    check(job->running);
    sentinelView *v = serverViewNow();
    str path = strNew(strSlice(&job->args[0]));
    int code = end->exit_code < 0 ? 0 : end->exit_code;
    sentinelEventText(v, LOG_DEBUG, "-script-child", NULL, "%d %d %d", end->pid, code, end->signal);
    if (end->timed_out)
        sentinelEventText(v, LOG_WARNING, "-script-timeout", NULL, "%s %d", strText(&path),
                          end->pid);
    bool again =
        scriptsEnded(&serverScripts, job, code, end->signal, v->periods.script_retry, v->now_ms);
    if (!again && (code || end->signal))
        sentinelEventText(v, LOG_WARNING, "-script-error", NULL, "%s %d %d", strText(&path),
                          end->signal, code);
    strFree(&path);
}

static void startScript(sentinelView *v, scriptJob *job) {
    check(job->running);
    const char *argv[SCRIPTS_ARGS_MAX + 1] = {NULL};
    process *started = NULL; /* compilers do not see that it is set on success */
    reason why;
    for (int i = 0; i < job->count; i++) argv[i] = strText(&job->args[i]);
    processStart start = {.path = argv[0],
                          .argv = argv,
                          .timeout_ms = v->periods.script_runtime,
                          .ended = scriptEnded,
                          .arg = job};
    if (processSpawn(engineLoop(), &start, &started, &why) == OK) {
        job->process = started;
        sentinelEventText(v, LOG_DEBUG, "+script-child", NULL, "%d", processId(started));
        return;
    }
    sentinelEventText(v, LOG_WARNING, "-script-error", NULL, "%s 0 2", argv[0]);
    (void)scriptsEnded(&serverScripts, job, 2, 0, 0, v->now_ms); /* it is not tried again */
}

/* ------------------------------------------------------------------ the file */

static int lineRank(const slice *words, int count) { return sentinelLineRank(words, count); }

static status takeLine(const slice *words, int count, reason *why) {
    return sentinelLineTake(&serverView, words, count, why);
}

static void addLine(void *arg, slice line, bool is_default) {
    if (is_default) {
        configLinesAddDefault(arg, line);
    } else {
        configLinesAdd(arg, line);
    }
}

static void writeLines(configLines *lines) { sentinelLinesWrite(&serverView, addLine, lines); }

static const configFileOnly sentinel_line = {.words_max = INT32_MAX,
                                             .key_words = sentinelLineKeyWords,
                                             .rank = lineRank,
                                             .take = takeLine,
                                             .rewrite = writeLines};
const configOption sentinelOptions[] = {
    CONFIG_FILE_ONLY("sentinel", &sentinel_line, .flags = CONFIG_MAY_BE_BARE), CONFIG_END};

/* ------------------------------------------------------------------ start and ticks */

static int drawHz(void) { return HZ_MIN + (int)randomUniform(HZ_RANGE); }

void sentinelPrepare(void) {
    hotCheck(threadIsMain());
    sentinelViewInit(&serverView, &env, NULL);
    scriptsInit(&serverScripts);
    (void)serverViewNow(); /* instances that the file names have a time */
}

static status init(reason *why) {
    const char *path = configFilePath();
    if (!path)
        return reasonSet(why, ERR_NOT_FOUND,
                         "Sentinel needs config file on disk to save state. Exiting...");
    if (access(path, W_OK) != 0 && errno != ENOENT)
        return reasonSet(why, ERR_DENIED, "Sentinel config file %s is not writable: %s. Exiting...",
                         path, strerror(errno));
    tickSetHzProc(drawHz);
    return OK;
}

void sentinelBegin(void) {
    sentinelView *v = serverViewNow();
    is_running = true;
    if (!v->id[0]) {
        randomHex(v->id, SENTINEL_ID_LEN);
        (void)serverSentinelSave(); /* a failure is logged; it is tried again with each change */
    }
    logNotice("Sentinel ID is %s", v->id);
    SENTINEL_EACH(primary, &v->primaries)
    sentinelEvent(v, LOG_WARNING, "+monitor", primary, " quorum %lld", (long long)primary->quorum);
}

static void hurry(engineTimer *t);

static void tickSoon(const sentinelView *v) {
    static engineTimer timer = {.due = hurry};
    int64_t ms = sentinelHurryMs(v);
    if (ms) timerSet(&timer, v->now_ms + ms);
}

static void hurry(engineTimer *t) {
    (void)t;
    sentinelView *v = serverViewNow();
    sentinelTick(v);
    tickSoon(v);
}

static void tick(int64_t budget_us) {
    (void)budget_us; /* all is done at each tick */
    if (!is_running) return;
    sentinelView *v = serverViewNow();
    sentinelTick(v);
    tickSoon(v);
    for (scriptJob *job; (job = scriptsNext(&serverScripts, v->now_ms)) != NULL;)
        startScript(v, job);
}

/* ------------------------------------------------------------------ INFO and ROLE */

static const char *statusOf(const sentinelInstance *primary) {
    if (primary->flags & INSTANCE_ODOWN) return "odown";
    return primary->flags & INSTANCE_SDOWN ? "sdown" : "ok";
}

static void printInfo(str *out) {
    hotCheck(serverScripts.running >= 0);
    sentinelView *v = serverViewNow();
    int number = 0;
    strAppendFormat(out,
                    "sentinel_masters:%d\r\nsentinel_tilt:%d\r\n"
                    "sentinel_tilt_since_seconds:%lld\r\nsentinel_total_tilt:%llu\r\n"
                    "sentinel_running_scripts:%d\r\nsentinel_scripts_queue_length:%d\r\n"
                    "sentinel_simulate_failure_flags:%u\r\n",
                    (int)v->primaries.count, v->tilt,
                    v->tilt ? (long long)(v->now_ms - v->tilt_since_ms) / 1000 : -1LL,
                    (unsigned long long)v->tilt_count, serverScripts.running,
                    (int)serverScripts.jobs.count, v->simulated);
    SENTINEL_EACH(primary, &v->primaries) {
        const sentinelAddr *addr = sentinelCurrentAddr(primary);
        slice host = sentinelAddrText(v, addr);
        strAppendFormat(
            out, "master%d:name=%s,status=%s,address=%.*s:%d,slaves=%d,sentinels=%d\r\n", number++,
            strText(&primary->name), statusOf(primary), (int)host.len, host.ptr, addr->port,
            (int)primary->replicas.count, (int)primary->sentinels.count + 1);
    }
}

static void printInstance(str *out, int *number, sentinelInstance *i) {
    const sentinelView *v = &serverView;
    slice host = sentinelAddrText(v, &i->addr);
    hotCheck(i->primary);
    strAppendFormat(out, "sentinel_instance_%d:primary=%s,kind=%s,address=%.*s:%d,up=%d\r\n",
                    (*number)++, strText(&i->primary->name), sentinelKindName(i->kind),
                    (int)host.len, host.ptr, i->addr.port,
                    !(i->flags & INSTANCE_SDOWN) && sentinelIsConnected(i));
}

static int countUp(const list *of) {
    int count = 0;
    SENTINEL_EACH(i, of) count += !(i->flags & INSTANCE_SDOWN) && sentinelIsConnected(i);
    return count;
}

/* For the metrics port: all that is watched, and the last failovers since the start. */
static void printWatched(str *out) {
    sentinelView *v = serverViewNow();
    int number = 0, other = 0;
    hotCheck(v->env);
    SENTINEL_EACH(primary, &v->primaries) {
        const sentinelAddr *addr = sentinelCurrentAddr(primary);
        slice host = sentinelAddrText(v, addr);
        int voters = (int)primary->sentinels.count + 1, usable = 1 + countUp(&primary->sentinels);
        strAppendFormat(
            out,
            "sentinel_primary_%d:name=%s,address=%.*s:%d,status=%s,replicas=%d,ok_replicas=%d,"
            "sentinels=%d,ok_sentinels=%d,quorum=%lld,ckquorum=%d,config_epoch=%llu,state=%s,"
            "switched=%lld,why=%s\r\n",
            number++, strText(&primary->name), (int)host.len, host.ptr, addr->port,
            statusOf(primary), (int)primary->replicas.count, countUp(&primary->replicas), voters,
            usable, (long long)primary->quorum,
            usable >= primary->quorum && usable >= voters / 2 + 1,
            (unsigned long long)primary->config_epoch, sentinelStepName(primary->step),
            (long long)primary->switched_ms / 1000, primary->switch_why ? primary->switch_why : "");
        SENTINEL_EACH(replica, &primary->replicas) printInstance(out, &other, replica);
        SENTINEL_EACH(peer, &primary->sentinels) printInstance(out, &other, peer);
    }
}

void sentinelReplyRole(ctx *c) {
    const sentinelView *v = serverViewNow();
    replyArray(c, 2);
    replyBulkText(c, "sentinel");
    replyArray(c, (int64_t)v->primaries.count);
    SENTINEL_EACH(primary, &v->primaries) replyBulk(c, strSlice(&primary->name));
}

static bool isBusy(void) { return is_running; }

static const tickJob ticks[] = {{"sentinel", 0, tick, isBusy}, {0}};
static const stageJob stages[] = {{STAGE_LOG, saveTurn}, {0}};

/* Exporters read the same fields from a Sentinel, which lacks the subsystems that count them. */
static void printStats(str *out) {
    hotCheck(threadIsMain());
    static const char *const absent[] = {"sync_full",
                                         "sync_partial_ok",
                                         "sync_partial_err",
                                         "evicted_scripts",
                                         "migrate_cached_sockets",
                                         "slave_expires_tracked_keys",
                                         "active_defrag_hits",
                                         "active_defrag_misses",
                                         "active_defrag_key_hits",
                                         "active_defrag_key_misses",
                                         "total_active_defrag_time",
                                         "current_active_defrag_time"};
    for (size_t i = 0; i < COUNT_OF(absent); i++) strAppendFormat(out, "%s:0\r\n", absent[i]);
}

static const infoSection sections[] = {
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {"sentinel", "# Sentinel", INFO_NORMAL, INFO_SENTINEL, printInfo},
    {"sentinel_watched", "# Sentinel", 0, INFO_SENTINEL, printWatched},
    {0}};

/* PUBLISH: clients may send hello messages, nothing else. */
static bool publishInward(ctx *c) {
    if (!sliceEqual(c->argv[1], SLICE("__sentinel__:hello"))) {
        replyError(c, SLICE("ERR Only HELLO messages are accepted by Sentinel instances."));
        return true;
    }
    sentinelHello(serverViewNow(), c->argv[2], true);
    replyInteger(c, 1);
    return true;
}

static status initFeature(reason *why) {
    pubsubSetInward(publishInward);
    return init(why);
}

const feature sentinelFeature = {
    .name = "sentinel", .info = sections, .ticks = ticks, .stages = stages, .init = initFeature};

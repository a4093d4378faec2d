/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of pub/sub, keyspace events and client tracking: directives, gates, INFO, and work
 * that is continued turn by turn. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "engine/hot.h"
#include "engine/session_report.h"
#include "engine/timer.h"
#include "engine/user.h"
#include "pubsub/publish.h"
#include "pubsub/pubsub.h"
#include "pubsub/pubsub_priv.h"
#include "pubsub/channels.h"
#include "pubsub/tracking.h"

static const gate *const gates[] = {&monitorGate, &pubsubContextGate, NULL};

/* ------------------------------------------------------------------ deferred work */

/* One step of each kind of deferred work, and another one in the next turn if there is more. */
static void work(engineTimer *t) {
    bool more = publishWork();
    if (subscriptionsWork()) more = true;
    if (trackingWork()) more = true;
    if (more) timerSet(t, clockWallMs());
}

static engineTimer worker = {.due = work};

void pubsubWorkLater(void) {
    if (!worker.index) timerSet(&worker, engineHot.now_ms);
}

static status shutdown(uint32_t flags, reason *why) {
    (void)flags, (void)why; /* cannot fail */
    publishFinish(NULL);
    while (subscriptionsWork()) continue;
    publishLogsAge(0);
    publishLogsAge(0); /* those in use, too */
    trackingClear();
    timerStop(&worker);
    return OK;
}

/* ------------------------------------------------------------------ sessions */

static bool isAllowed(session *s, channelKind kind, slice name) {
    return userMayReceive(s, name, kind == CHANNEL_PATTERN);
}

static void onSession(session *s, sessionEvent e) {
    monitorOnSession(s, e);
    /* A link of another node has channels for clients of that node, which checks their rights. */
    bool loses = e == SESSION_CHANNELS_TAKEN && !(s->flags & SESSION_NODE_LINK);
    if (loses && !subscriptionsEach(s, isAllowed)) userCloseSession(s);
    if (e != SESSION_ENDING && e != SESSION_WAS_RESET) return;
    if (e == SESSION_WAS_RESET && s->flags & SESSION_PUBSUB) publishFinish(NULL);
    subscriptionsDrop(s);
    trackingOnSession(s, e);
}

static void report(const session *s, sessionReport *out) {
    out->channels = subscriptionCount(s, CHANNEL_PLAIN);
    out->patterns = subscriptionCount(s, CHANNEL_PATTERN);
    out->shard_channels = subscriptionCount(s, CHANNEL_SHARD);
    trackingReport(s, out);
}

static status init(reason *why) {
    (void)why; /* cannot fail */
    sessionReportAddProc(report);
    sessionSetTrackingCountProc(trackingCount);
    return OK;
}

/* ------------------------------------------------------------------ INFO */

static void printStats(str *out) {
    strAppendField(out, "pubsub_channels", channelsOfKind(CHANNEL_PLAIN));
    strAppendField(out, "pubsub_patterns", channelsOfKind(CHANNEL_PATTERN));
    strAppendField(out, "pubsubshard_channels", channelsOfKind(CHANNEL_SHARD));
    trackingPrintStats(out);
}

static const infoSection sections[] = {
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printStats},
    {0},
};

static const tickJob ticks[] = {{"message-logs", 1000, publishLogsAge, NULL}, {0}};
static const stageJob stages[] = {{STAGE_LOG, trackingBeforeSleep}, {0}};

const feature pubsubFeature = {.name = "pubsub",
                               .options = pubsubOptions,
                               .info = sections,
                               .gates = gates,
                               .ticks = ticks,
                               .stages = stages,
                               .on_db = trackingOnDb,
                               .on_session = onSession,
                               .init = init,
                               .on_shutdown = shutdown};

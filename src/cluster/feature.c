/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registers what the cluster adds to the server: directives, the gate that redirects requests, INFO
 * sections, stages of a turn and periodic jobs. Main thread only. */
#include "base/base.h"
#include "config/config.h"
#include "cluster/cluster.h"
#include "cluster/cluster_priv.h"
#include "cluster/cluster_report.h"
#include "cluster/cmd_cluster.h"
#include "cluster/debug_bus.h"
#include "cluster/held_messages.h"
#include "cluster/migrate.h"
#include "cluster/open_requests.h"
#include "bus/open_slots.h"
#include "cluster/server_bus.h"
#include "cluster/server_file.h"
#include "cluster/server_map.h"
#include "cluster/shared_state.h"
#include "cluster/shutdown.h"
#include "cluster/slot_export.h"
#include "cluster/slot_import.h"
#include "cluster/slot_migration.h"
#include "cluster/slot_stats.h"
#include "cluster/server_role.h"
#include "cluster/server_slots.h"
#include "engine/keyspace.h"
#include "engine/server_event.h"
#include "format/slot_imports.h"
#include "repl/role.h"

bool clusterIsEnabled(void) { return clusterConf.cluster_enabled; }

int clusterDatabases(void) { return clusterConf.cluster_databases; }

bool clusterIsReplica(void) {
    return clusterIsEnabled() && !(serverMap.myself->flags & NODE_PRIMARY);
}

void clusterAfterUsers(void) {
    if (clusterIsEnabled()) sharedReadUsers();
}

void clusterAfterLoad(void) {
    if (!clusterIsEnabled()) return;
    slotMigrationAfterLoad();
    serverRoleVerify();
    sharedStart();
}

static void printCluster(str *out) {
    strAppendFormat(out, "cluster_enabled:%d\r\n", clusterIsEnabled());
}

/* Without a cluster the section has a title only, as in Valkey. */
static void printClusterInfo(str *out) {
    if (clusterIsEnabled()) clusterPrintInfo(out);
}

static slice ownId(void) {
    return clusterIsEnabled() ? clusterNodeId(serverMap.myself) : SLICE("");
}

static bool knows(slice id) { return clusterIsEnabled() && clusterMapFind(&serverMap, id); }

static void printSlotStates(str *out) { openSlotsPrint(&serverMap, out); }

static void slotStatesReceived(slice text) {
    if (!openSlotsParse(&serverMap, text))
        logWarning("The dataset of the primary names slots that are being moved in an unknown way");
}

static const slotStateKeeper slot_states = {.print = printSlotStates, .loaded = slotStatesReceived};

static slice primaryId(void) {
    const clusterNode *primary = clusterIsEnabled() ? serverMap.myself->primary : NULL;
    return primary ? clusterNodeId(primary) : SLICE("");
}

static const replCluster repl_cluster = {.own_id = ownId, .knows = knows, .primary_id = primaryId};

static void saveBeforeExit(const serverEvent *e) {
    reason why; /* was logged; Valkey does not stay for it, either */
    check(e->kind == SERVER_SHUTDOWN);
    logNotice("Saving the cluster configuration file before exiting.");
    if (serverMapSave(&why) == OK) serverMap.changed = 0;
    sharedSaveNow();
}

/* A changed directive counts for the next request and message, not only from the next tick. */
static void takeDirectives(const serverEvent *e) {
    check(e->kind == SERVER_CONFIG);
    serverMapAnnounce();
    serverBusTakeRules();
}

static status init(reason *why) {
    if (!clusterIsEnabled()) return OK;
    status st = serverMapInit(why);
    if (st == OK) st = serverBusInit(why);
    if (st != OK) return st;
    debugBusInit();
    slotMigrationInit();
    replSetCluster(&repl_cluster);
    serverRoleInit();
    slotStatesSetKeeper(&slot_states);
    serverEventsListen(saveBeforeExit, 1u << SERVER_SHUTDOWN);
    serverEventsListen(takeDirectives, 1u << SERVER_CONFIG);
    gateArm(&clusterRedirectGate, true);
    return slotStatsApply(why);
}

static void tickBus(int64_t budget_us) {
    if (!clusterIsEnabled()) return;
    serverMapNoteOrders();
    serverMapAnnounce(); /* ports may have changed */
    serverBusTick(budget_us);
    sharedTick(budget_us);
    serverMapNote();
    clusterSetslotTick();
}

/* Runs before replies are sent: a client that receives OK can rely on the configuration file. So
 * the server waits for a save of what commands have changed; serverMapNote() was called after all
 * other causes of changes, and serverMapNoteOrders() before them. */
void clusterApplyChanges(void) {
    if (!clusterIsEnabled()) return;
    bool ordered = serverMap.changed & (CLUSTER_MAP_SAVE | CLUSTER_MAP_SYNC);
    slotMigrationStep();
    sharedStep();
    serverBusStep();
    /* The slots of a replica that takes over must not be hidden when the next request comes. */
    if (serverMap.changed & CLUSTER_MAP_OWN_SLOTS) slotMigrationStep();
    serverMapApplyChanges(ordered);
}

/* After the map has been saved. */
static void sendMessages(void) {
    if (!clusterIsEnabled()) return;
    heldMessagesRelease();
    serverBusFlush();
}

void clusterAnswerNodes(void) {
    check(clusterIsEnabled());
    serverBusRead();
    clusterApplyChanges();
    serverFileWait();
    sendMessages();
}

static void resetStats(void) {
    if (!clusterIsEnabled()) return;
    serverBusResetStats();
    slotStatsReset();
}

static void printConnections(str *out) {
    strAppendFormat(out, "migrate_cached_sockets:%d\r\n", migrateIdleConnections());
}

static void onChild(childEvent e, int kind, int exit_code, int signal) {
    (void)kind, (void)exit_code, (void)signal;
    if (e == CHILD_IN_CHILD) serverFileInChild();
}

static void onDb(const dbEvent *e) {
    if (e->kind == DB_LOAD_BEGINS) keyspaceDropForget();
    migrateDbEvent(e);
    slotMigrationDbEvent(e);
}

static const tickJob ticks[] = {{"cluster-bus", BUS_TICK_MS, tickBus, clusterIsEnabled},
                                {"migrate-idle", 1000, migrateCloseIdle, NULL},
                                {"slot-migration", 100, slotMigrationTick, slotMigrationIsBusy},
                                {0}};
static const stageJob stages[] = {
    {STAGE_LOG, clusterApplyChanges}, {STAGE_REPLICATE, sendMessages}, {0}};

static const keyObserver *const observers[] = {&migrateObserver, NULL};
static const commandObserver *const command_observers[] = {&slotStatsObserver,
                                                           &openRequestsObserver, NULL};
static const sink *const sinks[] = {&slotStatsSink, &slotExportSink, NULL};
static const gate *const gates[] = {&clusterRedirectGate, &slotImportGate, NULL};

static const infoSection sections[] = {
    {"cluster", "# Cluster", INFO_NORMAL, INFO_CLUSTER, printCluster},
    {"cluster_info", "# Cluster Info", INFO_IN_ALL | INFO_IN_EVERYTHING, INFO_CLUSTER_INFO,
     printClusterInfo},
    {"stats", "# Stats", INFO_NORMAL, INFO_STATS, printConnections},
    {0},
};

const feature clusterFeature = {.name = "cluster",
                                .options = clusterOptions,
                                .info = sections,
                                .ticks = ticks,
                                .stages = stages,
                                .gates = gates,
                                .observers = observers,
                                .command_observers = command_observers,
                                .sinks = sinks,
                                .on_db = onDb,
                                .on_session = slotMigrationSessionEvent,
                                .on_child = onChild,
                                .on_stats_reset = resetStats,
                                .on_shutdown = clusterBeforeShutdown,
                                .init = init};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations on the whole server (lifecycle.h). Invariant: each function is set once, before the
 * loop starts. Main thread only. */
#include "engine/lifecycle.h"

#include "base/base.h"
#include "io/bio.h"
#include "engine/block.h"
#include "engine/reply.h"
#include "io/tls.h"
#include "store/store.h"

static struct {
    engineShutdownProc *shutdown;
    engineRestartProc *restart;
    engineIdentityProc *identity;
    engineServeProc *serve;
    engineReloadProc *reload;
} procs;

static loop *main_loop;

void engineSetLoop(loop *l) { main_loop = l; }

loop *engineLoop(void) {
    check(main_loop != NULL);
    return main_loop;
}

void engineStayAwake(void) { loopLimitSleep(engineLoop(), 0); }

void engineSetShutdownProc(engineShutdownProc *proc) { procs.shutdown = proc; }

status engineShutdown(uint32_t flags, bool abort, reason *why) {
    check(procs.shutdown != NULL);
    return procs.shutdown(flags, abort, why);
}

static bool loads_beside;

bool engineLoadsBeside(void) { return loads_beside; }
void engineSetLoadsBeside(bool loads) { loads_beside = loads; }

static bool shutdown_waits;

bool engineShutdownWaits(void) { return shutdown_waits; }

void engineSetShutdownWaits(bool waits) {
    if (shutdown_waits && !waits) blockNotify(BLOCK_CUSTOM);
    shutdown_waits = waits;
}

void engineSetRestartProc(engineRestartProc *proc) { procs.restart = proc; }

status engineRestart(bool graceful, int64_t delay_ms, reason *why) {
    check(procs.restart != NULL);
    return procs.restart(graceful, delay_ms, why);
}

void engineSetReloadProc(engineReloadProc *proc) { procs.reload = proc; }

status engineReload(unsigned flags, reason *why) {
    check(procs.reload != NULL);
    return procs.reload(flags, why);
}

static const engineClusterProcs *cluster;

void engineSetClusterProcs(const engineClusterProcs *functions) { cluster = functions; }

const engineClusterProcs *engineCluster(void) { return cluster; }

static const engineReplicationProcs *replication;

void engineSetReplicationProcs(const engineReplicationProcs *functions) { replication = functions; }

const engineReplicationProcs *engineReplication(void) {
    check(replication != NULL);
    return replication;
}

bool engineBlockTlsWrites(bool on) {
    tlsBlockWrites(on);
    return tlsIsSupported();
}

static engineModulesProc *reply_modules;

static engineModuleWithoutProc *module_without;

void engineSetModuleWithoutProc(engineModuleWithoutProc *proc) { module_without = proc; }

const char *engineModuleWithout(engineModuleAbility what) {
    return module_without ? module_without(what) : NULL;
}

void engineSetModulesProc(engineModulesProc *proc) { reply_modules = proc; }

void engineReplyModules(ctx *c) {
    if (reply_modules) {
        reply_modules(c);
    } else {
        replyArray(c, 0);
    }
}

static int64_t flush_delay_us;

void engineSetFlushDelay(int64_t us) { flush_delay_us = us; }
int64_t engineFlushDelay(void) { return flush_delay_us; }

void engineSetServeProc(engineServeProc *proc) { procs.serve = proc; }

void engineServe(void) {
    hotCheck(threadIsMain());
    check(procs.serve != NULL);
    /* The command that is being executed would see keys change between its steps. */
    bool before = keyspaceForbidChanges(engineHot.current != NULL);
    procs.serve();
    (void)keyspaceForbidChanges(before); /* was set above */
}

void engineAnswerNodes(void) {
    hotCheck(threadIsMain());
    if (!cluster) return;
    check(cluster->answer != NULL);
    bool before = keyspaceForbidChanges(engineHot.current != NULL);
    cluster->answer();
    (void)keyspaceForbidChanges(before); /* was set above */
}

void engineSetIdentityProc(engineIdentityProc *proc) { procs.identity = proc; }

void engineIdentify(engineIdentity *out) {
    check(procs.identity != NULL);
    procs.identity(out);
}

int engineDatabaseCount(void) { return storeDbCount(); }

void engineDrainJobs(void) {
    hotCheck(threadIsMain());
    for (int kind = 0; kind < BIO_KINDS; kind++) {
        if (kind != BIO_RESOLVE) bioDrain((bioKind)kind);
    }
}

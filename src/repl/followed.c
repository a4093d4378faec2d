/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides which data a replica keeps if its primary has lost them (followed.h).
 *
 * Invariant: the file of the followed primary exists while `followed.is_set`, unless writing has
 * failed. */
#include "repl/followed.h"

#include <string.h>

#include "base/base.h"
#include "persist/sync_load.h"
#include "repl/followed_file.h"
#include "repl/repl_priv.h"
#include "psync/primary_peer.h"
#include "repl/replica.h"
#include "repl/replicas.h"
#include "repl/server_state.h"
#include "store/store.h"

/* A replica that is refused asks again within this time, so later a primary is not refused any
 * more. */
enum { REFUSAL_MS = 30 * 1000, LOG_MS = 60 * 1000 };

static struct {
    bool is_set;
    char birth[REPL_ID_LEN + 1]; /* empty: unknown */
} followed;

/* A replica that was refused. */
static struct {
    int64_t last_ms; /* 0: none */
    int64_t told_ms; /* when the log said so */
    str name;        /* of the last one */
} lost;

void followedNote(const replBirth *birth) {
    hotCheck(threadIsMain());
    followed.is_set = true;
    followed.birth[0] = 0;
    if (birth) memcpy(followed.birth, birth->id, sizeof(followed.birth));
    followedFileKeep(followed.birth);
}

void followedAfterStart(void) {
    hotCheck(!followed.is_set);
    if (replicaIsOn() && persistLoadedDataset()) followed.is_set = followedFileRead(followed.birth);
}

void followedForget(void) {
    hotCheck(threadIsMain());
    followed.is_set = false;
    followedFileRemove();
}

void followedFillSettings(linkSettings *s) {
    s->keeps_data = replConf.replica_refuse_empty_primary && followed.is_set &&
                    keyspaceKeyCount(keyspaceMain()) > 0;
    s->kept_birth = sliceOf(followed.birth);
    s->keeps_discarded = replConf.replica_refuse_empty_primary == REFUSE_EMPTY_ALWAYS;
}

void followedLogOrder(const replLink *link) {
    size_t keys = keyspaceKeyCount(keyspaceMain());
    if (link->knows_birth && link->primary_birth.is_new) hotCheck(link->primary_birth.id[0]);
    const replBirth *theirs = &link->primary_birth, *ours = &replThis()->birth;
    if (!keys || !link->knows_birth || !theirs->is_new || !strcmp(theirs->id, ours->id)) return;
    logWarning("The primary was started without a dataset. Its dataset replaces the %zu keys here, "
               "%s.",
               keys,
               !replConf.replica_refuse_empty_primary ? "as replica-refuse-empty-primary is off"
               : link->is_discarded ? "as the primary was shut down by order and saved nothing"
                                    : "as this server was told to follow it");
}

/* ------------------------------------------------------------------ as the primary */

void lostDataNote(const replPeer *peer) {
    hotCheck(peer->keeps.len);
    int64_t now_ms = clockMonoMs();
    const char *name = primaryPeerName(replicasThis(), peer, &lost.name);
    if (logIsDue(&lost.told_ms, now_ms, LOG_MS))
        logWarning("Replica %s keeps the data that it has of an earlier process at this address: "
                   "this server was started without them. Restore them, or promote the replica "
                   "(replica-refuse-empty-primary)",
                   name);
    lost.last_ms = now_ms;
}

void lostDataEnd(const replPeer *peer) {
    if (likely(!lost.last_ms)) return;
    hotCheck(lost.name.len);
    str name = STR_EMPTY;
    if (!strcmp(primaryPeerName(replicasThis(), peer, &name), strText(&lost.name)))
        lost.last_ms = 0;
    strFree(&name);
}

int64_t lostDataMs(void) {
    if (!lost.last_ms || replicaIsOn() || !replConf.replica_refuse_empty_primary) return -1;
    return clockMonoMs() - lost.last_ms;
}

void lostDataPrintInfo(str *out) {
    int64_t ms = lostDataMs();
    if (ms >= 0 && ms < REFUSAL_MS) strAppendText(out, "replicas_keep_lost_data:1\r\n");
}

status followedApply(reason *why) {
    (void)why; /* cannot fail */
    replicaRetryRefused();
    return OK;
}

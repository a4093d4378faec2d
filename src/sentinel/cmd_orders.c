/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands of SENTINEL that change which primaries are watched, start a failover, or ask for a
 * vote. */
#include "base/base.h"
#include "base/glob.h"
#include "base/number.h"
#include "monitor/machine.h"
#include "sentinel/cmd_priv.h"

void cmdSaveAndReply(ctx *c) {
    hotCheck(c->argc > 1);
    if (serverSentinelSave()) {
        replyOk(c);
    } else {
        replyError(c, SLICE("ERR Failed to save config file. Check server logs."));
    }
}

bool cmdRefuseControls(ctx *c, int first, const char *what) {
    hotCheck(first > 1);
    for (int i = first; i < c->argc; i++) {
        for (size_t at = 0; at < c->argv[i].len; at++) {
            uint8_t byte = (uint8_t)c->argv[i].ptr[at];
            if (byte >= ' ' && byte != 0x7f) continue;
            replyErrorFormat(c,
                             "ERR Invalid argument at index %d for SENTINEL %s: control characters "
                             "are not allowed",
                             i, what);
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ what is watched */

/* SENTINEL MONITOR name ip port quorum. Reply: OK. */
void sentinelMonitorCommand(ctx *c) {
    hotCheck(c->argc == 6);
    sentinelView *v = serverViewNow();
    int64_t quorum, port;
    sentinelInstance *primary;
    if (cmdRefuseControls(c, 2, "MONITOR")) return;
    if (!ctxArgIntIn(c, 5, INT64_MIN, INT64_MAX, &quorum, "ERR Invalid quorum")) return;
    if (!ctxArgIntIn(c, 4, INT64_MIN, INT64_MAX, &port, "ERR Invalid port")) return;
    if (quorum <= 0) {
        replyError(c, SLICE("ERR Quorum must be 1 or greater."));
        return;
    }
    if (!sentinelNameIsValid(c->argv[2])) {
        replyError(c, SLICE("ERR Invalid primary name: empty, or with a comma"));
        return;
    }
    switch (sentinelAddPrimary(v, c->argv[2], c->argv[3], port, quorum, &primary)) {
    case OK: break;
    case ERR_RANGE: replyError(c, SLICE("ERR Invalid port number.")); return;
    case ERR_EXISTS: replyError(c, SLICE("ERR Duplicate master name.")); return;
    default: replyError(c, SLICE("ERR Invalid IP address or hostname specified")); return;
    }
    sentinelEvent(v, LOG_WARNING, "+monitor", primary, " quorum %lld", (long long)quorum);
    cmdSaveAndReply(c);
}

/* SENTINEL REMOVE name. Reply: OK. */
void sentinelRemoveCommand(ctx *c) {
    sentinelView *v = serverViewNow();
    sentinelInstance *primary = cmdPrimary(c);
    if (!primary) return;
    sentinelEvent(v, LOG_WARNING, "-monitor", primary, "%s", "");
    sentinelRemove(v, primary);
    cmdSaveAndReply(c);
}

/* SENTINEL RESET pattern. Reply: the number of primaries. */
void sentinelResetCommand(ctx *c) {
    sentinelView *v = serverViewNow();
    int count = 0;
    SENTINEL_EACH(primary, &v->primaries) {
        if (!globMatch(c->argv[2], strSlice(&primary->name))) continue;
        sentinelResetPrimary(v, primary, true);
        sentinelEvent(v, LOG_WARNING, "+reset-master", primary, "%s", "");
        count++;
    }
    if (count) (void)serverSentinelSave(); /* a failure is logged */
    replyInteger(c, count);
}

/* SENTINEL FLUSHCONFIG. Reply: OK. */
void sentinelFlushconfigCommand(ctx *c) {
    (void)serverViewNow(); /* the time is of no matter */
    cmdSaveAndReply(c);
}

/* ------------------------------------------------------------------ failover and votes */

/* SENTINEL FAILOVER name [COORDINATED]. Reply: OK when it has begun. */
void sentinelFailoverCommand(ctx *c) {
    sentinelView *v = serverViewNow();
    if (c->argc > 4) {
        replyErrorArity(c);
        return;
    }
    sentinelInstance *primary = cmdPrimary(c);
    if (!primary) return;
    bool coordinated = c->argc == 4;
    if (coordinated && !ctxArgIs(c, 3, "coordinated")) {
        replyError(c, SLICE("ERR Unknown failover option specified"));
        return;
    }
    if (coordinated && !primary->knows_failover) {
        replyError(c, SLICE("NOGOODPRIMARY Primary does not support FAILOVER command"));
        return;
    }
    if (primary->flags & INSTANCE_FAILOVER) {
        replyError(c, SLICE("INPROG Failover already in progress"));
        return;
    }
    status st = sentinelOrderFailover(v, primary, coordinated);
    if (st == OK) {
        logNotice("Executing user requested FAILOVER of '%s'", strText(&primary->name));
        replyOk(c);
    } else if (st == ERR_NOT_FOUND) {
        replyError(c, SLICE("NOGOODSLAVE No suitable replica to promote"));
    } else {
        check(st == ERR_IO);
        replyError(c, SLICE("ERR Failed to save config file. Check server logs."));
    }
}

/* SENTINEL IS-PRIMARY-DOWN-BY-ADDR ip port current-epoch id. Reply: whether it is down, the vote
 * and its epoch. */
void sentinelIsPrimaryDownByAddrCommand(ctx *c) {
    hotCheck(c->argc == 6);
    sentinelView *v = serverViewNow();
    int64_t port, epoch;
    if (!ctxArgInt(c, 3, &port) || !ctxArgInt(c, 4, &epoch)) return;
    sentinelInstance *primary = NULL;
    if (port >= 0 && port <= 65535) primary = sentinelFindPrimaryAt(v, c->argv[2], (int)port);
    bool down = primary && !v->tilt && (primary->flags & INSTANCE_SDOWN);
    bool wants_vote =
        primary && !sliceIs(c->argv[5], "*") && epoch >= 0 && (uint64_t)epoch <= SENTINEL_EPOCH_MAX;
    if (wants_vote) sentinelVote(v, primary, (uint64_t)epoch, c->argv[5]);
    bool tells = primary && !sliceIs(c->argv[5], "*");
    replyArray(c, 3);
    replyInteger(c, down);
    replyBulk(c, tells && primary->leader.len ? strSlice(&primary->leader) : SLICE("*"));
    replyInteger(c, tells ? (int64_t)primary->leader_epoch : 0);
}
void sentinelIsMasterDownByAddrCommand(ctx *c) { sentinelIsPrimaryDownByAddrCommand(c); }

/* SENTINEL SIMULATE-FAILURE [crash-after-election] [crash-after-promotion] | help. Reply: OK. */
void sentinelSimulateFailureCommand(ctx *c) {
    sentinelView *v = serverViewNow();
    unsigned flags = 0;
    for (int i = 2; i < c->argc; i++) {
        if (ctxArgIs(c, i, "crash-after-election")) {
            flags |= SIMULATE_ELECTION_CRASH;
        } else if (ctxArgIs(c, i, "crash-after-promotion")) {
            flags |= SIMULATE_PROMOTION_CRASH;
        } else if (ctxArgIs(c, i, "help")) {
            replyArray(c, 2);
            replyBulkText(c, "crash-after-election");
            replyBulkText(c, "crash-after-promotion");
            return;
        } else {
            replyError(c, SLICE("ERR Unknown failure simulation specified"));
            return;
        }
    }
    v->simulated = flags;
    replyOk(c);
}

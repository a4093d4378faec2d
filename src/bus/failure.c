/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Detects failures: marks nodes as possibly failing when PINGs are not answered, and as failed by
 * reports of the voters (failure.h).
 *
 * Invariant: this node marks another one as failed only if a majority of voters agrees, or after a
 * FAIL message; it never marks itself. */
#include "bus/failure.h"

#include "base/base.h"
#include "bus/voters.h"

enum {
    REPORT_TIMEOUTS = 2,      /* a report counts for so many timeouts */
    FAILED_TIMEOUTS = 2,      /* a primary with slots stays failed for so many */
    CLOCK_TOLERANCE_MS = 500, /* a time in gossip may be ahead of this clock */
};

static bool isWatched(const clusterMap *m, const clusterNode *n) {
    return n != m->myself && !(n->flags & (NODE_HANDSHAKE | NODE_NO_ADDRESS));
}

int failureCountReports(clusterNode *n, const failureRules *rules, int64_t now_ms) {
    return clusterNodeCountReports(n, now_ms, REPORT_TIMEOUTS * rules->directives->timeout_ms);
}

static void mark(clusterMap *m, clusterNode *n, int64_t now_ms) {
    check(isWatched(m, n));
    clusterMapSetFlags(m, n, NODE_FAILED, NODE_MAYBE_FAILED);
    n->failed_ms = now_ms;
    if (clusterNodeVotes(n) && clusterNodeIsUnsynced(n))
        logWarning("Primary %s has failed before any of its replicas has got its data: a failover "
                   "loses all keys of its %d slots.",
                   clusterNodeLabel(n).text, n->slot_count);
}

typedef struct suspect {
    const clusterMap *map;
    const clusterNode *node;
} suspect;

static bool suspects(const void *arg, const clusterNode *n) {
    const suspect *s = arg;
    return n == s->map->myself || clusterNodeHasReport(s->node, n);
}

static bool areSuspecting(clusterMap *m, clusterNode *n, const failureRules *rules,
                          int64_t now_ms) {
    int reports = failureCountReports(n, rules, now_ms);
    const suspect s = {m, n};
    if (!m->voters.stamp.term) /* all reports are those of voters */
        return reports + clusterNodeVotes(m->myself) >= clusterMapCountVoters(m) / 2 + 1;
    return votersAgree(m, suspects, &s);
}

/* Marks the node as failed if the majority of voters agrees. */
static void markByQuorum(clusterMap *m, clusterNode *n, const failureRules *rules, int64_t now_ms) {
    if (!(n->flags & NODE_MAYBE_FAILED)) return; /* this node can reach it, or has marked it */
    if (!areSuspecting(m, n, rules, now_ms)) return;
    logNotice("Marking node %s as failing (quorum reached).", clusterNodeLabel(n).text);
    mark(m, n, now_ms);
    rules->failed(rules->arg, n);
}

/* ------------------------------------------------------------------ what this node observes */

void failurePinged(clusterNode *n, int64_t now_ms) {
    if (!n->ping_sent_ms) n->ping_sent_ms = now_ms;
}

void failureHeard(clusterNode *n, int64_t now_ms) { n->heard_ms = now_ms; }

/* True if a replica of the primary works, so it may be elected. */
static bool mayBeReplaced(const clusterNode *n) {
    check(clusterNodeVotes(n));
    for (int i = 0; i < n->replica_count; i++)
        if (!(n->replicas[i]->flags & (NODE_FAILED | NODE_NO_FAILOVER))) return true;
    return false;
}

static bool isBackForGood(const clusterNode *n, const failureRules *rules, int64_t now_ms) {
    check(n->flags & NODE_FAILED);
    /* No replica can be elected, and the process of the primary was only restarted. */
    if (rules->directives->refused_timeout_ms && !mayBeReplaced(n)) return true;
    return now_ms - n->failed_ms > FAILED_TIMEOUTS * busRulesFailoverMs(rules->directives);
}

static void clearFailed(clusterMap *m, clusterNode *n, const failureRules *rules, int64_t now_ms) {
    check(n->flags & NODE_FAILED);
    check(!(n->flags & NODE_MAYBE_FAILED));
    if (!clusterNodeVotes(n)) {
        logNotice("Clear FAIL state for node %s: %s is reachable again.", clusterNodeLabel(n).text,
                  n->flags & NODE_REPLICA ? "replica" : "primary without slots");
        clusterMapSetFlags(m, n, 0, NODE_FAILED);
    } else if (isBackForGood(n, rules, now_ms)) {
        /* No replica was elected in this time. */
        logNotice(
            "Clear FAIL state for node %s: is reachable again and nobody is serving its slots "
            "after some time.",
            clusterNodeLabel(n).text);
        clusterMapSetFlags(m, n, 0, NODE_FAILED);
    }
}

void failurePong(clusterMap *m, clusterNode *n, const failureRules *rules, int64_t now_ms) {
    n->pong_ms = n->heard_ms = now_ms;
    n->ping_sent_ms = 0;
    failureNotRefused(n);
    if (n->flags & NODE_MAYBE_FAILED) clusterMapSetFlags(m, n, 0, NODE_MAYBE_FAILED);
    if (n->flags & NODE_FAILED) clearFailed(m, n, rules, now_ms);
}

void failureRefused(clusterNode *n, int64_t now_ms) {
    if (!n->refused_ms) n->refused_ms = now_ms;
    n->last_refused_ms = now_ms;
    check(n->last_refused_ms >= n->refused_ms);
}

void failureNotRefused(clusterNode *n) { n->refused_ms = n->last_refused_ms = 0; }

/* True if its process has ended: all attempts to connect to its bus port were refused for
 * cluster-refused-timeout. */
static bool isRefusing(const clusterNode *n, const failureRules *rules) {
    return rules->directives->refused_timeout_ms && n->refused_ms &&
           n->last_refused_ms - n->refused_ms >= rules->directives->refused_timeout_ms;
}

static bool isSilent(const clusterNode *n, const failureRules *rules, int64_t now_ms) {
    if (isRefusing(n, rules)) return true;
    return n->ping_sent_ms && now_ms - n->ping_sent_ms > rules->directives->timeout_ms &&
           now_ms - n->heard_ms > rules->directives->timeout_ms;
}

bool failureTick(clusterMap *m, const failureRules *rules, int64_t now_ms) {
    bool has_suspected = false;
    for (int i = 0; i < m->node_count; i++) {
        clusterNode *n = m->nodes[i];
        if (!isWatched(m, n) || n->flags & (NODE_MAYBE_FAILED | NODE_FAILED)) continue;
        if (!isSilent(n, rules, now_ms)) continue;
        logDebug("*** NODE %.40s possibly failing", n->id);
        clusterMapSetFlags(m, n, NODE_MAYBE_FAILED, 0);
        if (!clusterNodeIsVoter(m, m->myself))
            logNotice("NODE %s possibly failing.", clusterNodeLabel(n).text);
        has_suspected = true;
        markByQuorum(m, n, rules, now_ms);
    }
    return has_suspected && clusterNodeIsVoter(m, m->myself);
}

/* ------------------------------------------------------------------ what others tell */

/* Takes over the time of a PONG that another node has received later than this one. So this node
 * sends its next PING to `about` later. */
static void takePongTime(clusterNode *about, const gossipEntry *entry, int64_t now_ms) {
    int64_t pong_ms = (int64_t)entry->pong_s * 1000;
    if (about->ping_sent_ms || about->report_count || pong_ms <= about->pong_ms) return;
    if (pong_ms <= now_ms + CLOCK_TOLERANCE_MS) about->pong_ms = pong_ms;
}

void failureGossip(clusterMap *m, const clusterNode *from, clusterNode *about,
                   const gossipEntry *entry, const failureRules *rules, int64_t now_ms) {
    bool fails = entry->node_flags & (NODE_MAYBE_FAILED | NODE_FAILED);
    if (!isWatched(m, about) || from == about) return;
    if (clusterNodeIsVoter(m, from)) {
        if (!fails && clusterNodeUnreport(about, from))
            logVerbose("Node %s reported node %s is back online.", clusterNodeLabel(from).text,
                       clusterNodeLabel(about).text);
        if (fails && !(about->flags & NODE_FAILED) && clusterNodeReport(about, from, now_ms))
            logVerbose("Node %s reported node %s as not reachable.", clusterNodeLabel(from).text,
                       clusterNodeLabel(about).text);
        if (fails) markByQuorum(m, about, rules, now_ms);
    }
    if (!fails) takePongTime(about, entry, now_ms);
}

void failureForgotten(clusterMap *m, const clusterNode *from, clusterNode *about,
                      const failureRules *rules, int64_t now_ms) {
    if (!isWatched(m, about) || !(about->flags & NODE_MAYBE_FAILED)) return;
    if (!clusterNodeIsVoter(m, from)) return;
    if (clusterNodeReport(about, from, now_ms))
        logVerbose("Node %s has forgotten node %s, which I cannot reach.",
                   clusterNodeLabel(from).text, clusterNodeLabel(about).text);
    markByQuorum(m, about, rules, now_ms);
}

void failureReceived(clusterMap *m, const clusterNode *from, clusterNode *about, int64_t now_ms) {
    if (!isWatched(m, about) || about->flags & NODE_FAILED) return;
    if (!votersTrust(m, from->voters)) { /* the others will tell, too */
        logVerbose("FAIL message of %s about %s is ignored: its set of voters is outdated",
                   clusterNodeLabel(from).text, clusterNodeLabel(about).text);
        return;
    }
    logNotice("FAIL message received from %s about %s", clusterNodeLabel(from).text,
              clusterNodeLabel(about).text);
    mark(m, about, now_ms);
}

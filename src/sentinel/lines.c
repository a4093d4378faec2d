/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the view as lines "sentinel ..." of the configuration file, and reads such lines.
 *
 * Invariant: values are validated before they are stored, and reading what was written gives the
 * same state. */
#include "sentinel/lines.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "config/config.h"
#include "monitor/machine.h"

/* Values that are not written. */
enum { DOWN_AFTER_MS = 30000, FAILOVER_TIMEOUT_MS = 180000, PARALLEL_SYNCS = 1 };

/* ------------------------------------------------------------------ values */

int64_t sentinelReadNumber(slice text) {
    char digits[32];
    size_t len = text.len < sizeof(digits) - 1 ? text.len : sizeof(digits) - 1;
    memcpy(digits, text.ptr, len);
    digits[len] = '\0';
    return strtoll(digits, NULL, 10);
}

static void setText(str *field, slice value) {
    strFree(field);
    if (value.len) *field = strNew(value);
}

static bool readYesNo(slice word, bool *out) {
    bool yes = sliceIs(word, "yes");
    if (!yes && !sliceIs(word, "no")) return false;
    *out = yes;
    return true;
}

bool sentinelScriptIsValid(slice path) {
    hotCheck(path.ptr);
    str copy = strNew(path);
    bool valid = path.len && !memchr(path.ptr, '\0', path.len) && access(copy.ptr, X_OK) == 0;
    strFree(&copy);
    return valid;
}

static renamedCommand *findRenamed(const sentinelInstance *primary, slice from) {
    for (int i = 0; i < primary->renamed_count; i++) {
        if (sliceEqualFold(strSlice(&primary->renamed[i].from), from)) return &primary->renamed[i];
    }
    return NULL;
}

void sentinelRename(sentinelInstance *primary, slice from, slice to) {
    check(primary->kind == INSTANCE_PRIMARY);
    renamedCommand *at = findRenamed(primary, from);
    bool remove = sliceEqualFold(from, to);
    if (at) {
        strFree(&at->from);
        strFree(&at->to);
        *at = primary->renamed[--primary->renamed_count];
    }
    if (remove) return;
    size_t count = (size_t)primary->renamed_count + 1;
    primary->renamed = memRealloc(primary->renamed, sizeof(renamedCommand) * count);
    primary->renamed[primary->renamed_count++] =
        (renamedCommand){.from = strNew(from), .to = strNew(to)};
}

/* ------------------------------------------------------------------ directives of the process */

static status takeMyId(sentinelView *v, const slice *words, reason *why) {
    if (words[0].len != SENTINEL_ID_LEN)
        return reasonSet(why, ERR_SYNTAX, "Malformed Sentinel id in myid option.");
    memcpy(v->id, words[0].ptr, SENTINEL_ID_LEN);
    return OK;
}

static status takeCurrentEpoch(sentinelView *v, const slice *words, reason *why) {
    (void)why; /* read leniently, as the released program does */
    uint64_t epoch = (uint64_t)sentinelReadNumber(words[0]);
    if (epoch > v->current_epoch && epoch <= SENTINEL_EPOCH_MAX) v->current_epoch = epoch;
    return OK;
}

static status takeDenyScripts(sentinelView *v, const slice *words, reason *why) {
    if (readYesNo(words[0], &v->deny_scripts)) return OK;
    return reasonSet(why, ERR_SYNTAX,
                     "Please specify yes or no for the deny-scripts-reconfig options.");
}

static status takeResolveHostnames(sentinelView *v, const slice *words, reason *why) {
    if (readYesNo(words[0], &v->resolve_hostnames)) return OK;
    return reasonSet(why, ERR_SYNTAX, "Please specify yes or no for the resolve-hostnames option.");
}

static status takeAnnounceHostnames(sentinelView *v, const slice *words, reason *why) {
    if (readYesNo(words[0], &v->announce_hostnames)) return OK;
    return reasonSet(why, ERR_SYNTAX,
                     "Please specify yes or no for the announce-hostnames option.");
}

static status takeAnnounceIp(sentinelView *v, const slice *words, reason *why) {
    (void)why; /* any address */
    setText(&v->announce_ip, words[0]);
    return OK;
}

static status takeAnnouncePort(sentinelView *v, const slice *words, reason *why) {
    (void)why; /* read leniently */
    v->announce_port = (int)sentinelReadNumber(words[0]);
    return OK;
}

static status takeUser(sentinelView *v, const slice *words, reason *why) {
    (void)why; /* any name */
    setText(&v->user, words[0]);
    return OK;
}

static status takePass(sentinelView *v, const slice *words, reason *why) {
    (void)why; /* any password */
    setText(&v->pass, words[0]);
    return OK;
}

static status takeMonitor(sentinelView *v, const slice *words, reason *why) {
    sentinelInstance *primary;
    int64_t quorum = sentinelReadNumber(words[3]);
    if (quorum <= 0) return reasonSet(why, ERR_RANGE, "Quorum must be 1 or greater.");
    if (!sentinelNameIsValid(words[0])) return reasonSet(why, ERR_SYNTAX, "Invalid master name.");
    /* The main file, to which all changes are written, replaces what an included file says. */
    primary = sentinelFindPrimary(v, words[0]);
    if (primary && primary->is_included && configLineSource() == CONFIG_IN_MAIN_FILE)
        sentinelRemove(v, primary);
    switch (
        sentinelAddPrimary(v, words[0], words[1], sentinelReadNumber(words[2]), quorum, &primary)) {
    case OK: primary->is_included = configLineSource() == CONFIG_IN_INCLUDED_FILE; return OK;
    case ERR_RANGE: return reasonSet(why, ERR_RANGE, "Invalid port number.");
    case ERR_EXISTS: return reasonSet(why, ERR_EXISTS, "Duplicate master name.");
    default:
        logWarning("Failed to resolve hostname '%.*s'", (int)words[1].len, words[1].ptr);
        return reasonSet(why, ERR_NOT_FOUND, "Can't resolve instance hostname.");
    }
}

/* ------------------------------------------------------------------ directives of a primary */

typedef status primaryTake(sentinelView *v, sentinelInstance *primary, const slice *words,
                           reason *why);

static status takeTime(int64_t *field, slice word, reason *why) {
    hotCheck(field);
    int64_t ms = sentinelReadNumber(word);
    if (ms <= 0) return reasonSet(why, ERR_RANGE, "negative or zero time parameter.");
    *field = ms < SENTINEL_TIME_MAX_MS ? ms : SENTINEL_TIME_MAX_MS;
    return OK;
}

static status takeDownAfter(sentinelView *v, sentinelInstance *primary, const slice *words,
                            reason *why) {
    (void)v;
    return takeTime(&primary->down_after_ms, words[0], why);
}

static status takeTimeout(sentinelView *v, sentinelInstance *primary, const slice *words,
                          reason *why) {
    (void)v;
    return takeTime(&primary->failover_timeout_ms, words[0], why);
}

static status takePeriod(int64_t *field, slice word, reason *why) {
    hotCheck(field);
    int64_t ms = sentinelReadNumber(word);
    if (ms < 0) return reasonSet(why, ERR_RANGE, "negative time parameter.");
    *field = ms < SENTINEL_TIME_MAX_MS ? ms : SENTINEL_TIME_MAX_MS;
    return OK;
}

static status takeReboot(sentinelView *v, sentinelInstance *primary, const slice *words,
                         reason *why) {
    (void)v;
    return takePeriod(&primary->reboot_down_after_ms, words[0], why);
}

static status takeRefused(sentinelView *v, sentinelInstance *primary, const slice *words,
                          reason *why) {
    (void)v;
    return takePeriod(&primary->refused_after_ms, words[0], why);
}

static status takeParallelSyncs(sentinelView *v, sentinelInstance *primary, const slice *words,
                                reason *why) {
    (void)v, (void)why; /* any number */
    primary->parallel_syncs = sentinelReadNumber(words[0]);
    return OK;
}

static status takeNotification(sentinelView *v, sentinelInstance *primary, const slice *words,
                               reason *why) {
    (void)v;
    if (!sentinelScriptIsValid(words[0]))
        return reasonSet(why, ERR_NOT_FOUND,
                         "Notification script seems non existing or non executable.");
    setText(&primary->notification_script, words[0]);
    return OK;
}

static status takeReconfig(sentinelView *v, sentinelInstance *primary, const slice *words,
                           reason *why) {
    (void)v;
    if (!sentinelScriptIsValid(words[0]))
        return reasonSet(why, ERR_NOT_FOUND,
                         "Client reconfiguration script seems non existing or non executable.");
    setText(&primary->reconfig_script, words[0]);
    return OK;
}

static status takeAuthPass(sentinelView *v, sentinelInstance *primary, const slice *words,
                           reason *why) {
    (void)v, (void)why; /* any password */
    setText(&primary->auth_pass, words[0]);
    return OK;
}

static status takeAuthUser(sentinelView *v, sentinelInstance *primary, const slice *words,
                           reason *why) {
    (void)v, (void)why; /* any name */
    setText(&primary->auth_user, words[0]);
    return OK;
}

static status takeRename(sentinelView *v, sentinelInstance *primary, const slice *words,
                         reason *why) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    (void)v;
    if (findRenamed(primary, words[0]))
        return reasonSet(why, ERR_EXISTS,
                         "Same command renamed multiple times with rename-command.");
    sentinelRename(primary, words[0], words[1]);
    return OK;
}

static bool hasReplicaLine(const sentinelInstance *primary, slice host, int64_t port) {
    SENTINEL_EACH(i, &primary->replicas) {
        if (i->addr.port == port && sliceEqual(strSlice(&i->addr.host), host)) return true;
    }
    return false;
}

static status takeKnownReplica(sentinelView *v, sentinelInstance *primary, const slice *words,
                               reason *why) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    sentinelInstance *replica;
    switch (sentinelAddReplica(v, primary, words[0], sentinelReadNumber(words[1]), &replica)) {
    case OK: replica->is_loaded = true; return OK;
    case ERR_EXISTS:
        /* A name may have got the address of another one since the line was written. */
        if (!hasReplicaLine(primary, words[0], sentinelReadNumber(words[1]))) return OK;
        return reasonSet(why, ERR_EXISTS, "Duplicate hostname and port for replica.");
    case ERR_RANGE: return reasonSet(why, ERR_RANGE, "Invalid port number.");
    default: return reasonSet(why, ERR_NOT_FOUND, "Can't resolve instance hostname.");
    }
}

static status takeKnownSentinel(sentinelView *v, sentinelInstance *primary, const slice *words,
                                reason *why) {
    sentinelInstance *peer;
    if (!words[2].len) return OK; /* of an old file: it will be found again */
    switch (sentinelAddPeer(v, primary, words[0], sentinelReadNumber(words[1]), words[2], &peer)) {
    case OK: return OK;
    case ERR_EXISTS: return reasonSet(why, ERR_EXISTS, "Duplicate runid for sentinel.");
    case ERR_RANGE: return reasonSet(why, ERR_RANGE, "Invalid port number.");
    default: return reasonSet(why, ERR_NOT_FOUND, "Can't resolve instance hostname.");
    }
}

static status takeConfigEpoch(sentinelView *v, sentinelInstance *primary, const slice *words,
                              reason *why) {
    uint64_t epoch = (uint64_t)sentinelReadNumber(words[0]);
    (void)why; /* what is not possible is ignored */
    if (epoch > SENTINEL_EPOCH_MAX) return OK;
    primary->config_epoch = epoch;
    if (epoch > v->current_epoch) v->current_epoch = epoch;
    return OK;
}

static status takeLeaderEpoch(sentinelView *v, sentinelInstance *primary, const slice *words,
                              reason *why) {
    uint64_t epoch = (uint64_t)sentinelReadNumber(words[0]);
    (void)v, (void)why; /* what is not possible is ignored */
    if (epoch <= SENTINEL_EPOCH_MAX) primary->leader_epoch = epoch;
    return OK;
}

/* The vote in an epoch after that of the configuration. */
static status takeLeaderVote(sentinelView *v, sentinelInstance *primary, const slice *words,
                             reason *why) {
    int64_t voted_ms = sentinelReadNumber(words[1]);
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    (void)v, (void)why; /* what is not possible is ignored */
    if (!sliceIsHex(words[0], SENTINEL_ID_LEN)) return OK;
    setText(&primary->leader, words[0]);
    /* A clock that was put back must not make it last. */
    if (voted_ms < primary->voted_ms) primary->voted_ms = voted_ms;
    return OK;
}

/* A replica that followed the primary at the time of that vote. */
static status takeFollower(sentinelView *v, sentinelInstance *primary, const slice *words,
                           reason *why) {
    hotCheck(primary->kind == INSTANCE_PRIMARY);
    (void)v, (void)why; /* what is not possible is ignored */
    int64_t port = sentinelReadNumber(words[1]);
    if (port <= 0 || port > 65535 || !sliceIsHex(words[2], SENTINEL_ID_LEN)) return OK;
    sentinelInstance *replica = sentinelFindReplica(primary, words[0], (int)port);
    if (!replica) return OK;
    setText(&replica->runid, words[2]);
    replica->was_replica = true;
    return OK;
}

/* ------------------------------------------------------------------ the table */

enum { RANK_PROCESS, RANK_MONITOR, RANK_PRIMARY, RANK_REPLICA };

typedef struct directive {
    const char *name;
    int rank;
    int count, count_max; /* of words; from RANK_PRIMARY on without the name of the primary */
    status (*take)(sentinelView *v, const slice *words, reason *why);
    primaryTake *take_of;
} directive;

static const directive directives[] = {
    {"monitor", RANK_MONITOR, 4, 4, takeMonitor, NULL},
    {"myid", RANK_PROCESS, 1, 1, takeMyId, NULL},
    {"current-epoch", RANK_PROCESS, 1, 1, takeCurrentEpoch, NULL},
    {"deny-scripts-reconfig", RANK_PROCESS, 1, 1, takeDenyScripts, NULL},
    {"resolve-hostnames", RANK_PROCESS, 1, 1, takeResolveHostnames, NULL},
    {"announce-hostnames", RANK_PROCESS, 1, 1, takeAnnounceHostnames, NULL},
    {"announce-ip", RANK_PROCESS, 1, 1, takeAnnounceIp, NULL},
    {"announce-port", RANK_PROCESS, 1, 1, takeAnnouncePort, NULL},
    {"sentinel-user", RANK_PROCESS, 1, 1, takeUser, NULL},
    {"sentinel-pass", RANK_PROCESS, 1, 1, takePass, NULL},
    {"down-after-milliseconds", RANK_PRIMARY, 1, 1, NULL, takeDownAfter},
    {"refused-after-milliseconds", RANK_PRIMARY, 1, 1, NULL, takeRefused},
    {"failover-timeout", RANK_PRIMARY, 1, 1, NULL, takeTimeout},
    {"parallel-syncs", RANK_PRIMARY, 1, 1, NULL, takeParallelSyncs},
    {"notification-script", RANK_PRIMARY, 1, 1, NULL, takeNotification},
    {"client-reconfig-script", RANK_PRIMARY, 1, 1, NULL, takeReconfig},
    {"auth-pass", RANK_PRIMARY, 1, 1, NULL, takeAuthPass},
    {"auth-user", RANK_PRIMARY, 1, 1, NULL, takeAuthUser},
    {"primary-reboot-down-after-period", RANK_PRIMARY, 1, 1, NULL, takeReboot},
    {"master-reboot-down-after-period", RANK_PRIMARY, 1, 1, NULL, takeReboot},
    {"rename-command", RANK_PRIMARY, 2, 2, NULL, takeRename},
    {"known-replica", RANK_PRIMARY, 2, 2, NULL, takeKnownReplica},
    {"known-slave", RANK_PRIMARY, 2, 2, NULL, takeKnownReplica},
    {"known-sentinel", RANK_PRIMARY, 2, 3, NULL, takeKnownSentinel},
    {"config-epoch", RANK_PRIMARY, 1, 1, NULL, takeConfigEpoch},
    {"leader-epoch", RANK_PRIMARY, 1, 1, NULL, takeLeaderEpoch},
    {"leader-vote", RANK_PRIMARY, 2, 2, NULL, takeLeaderVote},
    {"follower", RANK_REPLICA, 3, 3, NULL, takeFollower},
};

static const directive *findDirective(slice name) {
    for (size_t i = 0; i < COUNT_OF(directives); i++) {
        if (sliceIs(name, directives[i].name)) return &directives[i];
    }
    return NULL;
}

int sentinelLineRank(const slice *words, int count) {
    const directive *d = count ? findDirective(words[0]) : NULL;
    hotCheck(count >= 0);
    return d ? d->rank : RANK_PRIMARY;
}

int sentinelLineKeyWords(const slice *words, int count) {
    hotCheck(count > 0);
    (void)count;
    const directive *d = findDirective(words[0]);
    return d && d->rank == RANK_PROCESS ? 1 : 2;
}

/* Primaries whose "monitor" line was refused: that error is enough, lines about them are not
 * reported. */
static void quoteName(slice name, str *out) {
    strAppendQuoted(out, name);
    strAppendByte(out, '\n');
}

static bool wasRefused(const sentinelView *v, slice name) {
    str quoted = STR_EMPTY;
    if (!v->refused_names.len) return false;
    quoteName(name, &quoted);
    bool found = strstr(strText(&v->refused_names), strText(&quoted)) != NULL;
    strFree(&quoted);
    return found;
}

status sentinelLineTake(sentinelView *v, const slice *words, int count, reason *why) {
    if (count == 0) return OK; /* --sentinel */
    const directive *d = findDirective(words[0]);
    int given = count - 1 - (d && d->rank >= RANK_PRIMARY);
    if (!d || given < d->count || given > d->count_max) {
        if (d && d->rank == RANK_MONITOR && count > 1) quoteName(words[1], &v->refused_names);
        return reasonSet(why, ERR_SYNTAX, "Unrecognized sentinel configuration statement.");
    }
    status st = d->take ? d->take(v, words + 1, why) : OK;
    if (st != OK && d->rank == RANK_MONITOR) quoteName(words[1], &v->refused_names);
    if (d->take) return st;
    sentinelInstance *primary = sentinelFindPrimary(v, words[1]);
    if (!primary && wasRefused(v, words[1])) return OK;
    if (!primary) return reasonSet(why, ERR_NOT_FOUND, "No such master with specified name.");
    slice values[3] = {{"", 0}, {"", 0}, {"", 0}};
    check(given <= (int)COUNT_OF(values));
    for (int i = 0; i < given; i++) values[i] = words[2 + i];
    return d->take_of(v, primary, values, why);
}

/* ------------------------------------------------------------------ writing */

typedef struct lineWriter {
    void (*add)(void *arg, slice line, bool is_default);
    void *arg;
    str line;
} lineWriter;

static void begin(lineWriter *w, const char *name, const sentinelInstance *primary) {
    strClear(&w->line);
    strAppendText(&w->line, name);
    if (!primary) return;
    strAppendByte(&w->line, ' ');
    configAppendWord(&w->line, strSlice(&primary->name));
}

static void endAs(lineWriter *w, bool is_default) {
    hotCheck(w->line.len > 0);
    w->add(w->arg, strSlice(&w->line), is_default);
}

static void end(lineWriter *w) { endAs(w, false); }

static void writeNumber(lineWriter *w, const char *name, const sentinelInstance *primary,
                        int64_t value) {
    begin(w, name, primary);
    strAppendFormat(&w->line, " %lld", (long long)value);
    end(w);
}

/* The default is written only instead of a line that the file has. */
static void writeOption(lineWriter *w, const char *name, const sentinelInstance *primary,
                        int64_t value, int64_t usual) {
    begin(w, name, primary);
    strAppendFormat(&w->line, " %lld", (long long)value);
    endAs(w, value == usual);
}

static void writeQuoted(lineWriter *w, const char *name, const sentinelInstance *primary,
                        const str *value) {
    if (!value->len) return;
    begin(w, name, primary);
    strAppendByte(&w->line, ' ');
    strAppendQuoted(&w->line, strSlice(value));
    end(w);
}

/* A name can be read back only if names are resolved. */
static slice addrText(const sentinelView *v, const sentinelAddr *a) {
    hotCheck(a->host.len > 0);
    return v->resolve_hostnames || !a->ip[0] ? sentinelAddrText(v, a) : sliceOf(a->ip);
}

static void appendAddr(lineWriter *w, const sentinelView *v, const sentinelAddr *a) {
    hotCheck(w->line.len > 0);
    strAppendByte(&w->line, ' ');
    strAppendSlice(&w->line, addrText(v, a));
    strAppendFormat(&w->line, " %d", a->port);
}

static void writeOptions(lineWriter *w, const sentinelInstance *i) {
    hotCheck(i->kind == INSTANCE_PRIMARY);
    writeOption(w, "down-after-milliseconds", i, i->down_after_ms, DOWN_AFTER_MS);
    writeOption(w, "refused-after-milliseconds", i, i->refused_after_ms, 0);
    writeOption(w, "failover-timeout", i, i->failover_timeout_ms, FAILOVER_TIMEOUT_MS);
    writeOption(w, "parallel-syncs", i, i->parallel_syncs, PARALLEL_SYNCS);
    writeQuoted(w, "notification-script", i, &i->notification_script);
    writeQuoted(w, "client-reconfig-script", i, &i->reconfig_script);
    writeQuoted(w, "auth-pass", i, &i->auth_pass);
    writeQuoted(w, "auth-user", i, &i->auth_user);
    writeOption(w, "primary-reboot-down-after-period", i, i->reboot_down_after_ms, 0);
}

/* Names of which one got its address later may be the same replica. */
static bool isWritten(const sentinelInstance *replica, const sentinelAddr *addr) {
    hotCheck(replica->kind == INSTANCE_REPLICA);
    SENTINEL_EACH(earlier, &replica->primary->replicas) {
        if (earlier == replica) return false;
        if (sentinelAddrEqual(&earlier->addr, addr)) return true;
    }
    return false;
}

/* Writes the vote, and which replicas have followed the primary. A restarted Sentinel needs both if
 * the elected leader is lost after it has promoted a replica. They are written only as long as they
 * are needed, because released Sentinels refuse these lines. */
static void writeVote(lineWriter *w, const sentinelView *v, const sentinelInstance *i) {
    hotCheck(i->kind == INSTANCE_PRIMARY);
    if (!i->leader.len || !sentinelHasOpenVote(v, i)) return;
    begin(w, "leader-vote", i);
    strAppendFormat(&w->line, " %s %lld", strText(&i->leader), (long long)i->voted_ms);
    end(w);
    SENTINEL_EACH(replica, &i->replicas) {
        if (!replica->was_replica || !replica->runid.len) continue;
        begin(w, "follower", i);
        appendAddr(w, v, &replica->addr);
        strAppendFormat(&w->line, " %s", strText(&replica->runid));
        end(w);
    }
}

static void writePrimary(lineWriter *w, const sentinelView *v, const sentinelInstance *i) {
    check(i->kind == INSTANCE_PRIMARY);
    const sentinelAddr *addr = sentinelCurrentAddr(i);
    begin(w, "monitor", i);
    appendAddr(w, v, addr);
    strAppendFormat(&w->line, " %lld", (long long)i->quorum);
    end(w);
    writeOptions(w, i);
    writeNumber(w, "config-epoch", i, (int64_t)i->config_epoch);
    writeNumber(w, "leader-epoch", i, (int64_t)i->leader_epoch);
    writeVote(w, v, i);
    SENTINEL_EACH(replica, &i->replicas) {
        /* The promoted one is the primary already, and the old primary a replica. */
        const sentinelAddr *at = &replica->addr;
        if (sentinelAddrEqual(at, addr)) at = &i->addr;
        if (sentinelAddrEqual(at, addr) || isWritten(replica, at)) continue;
        begin(w, "known-replica", i);
        appendAddr(w, v, at);
        end(w);
    }
    SENTINEL_EACH(peer, &i->sentinels) {
        begin(w, "known-sentinel", i);
        appendAddr(w, v, &peer->addr);
        strAppendByte(&w->line, ' ');
        strAppendQuoted(&w->line, strSlice(&peer->runid));
        end(w);
    }
    for (int at = 0; at < i->renamed_count; at++) {
        begin(w, "rename-command", i);
        strAppendByte(&w->line, ' ');
        strAppendQuoted(&w->line, strSlice(&i->renamed[at].from));
        strAppendByte(&w->line, ' ');
        strAppendQuoted(&w->line, strSlice(&i->renamed[at].to));
        end(w);
    }
}

static void writeWord(lineWriter *w, const char *name, const char *word, bool is_default) {
    begin(w, name, NULL);
    strAppendFormat(&w->line, " %s", word);
    endAs(w, is_default);
}

static void writeSwitch(lineWriter *w, const char *name, bool value, bool usual) {
    writeWord(w, name, value ? "yes" : "no", value == usual);
}

void sentinelLinesWrite(const sentinelView *v, void (*add)(void *arg, slice line, bool is_default),
                        void *arg) {
    lineWriter w = {.add = add, .arg = arg};
    check(v->id[0]);
    writeWord(&w, "myid", v->id, false);
    writeSwitch(&w, "deny-scripts-reconfig", v->deny_scripts, true);
    writeSwitch(&w, "resolve-hostnames", v->resolve_hostnames, false);
    writeSwitch(&w, "announce-hostnames", v->announce_hostnames, false);
    SENTINEL_EACH(primary, &v->primaries) writePrimary(&w, v, primary);
    writeNumber(&w, "current-epoch", NULL, (int64_t)v->current_epoch);
    writeQuoted(&w, "announce-ip", NULL, &v->announce_ip);
    writeOption(&w, "announce-port", NULL, v->announce_port, 0);
    writeQuoted(&w, "sentinel-user", NULL, &v->user);
    writeQuoted(&w, "sentinel-pass", NULL, &v->pass);
    strFree(&w.line);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SENTINEL SET, CONFIG and DEBUG. */
#include "base/base.h"
#include "base/glob.h"
#include "base/number.h"
#include "config/config.h"
#include "sentinel/cmd_priv.h"
#include "sentinel/lines.h"

/* ------------------------------------------------------------------ SET */

static void setText(str *field, slice value) {
    strFree(field);
    if (value.len) *field = strNew(value);
}

typedef enum setResult { SET_DONE, SET_UNKNOWN, SET_INVALID, SET_REPLIED } setResult;

/* A SENTINEL SET. Its options are all checked before the first is changed. */
typedef struct setRequest {
    ctx *c;
    sentinelInstance *primary;
    bool apply; /* false: they are only checked */
} setRequest;

static setResult setNumber(const setRequest *r, slice name, slice value) {
    static const struct {
        const char *name;
        size_t at;
        int64_t min, max;
    } numbers[] = {
        {"down-after-milliseconds", offsetof(sentinelInstance, down_after_ms), 1,
         SENTINEL_TIME_MAX_MS},
        {"refused-after-milliseconds", offsetof(sentinelInstance, refused_after_ms), 0,
         SENTINEL_TIME_MAX_MS},
        {"failover-timeout", offsetof(sentinelInstance, failover_timeout_ms), 1,
         SENTINEL_TIME_MAX_MS},
        {"parallel-syncs", offsetof(sentinelInstance, parallel_syncs), 1, INT64_MAX},
        {"quorum", offsetof(sentinelInstance, quorum), 1, INT64_MAX},
        {"primary-reboot-down-after-period", offsetof(sentinelInstance, reboot_down_after_ms), 0,
         SENTINEL_TIME_MAX_MS},
        {"master-reboot-down-after-period", offsetof(sentinelInstance, reboot_down_after_ms), 0,
         SENTINEL_TIME_MAX_MS},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        int64_t number;
        if (!sliceIs(name, numbers[i].name)) continue;
        if (!numberParseInt(value, &number) || number < numbers[i].min || number > numbers[i].max)
            return SET_INVALID;
        if (r->apply) memcpy((char *)r->primary + numbers[i].at, &number, sizeof(number));
        return SET_DONE;
    }
    return SET_UNKNOWN;
}

/* Links with old credentials are of no use any more. */
static void dropLinks(sentinelView *v, sentinelInstance *primary) {
    sentinelDisconnect(v, primary);
    SENTINEL_EACH(replica, &primary->replicas) sentinelDisconnect(v, replica);
}

static setResult setScript(const setRequest *r, str *field, slice path, const char *error) {
    ctx *c = r->c;
    hotCheck(path.ptr);
    if (serverView.deny_scripts) {
        replyError(c, SLICE("ERR Reconfiguration of scripts path is denied for security reasons. "
                            "Check the deny-scripts-reconfig configuration directive in your "
                            "Sentinel configuration"));
        return SET_REPLIED;
    }
    if (path.len && !sentinelScriptIsValid(path)) {
        replyErrorFormat(c, "ERR %s", error);
        return SET_REPLIED;
    }
    if (r->apply) setText(field, path);
    return SET_DONE;
}

static setResult setSecret(const setRequest *r, str *field, slice value) {
    hotCheck(value.ptr);
    if (!r->apply) return SET_DONE;
    setText(field, value);
    dropLinks(&serverView, r->primary);
    return SET_DONE;
}

static setResult setOther(const setRequest *r, slice name, slice value) {
    sentinelInstance *primary = r->primary;
    if (sliceIs(name, "auth-pass")) return setSecret(r, &primary->auth_pass, value);
    if (sliceIs(name, "auth-user")) return setSecret(r, &primary->auth_user, value);
    if (sliceIs(name, "notification-script"))
        return setScript(r, &primary->notification_script, value,
                         "Notification script seems non existing or non executable");
    if (sliceIs(name, "client-reconfig-script"))
        return setScript(r, &primary->reconfig_script, value,
                         "Client reconfiguration script seems non existing or non executable");
    return SET_UNKNOWN;
}

static void tellSet(sentinelInstance *primary, slice name, slice value) {
    if (sliceIs(name, "auth-pass")) value = SLICE("******");
    sentinelEvent(&serverView, LOG_WARNING, "+set", primary, " %.*s %.*s", (int)name.len, name.ptr,
                  (int)value.len, value.ptr);
}

/* Checks or sets the option at argument `i`; *used counts its words. False after an error reply. */
static bool setOne(const setRequest *r, int i, int *used) {
    ctx *c = r->c;
    sentinelInstance *primary = r->primary;
    hotCheck(i < c->argc);
    slice name = c->argv[i];
    setResult result = SET_UNKNOWN;
    int bad = i + 1;
    *used = 2;
    if (sliceIs(name, "rename-command") && i + 2 < c->argc) {
        slice from = c->argv[i + 1], to = c->argv[i + 2];
        *used = 3;
        if (!to.len) bad = i + 2;
        result = from.len && to.len ? SET_DONE : SET_INVALID;
        if (result == SET_DONE && r->apply) {
            sentinelRename(primary, from, to);
            sentinelEvent(&serverView, LOG_WARNING, "+set", primary, " %.*s %.*s %.*s",
                          (int)name.len, name.ptr, (int)from.len, from.ptr, (int)to.len, to.ptr);
        }
    } else if (i + 1 < c->argc) {
        result = setNumber(r, name, c->argv[i + 1]);
        if (result == SET_UNKNOWN) result = setOther(r, name, c->argv[i + 1]);
        if (result == SET_DONE && r->apply) tellSet(primary, name, c->argv[i + 1]);
    }
    if (result == SET_INVALID)
        replyErrorFormat(c, "ERR Invalid argument '%.*s' for SENTINEL SET '%.*s'",
                         (int)c->argv[bad].len, c->argv[bad].ptr, (int)name.len, name.ptr);
    if (result == SET_UNKNOWN)
        replyErrorFormat(c, "ERR Unknown option or number of arguments for SENTINEL SET '%.*s'",
                         (int)name.len, name.ptr);
    return result == SET_DONE;
}

/* SENTINEL SET name option value... Reply: OK. All are set or, if one is refused, none. */
void sentinelSetCommand(ctx *c) {
    (void)serverViewNow(); /* sets the time */
    ctxRedactAfter(c, 3, "auth-pass", 1);
    sentinelInstance *primary = cmdPrimary(c);
    if (!primary || cmdRefuseControls(c, 3, "SET")) return;
    setRequest r = {.c = c, .primary = primary};
    for (int i = 3, used; i < c->argc; i += used) {
        if (!setOne(&r, i, &used)) return;
    }
    r.apply = true;
    for (int i = 3, used; i < c->argc; i += used) check(setOne(&r, i, &used));
    cmdSaveAndReply(c);
}

/* ------------------------------------------------------------------ CONFIG */

enum { CONFIG_OPTIONS = 7 };
static const char *const option_names[CONFIG_OPTIONS] = {
    "resolve-hostnames", "announce-hostnames", "announce-ip", "announce-port",
    "sentinel-user",     "sentinel-pass",      "loglevel"};

static int optionOf(slice name) {
    for (int i = 0; i < CONFIG_OPTIONS; i++) {
        if (sliceIs(name, option_names[i])) return i;
    }
    return -1;
}

static void appendOption(const sentinelView *v, int option, str *out) {
    hotCheck(option < CONFIG_OPTIONS);
    switch (option) {
    case 0: strAppendText(out, v->resolve_hostnames ? "yes" : "no"); break;
    case 1: strAppendText(out, v->announce_hostnames ? "yes" : "no"); break;
    case 2: strAppendSlice(out, strSlice(&v->announce_ip)); break;
    case 3: strAppendInt(out, v->announce_port); break;
    case 4: strAppendSlice(out, strSlice(&v->user)); break;
    case 5: strAppendSlice(out, strSlice(&v->pass)); break;
    default: configGet(configFind(SLICE("loglevel")), out); break;
    }
}

static void configGetOptions(ctx *c) {
    const sentinelView *v = serverViewNow();
    bool done[CONFIG_OPTIONS] = {false};
    int count = 0;
    respDeferred mark = respDeferBegin(c->out);
    for (int i = 3; i < c->argc; i++) {
        for (int option = 0; option < CONFIG_OPTIONS; option++) {
            if (done[option] || !globMatchFold(c->argv[i], sliceOf(option_names[option]))) continue;
            str value = STR_EMPTY;
            appendOption(v, option, &value);
            replyBulkText(c, option_names[option]);
            replyBulk(c, strSlice(&value));
            strFree(&value);
            done[option] = true;
            count++;
        }
    }
    respDeferEnd(c->out, mark, '%', c->proto, count);
}

static bool isLogLevel(slice word) {
    static const char *const levels[] = {"debug", "verbose", "notice", "warning", "nothing"};
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        if (sliceIs(word, levels[i])) return true;
    }
    return false;
}

/* Without names, an address that is a name alone could not be read back from the file. */
static bool mayForbidNames(const sentinelView *v) {
    SENTINEL_EACH(primary, &v->primaries) {
        if (!primary->addr.ip[0]) return false;
        SENTINEL_EACH(replica, &primary->replicas) {
            if (!replica->addr.ip[0]) return false;
        }
        SENTINEL_EACH(peer, &primary->sentinels) {
            if (!peer->addr.ip[0]) return false;
        }
    }
    return true;
}

static bool valueIsValid(int option, slice value) {
    int64_t port;
    if (option == 0 && sliceIs(value, "no")) return mayForbidNames(&serverView);
    if (option <= 1) return sliceIs(value, "yes") || sliceIs(value, "no");
    if (option == 3) return numberParseInt(value, &port) && port >= 0 && port <= 65535;
    return option < CONFIG_OPTIONS - 1 || isLogLevel(value);
}

/* All are checked before the first is set. False after an error reply. */
static bool checkOptions(ctx *c) {
    hotCheck(c->argc > 3);
    bool given[CONFIG_OPTIONS] = {false};
    for (int i = 3; i < c->argc; i += 2) {
        int option = optionOf(c->argv[i]), len = (int)c->argv[i].len;
        const char *name = c->argv[i].ptr;
        if (option < 0) {
            replyErrorFormat(c, "ERR Invalid argument '%.*s' to SENTINEL CONFIG SET", len, name);
        } else if (given[option]) {
            replyErrorFormat(c, "ERR Duplicate argument '%.*s' to SENTINEL CONFIG SET", len, name);
        } else if (i + 1 == c->argc) {
            replyErrorFormat(c, "ERR Missing argument '%.*s' value", len, name);
        } else if (!valueIsValid(option, c->argv[i + 1])) {
            replyErrorFormat(c, "ERR Invalid value '%.*s' to SENTINEL CONFIG SET '%.*s'",
                             (int)c->argv[i + 1].len, c->argv[i + 1].ptr, len, name);
        } else {
            given[option] = true;
            continue;
        }
        return false;
    }
    return true;
}

static void dropPeers(sentinelView *v) {
    SENTINEL_EACH(primary, &v->primaries) {
        SENTINEL_EACH(peer, &primary->sentinels) sentinelDisconnect(v, peer);
    }
}

static void setOption(ctx *c, sentinelView *v, int option, slice value) {
    str error = STR_EMPTY;
    const slice pair[] = {SLICE("loglevel"), value};
    hotCheck(c->argc > 3);
    switch (option) {
    case 0:
        v->resolve_hostnames = sliceIs(value, "yes");
        if (!v->resolve_hostnames) sentinelForgetNames(v);
        break;
    case 1: v->announce_hostnames = sliceIs(value, "yes"); break;
    case 2: setText(&v->announce_ip, value); break;
    case 3: v->announce_port = (int)sentinelReadNumber(value); break;
    case 4:
        setText(&v->user, value);
        dropPeers(v);
        break;
    case 5:
        setText(&v->pass, value);
        dropPeers(v);
        break;
    default: check(configSet(pair, 1, CONFIG_ALLOW_ALL, &error) == OK); break;
    }
    strFree(&error);
}

/* SENTINEL CONFIG GET pattern... | SET option value... Reply: a map, or OK. */
void sentinelConfigCommand(ctx *c) {
    sentinelView *v = serverViewNow();
    ctxRedactAfter(c, 2, "sentinel-pass", 1);
    if (ctxArgIs(c, 2, "get") && c->argc > 3) {
        configGetOptions(c);
        return;
    }
    if (!ctxArgIs(c, 2, "set") || c->argc < 5) {
        replyError(c, SLICE("ERR Only SENTINEL CONFIG GET <param> [<param> <param> ...] / SET "
                            "<param> <value> [<param> <value> ...] are supported."));
        return;
    }
    if (cmdRefuseControls(c, 3, "CONFIG SET") || !checkOptions(c)) return;
    for (int i = 3; i < c->argc; i += 2) {
        int option = optionOf(c->argv[i]);
        setOption(c, v, option, c->argv[i + 1]);
    }
    cmdSaveAndReply(c);
}

/* ------------------------------------------------------------------ DEBUG */

static const struct {
    const char *name, *shown;
    size_t at;
} periods[] = {
    {"info-period", "INFO-PERIOD", offsetof(sentinelPeriods, info)},
    {"ping-period", "PING-PERIOD", offsetof(sentinelPeriods, ping)},
    {"ask-period", "ASK-PERIOD", offsetof(sentinelPeriods, ask)},
    {"publish-period", "PUBLISH-PERIOD", offsetof(sentinelPeriods, publish)},
    {"default-down-after", "DEFAULT-DOWN-AFTER", offsetof(sentinelPeriods, down_after)},
    {"default-failover-timeout", "DEFAULT-FAILOVER-TIMEOUT",
     offsetof(sentinelPeriods, failover_timeout)},
    {"tilt-trigger", "TILT-TRIGGER", offsetof(sentinelPeriods, tilt_trigger)},
    {"tilt-period", "TILT-PERIOD", offsetof(sentinelPeriods, tilt_period)},
    {"slave-reconf-timeout", "SLAVE-RECONF-TIMEOUT", offsetof(sentinelPeriods, reconf_timeout)},
    {"min-link-reconnect-period", "MIN-LINK-RECONNECT-PERIOD",
     offsetof(sentinelPeriods, reconnect)},
    {"election-timeout", "ELECTION-TIMEOUT", offsetof(sentinelPeriods, election)},
    {"script-max-runtime", "SCRIPT-MAX-RUNTIME", offsetof(sentinelPeriods, script_runtime)},
    {"script-retry-delay", "SCRIPT-RETRY-DELAY", offsetof(sentinelPeriods, script_retry)},
};

static int64_t *periodOf(sentinelView *v, size_t number) {
    hotCheck(number < COUNT_OF(periods));
    return (int64_t *)(void *)((char *)&v->periods + periods[number].at);
}

static void replyPeriods(ctx *c, sentinelView *v) {
    replyMap(c, COUNT_OF(periods));
    for (size_t i = 0; i < COUNT_OF(periods); i++) {
        char digits[NUMBER_TEXT_MAX];
        replyBulkText(c, periods[i].shown);
        replyBulk(c, sliceMake(digits, numberPrintInt(digits, *periodOf(v, i))));
    }
}

/* SENTINEL DEBUG [name ms]... Reply: a map, or OK. */
void sentinelDebugCommand(ctx *c) {
    sentinelView *v = serverViewNow();
    if (c->argc == 2) {
        replyPeriods(c, v);
        return;
    }
    for (int i = 2; i < c->argc; i += 2) {
        int64_t ms;
        size_t number = 0;
        while (number < COUNT_OF(periods) && !ctxArgIs(c, i, periods[number].name)) number++;
        slice name = c->argv[i];
        if (number == COUNT_OF(periods) || i + 1 == c->argc) {
            replyErrorFormat(c,
                             "ERR Unknown option or number of arguments for SENTINEL DEBUG '%.*s'",
                             (int)name.len, name.ptr);
            return;
        }
        if (!numberParseInt(c->argv[i + 1], &ms) || ms <= 0) {
            replyErrorFormat(c, "ERR Invalid argument '%.*s' for SENTINEL DEBUG '%.*s'",
                             (int)c->argv[i + 1].len, c->argv[i + 1].ptr, (int)name.len, name.ptr);
            return;
        }
        *periodOf(v, number) = ms;
    }
    replyOk(c);
}

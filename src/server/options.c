/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the process: running, logging, title, shutdown. Main thread only. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/number.h"
#include "engine/hooks.h"
#include "io/file.h"
#include "server/crash.h"
#include "server/kernel.h"
#include "server/server.h"
#include "server/watchdog.h"
#include "server/server_priv.h"

serverConfig serverConf;

enum { HZ_MIN = 1, HZ_MAX = 500 };

/* ------------------------------------------------------------------ enum values */

static const configWord supervised_words[] = {{"upstart", SUPERVISED_UPSTART},
                                              {"systemd", SUPERVISED_SYSTEMD},
                                              {"auto", SUPERVISED_AUTO},
                                              {"no", SUPERVISED_NO},
                                              {NULL, 0}};
static const configWord level_words[] = {{"debug", LOG_DEBUG},     {"verbose", LOG_VERBOSE},
                                         {"notice", LOG_NOTICE},   {"warning", LOG_WARNING},
                                         {"nothing", LOG_NOTHING}, {NULL, 0}};
static const configWord format_words[] = {{"legacy", LOG_FORMAT_LEGACY},
                                          {"logfmt", LOG_FORMAT_LOGFMT},
                                          {"json", LOG_FORMAT_JSON},
                                          {NULL, 0}};
static const configWord time_words[] = {{"legacy", LOG_TIME_LEGACY},
                                        {"iso8601", LOG_TIME_ISO8601},
                                        {"milliseconds", LOG_TIME_MILLISECONDS},
                                        {NULL, 0}};
/* As logSetSyslog() expects them. */
static const configWord facility_words[] = {
    {"user", -1},  {"local0", 0}, {"local1", 1}, {"local2", 2}, {"local3", 3},
    {"local4", 4}, {"local5", 5}, {"local6", 6}, {"local7", 7}, {NULL, 0}};
static const configWord oom_words[] = {{"no", OOM_NO},
                                       {"yes", OOM_RELATIVE},
                                       {"relative", OOM_RELATIVE},
                                       {"absolute", OOM_ABSOLUTE},
                                       {NULL, 0}};
static const configWord shutdown_words[] = {{"default", 0},
                                            {"save", SHUTDOWN_SAVE},
                                            {"nosave", SHUTDOWN_NOSAVE},
                                            {"now", SHUTDOWN_NOW},
                                            {"force", SHUTDOWN_FORCE},
                                            {"safe", SHUTDOWN_SAFE},
                                            {"failover", SHUTDOWN_FAILOVER},
                                            {NULL, 0}};

static status acceptShutdown(slice text, int64_t bits, reason *why) {
    (void)text;
    if ((bits & SHUTDOWN_SAVE) && (bits & SHUTDOWN_NOSAVE)) {
        return reasonSet(why, ERR_SYNTAX,
                         "shutdown options SAVE and NOSAVE can't be used simultaneously");
    }
    return OK;
}

/* ------------------------------------------------------------------ oom-score-adj-values */

static status setOomValues(const slice *words, int count, bool more, reason *why) {
    (void)more; /* the last line applies */
    if (count != OOM_PROCESSES) return reasonSet(why, ERR_SYNTAX, "wrong number of arguments");
    int values[OOM_PROCESSES];
    for (int i = 0; i < OOM_PROCESSES; i++) {
        int64_t value;
        if (!numberParseInt(words[i], &value) || value < -2000 || value > 2000) {
            return reasonSet(
                why, ERR_RANGE,
                "Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
        }
        values[i] = (int)value;
    }
    if (values[OOM_REPLICA] < values[OOM_PRIMARY] || values[OOM_CHILD] < values[OOM_REPLICA]) {
        logWarning(
            "The oom-score-adj-values configuration may not work for non-privileged processes! "
            "Please consult the documentation.");
    }
    memcpy(serverConf.oom_score_adj_values, values, sizeof(values));
    return OK;
}

static void getOomValues(str *out) {
    const int *values = serverConf.oom_score_adj_values;
    strAppendFormat(out, "%d %d %d", values[OOM_PRIMARY], values[OOM_REPLICA], values[OOM_CHILD]);
}

static const configSpecial oom_values = {.set = setOomValues, .get = getOomValues};

/* ------------------------------------------------------------------ proc-title-template */

/* Variables, and whether each one is non-empty on every server. */
static const struct {
    const char *name;
    bool never_empty;
} title_variables[] = {
    {"title", false},   {"listen-addr", true}, {"server-mode", false}, {"port", true},
    {"tls-port", true}, {"unixsocket", false}, {"config-file", true},
};

/* The index in title_variables, -1 if unknown. */
static int findVariable(slice name) {
    for (size_t i = 0; i < COUNT_OF(title_variables); i++) {
        if (sliceEqual(name, sliceOf(title_variables[i].name))) return (int)i;
    }
    return -1;
}

/* All variables must be known, and the title must not be empty if the optional ones are. */
static status acceptTitle(slice text, int64_t number, reason *why) {
    (void)number;
    bool never_empty = false, good = true;
    while (text.len && good) {
        size_t skip = 1;
        if (text.ptr[0] != '{') {
            never_empty |= text.ptr[0] != ' ';
        } else if (text.len > 1 && text.ptr[1] == '{') {
            never_empty = true; /* a literal brace */
            skip = 2;
        } else {
            const char *end = memchr(text.ptr, '}', text.len);
            int variable =
                end ? findVariable(sliceMake(text.ptr + 1, (size_t)(end - text.ptr - 1))) : -1;
            good = variable >= 0;
            if (good) never_empty |= title_variables[variable].never_empty;
            if (good) skip = (size_t)(end - text.ptr) + 1;
        }
        text = sliceMake(text.ptr + skip, text.len - skip);
    }
    if (good && never_empty) return OK;
    return reasonSet(why, ERR_SYNTAX, "template format is invalid or contains unknown variables");
}

/* ------------------------------------------------------------------ applying values */

void serverApplyLogging(void) {
    hotCheck(threadIsMain());
    logSetLevel((logLevel)serverConf.loglevel);
    logSetFormat((logFormat)serverConf.log_format);
    logSetTime((logTime)serverConf.log_timestamp_format);
    logSetFile(serverConf.logfile);
    logSetSyslog(serverConf.syslog_enabled, serverConf.syslog_ident, serverConf.syslog_facility);
}

static status applyLogging(reason *why) {
    (void)why; /* cannot fail */
    serverApplyLogging();
    return OK;
}

static status applyLogFile(reason *why) {
    struct stat found;
    if (!serverConf.logfile[0]) return OK;
    bool is_folder = stat(serverConf.logfile, &found) == 0 && S_ISDIR(found.st_mode);
    if (!is_folder && fileIsWritable(serverConf.logfile)) return OK;
    if (is_folder) errno = EISDIR;
    return reasonSetErrno(why, "Can't open the log file");
}

static status applyTitle(reason *why) {
    (void)why; /* cannot fail */
    titleSet();
    return OK;
}

static status applyOomScore(reason *why) {
    if (kernelApplyOomScore() == OK) return OK;
    return reasonSet(why, ERR_IO, "Failed to set current oom_score_adj. Check server logs.");
}

/* Any number is accepted, as in Valkey, and clamped. */
static status applyHz(reason *why) {
    (void)why; /* cannot fail */
    if (serverConf.hz < HZ_MIN) serverConf.hz = HZ_MIN;
    if (serverConf.hz > HZ_MAX) serverConf.hz = HZ_MAX;
    return OK;
}

/* The watchdog would expire regularly if its period were less than two cron periods. */
static status applyWatchdog(reason *why) {
    (void)why; /* cannot fail */
    int min_ms = 2 * (1000 / (serverConf.hz > 0 ? serverConf.hz : HZ_MIN));
    if (serverConf.watchdog_period && serverConf.watchdog_period < min_ms)
        serverConf.watchdog_period = min_ms;
    if (serverRunNow()->loop)
        watchdogSet(serverConf.watchdog_period); /* otherwise done at startup */
    return OK;
}

/* "" uses the environment; if that is invalid, the C locale remains. */
static status applyLocale(reason *why) {
    bool known = setlocale(LC_COLLATE, serverConf.locale_collate) != NULL;
    if (known || !serverConf.locale_collate[0]) return OK;
    return reasonSet(why, ERR_NOT_FOUND, "Invalid locale name");
}

/* ------------------------------------------------------------------ the table */

const configOption serverOptions[] = {
    /* Process. */
    CONFIG_BOOL("daemonize", serverConf.daemonize, false, .flags = CONFIG_IMMUTABLE),
    CONFIG_ENUM("supervised", serverConf.supervised, supervised_words, SUPERVISED_NO,
                .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("pidfile", serverConf.pidfile, "", .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("databases", serverConf.databases, 16, 1, INT_MAX, .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("hz", serverConf.hz, 10, 0, INT_MAX, .flags = CONFIG_APPLY_AT_START,
               .apply = applyHz),
    CONFIG_BOOL("set-proc-title", serverConf.set_proc_title, true, .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("proc-title-template", serverConf.proc_title_template,
                  "{title} {listen-addr} {server-mode}", .accept = acceptTitle,
                  .apply = applyTitle),
    CONFIG_BOOL("always-show-logo", serverConf.always_show_logo, false, .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("availability-zone", serverConf.availability_zone, ""),
    CONFIG_STRING("hash-seed", serverConf.hash_seed, "", .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("locale-collate", serverConf.locale_collate, "", .flags = CONFIG_APPLY_AT_START,
                  .apply = applyLocale),
    CONFIG_STRING("ignore-warnings", serverConf.ignore_warnings, "",
                  .no_effect = "there is no warning here that it could suppress"),
    /* Log. */
    CONFIG_ENUM("loglevel", serverConf.loglevel, level_words, LOG_NOTICE, .apply = applyLogging),
    CONFIG_STRING("logfile", serverConf.logfile, "",
                  .flags = CONFIG_IMMUTABLE | CONFIG_APPLY_AT_START, .apply = applyLogFile),
    CONFIG_ENUM("log-format", serverConf.log_format, format_words, LOG_FORMAT_LEGACY,
                .apply = applyLogging),
    CONFIG_ENUM("log-timestamp-format", serverConf.log_timestamp_format, time_words,
                LOG_TIME_LEGACY, .apply = applyLogging),
    CONFIG_BOOL("syslog-enabled", serverConf.syslog_enabled, false, .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("syslog-ident", serverConf.syslog_ident, "valkey", .flags = CONFIG_IMMUTABLE),
    CONFIG_ENUM("syslog-facility", serverConf.syslog_facility, facility_words, 0,
                .flags = CONFIG_IMMUTABLE),
    /* Kernel. */
    CONFIG_ENUM("oom-score-adj", serverConf.oom_score_adj, oom_words, OOM_NO,
                .apply = applyOomScore),
    CONFIG_SPECIAL("oom-score-adj-values", &oom_values, "0 200 800", .flags = CONFIG_MULTI_WORD,
                   .apply = applyOomScore),
    CONFIG_BOOL("disable-thp", serverConf.disable_thp, true, .flags = CONFIG_IMMUTABLE),
    CONFIG_STRING("server-cpulist", serverConf.server_cpulist, "", .flags = CONFIG_IMMUTABLE,
                  .alias = "server_cpulist"),
    CONFIG_STRING("bio-cpulist", serverConf.bio_cpulist, "", .flags = CONFIG_IMMUTABLE,
                  .alias = "bio_cpulist"),
    /* Shutdown and crash. */
    CONFIG_INT("shutdown-timeout", serverConf.shutdown_timeout, 10, 0, INT_MAX),
    CONFIG_ENUM("shutdown-on-sigint", serverConf.shutdown_on_sigint, shutdown_words, 0,
                .flags = CONFIG_MULTI_WORD, .accept = acceptShutdown),
    CONFIG_ENUM("shutdown-on-sigterm", serverConf.shutdown_on_sigterm, shutdown_words, 0,
                .flags = CONFIG_MULTI_WORD, .accept = acceptShutdown),
    CONFIG_BOOL("crash-log-enabled", serverConf.crash_log_enabled, true, .apply = crashApply),
    CONFIG_BOOL("crash-memcheck-enabled", serverConf.crash_memcheck_enabled, true),
    CONFIG_BOOL("use-exit-on-panic", serverConf.use_exit_on_panic, false, .flags = CONFIG_HIDDEN),
    CONFIG_BOOL("enable-debug-assert", serverConf.enable_debug_assert, false,
                .flags = CONFIG_IMMUTABLE | CONFIG_HIDDEN,
                .no_effect = "such checks are in builds with BUILD=debug"),
    CONFIG_STRING("debug-context", serverConf.debug_context, "",
                  .flags = CONFIG_HIDDEN | CONFIG_IN_CRASH_REPORT),
    CONFIG_INT("watchdog-period", serverConf.watchdog_period, 0, 0, INT_MAX,
               .flags = CONFIG_HIDDEN | CONFIG_APPLY_AT_START, .apply = applyWatchdog),
    CONFIG_END,
};

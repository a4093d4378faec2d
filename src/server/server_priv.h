/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directives of the process. Each field is named after its directive; only the configuration
 * registry writes them. */
#ifndef SERVER_SERVER_PRIV_H
#define SERVER_SERVER_PRIV_H

#include <stdbool.h>

#include "config/config.h"

enum supervised { SUPERVISED_NO, SUPERVISED_AUTO, SUPERVISED_SYSTEMD, SUPERVISED_UPSTART };
enum oomScoreAdj { OOM_NO, OOM_RELATIVE, OOM_ABSOLUTE };
enum oomProcess { OOM_PRIMARY, OOM_REPLICA, OOM_CHILD, OOM_PROCESSES };

typedef struct serverConfig {
    /* Process. */
    bool daemonize;
    int supervised; /* enum supervised */
    char *pidfile;
    int databases;
    int hz; /* 1..500 */
    bool set_proc_title;
    char *proc_title_template; /* contains only known {variables} */
    bool always_show_logo;
    str hash_seed; /* bytes */
    char *availability_zone, *locale_collate, *ignore_warnings;
    /* Log: applied by serverApplyLogging(). */
    int loglevel;
    char *logfile;
    int log_format, log_timestamp_format;
    bool syslog_enabled;
    char *syslog_ident;
    int syslog_facility;
    /* Kernel. */
    int oom_score_adj;                       /* enum oomScoreAdj */
    int oom_score_adj_values[OOM_PROCESSES]; /* by enum oomProcess */
    bool disable_thp;
    char *server_cpulist, *bio_cpulist;
    /* Shutdown and crash. */
    int shutdown_timeout;                        /* seconds */
    int shutdown_on_sigint, shutdown_on_sigterm; /* SHUTDOWN_... flags of engine/hooks.h */
    bool crash_log_enabled, crash_memcheck_enabled, use_exit_on_panic, enable_debug_assert;
    char *debug_context;
    int watchdog_period; /* ms, 0: off */
} serverConfig;

extern serverConfig serverConf;
extern const configOption serverOptions[];

/* --check-config: reports what a start would fail at. False if there is anything. The program must
 * end after it. */
bool configCheckStart(str *report);
/* After configLoad() has failed: if the report says that TLS refused its files, adds those that
 * cannot be read, or else all of them, with file and line of their directives. */
void configTellCertificates(str *report);
/* If writes are refused for lack of memory, appends a sentence that says why, and what to do. */
bool memoryTellRefusal(str *out);
/* Passes the log directives to base/log. Called after configLoad(). */
void serverApplyLogging(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line of valkey-cli. */
#ifndef TOOLS_CLI_OPTIONS_H
#define TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/backup/backup.h"
#include "tools/cli/cluster_manager.h"
#include "tools/cli/job_progress.h"
#include "tools/tls.h"

typedef enum outputFormat {
    OUTPUT_STANDARD, /* for people: types and indexes */
    OUTPUT_RAW,
    OUTPUT_CSV,
    OUTPUT_JSON,
    OUTPUT_QUOTED_JSON,
} outputFormat;

typedef enum cliMode {
    MODE_COMMANDS, /* the command of the command line, or those of standard input */
    MODE_STAT,
    MODE_LATENCY,
    MODE_LATENCY_HISTORY,
    MODE_LATENCY_DIST,
    MODE_LRU_TEST,
    MODE_INTRINSIC_LATENCY,
    MODE_REPLICA,
    MODE_RDB,
    MODE_PIPE,
    MODE_BIGKEYS,
    MODE_MEMKEYS,
    MODE_HOTKEYS,
    MODE_COMPRESSION_ESTIMATE,
    MODE_SCAN,
    MODE_TOP,
    MODE_SENTINEL_VIEW,
    MODE_DIFF,
    MODE_MIGRATE_CHECK,
    MODE_DOWNGRADE_CHECK,
    MODE_CLUSTER,
    MODE_BACKUP,
    MODE_RESTORE,
} cliMode;

/* Texts are borrowed from the command line and the environment, or in `owned`. */
typedef struct cliOptions {
    /* Connection. */
    const char *host;
    const char *unix_socket; /* NULL: TCP */
    const char *user;        /* NULL: AUTH with the password only */
    const char *password;    /* NULL: no AUTH */
    int port, db;
    int protocol; /* 2, 3, or 0: 3 for JSON if the server has it, else 2 */
    double timeout_s;
    bool prefer_ipv4, prefer_ipv6, mptcp, cluster, ask_password, no_auth_warning;
    toolTls tls;
    /* Input and output. */
    outputFormat output;
    bool force_standard; /* --no-raw */
    bool quoted_input, error_status, stdin_last_arg, verbose, careful;
    const char *stdin_tag; /* -X */
    const char *item_delimiter, *reply_delimiter;
    long repeat;         /* -1: endless */
    int64_t interval_us; /* -i; 0: not given */
    int show_pushes;     /* -1: if standard output is a terminal */
    progressStyle progress;
    /* Modes. */
    cliMode mode;
    const char *eval_file, *rdb_file;
    bool functions_only, ldb, ldb_sync;
    const char *pattern;
    int64_t pattern_len; /* bytes of a quoted pattern; -1: as long as the text */
    int64_t count, lru_keys, intrinsic_s, memkeys_samples, hotkeys_count, pipe_timeout_s;
    const char *diff_uris[2], *check_uri; /* --diff, --migrate-check */
    const char *downgrade_of;             /* --downgrade-check: the first one */
    int64_t diff_sample;                  /* random keys of each server; 0: all */
    backupOptions backup;                 /* --backup, --restore */
    const char *test_hint, *test_hint_file;
    /* The arguments of --cluster: its command and what follows up to the next option. */
    int cluster_argc;
    char **cluster_argv;
    char **owned;
    int owned_count;
    clusterOptions cluster_options;
} cliOptions;

/* Parses the command line; prints what is wrong and ends the program after an error, --help and
 * --version. Returns the index of the first word of the command, `argc` if there is none. */
int cliOptionsParse(cliOptions *o, int argc, char **argv);
void cliOptionsClear(cliOptions *o);
/* Options for another server: those of `from` with what the URI says; `db` is -1 if it names none.
 * Ends the program if the URI is wrong. To be cleared before `from`. */
void cliOptionsForUri(cliOptions *o, const cliOptions *from, const char *uri);
/* Takes a text of memAlloc(), which lives as long as the options; returns it. */
const char *cliOptionsKeep(cliOptions *o, char *take);
/* True if standard output is a terminal, or is to be treated as one (environment variable
 * FAKETTY). */
bool cliOutputIsTerminal(void);
/* Prints the text of --help. */
void cliUsagePrint(FILE *to);

#endif

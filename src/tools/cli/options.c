/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsing of the command line (options.h): a table of options, each of which sets one field. */
#include "tools/cli/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/build_info.h"
#include "base/str.h"
#include "tools/cli/words.h"
#include "tools/server_uri.h"

typedef enum optionKind {
    KIND_SET,        /* a bool that becomes true */
    KIND_TEXT,       /* a const char * */
    KIND_INT64,      /* an int64_t, as atoll() reads it */
    KIND_OUTPUT,     /* the output format `value` */
    KIND_MODE,       /* the mode `value` */
    KIND_MODE_INT64, /* a mode, and an int64_t for it */
    KIND_MODE_TEXT,
    KIND_OTHER, /* see takeOther(); `value` tells if it has an argument */
} optionKind;

typedef struct optionRow {
    const char *name;
    optionKind kind;
    size_t field;
    int value;
} optionRow;

#define FIELD(name) offsetof(cliOptions, name)
static const optionRow rows[] = {
    {"-h", KIND_TEXT, FIELD(host), 0},
    {"-s", KIND_TEXT, FIELD(unix_socket), 0},
    {"-a", KIND_TEXT, FIELD(password), 0},
    {"--pass", KIND_TEXT, FIELD(password), 0},
    {"--user", KIND_TEXT, FIELD(user), 0},
    {"--askpass", KIND_SET, FIELD(ask_password), 0},
    {"--no-auth-warning", KIND_SET, FIELD(no_auth_warning), 0},
    {"-4", KIND_SET, FIELD(prefer_ipv4), 0},
    {"-6", KIND_SET, FIELD(prefer_ipv6), 0},
    {"--mptcp", KIND_SET, FIELD(mptcp), 0},
    {"-c", KIND_SET, FIELD(cluster), 0},
#ifdef HAVE_TLS
    {"--tls", KIND_SET, FIELD(tls.on), 0},
    {"--insecure", KIND_SET, FIELD(tls.insecure), 0},
    {"--sni", KIND_TEXT, FIELD(tls.sni), 0},
    {"--cacert", KIND_TEXT, FIELD(tls.cacert), 0},
    {"--cacertdir", KIND_TEXT, FIELD(tls.cacertdir), 0},
    {"--cert", KIND_TEXT, FIELD(tls.cert), 0},
    {"--key", KIND_TEXT, FIELD(tls.key), 0},
    {"--tls-ciphers", KIND_TEXT, FIELD(tls.ciphers), 0},
    {"--tls-ciphersuites", KIND_TEXT, FIELD(tls.ciphersuites), 0},
#endif
    {"-x", KIND_SET, FIELD(stdin_last_arg), 0},
    {"-X", KIND_TEXT, FIELD(stdin_tag), 0},
    {"-d", KIND_TEXT, FIELD(item_delimiter), 0},
    {"-D", KIND_TEXT, FIELD(reply_delimiter), 0},
    {"-e", KIND_SET, FIELD(error_status), 0},
    {"--careful", KIND_SET, FIELD(careful), 0},
    {"--verbose", KIND_SET, FIELD(verbose), 0},
    {"--raw", KIND_OUTPUT, 0, OUTPUT_RAW},
    {"--no-raw", KIND_OUTPUT, 0, OUTPUT_STANDARD},
    {"--csv", KIND_OUTPUT, 0, OUTPUT_CSV},
    {"--json", KIND_OUTPUT, 0, OUTPUT_JSON},
    {"--quoted-json", KIND_OUTPUT, 0, OUTPUT_QUOTED_JSON},
    {"--quoted-input", KIND_SET, FIELD(quoted_input), 0},
    {"--stat", KIND_MODE, 0, MODE_STAT},
    {"--latency", KIND_MODE, 0, MODE_LATENCY},
    {"--latency-history", KIND_MODE, 0, MODE_LATENCY_HISTORY},
    {"--latency-dist", KIND_MODE, 0, MODE_LATENCY_DIST},
    {"--lru-test", KIND_MODE_INT64, FIELD(lru_keys), MODE_LRU_TEST},
    {"--intrinsic-latency", KIND_MODE_INT64, FIELD(intrinsic_s), MODE_INTRINSIC_LATENCY},
    {"--replica", KIND_MODE, 0, MODE_REPLICA},
    {"--slave", KIND_MODE, 0, MODE_REPLICA},
    {"--rdb", KIND_MODE_TEXT, FIELD(rdb_file), MODE_RDB},
    {"--pipe", KIND_MODE, 0, MODE_PIPE},
    {"--pipe-timeout", KIND_INT64, FIELD(pipe_timeout_s), 0},
    {"--bigkeys", KIND_MODE, 0, MODE_BIGKEYS},
    {"--memkeys", KIND_MODE, 0, MODE_MEMKEYS},
    {"--memkeys-samples", KIND_MODE_INT64, FIELD(memkeys_samples), MODE_MEMKEYS},
    {"--hotkeys", KIND_MODE, 0, MODE_HOTKEYS},
    {"--hotkeys-count", KIND_MODE_INT64, FIELD(hotkeys_count), MODE_HOTKEYS},
    {"--compression-estimate", KIND_MODE, 0, MODE_COMPRESSION_ESTIMATE},
    {"--scan", KIND_MODE, 0, MODE_SCAN},
    {"--top", KIND_MODE, 0, MODE_TOP},
    {"--sentinel-view", KIND_MODE, 0, MODE_SENTINEL_VIEW},
    {"--diff", KIND_MODE_TEXT, FIELD(diff_uris[0]), MODE_DIFF},
    {"--migrate-check", KIND_MODE_TEXT, FIELD(check_uri), MODE_MIGRATE_CHECK},
    {"--downgrade-check", KIND_MODE_TEXT, FIELD(downgrade_of), MODE_DOWNGRADE_CHECK},
    {"--diff-sample", KIND_INT64, FIELD(diff_sample), 0},
    {"--backup", KIND_MODE_TEXT, FIELD(backup.folder), MODE_BACKUP},
    {"--follow", KIND_SET, FIELD(backup.follow), 0},
    {"--this-server", KIND_SET, FIELD(backup.this_server), 0},
    {"--users", KIND_SET, FIELD(backup.users), 0},
    {"--compress", KIND_TEXT, FIELD(backup.compress), 0},
    {"--encrypt-to", KIND_TEXT, FIELD(backup.encrypt_to), 0},
    {"--upload", KIND_TEXT, FIELD(backup.upload), 0},
    {"--full-every", KIND_TEXT, FIELD(backup.full_every), 0},
    {"--keep", KIND_TEXT, FIELD(backup.keep), 0},
    {"--metrics", KIND_TEXT, FIELD(backup.metrics), 0},
    {"--segment-bytes", KIND_INT64, FIELD(backup.segment_bytes), 0},
    {"--segment-seconds", KIND_INT64, FIELD(backup.segment_seconds), 0},
    {"--wait", KIND_INT64, FIELD(backup.wait_s), 0},
    {"--restore", KIND_MODE_TEXT, FIELD(backup.folder), MODE_RESTORE},
    {"--list", KIND_SET, FIELD(backup.list), 0},
    {"--verify", KIND_SET, FIELD(backup.verify), 0},
    {"--to-time", KIND_TEXT, FIELD(backup.to_time), 0},
    {"--to-offset", KIND_INT64, FIELD(backup.to_offset), 0},
    {"--ttl", KIND_TEXT, FIELD(backup.ttl), 0},
    {"--into", KIND_TEXT, FIELD(backup.into), 0},
    {"--keys", KIND_TEXT, FIELD(backup.keys), 0},
    {"--prefix", KIND_TEXT, FIELD(backup.prefix), 0},
    {"--replace", KIND_SET, FIELD(backup.replace), 0},
    {"--decrypt-with", KIND_TEXT, FIELD(backup.decrypt_with), 0},
    {"--server-program", KIND_TEXT, FIELD(backup.server_program), 0},
    {"--pattern", KIND_TEXT, FIELD(pattern), 0},
    {"--count", KIND_INT64, FIELD(count), 0},
    {"--eval", KIND_TEXT, FIELD(eval_file), 0},
    {"--ldb", KIND_SET, FIELD(ldb), 0},
    {"--test_hint", KIND_TEXT, FIELD(test_hint), 0},
    {"--test_hint_file", KIND_TEXT, FIELD(test_hint_file), 0},
    {"-p", KIND_OTHER, 0, 1},
    {"-n", KIND_OTHER, 0, 1},
    {"-t", KIND_OTHER, 0, 1},
    {"-r", KIND_OTHER, 0, 1},
    {"-i", KIND_OTHER, 0, 1},
    {"-u", KIND_OTHER, 0, 1},
    {"-2", KIND_OTHER, 0, 0},
    {"-3", KIND_OTHER, 0, 0},
    {"--ldb-sync-mode", KIND_OTHER, 0, 0},
    {"--functions-rdb", KIND_OTHER, 0, 1},
    {"--quoted-pattern", KIND_OTHER, 0, 1},
    {"--show-pushes", KIND_OTHER, 0, 1},
    {"--progress", KIND_OTHER, 0, 1},
};

static const optionRow *findRow(const char *name) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (!strcmp(rows[i].name, name)) return &rows[i];
    }
    return NULL;
}

static bool takesArgument(const optionRow *row) {
    switch (row->kind) {
    case KIND_TEXT:
    case KIND_INT64:
    case KIND_MODE_INT64:
    case KIND_MODE_TEXT: return true;
    case KIND_OTHER: return row->value != 0;
    default: return false;
    }
}

static void fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static int64_t takeNumber(const char *name, const char *text) {
    char *end;
    errno = 0;
    int64_t number = strtoll(text, &end, 10);
    if (end != text && !*end && !errno) return number;
    fprintf(stderr, "%s: '%s' is not a number\n", name, text);
    exit(1);
}

static void setOutput(cliOptions *o, outputFormat format) {
    o->output = format;
    o->force_standard = format == OUTPUT_STANDARD;
}

const char *cliOptionsKeep(cliOptions *o, char *take) {
    o->owned = memRealloc(o->owned, sizeof(*o->owned) * (size_t)(o->owned_count + 1));
    o->owned[o->owned_count++] = take;
    return take;
}

void cliOptionsClear(cliOptions *o) {
    for (int i = 0; i < o->owned_count; i++) memFree(o->owned[i]);
    memFree(o->owned);
    o->owned = NULL;
    o->owned_count = 0;
}

static void setPattern(cliOptions *o, const char *quoted) {
    str pattern = STR_EMPTY;
    if (!wordUnquote(sliceOf(quoted), &pattern))
        fail("Invalid quoted string specified for --quoted-pattern.");
    o->pattern_len = (int64_t)pattern.len;
    o->pattern = cliOptionsKeep(o, memDup(strText(&pattern), pattern.len));
    strFree(&pattern);
}

static void setShowPushes(cliOptions *o, const char *value) {
    if (*value == 'y' || *value == 'Y') {
        o->show_pushes = 1;
    } else if (*value == 'n' || *value == 'N') {
        o->show_pushes = 0;
    } else {
        fprintf(stderr, "Unknown --show-pushes value '%s' (valid: '[y]es', '[n]o')\n", value);
    }
}

static void setProgress(cliOptions *o, const char *value) {
    if (!strcmp(value, "json")) {
        o->progress = PROGRESS_JSON;
    } else if (!strcmp(value, "none")) {
        o->progress = PROGRESS_NONE;
    } else {
        fail("Unknown --progress value (valid: 'json', 'none').");
    }
}

static void takeUri(cliOptions *o, const char *text) {
    serverUri uri;
    const char *wrong = serverUriParse(text, &uri);
    if (wrong) fail(wrong);
#ifndef HAVE_TLS
    if (uri.tls)
        fail("valkeys:// and rediss:// are only supported when valkey-cli is compiled with "
             "OpenSSL");
#endif
    if (uri.tls) o->tls.on = true;
    if (uri.user) o->user = cliOptionsKeep(o, uri.user);
    if (uri.password) o->password = cliOptionsKeep(o, uri.password);
    if (uri.host) o->host = cliOptionsKeep(o, uri.host);
    if (uri.port >= 0) o->port = uri.port;
    if (uri.db >= 0) o->db = uri.db;
}

void cliOptionsForUri(cliOptions *o, const cliOptions *from, const char *uri) {
    *o = *from;
    o->owned = NULL;
    o->owned_count = 0;
    o->unix_socket = NULL;
    o->db = -1;
    takeUri(o, uri);
}

static void setPort(cliOptions *o, const char *value) {
    o->port = atoi(value);
    if (o->port <= 0 || o->port > 65535) fail("Invalid server port.");
}

static void setTimeout(cliOptions *o, const char *value) {
    char *end;
    o->timeout_s = strtod(value, &end);
    if (end == value || *end || !(o->timeout_s >= 0)) fail("Invalid connection timeout for -t.");
}

static void setInterval(cliOptions *o, const char *value) {
    char *end;
    double seconds = strtod(value, &end);
    if (end == value || *end) fail("Invalid interval for -i.");
    o->interval_us = seconds > 0 ? (int64_t)(seconds * 1e6) : 0;
}

static void takeOther(cliOptions *o, const char *name, const char *value) {
    if (!strcmp(name, "-p")) setPort(o, value);
    if (!strcmp(name, "-n")) o->db = (int)takeNumber(name, value);
    if (!strcmp(name, "-t")) setTimeout(o, value);
    if (!strcmp(name, "-r")) o->repeat = (long)takeNumber(name, value);
    if (!strcmp(name, "-i")) setInterval(o, value);
    if (!strcmp(name, "-u")) takeUri(o, value);
    if (!strcmp(name, "-2")) o->protocol = 2;
    if (!strcmp(name, "-3")) o->protocol = 3;
    if (!strcmp(name, "--ldb-sync-mode")) o->ldb = o->ldb_sync = true;
    if (!strcmp(name, "--quoted-pattern")) setPattern(o, value);
    if (!strcmp(name, "--show-pushes")) setShowPushes(o, value);
    if (!strcmp(name, "--progress")) setProgress(o, value);
    if (!strcmp(name, "--functions-rdb")) {
        o->mode = MODE_RDB;
        o->functions_only = true;
        o->rdb_file = value;
    }
}

static void take(cliOptions *o, const optionRow *row, const char *value) {
    char *field = (char *)o + row->field;
    switch (row->kind) {
    case KIND_SET: *(bool *)field = true; break;
    case KIND_TEXT: *(const char **)field = value; break;
    case KIND_INT64: *(int64_t *)field = takeNumber(row->name, value); break;
    case KIND_OUTPUT: setOutput(o, (outputFormat)row->value); break;
    case KIND_MODE: o->mode = (cliMode)row->value; break;
    case KIND_MODE_INT64:
        o->mode = (cliMode)row->value;
        *(int64_t *)field = takeNumber(row->name, value);
        break;
    case KIND_MODE_TEXT:
        o->mode = (cliMode)row->value;
        *(const char **)field = value;
        break;
    case KIND_OTHER: takeOther(o, row->name, value); break;
    }
}

static void takeEnvironment(cliOptions *o) {
    const char *password = getenv("VALKEYCLI_AUTH");
    if (!password) password = getenv("REDISCLI_AUTH");
    if (password && !o->password) o->password = password;
}

bool cliOutputIsTerminal(void) { return isatty(STDOUT_FILENO) || getenv("FAKETTY"); }

static void complete(cliOptions *o, bool password_given) {
    slice bare = serverHostBare(sliceOf(o->host));
    if (bare.ptr != o->host) o->host = cliOptionsKeep(o, memDup(bare.ptr, bare.len));
    if (o->prefer_ipv4 && o->prefer_ipv6) fail("Options -4 and -6 are mutually exclusive.");
    if (o->stdin_last_arg && o->stdin_tag) fail("Options -x and -X are mutually exclusive.");
    if (o->ldb && !o->eval_file)
        fail("Options --ldb and --ldb-sync-mode require --eval.\n"
             "Try valkey-cli --help for more information.");
    if (o->ask_password && password_given) o->password = NULL;
    if (password_given && !o->no_auth_warning)
        fputs("Warning: Using a password with '-a' or '-u' option on the command line interface "
              "may not be safe.\n",
              stderr);
    bool formatted = o->force_standard || o->ldb || cliOutputIsTerminal();
    if (!formatted && o->output == OUTPUT_STANDARD) o->output = OUTPUT_RAW;
    if (o->show_pushes < 0) o->show_pushes = cliOutputIsTerminal();
}

/* Takes --cluster with its command and what follows up to the next option, or an option of the
 * cluster manager. Returns the number of words taken, 0 if it is neither. */
static int takeCluster(cliOptions *o, int argc, char **argv, int at) {
    if (strcmp(argv[at], "--cluster") != 0) {
        int taken = clusterOptionsTake(&o->cluster_options, argc, argv, at);
        if (taken < 0) exit(1);
        return taken;
    }
    int end = at + 1;
    while (end < argc && argv[end][0] != '-') end++;
    if (end == at + 1) {
        fputs("--cluster needs a subcommand.\n", stderr);
        clusterManagerHelp(stderr);
        exit(1);
    }
    o->mode = MODE_CLUSTER;
    o->cluster_argc = end - at - 1;
    o->cluster_argv = &argv[at + 1];
    return end - at;
}

int cliOptionsParse(cliOptions *o, int argc, char **argv) {
    *o =
        (cliOptions){.host = "127.0.0.1",
                     .port = 6379,
                     .item_delimiter = "\n",
                     .reply_delimiter = "\n",
                     .repeat = 1,
                     .show_pushes = -1,
                     .pattern_len = -1,
                     .hotkeys_count = 16,
                     .count = 10,
                     .backup = {.segment_bytes = 64 << 20, .segment_seconds = 300, .to_offset = -1},
                     .pipe_timeout_s = 30};
    clusterOptionsInit(&o->cluster_options);
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *name = argv[i];
        bool last = i + 1 == argc;
        if (!strcmp(name, "--help") || (!strcmp(name, "-h") && last)) {
            cliUsagePrint(stdout);
            exit(0);
        }
        if (!strcmp(name, "-v") || !strcmp(name, "--version")) {
            printf("valkey-cli %s\n", SERVER_VERSION);
            exit(0);
        }
        if (!strncmp(name, "--cluster", strlen("--cluster"))) {
            int taken = takeCluster(o, argc, argv, i);
            if (taken > 0) {
                i += taken - 1;
                continue;
            }
        }
        const optionRow *row = findRow(name);
        if (!row || (takesArgument(row) && last)) {
            fprintf(stderr, "Unrecognized option or bad number of args for: '%s'\n", name);
            exit(1);
        }
        take(o, row, takesArgument(row) ? argv[++i] : NULL);
        if (!strcmp(name, "--diff")) {
            if (i + 1 == argc) fail("--diff needs two URIs: valkey://host:port valkey://host:port");
            o->diff_uris[1] = argv[++i];
        }
    }
    bool password_given = o->password != NULL;
    takeEnvironment(o);
    complete(o, password_given);
    return i;
}

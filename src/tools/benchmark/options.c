/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line of valkey-benchmark; see the header. */
#include "tools/benchmark/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/base.h"
#include "base/build_info.h"
#include "tools/benchmark/tests.h"
#include "tools/benchmark/usage.h"
#include "tools/server_uri.h"
#include "tools/tool.h"

enum { THREADS_MAX = 500, ROUNDS = 5 };

static void badOption(const char *option) {
    fprintf(stderr, "Invalid option \"%s\" or option argument missing\n\n", option);
    benchUsage(stderr);
    exit(1);
}

static void die(const char *text) {
    fprintf(stderr, "%s\n", text);
    exit(1);
}

/* ------------------------------------------------------------------ single values */

static void badNumber(const char *name, const char *text) {
    fprintf(stderr, "Invalid value \"%s\" of option \"%s\": a number is expected\n", text, name);
    exit(1);
}

static int64_t takeNumber(const char *name, const char *text) {
    char *end;
    errno = 0;
    int64_t number = strtoll(text, &end, 10);
    if (end == text || *end || errno) badNumber(name, text);
    return number;
}

static int takeInt(const char *name, const char *text) {
    int64_t number = takeNumber(name, text);
    if (number < INT_MIN || number > INT_MAX) badNumber(name, text);
    return (int)number;
}

static double takeDouble(const char *name, const char *text) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end) badNumber(name, text);
    return number;
}

static void takeUri(benchOptions *o, const char *text) {
    serverUri uri; /* its texts live as long as the options */
    const char *wrong = serverUriParse(text, &uri);
    if (wrong) die(wrong);
    if (uri.tls) o->tls.on = true;
    if (uri.user) o->user = uri.user;
    if (uri.password) o->password = uri.password;
    if (uri.host) o->server.host = uri.host;
    if (uri.port >= 0) o->server.port = uri.port;
    if (uri.db >= 0) o->dbnum = uri.db;
}

/* "host:port"; the port is after the last colon. */
static void parseEndpoint(endpoint *e, const char *text) {
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || atoi(colon + 1) <= 0) badOption(text);
    slice host = serverHostBare(sliceMake(text, (size_t)(colon - text)));
    e->host = memDup(host.ptr, host.len);
    e->port = atoi(colon + 1);
}

static void parseDistribution(benchOptions *o, const char *text) {
    char *end;
    if (!strcmp(text, "uniform")) {
        o->distribution = KEYS_UNIFORM;
    } else if (!strcmp(text, "sequential")) {
        o->distribution = KEYS_SEQUENTIAL;
    } else if (!strncmp(text, "zipf:", 5)) {
        o->distribution = KEYS_ZIPF;
        o->zipf = strtod(text + 5, &end);
        if (end == text + 5 || *end || !(o->zipf > 0) || o->zipf > 10) badOption(text);
    } else {
        badOption(text);
    }
}

static void parseReadFrom(benchOptions *o, const char *text) {
    static const char *const names[] = {"no", "yes", "all"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        o->read_from = (readFrom)i;
        return;
    }
    badOption(text);
}

static void parseFuzzModes(fuzzOptions *f, const char *text) {
    char *copy = memDup(text, strlen(text)), *rest = NULL;
    for (char *mode = strtok_r(copy, ",", &rest); mode; mode = strtok_r(NULL, ",", &rest)) {
        if (!strcmp(mode, "malformed-commands")) {
            f->malformed = true;
        } else if (!strcmp(mode, "config-commands")) {
            f->config = true;
        } else {
            fprintf(stderr, "Invalid fuzz mode: %s\n", mode);
            exit(1);
        }
    }
    memFree(copy);
}

static void parseFuzzLevel(fuzzOptions *f, const char *text) {
    static const char *const names[] = {"none", "error", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(text, names[i]) != 0) continue;
        f->level = (fuzzLevel)i;
        return;
    }
    fprintf(stderr, "Invalid fuzz loglevel: %s\n", text);
    exit(1);
}

/* ",set,get,": the names in lower case, each between commas. */
static char *testList(const char *text) {
    size_t len = strlen(text);
    char *list = memAlloc(len + 3);
    list[0] = ',';
    for (size_t i = 0; i < len; i++) list[i + 1] = (char)tolower((unsigned char)text[i]);
    strcpy(list + len + 1, ",");
    return list;
}

/* ------------------------------------------------------------------ all options */

/* Options without an argument. */
static bool setFlag(benchOptions *o, const char *name) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"-3", &o->resp3},
        {"--cluster", &o->cluster},
        {"--enable-tracking", &o->tracking},
        {"-q", &o->quiet},
        {"--csv", &o->csv},
        {"-l", &o->loop},
        {"-I", &o->idle},
        {"-x", &o->from_stdin},
        {"--tls", &o->tls.on},
        {"--insecure", &o->tls.insecure},
        {"--mptcp", &o->mptcp},
        {"--fuzz", &o->fuzz.on},
        {"--plot", &o->plot},
        {"--percentiles", &o->percentiles},
        {"--bytes-per-key", &o->bytes_per_key},
    };
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
        if (strcmp(name, flags[i].name) != 0) continue;
        *flags[i].flag = true;
        return true;
    }
    if (!strcmp(name, "--sequential")) {
        o->distribution = KEYS_SEQUENTIAL;
    } else if (!strcmp(name, "-e")) {
        fprintf(stderr,
                "WARNING: -e option has no effect. We now immediately exit on error to avoid "
                "false results.\n");
    } else if (!strcmp(name, "--help")) {
        benchUsage(stdout);
        exit(0);
    } else if (toolIsVersionOption(name)) {
        printf("valkey-benchmark %s\n", SERVER_VERSION);
        exit(0);
    } else {
        return false;
    }
    return true;
}

/* Options whose argument is a text or a number that is taken as it is. */
static bool setValue(benchOptions *o, const char *name, const char *value) {
    const struct {
        const char *name;
        const char **text;
        int *number;
    } values[] = {
        {"-p", NULL, &o->server.port},
        {"-s", &o->server.socket, NULL},
        {"-a", &o->password, NULL},
        {"--user", &o->user, NULL},
        {"-c", NULL, &o->clients},
        {"--duration", NULL, &o->duration_s},
        {"--warmup", NULL, &o->warmup_s},
        {"--dbnum", NULL, &o->dbnum},
        {"--threads", NULL, &o->threads},
        {"-P", NULL, &o->pipeline},
        {"--num-functions", NULL, &o->functions},
        {"--num-keys-in-fcall", NULL, &o->function_keys},
        {"--rounds", NULL, &o->rounds},
        {"--mix", &o->mix, NULL},
        {"--html", &o->html, NULL},
        {"--sni", &o->tls.sni, NULL},
        {"--cacert", &o->tls.cacert, NULL},
        {"--cacertdir", &o->tls.cacertdir, NULL},
        {"--cert", &o->tls.cert, NULL},
        {"--key", &o->tls.key, NULL},
        {"--tls-ciphers", &o->tls.ciphers, NULL},
        {"--tls-ciphersuites", &o->tls.ciphersuites, NULL},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        if (strcmp(name, values[i].name) != 0) continue;
        if (values[i].text) {
            *values[i].text = value;
        } else {
            *values[i].number = takeInt(name, value);
        }
        return true;
    }
    return false;
}

/* Options whose argument has a form of its own. */
static bool setOther(benchOptions *o, const char *name, const char *value) {
    if (!strcmp(name, "-h")) {
        slice bare = serverHostBare(sliceOf(value));
        o->server.host = bare.ptr == value ? value : memDup(bare.ptr, bare.len);
    } else if (!strcmp(name, "-n")) {
        o->requests = takeNumber(name, value);
    } else if (!strcmp(name, "-d")) {
        o->data_size = takeNumber(name, value);
    } else if (!strcmp(name, "-k")) {
        o->keep_alive = takeNumber(name, value) != 0;
    } else if (!strcmp(name, "-r")) {
        o->random_keys = true;
        o->key_count = takeNumber(name, value);
        if (o->key_count < 0) o->key_count = 0;
    } else if (!strcmp(name, "-t")) {
        o->tests = testList(value);
        testsCheck(o->tests);
    } else if (!strcmp(name, "-u")) {
        takeUri(o, value);
    } else if (!strcmp(name, "--rfr")) {
        parseReadFrom(o, value);
    } else if (!strcmp(name, "--precision")) {
        /* Accepted; latencies always have three decimals, as in Valkey 9.1. */
        (void)value;
    } else if (!strcmp(name, "--seed")) {
        o->seed = (uint64_t)takeNumber(name, value);
    } else if (!strcmp(name, "--rps") || !strcmp(name, "--rate")) {
        o->rate = takeDouble(name, value);
        o->open_loop = !strcmp(name, "--rate");
    } else if (!strcmp(name, "--compare")) {
        parseEndpoint(&o->compare, value);
    } else if (!strcmp(name, "--key-dist")) {
        parseDistribution(o, value);
    } else if (!strcmp(name, "--fuzz-mode")) {
        parseFuzzModes(&o->fuzz, value);
    } else if (!strcmp(name, "--fuzz-loglevel")) {
        parseFuzzLevel(&o->fuzz, value);
    } else {
        return false;
    }
    return true;
}

static void setDefaults(benchOptions *o) {
    *o = (benchOptions){
        .server = {"127.0.0.1", 6379, NULL},
        .clients = 50,
        .requests = -1,
        .pipeline = 1,
        .keep_alive = true,
        .data_size = 3,
        .functions = 10,
        .function_keys = 1,
        .rounds = ROUNDS,
        .seed = (uint64_t)time(NULL),
        .fuzz.level = FUZZ_INFO,
    };
}

/* Brings values into their ranges, as Valkey does. */
static void adjust(benchOptions *o) {
    if (o->requests >= 0 && o->duration_s > 0)
        die("Options -n and --duration are mutually exclusive.");
    if (o->requests < 0) o->requests = 100000;
    if (o->data_size < 1) o->data_size = 1;
    if (o->data_size > 1024 * 1024 * 1024) o->data_size = 1024 * 1024 * 1024;
    if (o->pipeline < 1) o->pipeline = 1;
    if (o->clients < 1) o->clients = 1;
    if (o->rate < 0) o->rate = 0;
    if (o->open_loop && o->rate == 0) die("--rate needs a number of requests per second.");
    if (o->rounds < 1) o->rounds = 1;
    if (o->threads > THREADS_MAX) {
        fprintf(stderr, "WARNING: Too many threads, limiting threads to %d.\n", THREADS_MAX);
        o->threads = THREADS_MAX;
    }
    if (o->threads < 0) o->threads = 0;
    if (o->distribution == KEYS_ZIPF && o->key_count < 1)
        die("--key-dist zipf needs a number of keys (-r).");
    if (o->compare.host && (o->cluster || o->idle || o->loop))
        die("--compare cannot be combined with --cluster, -I and -l.");
    if (o->mix && o->command_count > 0) die("--mix cannot be combined with a command.");
}

void optionsParse(benchOptions *o, int argc, char **argv) {
    setDefaults(o);
    int i;
    for (i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(name, "--")) {
            i++;
            break;
        }
        if (name[0] != '-') break;
        if (setFlag(o, name)) continue;
        if (!value || !(setValue(o, name, value) || setOther(o, name, value))) badOption(name);
        i++;
    }
    o->command = (const char **)argv + i;
    o->command_count = argc - i;
    adjust(o);
}

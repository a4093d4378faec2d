/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line of valkey-benchmark. */
#ifndef TOOLS_BENCHMARK_OPTIONS_H
#define TOOLS_BENCHMARK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/tls.h"

typedef enum readFrom { READ_PRIMARIES, READ_REPLICAS, READ_ALL } readFrom;
typedef enum keyDistribution { KEYS_UNIFORM, KEYS_SEQUENTIAL, KEYS_ZIPF } keyDistribution;
typedef enum fuzzLevel { FUZZ_NONE, FUZZ_ERROR, FUZZ_INFO, FUZZ_DEBUG } fuzzLevel;

/* How to reach a server. */
typedef struct endpoint {
    const char *host;
    int port;
    const char *socket; /* NULL: TCP */
} endpoint;

typedef struct fuzzOptions {
    bool on, malformed, config;
    fuzzLevel level;
} fuzzOptions;

typedef struct benchOptions {
    endpoint server;
    toolTls tls;
    bool mptcp;
    const char *user, *password;
    int dbnum;
    bool resp3, tracking;

    int clients, threads; /* threads 0: the main thread */
    int64_t requests;
    int duration_s, warmup_s; /* duration 0: `requests` counts */
    int pipeline;
    bool keep_alive;
    double rate;    /* requests per second of all clients; 0: no limit */
    bool open_loop; /* latencies count from the intended time of sending */

    bool cluster;
    readFrom read_from;

    int64_t data_size;
    bool random_keys; /* placeholders of numbers are replaced */
    int64_t key_count;
    keyDistribution distribution;
    double zipf;
    uint64_t seed;
    int functions, function_keys;

    bool quiet, csv, loop, idle, from_stdin, plot, percentiles, bytes_per_key;
    const char *tests; /* ",set,get," or NULL for all */
    const char *mix;   /* "get:80,set:20" or NULL */
    const char *html;  /* the file for a page with plots, or NULL */
    endpoint compare;  /* `host` NULL: none */
    int rounds;
    fuzzOptions fuzz;

    const char **command; /* the rest of the command line */
    int command_count;
} benchOptions;

/* Parses the command line; ends the program after --help, --version, or an error. */
void optionsParse(benchOptions *o, int argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `valkey-cli --cluster`: creates, checks, repairs and changes clusters. This is the interface for
 * the main program. */
#ifndef TOOLS_CLI_CLUSTER_MANAGER_H
#define TOOLS_CLI_CLUSTER_MANAGER_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/job_progress.h"

struct valkeyContext;

/* The options --cluster-*. Texts are borrowed from the command line. */
typedef struct clusterOptions {
    int replicas, slots, timeout_ms, pipeline;
    double threshold_percent;
    const char *from, *to, *from_user, *from_pass, *primary_id;
    char **weights; /* "id=weight" */
    int weight_count;
    bool yes, simulate, replace, copy, replica, use_empty, atomic, key_by_key, from_askpass;
    bool only_primaries, only_replicas, search_owners, fix_unreachable;
} clusterOptions;

/* Sets the defaults; `yes` from VALKEYCLI_CLUSTER_YES and its old name. */
void clusterOptionsInit(clusterOptions *options);
/* Takes the option at argv[at] and its values. Returns the number of words taken, 0 if it is not an
 * option of the cluster manager or its value is missing, -1 after an error that was printed. */
int clusterOptionsTake(clusterOptions *options, int argc, char **argv, int at);

/* True if the options ask for slots to be moved key by key: by name, or by an option of MIGRATE. */
bool clusterOptionsMoveKeys(const clusterOptions *options);

/* What the main program supplies. */
typedef struct clusterEnvironment {
    /* Connects without login. Returns a blocking context, with its `err` set after a failure, or
     * NULL if memory is exhausted. */
    struct valkeyContext *(*connect)(const char *host, int port, void *arg);
    void *arg;
    const char *user, *password; /* NULL: no login */
    progressStyle progress;
    double reply_limit_s; /* for a reply of a node; 0: a minute more than MIGRATE may take */
} clusterEnvironment;

/* Runs a subcommand: argv[0] is its name. Returns the exit status of the program. */
int clusterManagerRun(int argc, char **argv, const clusterOptions *options,
                      const clusterEnvironment *environment);
/* Prints the list of subcommands and their options. */
void clusterManagerHelp(FILE *to);

#endif

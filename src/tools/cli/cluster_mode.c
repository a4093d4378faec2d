/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --cluster: passes command line and connections to the cluster manager. */
#include "base/alloc.h"
#include "tools/cli/cluster_manager.h"
#include "tools/cli/connection.h"
#include "tools/cli/modes.h"

static valkeyContext *connectNode(const char *host, int port, void *options) {
    return connectionOpen(options, host, port);
}

int modeCluster(const cliOptions *options, int argc, char **argv) {
    cliOptions tcp = *options;
    tcp.unix_socket = NULL; /* nodes are reached by address */
    const clusterEnvironment environment = {.connect = connectNode,
                                            .arg = &tcp,
                                            .user = options->user,
                                            .password = options->password,
                                            .progress = options->progress,
                                            .reply_limit_s = options->timeout_s};
    int count = options->cluster_argc;
    char **words = memNewArray(char *, count + argc + 1);
    for (int i = 0; i < count; i++) words[i] = options->cluster_argv[i];
    if (count == 1) {
        for (int i = 0; i < argc; i++) words[count++] = argv[i];
    }
    int status = clusterManagerRun(count, words, &options->cluster_options, &environment);
    memFree(words);
    return status;
}

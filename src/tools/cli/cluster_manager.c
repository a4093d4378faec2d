/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands of `valkey-cli --cluster`, and those that need few lines. */
#include "tools/cli/cluster_manager.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/cluster_priv.h"
#include "tools/server_uri.h"

static int usageError(void) {
    fprintf(stderr, "[ERR] Wrong number of arguments for specified --cluster sub command\n");
    return 1;
}

static int clusterCheck(clusterManager *m, int argc, char **argv) {
    if (!managerLoadFrom(m, argc, argv)) return 1;
    managerInfo(m);
    return managerCheck(m, 0) ? 0 : 1;
}

static int clusterFix(clusterManager *m, int argc, char **argv) {
    if (!managerLoadFrom(m, argc, argv)) return 1;
    managerInfo(m);
    return managerCheck(m, CHECK_FIX) ? 0 : 1;
}

static int clusterInfo(clusterManager *m, int argc, char **argv) {
    if (!managerLoadFrom(m, argc, argv)) return 1;
    managerInfo(m);
    return 0;
}

static int clusterHelp(clusterManager *m, int argc, char **argv) {
    (void)m;
    (void)argc;
    (void)argv;
    clusterManagerHelp(stdout);
    return 1;
}

typedef int subcommandProc(clusterManager *m, int argc, char **argv);

static const struct {
    const char *name;
    subcommandProc *proc;
    int args; /* 0: any number; -2: two or more */
} subcommands[] = {
    {"create", clusterCreate, -1},   {"check", clusterCheck, -1},
    {"info", clusterInfo, -1},       {"fix", clusterFix, -1},
    {"reshard", clusterReshard, -1}, {"rebalance", clusterRebalance, -1},
    {"add-node", clusterAddNode, 2}, {"del-node", clusterDelNode, 2},
    {"call", clusterCall, -2},       {"set-timeout", clusterSetTimeout, 2},
    {"import", clusterImport, 1},    {"backup", clusterBackup, 2},
    {"help", clusterHelp, 0},
};

static bool argsFit(int expected, int count) {
    return expected < 0 ? count >= -expected : expected == 0 || count == expected;
}

int clusterManagerRun(int argc, char **argv, const clusterOptions *options,
                      const clusterEnvironment *environment) {
    const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
    clusterManager m = {.options = options,
                        .env = environment,
                        .colors =
                            terminal && strstr(terminal, "xterm") && !(no_color && *no_color)};
    for (size_t i = 0; argc > 0 && i < sizeof(subcommands) / sizeof(*subcommands); i++) {
        if (strcmp(argv[0], subcommands[i].name) != 0) continue;
        if (!argsFit(subcommands[i].args, argc - 1)) return usageError();
        int status = subcommands[i].proc(&m, argc - 1, argv + 1);
        managerClear(&m);
        return status;
    }
    fprintf(stderr, "Unknown --cluster subcommand\n");
    clusterManagerHelp(stderr);
    return 1;
}

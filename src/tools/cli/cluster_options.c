/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options of the cluster manager, and its help (cluster_manager.h). */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "tools/cli/cluster_manager.h"

enum { DEFAULT_TIMEOUT_MS = 60000, DEFAULT_PIPELINE = 10 };
#define DEFAULT_THRESHOLD 2.0

typedef enum optionKind { OPTION_FLAG, OPTION_INT, OPTION_DOUBLE, OPTION_TEXT } optionKind;

#define FIELD(name) offsetof(clusterOptions, name)
static const struct {
    const char *name;
    optionKind kind;
    size_t field;
} options[] = {
    {"replicas", OPTION_INT, FIELD(replicas)},
    {"master-id", OPTION_TEXT, FIELD(primary_id)},
    {"primary-id", OPTION_TEXT, FIELD(primary_id)},
    {"primaries-id", OPTION_TEXT, FIELD(primary_id)},
    {"from", OPTION_TEXT, FIELD(from)},
    {"to", OPTION_TEXT, FIELD(to)},
    {"from-user", OPTION_TEXT, FIELD(from_user)},
    {"from-pass", OPTION_TEXT, FIELD(from_pass)},
    {"from-askpass", OPTION_FLAG, FIELD(from_askpass)},
    {"slots", OPTION_INT, FIELD(slots)},
    {"timeout", OPTION_INT, FIELD(timeout_ms)},
    {"pipeline", OPTION_INT, FIELD(pipeline)},
    {"threshold", OPTION_DOUBLE, FIELD(threshold_percent)},
    {"yes", OPTION_FLAG, FIELD(yes)},
    {"simulate", OPTION_FLAG, FIELD(simulate)},
    {"replace", OPTION_FLAG, FIELD(replace)},
    {"copy", OPTION_FLAG, FIELD(copy)},
    {"slave", OPTION_FLAG, FIELD(replica)},
    {"replica", OPTION_FLAG, FIELD(replica)},
    {"use-empty-masters", OPTION_FLAG, FIELD(use_empty)},
    {"use-empty-primaries", OPTION_FLAG, FIELD(use_empty)},
    {"use-atomic-slot-migration", OPTION_FLAG, FIELD(atomic)},
    {"key-by-key", OPTION_FLAG, FIELD(key_by_key)},
    {"only-masters", OPTION_FLAG, FIELD(only_primaries)},
    {"only-primaries", OPTION_FLAG, FIELD(only_primaries)},
    {"only-replicas", OPTION_FLAG, FIELD(only_replicas)},
    {"search-multiple-owners", OPTION_FLAG, FIELD(search_owners)},
    {"fix-with-unreachable-masters", OPTION_FLAG, FIELD(fix_unreachable)},
    {"fix-with-unreachable-primaries", OPTION_FLAG, FIELD(fix_unreachable)},
};

static bool isYes(const char *variable) {
    const char *text = getenv(variable);
    return text && !strcmp(text, "1");
}

void clusterOptionsInit(clusterOptions *o) {
    *o = (clusterOptions){.timeout_ms = DEFAULT_TIMEOUT_MS,
                          .pipeline = DEFAULT_PIPELINE,
                          .threshold_percent = DEFAULT_THRESHOLD,
                          .yes = isYes("VALKEYCLI_CLUSTER_YES") || isYes("REDISCLI_CLUSTER_YES")};
}

bool clusterOptionsMoveKeys(const clusterOptions *o) {
    return o->key_by_key || o->replace || o->pipeline != DEFAULT_PIPELINE ||
           o->timeout_ms != DEFAULT_TIMEOUT_MS;
}

/* --cluster-weight a=1 b=2: the words up to the next option. */
static int takeWeights(clusterOptions *o, int argc, char **argv, int at) {
    int end = at + 2;
    if (end > argc) return 0;
    while (end < argc && argv[end][0] != '-' && strchr(argv[end], '=')) end++;
    if (o->weights) {
        fputs("WARNING: you cannot use --cluster-weight more than once.\n"
              "You can set more weights by adding them as a space-separated list, ie:\n"
              "--cluster-weight n1=w n2=w\n",
              stderr);
        return -1;
    }
    o->weights = &argv[at + 1];
    o->weight_count = end - at - 1;
    return end - at;
}

int clusterOptionsTake(clusterOptions *o, int argc, char **argv, int at) {
    static const char prefix[] = "--cluster-";
    const char *name = argv[at] + sizeof(prefix) - 1;
    if (strncmp(argv[at], prefix, sizeof(prefix) - 1) != 0) return 0;
    if (!strcmp(name, "weight")) return takeWeights(o, argc, argv, at);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        if (strcmp(name, options[i].name) != 0) continue;
        char *field = (char *)o + options[i].field;
        if (options[i].kind == OPTION_FLAG) {
            *(bool *)(void *)field = true;
            return 1;
        }
        if (at + 1 >= argc) return 0;
        char *value = argv[at + 1];
        if (options[i].kind == OPTION_INT) *(int *)(void *)field = atoi(value);
        if (options[i].kind == OPTION_DOUBLE) *(double *)(void *)field = atof(value);
        if (options[i].kind == OPTION_TEXT) *(const char **)(void *)field = value;
        return 2;
    }
    return 0;
}

/* ------------------------------------------------------------------ help */

#define ANY_NODE "<host:port> or <host> <port> - separated by either colon or space"
static const struct {
    const char *name, *arguments;
    const char *options; /* separated by commas */
} commands[] = {
    {"create", "host1:port1 ... hostN:portN", "replicas <arg>"},
    {"check", ANY_NODE, "search-multiple-owners"},
    {"info", ANY_NODE, ""},
    {"fix", ANY_NODE, "search-multiple-owners,fix-with-unreachable-primaries"},
    {"reshard", ANY_NODE,
     "from <arg>,to <arg>,slots <arg>,yes,timeout <arg>,pipeline <arg>,replace,"
     "use-atomic-slot-migration,key-by-key"},
    {"rebalance", ANY_NODE,
     "weight <node1=w1...nodeN=wN>,use-empty-primaries,timeout <arg>,simulate,pipeline <arg>,"
     "threshold <arg>,replace,use-atomic-slot-migration,key-by-key"},
    {"add-node", "new_host:new_port existing_host:existing_port", "replica,primaries-id <arg>"},
    {"del-node", "host:port node_id", ""},
    {"call", "host:port command arg arg .. arg", "only-primaries,only-replicas"},
    {"set-timeout", "host:port milliseconds", ""},
    {"import", "host:port", "from <arg>,from-user <arg>,from-pass <arg>,from-askpass,copy,replace"},
    {"backup", "host:port backup_directory", ""},
    {"help", "", ""},
};

void clusterManagerHelp(FILE *to) {
    fputs("Cluster Manager Commands:\n", to);
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        fprintf(to, "  %-15s%s\n", commands[i].name, commands[i].arguments);
        for (const char *option = commands[i].options; *option;) {
            int len = (int)strcspn(option, ",");
            fprintf(to, "  %-15s--cluster-%.*s\n", "", len, option);
            option += len + (option[len] == ',');
        }
    }
    fputs(
        "\nFor check, fix, reshard, del-node, set-timeout, info, rebalance, call, import, backup you "
        "can specify the host and port of any working node in the cluster.\n"
        "\nCluster Manager Options:\n"
        "  --cluster-yes  Automatic yes to cluster commands prompts\n\n",
        to);
}

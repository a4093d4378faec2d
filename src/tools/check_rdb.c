/* SPDX-License-Identifier: BSD-3-Clause
 *
 * valkey-check-rdb: checks an RDB file without loading it into a server. Exit status 0: valid, 1:
 * not valid or wrong usage. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "tools/rdb_check.h"
#include "tools/tool.h"

static int usage(const char *program, FILE *to) {
    fprintf(to,
            "Usage: %s <rdb-file-name> [--format table|info|csv] [--stats] [--output <file>]\n"
            "       %s -v or --version\n\n"
            "  --stats          print the keys and elements of each database and type\n"
            "  --format FORMAT  form of these statistics; table is the default\n"
            "  --output FILE    write them to a file\n",
            program, program);
    return to == stdout ? 0 : 1;
}

static bool parseFormat(const char *text, rdbStatsFormat *out) {
    static const char *const names[] = {
        [RDB_STATS_TABLE] = "table", [RDB_STATS_INFO] = "info", [RDB_STATS_CSV] = "csv"};
    for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (rdbStatsFormat)i;
        return true;
    }
    return false;
}

/* Reads the options after the file name. */
static bool parseOptions(int argc, char **argv, rdbCheckOptions *out, const char **output) {
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--stats")) {
            out->stats = true;
        } else if (!strcmp(argv[i], "--format") && i + 1 < argc) {
            if (!parseFormat(argv[++i], &out->format)) return false;
        } else if (!strcmp(argv[i], "--output") && i + 1 < argc) {
            *output = argv[++i];
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    if (argc < 2) return usage(argv[0], stderr);
    if (toolWantsVersion(argv[1], "valkey-check-rdb")) return 0;
    if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) return usage(argv[0], stdout);
    rdbCheckOptions options = {.path = argv[1], .stats_to = stdout};
    const char *output = NULL;
    if (!parseOptions(argc, argv, &options, &output)) return usage(argv[0], stderr);
    toolCheckPath(options.path);
    if (output && !(options.stats_to = fopen(output, "w"))) {
        fprintf(stderr, "Cannot open output file: '%s': %s\n", output, strerror(errno));
        return 1;
    }
    storeInit(1, false);
    bool valid = rdbCheck(&options, NULL);
    storeShutdown();
    if (output && fclose(options.stats_to) != 0) {
        fprintf(stderr, "Cannot write output file: '%s': %s\n", output, strerror(errno));
        return 1;
    }
    return valid ? 0 : 1;
}

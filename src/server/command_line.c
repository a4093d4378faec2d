/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options that print information and exit: --version, --help, --check-system, --test-memory,
 * --check-config, --print-config, --migrate-config. They start nothing, listen on no port and write
 * no files but that of -o. Main thread only. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/build_info.h"
#include "base/number.h"
#include "config/config.h"
#include "io/compress.h"
#include "io/file.h"
#include "server/kernel.h"
#include "server/memcheck.h"
#include "server/server.h"
#include "server/server_priv.h"

enum { TEST_PASSES = 50 };

static void printVersion(void) {
    printf("Valkey server v=%s sha=%s:%s malloc=%s bits=%d build=%s release=%s compression=%s\n",
           SERVER_VERSION, buildGitSha, buildGitDirty, memAllocatorName(),
           (int)(sizeof(void *) * 8), buildGitSha, SERVER_RELEASE, compressBuilt());
    printf("%s %s, compatible with Valkey %s\n", SERVER_PRODUCT, SERVER_RELEASE, SERVER_VERSION);
}

/* A % in these lines is replaced by the name of the program. */
static const char help_text[] =
    "Usage: % [/path/to/valkey.conf] [options] [-]\n"
    "       % - (read config from stdin)\n"
    "       % -v or --version\n"
    "       % -h or --help\n"
    "       % --check-config [--strict] [/path/to/valkey.conf] [options] (report all errors and exit)\n"
    "       % --print-config [/path/to/valkey.conf] [options] (print each value and its origin, and exit)\n"
    "       % --migrate-config FILE [-o OUT] (write the file of another server as one for this server)\n"
    "       % --test-memory <megabytes>\n"
    "       % --check-system\n\n"
    "Each directive of the configuration file can be given as an option with a leading --.\n\n"
    "Examples:\n"
    "       % (run the server with default conf)\n"
    "       echo 'maxmemory 128mb' | % -\n"
    "       % /etc/valkey/6379.conf\n"
    "       % --port 7777\n"
    "       % /etc/myvalkey.conf --loglevel verbose -\n"
    "       % /etc/myvalkey.conf --loglevel verbose\n"
    "       % /etc/sentinel.conf --sentinel (Sentinel mode)\n";

static void printHelp(FILE *to, const char *program) {
    for (const char *p = help_text; *p; p++) {
        if (*p == '%') {
            fputs(program, to);
        } else {
            fputc(*p, to);
        }
    }
}

static int checkSystem(void) {
    str out = STR_EMPTY;
    int failed = kernelCheckSystem(&out);
    fputs(strText(&out), stdout);
    strFree(&out);
    return failed ? 1 : 0;
}

static int testMemory(int argc, char **argv) {
    int64_t megabytes;
    if (argc != 3 || !numberParseInt(sliceOf(argv[2]), &megabytes) || megabytes < 1) {
        fprintf(stderr, "Please specify the amount of memory to test in megabytes.\n");
        fprintf(stderr, "Example: %s --test-memory 4096\n\n", argv[0]);
        return 1;
    }
    return memcheckRun((size_t)megabytes, TEST_PASSES) ? 0 : 1;
}

static bool is(const char *arg, const char *a, const char *b) {
    return !strcmp(arg, a) || (b && !strcmp(arg, b));
}

void commandLineRunEarly(int argc, char **argv) {
    hotCheck(threadIsMain());
    if (argc < 2) return;
    if (argc == 2 && is(argv[1], "-v", "--version")) {
        printVersion();
        exit(0);
    }
    if (is(argv[1], "-h", "--help")) {
        printHelp(stdout, argv[0]);
        exit(0);
    }
    if (is(argv[1], "--test-memory", NULL)) exit(testMemory(argc, argv));
    if (argc == 2 && is(argv[1], "--check-system", NULL)) exit(checkSystem());
}

/* ------------------------------------------------------------------ --check-config,
 * --print-config */

static void printOption(const char *name, const configOption *o, void *arg) {
    (void)arg;
    if (strcmp(name, o->name) != 0) return; /* an alias */
    str line = STR_EMPTY, value = STR_EMPTY;
    configGet(o, &value);
    strAppendFormat(&line, "%s ", name);
    if ((o->flags & CONFIG_SENSITIVE) && value.len) {
        strAppendText(&line, "(hidden)");
    } else if (value.len && (o->flags & CONFIG_MULTI_WORD)) {
        strAppendSlice(&line, strSlice(&value));
    } else {
        configAppendWord(&line, strSlice(&value));
    }
    while (line.len < 60) strAppendByte(&line, ' ');
    strAppendText(&line, "  # ");
    configGetOrigin(o, &line);
    puts(strText(&line));
    strFree(&line);
    strFree(&value);
}

static void printLine(const char *line, void *arg) {
    FILE *to = arg;
    fprintf(to, "%s\n", line);
}

/* --migrate-config FILE [-o OUT]. Returns the exit code: 0 if the user has to decide about no
 * line. */
static int migrateConfig(int argc, char **argv) {
    bool has_out = argc == 5 && is(argv[3], "-o", NULL);
    if (argc != 3 && !has_out) {
        fprintf(stderr, "Usage: %s --migrate-config FILE [-o OUT]\n", argv[0]);
        return EXIT_BAD_CONFIG;
    }
    /* The path is made absolute before a line with `dir` changes the current directory. */
    char *to = has_out ? fileAbsolute(argv[4]) : NULL;
    str out = STR_EMPTY, notes = STR_EMPTY;
    reason why = {""};
    int open = configMigrate(argv[2], &out, &notes);
    fputs(strText(&notes), stderr);
    bool written = open >= 0;
    if (written && to) {
        written = fileReplace(to, strSlice(&out), 0600, &why) == OK;
        if (!written) fprintf(stderr, "%s\n", why.text);
    } else if (written) {
        fputs(strText(&out), stdout);
    }
    if (open > 0) fprintf(stderr, "%d line%s to look at\n", open, open == 1 ? "" : "s");
    strFree(&out);
    strFree(&notes);
    memFree(to);
    return written && open == 0 ? 0 : EXIT_BAD_CONFIG;
}

void commandLineRunConfig(int argc, char **argv) {
    hotCheck(threadIsMain());
    if (argc > 1 && is(argv[1], "--migrate-config", NULL)) exit(migrateConfig(argc, argv));
    bool check_only = argc > 1 && is(argv[1], "--check-config", NULL);
    bool print = argc > 1 && is(argv[1], "--print-config", NULL);
    if (!check_only && !print) return;
    bool strict = check_only && argc > 2 && is(argv[2], "--strict", NULL);
    if (strict) argc--, argv++;
    str report = STR_EMPTY;
    /* The option itself takes the place of the program's name in argv. */
    bool good = configLoad(argc - 1, (const char *const *)argv + 1, &report) == OK &&
                serverDirectivesFit(&report);
    if (check_only && !good) configTellCertificates(&report);
    if (check_only && good) good = configCheckStart(&report);
    if (!good) {
        fputs(strText(&report), stderr);
    } else if (print) {
        configEach(printOption, NULL);
    } else {
        int without_effect = configEachWithoutEffect(printLine, strict ? stderr : stdout);
        good = !strict || without_effect == 0;
        if (good) printf("The configuration is valid.\n");
    }
    strFree(&report);
    exit(good ? 0 : EXIT_BAD_CONFIG);
}

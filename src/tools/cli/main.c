/* SPDX-License-Identifier: BSD-3-Clause
 *
 * valkey-cli: the command line client. This file chooses what to run. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/cli/careful.h"
#include "tools/cli/command.h"
#include "tools/cli/eval.h"
#include "tools/cli/help.h"
#include "tools/cli/hint.h"
#include "tools/cli/interactive.h"
#include "tools/cli/modes.h"
#include "tools/cli/preferences.h"
#include "tools/cli/script.h"
#include "tools/cli/terminal.h"

/* --askpass: the password from the terminal. */
static const char *askPassword(void) {
    static str password;
    terminalAskPassword("Please input password: ", &password);
    return strText(&password);
}

/* Replaces or appends the argument that comes from standard input. False if the tag of -X is not
 * there. */
static bool addStdin(const cliOptions *o, words *command) {
    if (!o->stdin_last_arg && !o->stdin_tag) return true;
    str bytes = STR_EMPTY;
    wordReadStdin(&bytes);
    if (o->stdin_last_arg) {
        wordsAdd(command, strSlice(&bytes));
        strFree(&bytes);
        return true;
    }
    for (int i = 1; i < command->count; i++) {
        if (!sliceEqual(strSlice(&command->items[i]), sliceOf(o->stdin_tag))) continue;
        strFree(&command->items[i]);
        command->items[i] = bytes;
        return true;
    }
    strFree(&bytes);
    fputs("Using -X option but stdin tag not match.\n", stderr);
    return false;
}

static bool readArguments(const cliOptions *o, int argc, char **argv, words *out) {
    for (int i = 0; i < argc; i++) {
        str word = STR_EMPTY;
        bool valid = true;
        if (o->quoted_input) {
            valid = wordUnquote(sliceOf(argv[i]), &word);
        } else {
            strAppendText(&word, argv[i]);
        }
        if (valid) wordsAdd(out, strSlice(&word));
        strFree(&word);
        if (valid) continue;
        puts("Invalid quoted string");
        return false;
    }
    return true;
}

static int runArguments(commandRunner *r, int argc, char **argv) {
    const cliOptions *o = r->connection->options;
    words command = {0};
    r->endless = true;
    bool done = readArguments(o, argc, argv, &command) && addStdin(o, &command) &&
                (helpIsCommand(&command) || connectionConnect(r->connection)) &&
                carefulAllows(r, &command) && commandRun(r, &command, o->repeat);
    wordsClear(&command);
    return done ? 0 : 1;
}

static int runMode(connection *c) {
    switch (c->options->mode) {
    case MODE_PIPE: return modePipe(c);
    case MODE_SCAN: return modeScan(c);
    case MODE_STAT: return modeStat(c);
    case MODE_TOP: return modeTop(c);
    case MODE_SENTINEL_VIEW: return modeSentinelView(c);
    case MODE_LRU_TEST: return modeLruTest(c);
    case MODE_LATENCY:
    case MODE_LATENCY_HISTORY: return modeLatency(c);
    case MODE_LATENCY_DIST: return modeLatencyDist(c);
    case MODE_INTRINSIC_LATENCY: return modeIntrinsicLatency(c);
    case MODE_REPLICA: return modeReplica(c);
    case MODE_RDB: return modeRdb(c);
    case MODE_BIGKEYS:
    case MODE_MEMKEYS: return modeKeySizes(c);
    case MODE_HOTKEYS: return modeHotKeys(c);
    case MODE_COMPRESSION_ESTIMATE: return modeCompressionEstimate(c);
    default: return 1;
    }
}

static bool wantsColors(void) {
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(off && *off) && terminal && strcmp(terminal, "dumb") != 0;
}

int main(int argc, char **argv) {
    cliOptions options;
    setlocale(LC_ALL, "");
    clockInit();
    int first = cliOptionsParse(&options, argc, argv);
    /* OpenSSL writes without MSG_NOSIGNAL. Otherwise the signal ends the program if nobody reads
     * its output. */
    if (options.tls.on) signal(SIGPIPE, SIG_IGN);
    if (options.ask_password && !options.password) options.password = askPassword();

    if (options.careful) preferenceSetCareful(true);
    connection c;
    connectionInit(&c, &options);
    commandRunner runner = {.connection = &c};
    if (terminalIsInteractive()) {
        runner.explain = options.output == OUTPUT_STANDARD;
        runner.colors = runner.explain && wantsColors();
    }
    int status;
    if (options.test_hint) {
        status = hintPrint(options.test_hint);
    } else if (options.test_hint_file) {
        status = hintCheckFile(options.test_hint_file);
    } else if (options.mode == MODE_CLUSTER) {
        status = modeCluster(&options, argc - first, argv + first);
    } else if (options.mode == MODE_DIFF) {
        status = modeDiff(&options);
    } else if (options.mode == MODE_MIGRATE_CHECK) {
        status = modeMigrateCheck(&options);
    } else if (options.mode == MODE_DOWNGRADE_CHECK) {
        status = modeDowngradeCheck(&options, argc - first, argv + first);
    } else if (options.mode == MODE_BACKUP) {
        status = modeBackup(&options);
    } else if (options.mode == MODE_RESTORE) {
        status = modeRestore(&options, argc - first, argv + first);
    } else if (options.mode != MODE_COMMANDS) {
        status = runMode(&c);
    } else if (options.eval_file) {
        status = evalRunFile(&runner, argc - first, argv + first);
    } else if (first < argc) {
        status = runArguments(&runner, argc - first, argv + first);
    } else {
        status = terminalIsInteractive() ? interactiveRun(&runner) : scriptRunStdin(&runner);
    }
    connectionClear(&c);
    cliOptionsClear(&options);
    return status;
}

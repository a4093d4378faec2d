/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --rdb, --functions-rdb and --replica (modes.h), and SYNC and PSYNC as commands (sync.h). */
#include "tools/cli/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/build_info.h"
#include "base/clock.h"
#include "tools/cli/full_sync.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/modes.h"
#include "tools/cli/print.h"

enum { ACK_INTERVAL_MS = 1000 };

static void sendReplconf(connection *c, const char *name, const char *value) {
    fprintf(stderr, "sending REPLCONF %s %s\n", name, value);
    valkeyReply *reply = connectionCommand(c, "REPLCONF %s %s", name, value);
    /* Older servers do not know all of them. */
    if (reply->type == VALKEY_REPLY_ERROR) {
        fprintf(stderr, "REPLCONF %s error: %s\n", name, reply->str);
        if (!strcmp(name, "rdb-filter-only") && *value) exit(1);
    }
    freeReplyObject(reply);
}

int modeRdb(connection *c) {
    const cliOptions *o = c->options;
    if (!connectionConnect(c)) return 1;
    sendReplconf(c, "capa", "eof");
    /* Path hashes have no older form, so a server refuses a snapshot with one otherwise. TTLs of
     * members are not asked for: this option exports the members to servers without them. */
    sendReplconf(c, "capa", "path-hashes");
    /* Servers of Valkey that are told no version write one that has no hashes whose fields
     * expire. */
    sendReplconf(c, "version", SERVER_VERSION);
    sendReplconf(c, "rdb-only", "1");
    if (o->functions_only) sendReplconf(c, "rdb-filter-only", "functions");
    return fullSyncSave(c->context, o->rdb_file, o->progress) ? 0 : 1;
}

/* ------------------------------------------------------------------ the stream of a primary */

/* Reads the reply to SYNC or PSYNC, and discards the snapshot. False after a failure, which was
 * reported, and Ctrl-C. */
static bool readSnapshot(connection *c) {
    static fullSync s; /* too large for a stack */
    const char *name = "SYNC";
    uint64_t received;
    s.buffered = 0;
    bool good = fullSyncSend(c->context) && fullSyncReadLine(c->context, &s);
    bool partial = good && !strncmp(s.line, "+CONTINUE", 9);
    if (good && s.line[0] == '+') {
        name = "PSYNC";
        fprintf(stderr, "PSYNC replied %s\n", s.line);
        good = partial || fullSyncReadLine(c->context, &s);
    }
    if (interruptPending()) return false;
    if (!good) {
        fprintf(stderr, "Error reading bulk length while %sing\n", name);
        return false;
    }
    if (partial) {
        fullSyncPassRest(c->context, &s);
        fputs("Partial resync with primary...\n"
              "Partial resync done. Logging commands from primary.\n",
              stderr);
        return true;
    }
    if (!fullSyncHasSnapshot(&s)) {
        fprintf(stderr, "SYNC with primary failed: %s\n", s.line);
        return false;
    }
    if (s.has_marker) {
        fputs("Full resync with primary, discarding bytes of bulk transfer until EOF marker...\n",
              stderr);
    } else {
        fprintf(stderr, "Full resync with primary, discarding %llu bytes of bulk transfer...\n",
                (unsigned long long)s.length);
    }
    if (!fullSyncReceive(c->context, &s, NULL, NULL, &received)) {
        if (!interruptPending()) fputs("Error reading RDB payload while Full resyncing\n", stderr);
        return false;
    }
    if (s.has_marker) {
        fprintf(stderr, "Full resync done after %llu bytes. Logging commands from primary.\n",
                (unsigned long long)received);
    } else {
        fputs("Full resync done. Logging commands from primary.\n", stderr);
    }
    fullSyncPassRest(c->context, &s);
    return true;
}

/* Prints the commands that were received. False after a failure. */
static bool printStream(connection *c) {
    for (;;) {
        void *reply = NULL;
        if (valkeyGetReplyFromReader(c->context, &reply) != VALKEY_OK) return false;
        if (!reply) return true;
        str out = STR_EMPTY;
        printCsv(&out, reply);
        puts(strText(&out));
        fflush(stdout);
        strFree(&out);
        freeReplyObject(reply);
    }
}

static bool acknowledge(connection *c, bool report) {
    if (report) fputs("sending REPLCONF ACK 0\n", stderr);
    return valkeyAppendCommand(c->context, "REPLCONF ACK 0") == VALKEY_OK &&
           fullSyncSend(c->context);
}

typedef enum acknowledgement { ACK_NONE, ACK_SILENT, ACK_REPORTED } acknowledgement;

/* Prints the stream until the connection fails or Ctrl-C. Servers close replicas that do not
 * acknowledge, unless they began with SYNC. */
static void showStream(connection *c, acknowledgement ack) {
    int64_t next_ack_ms = 0;
    for (;;) {
        if (!printStream(c)) break;
        int64_t now_ms = clockMonoMs();
        if (ack != ACK_NONE && now_ms >= next_ack_ms) {
            if (!acknowledge(c, ack == ACK_REPORTED)) break;
            next_ack_ms = now_ms + ACK_INTERVAL_MS;
        }
        if (interruptPending()) return;
        if (interruptWait(c->context, ACK_INTERVAL_MS) && !interruptPending() &&
            valkeyBufferRead(c->context) != VALKEY_OK)
            break;
    }
    connectionReportError(c);
}

int modeReplica(connection *c) {
    if (!connectionConnect(c)) return 1;
    sendReplconf(c, "capa", "eof");
    sendReplconf(c, "rdb-filter-only", "");
    valkeyAppendCommand(c->context, "SYNC");
    if (readSnapshot(c)) showStream(c, ACK_REPORTED);
    return 1;
}

bool syncIsCommand(const words *command) {
    return wordsBegin(command, "sync") || wordsBegin(command, "psync");
}

void syncShow(connection *c, const words *command) {
    bool psync = wordsBegin(command, "psync");
    puts("Entering replica output mode...  (press Ctrl-C to quit)");
    fflush(stdout);
    if (readSnapshot(c)) showStream(c, psync ? ACK_SILENT : ACK_NONE);
}

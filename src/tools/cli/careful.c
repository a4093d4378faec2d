/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --careful (careful.h). */
#include "tools/cli/careful.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tools/cli/info.h"
#include "tools/cli/preferences.h"
#include "tools/cli/terminal.h"

enum {
    MANY_KEYS = 10000,          /* KEYS goes through all of them at once */
    MANY_ELEMENTS = 10000,      /* of a value that is read whole */
    LARGE_BYTES = 10000 * 1000, /* of keys that are deleted */
    MEASURED_MAX = 1000,        /* keys of a DEL that are measured */
};

typedef int64_t measureProc(const commandRunner *r, const words *command);

/* A command that may do damage. `measure` tells how much; NULL: always asked. */
typedef struct danger {
    const char *command;
    measureProc *measure;
    int64_t limit;    /* up to here nothing is asked */
    const char *what; /* for people; # stands for the measure */
    bool in_slices;   /* harmless on a server that runs it in slices */
} danger;

static valkeyReply *ask(const commandRunner *r, const char *command, const str *key) {
    return key ? connectionCommand(r->connection, command, strText(key), key->len)
               : connectionCommand(r->connection, command);
}

static int64_t askNumber(const commandRunner *r, const char *command, const str *key) {
    valkeyReply *reply = ask(r, command, key);
    int64_t number = reply->type == VALKEY_REPLY_INTEGER ? reply->integer : 0;
    freeReplyObject(reply);
    return number;
}

static int64_t keysHere(const commandRunner *r, const words *command) {
    (void)command;
    return askNumber(r, "DBSIZE", NULL);
}

static int64_t keysOfAll(const commandRunner *r, const words *command) {
    (void)command;
    valkeyReply *reply = ask(r, "INFO keyspace", NULL);
    int64_t keys = reply->str ? infoKeys(reply->str) : 0;
    freeReplyObject(reply);
    return keys;
}

static int64_t bytesOfKeys(const commandRunner *r, const words *command) {
    int64_t bytes = 0;
    for (int i = 1; i < command->count && i <= MEASURED_MAX; i++)
        bytes += askNumber(r, "MEMORY USAGE %b SAMPLES 5", &command->items[i]);
    return bytes;
}

static int64_t elements(const commandRunner *r, const words *command) {
    static const struct {
        const char *command, *size;
    } sizes[] = {{"SMEMBERS", "SCARD %b"},
                 {"HGETALL", "HLEN %b"},
                 {"HKEYS", "HLEN %b"},
                 {"HVALS", "HLEN %b"},
                 {"SORT", "LLEN %b"}};
    for (size_t i = 0; command->count > 1 && i < sizeof(sizes) / sizeof(*sizes); i++) {
        if (wordsBegin(command, sizes[i].command))
            return askNumber(r, sizes[i].size, &command->items[1]);
    }
    return 0;
}

static const danger dangers[] = {
    {"FLUSHALL", keysOfAll, 0, "deletes all # keys of all databases", false},
    {"FLUSHDB", keysHere, 0, "deletes all # keys of this database", false},
    {"KEYS", keysHere, MANY_KEYS, "stops the server while it looks at # keys (SCAN does not)",
     true},
    {"DEL", bytesOfKeys, LARGE_BYTES, "deletes # bytes", false},
    {"UNLINK", bytesOfKeys, LARGE_BYTES, "deletes # bytes", false},
    {"SMEMBERS", elements, MANY_ELEMENTS, "reads # elements at once (SSCAN does not)", true},
    {"HGETALL", elements, MANY_ELEMENTS, "reads # fields at once (HSCAN does not)", true},
    {"HKEYS", elements, MANY_ELEMENTS, "reads # fields at once (HSCAN does not)", true},
    {"HVALS", elements, MANY_ELEMENTS, "reads # fields at once (HSCAN does not)", true},
    {"SORT", elements, MANY_ELEMENTS, "sorts # elements", false},
    {"SHUTDOWN", NULL, 0, "ends the server", false},
    {"REPLICAOF", NULL, 0, "may replace all data of this server", false},
    {"SLAVEOF", NULL, 0, "may replace all data of this server", false},
    {"FAILOVER", NULL, 0, "gives the role of the primary away", false},
    {"CLUSTER FAILOVER", NULL, 0, "takes the role of the primary", false},
    {"CLUSTER RESET", NULL, 0, "takes this node out of its cluster", false},
    {"CLUSTER FLUSHSLOTS", NULL, 0, "makes this node serve no slots", false},
    {"CLUSTER FLUSHSLOT", NULL, 0, "deletes all keys of a slot", false},
    {"CLUSTER DELSLOTS", NULL, 0, "makes this node not serve the slots", false},
    {"CLUSTER DELSLOTSRANGE", NULL, 0, "makes this node not serve the slots", false},
    {"SWAPDB", NULL, 0, "exchanges two databases for all clients", false},
    {"FUNCTION FLUSH", NULL, 0, "deletes all functions", false},
    {"FUNCTION RESTORE", NULL, 0, "may replace functions", false},
    {"MONITOR", NULL, 0, "makes every request of a busy server slower", false},
    {"DEBUG", NULL, 0, "may stop or end the server", false},
};

/* True if the server runs reads of many elements in slices (command-slice-us), beside the commands
 * of others. */
static bool hasSlices(const commandRunner *r) {
    valkeyReply *reply = ask(r, "CONFIG GET command-slice-us", NULL);
    bool has = reply->elements == 2 && strcmp(reply->element[1]->str, "0") != 0;
    freeReplyObject(reply);
    return has;
}

/* What the command would do; false if it is harmless. */
static bool describe(const commandRunner *r, const words *command, str *out) {
    for (size_t i = 0; i < sizeof(dangers) / sizeof(*dangers); i++) {
        const danger *d = &dangers[i];
        if (!wordsBegin(command, d->command)) continue;
        int64_t amount = d->measure ? d->measure(r, command) : 1;
        if (amount <= d->limit || (d->in_slices && hasSlices(r))) return false;
        strAppendFormat(out, "%s ", d->command);
        for (const char *at = d->what; *at; at++) {
            if (*at == '#') {
                strAppendInt(out, amount);
            } else {
                strAppendByte(out, *at);
            }
        }
        return true;
    }
    return false;
}

bool carefulAllows(commandRunner *r, const words *command) {
    connection *c = r->connection;
    if (!preferenceCareful() || c->in_transaction || commandIsSubscribed(r)) return true;
    if (!connectionConnect(c)) return false;
    str what = STR_EMPTY;
    bool allowed = true;
    if (describe(r, command, &what)) {
        if (terminalIsInteractive()) {
            strAppendText(&what, ". Run it? [y/N] ");
            int64_t asked_ms = clockMonoMs();
            allowed = terminalConfirm(strText(&what));
            r->asked_ms += clockMonoMs() - asked_ms;
            if (!allowed) puts("Not run.");
        } else {
            fprintf(stderr, "%s: not run without a terminal and with --careful\n", strText(&what));
            allowed = false;
        }
    }
    strFree(&what);
    return allowed;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `--cluster import`: moves the keys of a server that is not in cluster mode into a cluster. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/cli/cluster_priv.h"
#include "tools/cli/terminal.h"

typedef struct importJob {
    clusterManager *m;
    clusterNode *source;
    clusterNode *owners[SLOT_COUNT];
    jobProgress progress;
    int64_t done;
} importJob;

/* Prints an error of the source. */
static bool accept(const importJob *job, const valkeyReply *reply) {
    if (!reply) return false;
    if (reply->type != VALKEY_REPLY_ERROR) return true;
    managerPrint(job->m, LEVEL_ERROR, "Source %s:%d replied with error:\n%s\n",
                 strText(&job->source->host), job->source->port, reply->str);
    return false;
}

static bool logIn(const clusterManager *m, clusterNode *source) {
    str typed = STR_EMPTY;
    const char *user = m->options->from_user, *password = m->options->from_pass;
    if (m->options->from_askpass) {
        terminalAskPassword("Please input import source node password: ", &typed);
        password = strText(&typed);
    }
    bool accepted = true;
    if (password) {
        valkeyReply *reply = user ? managerCommand(source, "AUTH %s %s", user, password)
                                  : managerCommand(source, "AUTH %s", password);
        accepted = reply && reply->type != VALKEY_REPLY_ERROR;
        if (reply && !accepted) fprintf(stderr, "AUTH failed: %s\n", reply->str);
        freeReplyObject(reply);
    }
    strFree(&typed);
    return accepted;
}

/* Connects to the source, which must not be in cluster mode. */
static bool openSource(importJob *job) {
    clusterManager *m = job->m;
    clusterNode *source = job->source;
    source->link = m->env->connect(strText(&source->host), source->port, m->env->arg);
    if (!source->link || source->link->err) {
        fprintf(stderr, "Could not connect to Valkey at %s:%d: %s.\n", strText(&source->host),
                source->port, source->link ? source->link->errstr : "out of memory");
        return false;
    }
    if (!logIn(m, source)) return false;
    valkeyReply *reply = managerCommand(source, "INFO cluster");
    bool valid = accept(job, reply);
    if (valid && reply->str && strstr(reply->str, "cluster_enabled:1")) {
        managerPrint(m, LEVEL_ERROR, "[ERR] The source node should not be a cluster node.\n");
        valid = false;
    }
    freeReplyObject(reply);
    return valid;
}

static void queueMigrate(const importJob *job, const valkeyReply *key) {
    enum { WORDS_MAX = 12 };
    const clusterManager *m = job->m;
    const clusterNode *target = job->owners[hashSlot(sliceMake(key->str, key->len))];
    const char *words[WORDS_MAX];
    size_t lens[WORDS_MAX];
    char port[16], timeout[16];
    int count = 0;
    snprintf(port, sizeof(port), "%d", target->port);
    snprintf(timeout, sizeof(timeout), "%d", m->options->timeout_ms);
    words[count++] = "MIGRATE";
    words[count++] = strText(&target->host);
    words[count++] = port;
    words[count++] = key->str;
    words[count++] = "0";
    words[count++] = timeout;
    if (m->options->copy) words[count++] = "COPY";
    if (m->options->replace) words[count++] = "REPLACE";
    if (m->env->password) {
        words[count++] = m->env->user ? "AUTH2" : "AUTH";
        if (m->env->user) words[count++] = m->env->user;
        words[count++] = m->env->password;
    }
    for (int i = 0; i < count; i++) lens[i] = strlen(words[i]);
    lens[3] = key->len;
    if (job->source->link) valkeyAppendCommandArgv(job->source->link, count, words, lens);
}

/* Moves the keys of one reply of SCAN. */
static bool moveKeys(importJob *job, const valkeyReply *keys) {
    for (size_t i = 0; i < keys->elements; i++) queueMigrate(job, keys->element[i]);
    for (size_t i = 0; i < keys->elements; i++) {
        const valkeyReply *key = keys->element[i];
        const clusterNode *target = job->owners[hashSlot(sliceMake(key->str, key->len))];
        printf("Migrating ");
        fwrite(key->str, 1, key->len, stdout);
        printf(" to %s:%d: ", strText(&target->host), target->port);
        jobProgressAt(&job->progress, job->done);
        valkeyReply *reply = managerNext(job->source);
        jobProgressHide(&job->progress);
        bool moved = accept(job, reply);
        if (moved) managerPrint(job->m, LEVEL_OK, "OK\n");
        freeReplyObject(reply);
        if (!moved) return false;
        job->done++;
    }
    return true;
}

static bool moveAll(importJob *job) {
    enum { SCAN_COUNT = 1000 };
    str cursor = STR_EMPTY;
    bool moved = true;
    strAppendText(&cursor, "0");
    do {
        valkeyReply *reply =
            managerCommand(job->source, "SCAN %s COUNT %d", strText(&cursor), SCAN_COUNT);
        moved = accept(job, reply) && reply->elements == 2 && reply->element[0]->str;
        if (moved) {
            strClear(&cursor);
            strAppendText(&cursor, reply->element[0]->str);
            moved = moveKeys(job, reply->element[1]);
        }
        freeReplyObject(reply);
    } while (moved && strcmp(strText(&cursor), "0") != 0);
    strFree(&cursor);
    return moved;
}

static bool import(clusterManager *m, importJob *job) {
    if (!managerCheck(m, 0)) return false;
    if (!openSource(job)) return false;
    valkeyReply *reply = managerCommand(job->source, "DBSIZE");
    bool valid = accept(job, reply);
    int64_t keys = valid ? reply->integer : 0;
    freeReplyObject(reply);
    if (!valid) return false;
    managerPrint(m, LEVEL_WARNING, "*** Importing %lld keys from DB 0\n", (long long)keys);
    for (int i = 0; i < m->nodes.count; i++) {
        clusterNode *node = m->nodes.list[i];
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            if (slotSetHas(&node->slots, slot)) job->owners[slot] = node;
        }
    }
    jobProgressBegin(&job->progress, m->env->progress, "import", "keys", keys);
    jobProgressInLine(&job->progress);
    bool moved = moveAll(job);
    jobProgressEnd(&job->progress, job->done);
    return moved;
}

int clusterImport(clusterManager *m, int argc, char **argv) {
    str host = STR_EMPTY, member = STR_EMPTY;
    int port, bus_port, member_port, member_bus;
    bool imported = false;
    if (!managerParseAddress(argc, argv, &member, &member_port, &member_bus)) {
        /* reported */
    } else if (!m->options->from) {
        fputs("[ERR] Option '--cluster-from' is required for subcommand 'import'.\n", stderr);
    } else if (!clusterNodeParseAddress(m->options->from, &host, &port, &bus_port) || port == 0) {
        fputs("[ERR] Invalid --cluster-from host. You need to pass a valid address (ie. "
              "120.0.0.1:7000).\n",
              stderr);
    } else {
        importJob *job = memNew(importJob);
        job->m = m;
        job->source = clusterNodeNew(strText(&host), port, bus_port);
        managerPrint(m, LEVEL_INFO, ">>> Importing data from %s:%d to cluster %s\n", strText(&host),
                     port, argv[0]);
        imported = managerLoad(m, strText(&member), member_port, member_bus) && import(m, job);
        clusterNodeFree(job->source);
        memFree(job);
    }
    strFree(&host);
    strFree(&member);
    return imported ? 0 : 1;
}

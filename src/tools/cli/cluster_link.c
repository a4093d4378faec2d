/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output, questions and commands of the cluster manager (cluster_priv.h). */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tools/cli/cluster_priv.h"

/* ------------------------------------------------------------------ output and questions */

void managerPrint(const clusterManager *m, enum managerLevel level, const char *format, ...) {
    static const char *const colors[] = {NULL, "\033[29;1m", "\033[32;1m", "\033[33;1m",
                                         "\033[31;1m"};
    bool colored = m->colors && colors[level];
    va_list args;
    va_start(args, format);
    if (colored) fputs(colors[level], stdout);
    vprintf(format, args);
    if (colored) fputs("\033[0m", stdout);
    va_end(args);
    fflush(stdout);
}

bool managerAsk(const char *question, str *out) {
    fputs(question, stdout);
    fflush(stdout);
    strClear(out);
    int c;
    while ((c = getchar()) != EOF && c != '\n') strAppendByte(out, (char)c);
    return c != EOF || out->len > 0;
}

bool managerConfirm(const clusterManager *m, const char *question) {
    return m->options->yes || managerAskYes(question);
}

bool managerAskYes(const char *question) {
    str text = STR_EMPTY, reply = STR_EMPTY;
    strAppendFormat(&text, "%s (type 'yes' to accept): ", question);
    bool accepted = managerAsk(strText(&text), &reply) && !strcmp(strText(&reply), "yes");
    strFree(&text);
    strFree(&reply);
    return accepted;
}

/* ------------------------------------------------------------------ connections */

static void closeLink(clusterNode *node) {
    if (node->link) valkeyFree(node->link);
    node->link = NULL;
}

static bool logIn(const clusterManager *m, clusterNode *node) {
    const clusterEnvironment *env = m->env;
    if (!env->password) return true;
    if (env->user) return managerRun(m, node, "AUTH %s %s", env->user, env->password);
    return managerRun(m, node, "AUTH %s", env->password);
}

static double replyLimit(const clusterManager *m) {
    enum { BEYOND_MIGRATE_S = 60 };
    if (m->env->reply_limit_s > 0) return m->env->reply_limit_s;
    return m->options->timeout_ms / 1e3 + BEYOND_MIGRATE_S;
}

static void limitReplies(const clusterManager *m, clusterNode *node) {
    double limit_s = replyLimit(m);
    struct timeval limit = {.tv_sec = (time_t)limit_s};
    limit.tv_usec = (suseconds_t)((limit_s - (double)limit.tv_sec) * 1e6);
    check(node->link);
    (void)valkeySetTimeout(node->link, limit); /* without one it waits */
}

bool managerConnect(const clusterManager *m, clusterNode *node) {
    if (node->link) return true;
    node->link = m->env->connect(strText(&node->host), node->port, m->env->arg);
    if (!node->link || node->link->err) {
        fprintf(stderr, "Could not connect to Valkey at %s:%d: %s\n", strText(&node->host),
                node->port, node->link ? node->link->errstr : "out of memory");
        closeLink(node);
        return false;
    }
    valkeyEnableKeepAliveWithInterval(node->link, VALKEY_KEEPALIVE_INTERVAL);
    limitReplies(m, node);
    if (logIn(m, node)) return true;
    closeLink(node);
    return false;
}

/* ------------------------------------------------------------------ commands */

/* The reply, or NULL after the connection failed. */
static valkeyReply *finishCommand(clusterNode *node, valkeyReply *reply) {
    if (reply) return reply;
    bool is_late = node->link->err == VALKEY_ERR_TIMEOUT ||
                   (node->link->err == VALKEY_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK));
    fprintf(stderr, "Node %s:%d: %s\n", strText(&node->host), node->port,
            is_late ? "does not reply (-t sets the time limit)" : node->link->errstr);
    closeLink(node);
    return NULL;
}

valkeyReply *managerCommand(clusterNode *node, const char *format, ...) {
    if (!node->link) return NULL;
    va_list args;
    va_start(args, format);
    valkeyReply *reply = valkeyvCommand(node->link, format, args);
    va_end(args);
    return finishCommand(node, reply);
}

valkeyReply *managerCommandArgv(clusterNode *node, int argc, const char **argv, const size_t *len) {
    if (!node->link) return NULL;
    return finishCommand(node, valkeyCommandArgv(node->link, argc, argv, len));
}

void managerQueue(clusterNode *node, const char *format, ...) {
    if (!node->link) return;
    va_list args;
    va_start(args, format);
    int queued = valkeyvAppendCommand(node->link, format, args);
    va_end(args);
    check(queued == VALKEY_OK);
}

valkeyReply *managerNext(clusterNode *node) {
    void *reply = NULL;
    if (!node->link) return NULL;
    if (valkeyGetReply(node->link, &reply) != VALKEY_OK) reply = NULL;
    return finishCommand(node, reply);
}

bool replyIsError(const valkeyReply *reply, const char *prefix) {
    if (!reply || reply->type != VALKEY_REPLY_ERROR) return false;
    return !strncmp(reply->str, prefix, strlen(prefix));
}

bool managerAccept(const clusterManager *m, const clusterNode *node, const valkeyReply *reply) {
    if (!reply) return false;
    if (reply->type != VALKEY_REPLY_ERROR) return true;
    managerPrint(m, LEVEL_ERROR, "Node %s:%d replied with error:\n%s\n", strText(&node->host),
                 node->port, reply->str);
    return false;
}

bool managerRun(const clusterManager *m, clusterNode *node, const char *format, ...) {
    if (!node->link) return false;
    va_list args;
    va_start(args, format);
    valkeyReply *reply = finishCommand(node, valkeyvCommand(node->link, format, args));
    va_end(args);
    bool accepted = managerAccept(m, node, reply);
    freeReplyObject(reply);
    return accepted;
}

int64_t managerCountKeys(const clusterManager *m, clusterNode *node, int slot) {
    valkeyReply *reply = managerCommand(node, "CLUSTER COUNTKEYSINSLOT %d", slot);
    int64_t count = -1;
    if (managerAccept(m, node, reply) && reply->type == VALKEY_REPLY_INTEGER)
        count = reply->integer;
    freeReplyObject(reply);
    return count;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The categories of commands in ACL rules: those of this server, and what modules add. Main thread
 * only. */
#include "base/base.h"
#include "engine/command.h"

static const char *const built_in[CAT_COUNT] = {
    [CAT_KEYSPACE] = "keyspace",
    [CAT_READ] = "read",
    [CAT_WRITE] = "write",
    [CAT_SET] = "set",
    [CAT_SORTEDSET] = "sortedset",
    [CAT_LIST] = "list",
    [CAT_HASH] = "hash",
    [CAT_STRING] = "string",
    [CAT_BITMAP] = "bitmap",
    [CAT_HYPERLOGLOG] = "hyperloglog",
    [CAT_GEO] = "geo",
    [CAT_STREAM] = "stream",
    [CAT_PUBSUB] = "pubsub",
    [CAT_ADMIN] = "admin",
    [CAT_FAST] = "fast",
    [CAT_SLOW] = "slow",
    [CAT_BLOCKING] = "blocking",
    [CAT_DANGEROUS] = "dangerous",
    [CAT_CONNECTION] = "connection",
    [CAT_TRANSACTION] = "transaction",
    [CAT_SCRIPTING] = "scripting",
    [CAT_PATHHASH] = "pathhash",
};

static struct {
    char *names[COMMAND_CATEGORIES_MAX - CAT_COUNT];
    int count;
} added;

int commandCategoryCount(void) { return CAT_COUNT + added.count; }

const char *commandCategoryName(int category) {
    check(category >= 0);
    check(category < commandCategoryCount());
    return category < CAT_COUNT ? built_in[category] : added.names[category - CAT_COUNT];
}

int commandCategoryFind(slice name) {
    for (int i = 0; i < commandCategoryCount(); i++) {
        if (sliceIs(name, commandCategoryName(i))) return i;
    }
    return -1;
}

status commandCategoryAdd(const char *name) {
    hotCheck(threadIsMain());
    if (commandCategoryFind(sliceOf(name)) >= 0) return ERR_EXISTS;
    if (commandCategoryCount() == COMMAND_CATEGORIES_MAX) return ERR_LIMIT;
    added.names[added.count++] = memDup(name, strlen(name));
    return OK;
}

void commandCategoriesCut(int count) {
    check(count >= CAT_COUNT);
    while (commandCategoryCount() > count) memFree(added.names[--added.count]);
}

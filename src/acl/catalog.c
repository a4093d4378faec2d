/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The catalog of commands (catalog.h). Invariant: it describes the commands with ids below `count`;
 * a command that was added since makes the next function rebuild it. About 400 entries, built in
 * some 100 us. Main thread only. */
#include "acl/catalog.h"

#include <stdlib.h>

#include "base/base.h"

typedef struct nameEntry {
    slice name;
    const command *cmd;
} nameEntry;

static struct {
    int count, words;
    int name_count;   /* of loaded commands */
    nameEntry *names; /* sorted */
    aclNeeds *needs;  /* by id */
    int category_count;
    uint64_t *categories; /* this many sets of `words` */
} catalog;

/* ------------------------------------------------------------------ properties of a command */

uint32_t aclAccessOf(uint32_t key_flags) {
    uint32_t access = 0;
    if (key_flags & KEY_ACCESS) access |= ACL_READ;
    if (key_flags & (KEY_INSERT | KEY_DELETE | KEY_UPDATE)) access |= ACL_WRITE;
    return access;
}

static bool nameIs(const char *name, const char *word) { return name && strcmp(name, word) == 0; }

/* Channels are the first argument or arguments of a command flagged `pubsub`, unless they are
 * optional: leaving a channel and asking for statistics is free. */
static int channelsOf(const commandSpec *spec) {
    if (spec->find_channels) return CHANNELS_FIND;
    if (!(spec->flags & CMD_PUBSUB) || spec->arg_count == 0) return CHANNELS_NONE;
    const commandArg *arg = &spec->args[0];
    if (arg->flags & ARG_OPTIONAL) return CHANNELS_NONE;
    if (nameIs(arg->name, "pattern")) return CHANNELS_LITERAL;
    bool is_channel = nameIs(arg->name, "channel") || nameIs(arg->name, "shardchannel");
    return is_channel ? CHANNELS_GLOB : CHANNELS_NONE;
}

bool aclSpecHasChannels(const commandSpec *spec) { return channelsOf(spec) != CHANNELS_NONE; }

static bool takesPrefix(const commandSpec *spec) {
    return spec->flags & CMD_EXTENDED && spec->arg_count && nameIs(spec->args[0].name, "prefix");
}

static void describeKeys(aclNeeds *needs, const commandSpec *spec) {
    if (!commandSpecHasKeys(spec)) return;
    needs->keys = KEYS_FIND;
    const keySpec *only = spec->key_specs;
    if (takesPrefix(spec)) {
        needs->keys = KEYS_PREFIX;
        needs->access = (uint8_t)aclAccessOf(only->flags);
        return;
    }
    if (spec->find_keys || spec->key_spec_count != 1 || only->begin != KEY_BEGIN_INDEX) return;
    if (only->begin_at != 1 || only->find != KEY_FIND_RANGE || only->last != 0) return;
    needs->keys = KEYS_FIRST;
    needs->access = (uint8_t)aclAccessOf(only->flags);
}

static int databasesOf(const command *cmd) {
    hotCheck(cmd->name.len > 0);
    static const struct {
        const char *name;
        int databases;
    } special[] = {
        {"select", DBS_SELECT},
        {"swapdb", DBS_SWAP},
        {"move", DBS_MOVE},
        {"copy", DBS_COPY},
        {"exec", DBS_EXEC},
        {"flushall", DBS_ALL},
        {"cluster|flushslot", DBS_ALL},
        {"cluster|migrateslots", DBS_ALL},
        {"cluster|cancelslotmigrations", DBS_ALL},
    };
    for (size_t i = 0; i < COUNT_OF(special); i++) {
        if (sliceIs(cmd->name, special[i].name)) return special[i].databases;
    }
    const uint32_t of_data = 1u << CAT_KEYSPACE | 1u << CAT_READ | 1u << CAT_WRITE;
    bool uses_data = cmd->spec->categories & of_data || commandSpecHasKeys(cmd->spec);
    return uses_data ? DBS_CURRENT : DBS_NONE;
}

/* XCLAIM and XAUTOCLAIM without JUSTID, ZADD with INCR. */
static int returnsOf(const command *cmd) {
    if (sliceIs(cmd->name, "xclaim") || sliceIs(cmd->name, "xautoclaim")) return RETURNS_CLAIMED;
    return sliceIs(cmd->name, "zadd") ? RETURNS_SCORE : RETURNS_NOTHING;
}

static aclNeeds describe(const command *cmd) {
    aclNeeds needs = {0};
    if (!cmd->proc) return needs; /* a container: its subcommands have their own */
    describeKeys(&needs, cmd->spec);
    needs.channels = (uint8_t)channelsOf(cmd->spec);
    if (needs.channels && needs.channels != CHANNELS_FIND) {
        needs.channel_first = cmd->parent ? 2 : 1;
        needs.channel_list = cmd->spec->args[0].flags & ARG_MULTIPLE;
    }
    needs.databases = (uint8_t)databasesOf(cmd);
    needs.returns = (uint8_t)returnsOf(cmd);
    if (needs.returns) needs.keys = KEYS_FIND;
    return needs;
}

/* ------------------------------------------------------------------ the catalog */

static int compareFold(slice a, slice b) {
    size_t shared = a.len < b.len ? a.len : b.len;
    for (size_t i = 0; i < shared; i++) {
        int x = (uint8_t)a.ptr[i], y = (uint8_t)b.ptr[i];
        if (x >= 'A' && x <= 'Z') x += 'a' - 'A';
        if (y >= 'A' && y <= 'Z') y += 'a' - 'A';
        if (x != y) return x - y;
    }
    return (a.len > b.len) - (a.len < b.len);
}

static int compareEntries(const void *a, const void *b) {
    return compareFold(((const nameEntry *)a)->name, ((const nameEntry *)b)->name);
}

void aclCatalogFree(void) {
    hotCheck(threadIsMain());
    memFree(catalog.names);
    memFree(catalog.needs);
    memFree(catalog.categories);
    memset(&catalog, 0, sizeof(catalog));
}

static void ensure(void) {
    int count = commandIdCount();
    if (likely(count == catalog.count && commandCategoryCount() == catalog.category_count)) return;
    aclCatalogFree();
    catalog.count = count;
    catalog.category_count = commandCategoryCount();
    catalog.words = (count + 63) / 64;
    size_t words = (size_t)catalog.words;
    catalog.names = memNewArray(nameEntry, (size_t)count);
    catalog.needs = memNewArray(aclNeeds, (size_t)count);
    catalog.categories = memNewArray(uint64_t, words * (size_t)catalog.category_count);
    for (int id = 0; id < count; id++) {
        const command *cmd = commandById(id);
        if (!commandIsLoaded(cmd)) continue; /* another one may have its name */
        catalog.names[catalog.name_count++] = (nameEntry){cmd->name, cmd};
        catalog.needs[id] = describe(cmd);
        for (uint64_t left = cmd->spec->categories; left; left &= left - 1) {
            size_t cat = (size_t)__builtin_ctzll(left);
            catalog.categories[cat * words + (size_t)id / 64] |= UINT64_C(1) << id % 64;
        }
    }
    qsort(catalog.names, (size_t)catalog.name_count, sizeof(nameEntry), compareEntries);
}

int aclCommandWords(void) {
    ensure();
    return catalog.words;
}

const uint64_t *aclCategoryBits(slice name) {
    ensure();
    int cat = commandCategoryFind(name);
    return cat < 0 ? NULL : catalog.categories + (size_t)cat * (size_t)catalog.words;
}

const command *aclCommandFind(slice name) {
    ensure();
    int low = 0, high = catalog.name_count;
    while (low < high) {
        int mid = low + (high - low) / 2;
        int order = compareFold(catalog.names[mid].name, name);
        if (order == 0) return catalog.names[mid].cmd;
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

const aclNeeds *aclNeedsOf(const command *cmd) {
    if (unlikely(cmd->id >= catalog.count)) ensure();
    check(cmd->id < catalog.count);
    return &catalog.needs[cmd->id];
}

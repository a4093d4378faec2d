/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands of this server, their lookup by name, and the positions of keys in a request.
 *
 * A name is folded to lower case in two 8-byte words. The words multiplied by two odd factors give
 * a slot, which refers to the only entry that can match. At installation, factors and table size
 * are searched such that no two names share a slot (perfect hashing).
 *
 * Invariant: every slot contains the index of an entry, 0 if unused; entry 0 matches no name. A
 * lookup costs two multiplications and two dependent loads; installation about 100 us. Lookups:
 * ANY_THREAD, but not while the main thread installs or renames commands. */
#include "engine/command.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "engine/channel_use.h"
#include "engine/command_priv.h"
#include "engine/gate_priv.h"

enum {
    NAME_SHORT_MAX = 16, /* longer names are hashed in pieces and compared byte by byte */
    SLOT_BITS_MIN = 6,
    SLOT_BITS_MAX = 22,
    TRIES_PER_SIZE = 256, /* factors tried before the number of slots is doubled */
};

/* A name folded to lower case and padded with zeros; for long names a hash of all pieces. */
typedef struct nameKey {
    uint64_t low, high;
} nameKey;

/* Entry of the lookup table; two per cache line. */
typedef struct nameEntry {
    nameKey key;
    size_t len;
    command *cmd;
} nameEntry;
_Static_assert(sizeof(nameEntry) == CACHE_LINE / 2, "an entry lies in one cache line");

static const nameEntry no_entry = {.len = SIZE_MAX};
static const uint16_t no_slots[2];

static struct {
    /* By id: per installed table its top-level commands, then the subcommands of each container. */
    command **all;
    /* Where the next command is stored, in the block of the table that is being installed. */
    command *next;
    command **blocks;
    int block_count;
    int id_count;
    slice *lookup_names; /* by id; length 0 for subcommands and removed commands */
    nameKey *sub_keys;   /* of all commands, by id; used for subcommands only */
    const nameEntry *entries;
    const uint16_t *slots;
    uint64_t low_factor, high_factor;
    int slot_shift;
    int name_count; /* entries without entry 0 */
    uint32_t epoch;
    const commandSpec **displaced; /* extensions whose names are those of loaded commands */
    int displaced_count;
    bool hides_extensions;
    command **hidden; /* extensions that only replayed requests find */
    int hidden_count;
} table = {.entries = &no_entry, .slots = no_slots, .slot_shift = 63};

/* ---- folding names */

/* The key of up to 16 bytes; reads no bytes beyond. */
static inline nameKey keyOfShort(const char *at, size_t len) {
    hotCheck(len <= NAME_SHORT_MAX);
    uint64_t low = 0, high = 0;
    if (len >= 8) {
        low = loadU64(at);
        if (len > 8) high = loadU64(at + len - 8) >> (8 * (NAME_SHORT_MAX - len));
    } else if (len >= 4) {
        low = loadU32(at) | (uint64_t)loadU32(at + len - 4) << (8 * (len - 4));
    } else {
        for (size_t i = 0; i < len; i++) low |= (uint64_t)(uint8_t)at[i] << (8 * i);
    }
    return (nameKey){bytesFold8(low), bytesFold8(high)};
}

static NO_INLINE nameKey keyOfLong(const char *at, size_t len) {
    hotCheck(len > 0);
    nameKey key = {len, 0};
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = keyOfShort(at + i, sizeMin(len - i, 8)).low;
        key.low = (key.low ^ word) * 0x9e3779b97f4a7c15ULL;
        key.low ^= key.low >> 29;
        key.high = (key.high + word) * 0xd6e8feb86659fd93ULL;
        key.high ^= key.high >> 32;
    }
    return key;
}

static inline nameKey keyOf(slice name) {
    return likely(name.len <= NAME_SHORT_MAX) ? keyOfShort(name.ptr, name.len)
                                              : keyOfLong(name.ptr, name.len);
}

/* ---- lookup */

static inline size_t slotOf(nameKey key) {
    return (key.low * table.low_factor + key.high * table.high_factor) >> table.slot_shift;
}

static inline const command *lookup(nameKey key, slice name) {
    const nameEntry *entry = &table.entries[table.slots[slotOf(key)]];
    if (entry->key.low != key.low || entry->key.high != key.high) return NULL;
    if (entry->len != name.len) return NULL;
    if (unlikely(name.len > NAME_SHORT_MAX)) {
        if (!sliceEqualFold(name, table.lookup_names[entry->cmd->id])) return NULL;
    }
    return entry->cmd;
}

const command *commandFind(slice name) { return lookup(keyOf(name), name); }

const command *commandFindShort(uint64_t bytes, size_t len) {
    hotCheck(len > 0);
    hotCheck(len <= 8);
    nameKey key = {bytesFold8(bytes), 0};
    const nameEntry *entry = &table.entries[table.slots[slotOf(key)]];
    bool same = entry->key.low == key.low && entry->key.high == 0 && entry->len == len;
    return same ? entry->cmd : NULL;
}

const command *commandFindSub(const command *parent, slice word) {
    nameKey key = keyOf(word);
    for (int i = 0; i < parent->sub_count; i++) {
        const command *sub = &parent->subs[i];
        const nameKey *other = &table.sub_keys[sub->id];
        if (other->low == key.low && other->high == key.high && sliceIs(word, sub->spec->name))
            return sub;
    }
    return NULL;
}

const command *commandResolve(const slice *argv, int argc, bool *unknown_sub) {
    hotCheck(argc > 0);
    *unknown_sub = false;
    const command *cmd = commandFind(argv[0]);
    if (!cmd || cmd->sub_count == 0 || argc == 1) return cmd;
    const command *sub = commandFindSub(cmd, argv[1]);
    *unknown_sub = sub == NULL;
    return sub ? sub : cmd;
}

const command *commandFindByFullName(slice name) {
    const char *bar = memchr(name.ptr, '|', name.len);
    if (!bar) return commandFind(name);
    size_t head = (size_t)(bar - name.ptr);
    const command *container = commandFind(sliceMake(name.ptr, head));
    return container ? commandFindSub(container, sliceMake(bar + 1, name.len - head - 1)) : NULL;
}

uint32_t commandEpoch(void) { return table.epoch; }
int commandCount(void) { return table.name_count; }
int commandIdCount(void) { return table.id_count; }

const command *commandById(int id) {
    check(id >= 0);
    check(id < table.id_count);
    return table.all[id];
}

void commandEach(void (*proc)(const command *cmd, void *arg), void *arg) {
    for (int i = 0; i < table.id_count; i++) {
        if (table.lookup_names[i].len > 0) proc(table.all[i], arg);
    }
}

/* ---- building the lookup table */

/* The n-th odd factor (MurmurHash3's finaliser applied to a counter). */
static uint64_t factorNumber(uint64_t n) {
    n *= 0x9e3779b97f4a7c15ULL;
    n = (n ^ n >> 33) * 0xff51afd7ed558ccdULL;
    n = (n ^ n >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return (n ^ n >> 33) | 1;
}

/* Assigns a slot to each entry using the current factors; false if two entries collide. */
static bool slotsFill(uint16_t *slots, size_t slot_count, const nameEntry *entries, int count) {
    hotCheck(count >= 0);
    hotCheck((slot_count & (slot_count - 1)) == 0);
    memset(slots, 0, slot_count * sizeof(*slots));
    for (int i = 1; i <= count; i++) {
        uint16_t *slot = &slots[slotOf(entries[i].key)];
        if (*slot != 0) return false;
        *slot = (uint16_t)i;
    }
    return true;
}

static void lookupFree(void) {
    if (table.slots != no_slots) memFree((void *)table.slots);
    if (table.entries != &no_entry) memFree((void *)table.entries);
    table.slots = no_slots;
    table.entries = &no_entry;
    table.slot_shift = 63;
    table.name_count = 0;
}

/* Rebuilds entries and slots from the lookup names. */
static void lookupBuild(void) {
    lookupFree();
    nameEntry *entries = memNewArray(nameEntry, (size_t)table.id_count + 1);
    int count = 0;
    entries[0] = no_entry;
    for (int i = 0; i < table.id_count; i++) {
        slice name = table.lookup_names[i];
        if (name.len == 0) continue;
        entries[++count] = (nameEntry){keyOf(name), name.len, table.all[i]};
    }
    check(count <= UINT16_MAX);
    table.entries = entries;
    table.name_count = count;
    /* With n names and n * n / 8 slots, about one attempt in 55 has no collision; there are up to
     * twice as many slots. */
    int bits = SLOT_BITS_MIN;
    while (((size_t)1 << bits) < (size_t)count * (size_t)count / 8) bits++;
    for (uint64_t try = 0; bits <= SLOT_BITS_MAX; bits++) {
        size_t slot_count = (size_t)1 << bits;
        uint16_t *slots = memNewArray(uint16_t, slot_count);
        table.slot_shift = 64 - bits;
        for (int i = 0; i < TRIES_PER_SIZE; i++) {
            table.low_factor = factorNumber(++try);
            table.high_factor = factorNumber(++try);
            if (slotsFill(slots, slot_count, entries, count)) {
                table.slots = slots;
                table.epoch++;
                return;
            }
        }
        memFree(slots);
    }
    panic("two of the %d commands have the same name", count);
}

/* ---- installation */

static bool isWanted(const commandSpec *spec, bool sentinel) {
    return sentinel ? (spec->flags & (CMD_SENTINEL | CMD_ONLY_SENTINEL)) != 0
                    : (spec->flags & CMD_ONLY_SENTINEL) == 0;
}

static slice fullName(const commandSpec *spec, const command *parent) {
    if (!parent) return sliceMake(memDup(spec->name, strlen(spec->name)), strlen(spec->name));
    str name = STR_EMPTY;
    strAppendSlice(&name, parent->name);
    strAppendByte(&name, '|');
    strAppendText(&name, spec->name);
    slice copy = sliceMake(memDup(name.ptr, name.len), name.len);
    strFree(&name);
    return copy;
}

/* Makes the command what the spec says; what was counted of another one is forgotten. */
static void fill(command *cmd, int id, const commandSpec *spec, command *parent, slice name) {
    if (!spec->proc) check(spec->sub_count > 0);
    memFree(cmd->latency);
    *cmd = (command){
        .proc = spec->proc,
        .flags = spec->flags,
        .gates = gateMaskFor(spec),
        .arity = spec->arity,
        .first_key = spec->first_key,
        .last_key = spec->last_key,
        .key_step = spec->key_step,
        .id = (uint16_t)id,
        .spec = spec,
        .parent = parent,
        .name = name,
    };
    table.sub_keys[id] = keyOf(sliceOf(spec->name));
}

/* Adds a command to `table.all` and returns it. */
static command *commandAdd(const commandSpec *spec, command *parent) {
    int id = table.id_count++;
    command *cmd = table.next++;
    table.all[id] = cmd;
    check(id <= UINT16_MAX);
    fill(cmd, id, spec, parent, fullName(spec, parent));
    return cmd;
}

static void subsAdd(command *cmd, bool sentinel) {
    cmd->subs = table.next;
    for (int i = 0; i < cmd->spec->sub_count; i++) {
        if (!isWanted(&cmd->spec->subs[i], sentinel)) continue;
        commandAdd(&cmd->spec->subs[i], cmd);
        cmd->sub_count++;
    }
}

/* Makes space for the commands of one table; returns their greatest number. */
static int blockAdd(const commandSpec *specs, int count) {
    hotCheck(count > 0);
    int most = 0;
    for (int i = 0; i < count; i++) most += 1 + specs[i].sub_count;
    size_t ids = (size_t)(table.id_count + most);
    table.all = memRealloc(table.all, ids * sizeof(*table.all));
    table.sub_keys = memRealloc(table.sub_keys, ids * sizeof(*table.sub_keys));
    table.lookup_names = memRealloc(table.lookup_names, ids * sizeof(*table.lookup_names));
    memset(table.lookup_names + table.id_count, 0, (size_t)most * sizeof(*table.lookup_names));
    size_t blocks = (size_t)++table.block_count;
    table.blocks = memRealloc(table.blocks, blocks * sizeof(*table.blocks));
    table.blocks[blocks - 1] = table.next = memNewArray(command, (size_t)most);
    return most;
}

static void nameForLookup(const command *cmd) {
    check(!table.lookup_names[cmd->id].ptr);
    table.lookup_names[cmd->id] = sliceMake(memDup(cmd->name.ptr, cmd->name.len), cmd->name.len);
}

void commandInstall(const commandSpec *specs, int count, bool sentinel) {
    (void)blockAdd(specs, count); /* the number is of no use here */
    int first = table.id_count;
    for (int i = 0; i < count; i++) {
        if (!isWanted(&specs[i], sentinel)) continue;
        nameForLookup(commandAdd(&specs[i], NULL));
    }
    int end = table.id_count;
    for (int i = first; i < end; i++) subsAdd(table.all[i], sentinel);
    lookupBuild();
}

static const commandSpec unloaded_spec = {.name = ""}; /* of unloaded commands */

/* Whether an unloaded command had the same name, arguments and subcommands: a transaction may have
 * queued it, whose number of arguments was checked. */
static bool isSame(const command *cmd, const commandSpec *spec) {
    size_t skipped = cmd->parent ? cmd->parent->name.len + 1 : 0; /* "container|" */
    if (cmd->spec != &unloaded_spec) return false;
    if (!sliceIs(sliceMake(cmd->name.ptr + skipped, cmd->name.len - skipped), spec->name))
        return false;
    if (cmd->arity != spec->arity || cmd->first_key != spec->first_key) return false;
    if (cmd->last_key != spec->last_key || cmd->key_step != spec->key_step) return false;
    if (cmd->sub_count != spec->sub_count) return false;
    for (int i = 0; i < cmd->sub_count; i++) {
        if (!isSame(&cmd->subs[i], &spec->subs[i])) return false;
    }
    return true;
}

/* Restores an unloaded command with the same specification, so that loading a module many times
 * uses no more memory and no more ids. False: there was none. */
static bool loadAgain(const commandSpec *spec) {
    hotCheck(spec->name);
    for (int id = 0; id < table.id_count; id++) {
        command *cmd = table.all[id];
        if (cmd->parent || !isSame(cmd, spec)) continue;
        command *subs = cmd->subs;
        int count = cmd->sub_count;
        fill(cmd, id, spec, NULL, cmd->name);
        cmd->subs = subs;
        cmd->sub_count = count;
        for (int i = 0; i < count; i++)
            fill(&subs[i], subs[i].id, &spec->subs[i], cmd, subs[i].name);
        nameForLookup(cmd);
        lookupBuild();
        return true;
    }
    return false;
}

/* Removes a command from the table; the memory stays valid. lookupBuild() is to be called. */
static void unload(command *cmd) {
    slice *lookup_name = &table.lookup_names[cmd->id];
    memFree((void *)lookup_name->ptr);
    *lookup_name = SLICE("");
    lookup_name->ptr = NULL;
    cmd->calls = cmd->usec_ns = cmd->rejected = cmd->failed = 0;
    memFree(cmd->latency);
    cmd->latency = NULL;
    cmd->spec = &unloaded_spec;
    for (int i = 0; i < cmd->sub_count; i++) cmd->subs[i].spec = &unloaded_spec;
}

/* The extension that gives way to a loaded command of that name; NULL if there is none. One that
 * was given another name by the administrator does not. */
static command *extensionFind(slice name) {
    command *cmd = (command *)commandFind(name);
    return cmd && cmd->flags & CMD_EXTENDED && sliceIs(name, cmd->spec->name) ? cmd : NULL;
}

static void extensionDisplace(command *cmd) {
    hotCheck(cmd->flags & CMD_EXTENDED);
    size_t count = (size_t)++table.displaced_count;
    table.displaced = memRealloc(table.displaced, count * sizeof(*table.displaced));
    table.displaced[count - 1] = cmd->spec;
    unload(cmd);
}

/* Loads the extension of that name again, if it was displaced. */
static void extensionRestore(slice name) {
    for (int i = 0; i < table.displaced_count; i++) {
        const commandSpec *spec = table.displaced[i];
        if (!sliceIs(name, spec->name)) continue;
        table.displaced[i] = table.displaced[--table.displaced_count];
        if (!loadAgain(spec)) commandInstall(spec, 1, false);
        return;
    }
}

bool commandNameIsTaken(slice name) { return commandFind(name) && !extensionFind(name); }

/* Takes the name from an extension, which commandFindHidden() still finds. */
static void hide(command *cmd) {
    hotCheck(cmd->flags & CMD_EXTENDED);
    size_t count = (size_t)++table.hidden_count;
    memFree((void *)table.lookup_names[cmd->id].ptr);
    table.lookup_names[cmd->id] = (slice){NULL, 0};
    table.hidden = memRealloc(table.hidden, count * sizeof(*table.hidden));
    table.hidden[count - 1] = cmd;
}

const command *commandFindHidden(slice name) {
    for (int i = 0; i < table.hidden_count; i++) {
        const command *cmd = table.hidden[i];
        if (name.len == cmd->name.len && sliceIs(name, cmd->spec->name)) return cmd;
    }
    return NULL;
}

bool commandHasExtensions(void) { return !table.hides_extensions; }

void commandHideExtensions(void) {
    hotCheck(!table.displaced_count);
    if (table.hides_extensions) return;
    table.hides_extensions = true;
    for (int id = 0; id < table.id_count; id++) {
        command *cmd = table.all[id];
        if (cmd->parent) continue;
        if (cmd->flags & CMD_EXTENDED) {
            hide(cmd);
            continue;
        }
        /* They are the last ones of the specification. */
        while (cmd->sub_count > 0 && cmd->subs[cmd->sub_count - 1].flags & CMD_EXTENDED)
            cmd->subs[--cmd->sub_count].spec = &unloaded_spec;
        for (int i = 0; i < cmd->sub_count; i++) check(!(cmd->subs[i].flags & CMD_EXTENDED));
    }
    lookupBuild();
    hooksCommandsChanged();
}

status commandLoad(const commandSpec *specs, int count) {
    int most = 0;
    for (int i = 0; i < count; i++) {
        if (commandNameIsTaken(sliceOf(specs[i].name))) return ERR_EXISTS;
        for (int k = 0; k < i; k++) {
            if (sliceIs(sliceOf(specs[i].name), specs[k].name)) return ERR_EXISTS;
        }
        most += 1 + specs[i].sub_count;
    }
    if (table.id_count + most > UINT16_MAX) return ERR_LIMIT;
    for (int i = 0; i < count; i++) {
        command *extension = extensionFind(sliceOf(specs[i].name));
        if (extension) extensionDisplace(extension);
    }
    if (count != 1 || !loadAgain(specs)) commandInstall(specs, count, false);
    hooksCommandsChanged();
    return OK;
}

bool commandIsLoaded(const command *cmd) {
    bool is_hidden = table.hides_extensions && cmd->flags & CMD_EXTENDED;
    return cmd->spec != &unloaded_spec && !is_hidden;
}

status commandUnload(slice name) {
    hotCheck(table.id_count > 0);
    command *cmd = (command *)commandFind(name);
    if (!cmd) return ERR_NOT_FOUND;
    unload(cmd);
    lookupBuild();
    extensionRestore(name);
    hooksCommandsChanged();
    return OK;
}

void commandUninstall(void) {
    lookupFree();
    for (int i = 0; i < table.id_count; i++) {
        memFree((void *)table.all[i]->name.ptr);
        memFree(table.all[i]->latency);
        memFree((void *)table.lookup_names[i].ptr);
    }
    for (int i = 0; i < table.block_count; i++) memFree(table.blocks[i]);
    memFree(table.blocks);
    memFree(table.all);
    memFree(table.sub_keys);
    memFree(table.lookup_names);
    memFree(table.displaced);
    memFree(table.hidden);
    table.hidden = NULL;
    table.hidden_count = 0;
    table.displaced = NULL;
    table.displaced_count = 0;
    table.hides_extensions = false;
    table.blocks = NULL;
    table.all = NULL;
    table.next = NULL;
    table.sub_keys = NULL;
    table.lookup_names = NULL;
    table.id_count = table.block_count = 0;
    table.epoch++;
}

status commandRename(slice from, slice to) {
    const command *cmd = commandFind(from);
    if (!cmd) return ERR_NOT_FOUND;
    const command *other = to.len > 0 ? commandFind(to) : NULL;
    if (other && other != cmd) return ERR_EXISTS;
    slice *name = &table.lookup_names[cmd->id];
    char *copy = memDup(to.ptr, to.len);
    memFree((void *)name->ptr);
    *name = sliceMake(copy, to.len);
    lookupBuild();
    return OK;
}

const char *commandFlagName(uint64_t flag) {
    switch (flag) {
    case CMD_WRITE: return "write";
    case CMD_READONLY: return "readonly";
    case CMD_DENYOOM: return "denyoom";
    case CMD_ADMIN: return "admin";
    case CMD_PUBSUB: return "pubsub";
    case CMD_NOSCRIPT: return "noscript";
    case CMD_BLOCKING: return "blocking";
    case CMD_LOADING: return "loading";
    case CMD_STALE: return "stale";
    case CMD_SKIP_MONITOR: return "skip_monitor";
    case CMD_SKIP_COMMANDLOG: return "skip_commandlog";
    case CMD_ASKING: return "asking";
    case CMD_FAST: return "fast";
    case CMD_NO_AUTH: return "no_auth";
    case CMD_NO_MANDATORY_KEYS: return "no_mandatory_keys";
    case CMD_NO_ASYNC_LOADING: return "no_async_loading";
    case CMD_NO_MULTI: return "no_multi";
    case CMD_MOVABLEKEYS: return "movablekeys";
    case CMD_ALLOW_BUSY: return "allow_busy";
    case CMD_MODULE: return "module";
    default: return NULL;
    }
}

/* ---- keys */

enum {
    KEY_FLAGS_OF_SPEC = KEY_NOT_KEY | KEY_INCOMPLETE | KEY_VARIABLE_FLAGS
}; /* flags of the specification, not of single keys */

typedef struct keyList {
    keyPosition *out;
    int count, max;
} keyList;

/* Index of the argument at which `spec` begins; 0 if there is none. */
static int keysBegin(const keySpec *spec, const slice *argv, int argc) {
    hotCheck(argc > 0);
    if (spec->begin == KEY_BEGIN_INDEX) return spec->begin_at;
    if (spec->begin == KEY_BEGIN_UNKNOWN) return 0;
    /* A key follows the keyword, so the keyword is never the last argument. */
    bool forward = spec->begin_at > 0;
    int at = forward ? spec->begin_at : argc + spec->begin_at;
    for (; forward ? at < argc - 1 : at > 0; at += forward ? 1 : -1) {
        if (sliceIs(argv[at], spec->keyword)) return at + 1;
    }
    return 0;
}

static void keysAdd(keyList *keys, const keySpec *spec, int first, int last, int step) {
    for (int at = first; at <= last; at += step) {
        if (keys->count < keys->max) {
            keys->out[keys->count] = (keyPosition){at, spec->flags & ~(uint32_t)KEY_FLAGS_OF_SPEC};
        }
        keys->count++;
    }
}

/* Adds the keys from `first` on; the request is malformed if it ends before the last key. */
static bool keysOfRange(keyList *keys, const keySpec *spec, int argc, int first) {
    int last;
    if (spec->last >= 0) {
        last = first + spec->last;
    } else if (spec->limit > 1) {
        last = first + (argc - first) / spec->limit + spec->last;
    } else {
        last = argc + spec->last;
    }
    if (last >= argc) return false;
    keysAdd(keys, spec, first, last, spec->step);
    return true;
}

/* Adds as many keys as given by an argument. */
static bool keysOfNumber(keyList *keys, const keySpec *spec, const slice *argv, int argc,
                         int begin) {
    hotCheck(argc > 0);
    int64_t count;
    int at = begin + spec->keynum_index, first = begin + spec->first_key;
    if (at >= argc) return false;
    if (!numberParseInt(argv[at], &count)) return false;
    if (count <= 0 || count > argc) return false;
    int64_t last = first + (count - 1) * spec->keynum_step;
    if (last >= argc) return false;
    keysAdd(keys, spec, first, (int)last, spec->keynum_step);
    return true;
}

int commandKeys(const command *cmd, const slice *argv, int argc, keyPosition *out, int max) {
    hotCheck(argc > 0);
    const commandSpec *spec = cmd->spec;
    if (spec->find_keys) return spec->find_keys(argv, argc, out, max);
    keyList keys = {out, 0, max};
    for (int i = 0; i < spec->key_spec_count; i++) {
        const keySpec *where = &spec->key_specs[i];
        if (where->flags & KEY_NOT_KEY) continue;
        int begin = keysBegin(where, argv, argc);
        if (begin == 0 || begin >= argc) continue; /* an optional part that is missing */
        bool fits = true;
        if (where->find == KEY_FIND_RANGE) fits = keysOfRange(&keys, where, argc, begin);
        if (where->find == KEY_FIND_KEYNUM) fits = keysOfNumber(&keys, where, argv, argc, begin);
        if (!fits) return cmd->flags & CMD_NO_MANDATORY_KEYS ? 0 : -1;
    }
    return keys.count;
}

/* ------------------------------------------------------------------ slots */

enum { KEYS_INLINE = 32 };

static int addSlot(int slot, slice key) {
    hotCheck(slot < SLOT_COUNT);
    int own = hashSlot(key);
    return slot == COMMAND_NO_SLOT || slot == own ? own : COMMAND_SEVERAL_SLOTS;
}

static int addChannelSlots(int slot, const command *cmd, const slice *argv, int argc) {
    hotCheck(slot < SLOT_COUNT);
    hotCheck(argc > 0);
    hotCheck(cmd->first_key > 0);
    int last = cmd->last_key < 0 ? argc + cmd->last_key : cmd->last_key;
    for (int i = cmd->first_key; i <= last && slot != COMMAND_SEVERAL_SLOTS; i++)
        slot = addSlot(slot, argv[i]);
    return slot;
}

typedef int positionsProc(const command *cmd, const slice *argv, int argc, keyPosition *out,
                          int max);

/* All positions that `find` reports: in `few`, or in memory of the caller's if they are more. */
static keyPosition *allPositions(positionsProc *find, const command *cmd, const slice *argv,
                                 int argc, keyPosition *few, int max, int *count) {
    keyPosition *all = few;
    *count = find(cmd, argv, argc, few, max);
    if (*count > max) {
        all = memNewArray(keyPosition, (size_t)*count);
        int again = find(cmd, argv, argc, all, *count);
        *count = again < *count ? again : *count; /* a module may report others now */
    }
    return all;
}

keyPosition *commandAllKeys(const command *cmd, const slice *argv, int argc, keyPosition *few,
                            int max, int *count) {
    return allPositions(commandKeys, cmd, argv, argc, few, max, count);
}

static int findChannels(const command *cmd, const slice *argv, int argc, keyPosition *out,
                        int max) {
    hotCheck(cmd->spec->find_channels);
    return cmd->spec->find_channels(argv, argc, out, max);
}

keyPosition *commandChannels(const command *cmd, const slice *argv, int argc, keyPosition *few,
                             int max, int *count) {
    return allPositions(findChannels, cmd, argv, argc, few, max, count);
}

bool commandSpecHasKeys(const commandSpec *spec) {
    if (spec->find_keys) return true;
    for (int i = 0; i < spec->key_spec_count; i++) {
        if (!(spec->key_specs[i].flags & KEY_NOT_KEY)) return true;
    }
    return false;
}

int commandSlots(int slot, const command *cmd, const slice *argv, int argc) {
    hotCheck(slot < SLOT_COUNT);
    hotCheck(argc > 0);
    if (commandUsesShardChannels(cmd)) return addChannelSlots(slot, cmd, argv, argc);
    keyPosition few[KEYS_INLINE];
    int count;
    keyPosition *places = commandAllKeys(cmd, argv, argc, few, KEYS_INLINE, &count);
    for (int i = 0; i < count && slot != COMMAND_SEVERAL_SLOTS; i++)
        slot = addSlot(slot, argv[places[i].arg_index]);
    if (places != few) memFree(places);
    return slot;
}

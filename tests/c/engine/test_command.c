/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of engine/command.c: lookup of names, subcommands, renaming, and the places of keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/random.h"
#include "engine/command.h"
#include "engine/command_priv.h"

static void someCommand(ctx *c) { (void)c; }

/* Finds one key for each argument that begins with "k"; "bad" makes the request malformed. */
static int someFindKeys(const slice *argv, int argc, keyPosition *out, int max) {
    int count = 0;
    for (int i = 1; i < argc; i++) {
        if (sliceIs(argv[i], "bad")) return -1;
        if (argv[i].ptr[0] != 'k') continue;
        if (count < max) out[count] = (keyPosition){i, KEY_RM};
        count++;
    }
    return count;
}

#define RANGE(at, to, by) \
    .flags = KEY_RO | KEY_ACCESS, .begin = KEY_BEGIN_INDEX, .begin_at = (at), \
    .find = KEY_FIND_RANGE, .last = (to), .step = (by)
static const keySpec one_key[] = {{RANGE(1, 0, 1)}};
static const keySpec sub_key[] = {{RANGE(2, 0, 1)}};
static const keySpec all_keys[] = {{RANGE(1, -1, 1)}};
static const keySpec all_but_last[] = {{RANGE(1, -2, 1)}};
static const keySpec every_second[] = {{RANGE(1, -1, 2)}};
static const keySpec two_together[] = {{RANGE(1, 1, 1)}};
static const keySpec store_keys[] = {{.flags = KEY_OW | KEY_UPDATE | KEY_VARIABLE_FLAGS,
                                      .begin = KEY_BEGIN_INDEX,
                                      .begin_at = 1,
                                      .find = KEY_FIND_RANGE,
                                      .step = 1},
                                     {.flags = KEY_RO,
                                      .begin = KEY_BEGIN_INDEX,
                                      .begin_at = 2,
                                      .find = KEY_FIND_KEYNUM,
                                      .first_key = 1,
                                      .keynum_step = 1}};
static const keySpec numbered[] = {{.flags = KEY_RW,
                                    .begin = KEY_BEGIN_INDEX,
                                    .begin_at = 2,
                                    .find = KEY_FIND_KEYNUM,
                                    .first_key = 1,
                                    .keynum_step = 1}};
static const keySpec numbered_pairs[] = {{.flags = KEY_OW,
                                          .begin = KEY_BEGIN_INDEX,
                                          .begin_at = 1,
                                          .find = KEY_FIND_KEYNUM,
                                          .first_key = 1,
                                          .keynum_step = 2}};
static const keySpec streams[] = {{.flags = KEY_RO,
                                   .begin = KEY_BEGIN_KEYWORD,
                                   .keyword = "STREAMS",
                                   .begin_at = 1,
                                   .find = KEY_FIND_RANGE,
                                   .last = -1,
                                   .step = 1,
                                   .limit = 2}};
static const keySpec backwards[] = {{RANGE(3, 0, 1)},
                                    {.flags = KEY_RW,
                                     .begin = KEY_BEGIN_KEYWORD,
                                     .keyword = "KEYS",
                                     .begin_at = -2,
                                     .find = KEY_FIND_RANGE,
                                     .last = -1,
                                     .step = 1}};
static const keySpec keys_unknown[] = {
    {RANGE(1, 0, 1)}, {.flags = KEY_OW, .begin = KEY_BEGIN_UNKNOWN, .find = KEY_FIND_UNKNOWN}};
static const keySpec channels[] = {{.flags = KEY_NOT_KEY,
                                    .begin = KEY_BEGIN_INDEX,
                                    .begin_at = 1,
                                    .find = KEY_FIND_RANGE,
                                    .last = -1,
                                    .step = 1}};

#define KEYS(specs) .key_specs = (specs), .key_spec_count = COUNT_OF(specs)
static const commandSpec client_subs[] = {
    {.name = "id", .proc = someCommand, .arity = 2, .flags = CMD_SENTINEL},
    {.name = "import-source", .proc = someCommand, .arity = 3},
    {.name = "list", .proc = someCommand, .arity = -2, .flags = CMD_SENTINEL | CMD_ADMIN},
    {.name = "set-the-longest-name", .proc = someCommand, .arity = 3},
};
static const commandSpec object_subs[] = {
    {.name = "encoding", .proc = someCommand, .arity = 3, KEYS(sub_key)}};

static const commandSpec specs[] = {
    {.name = "blpop", .proc = someCommand, .arity = -3, KEYS(all_but_last)},
    {.name = "client",
     .arity = -2,
     .flags = CMD_SENTINEL,
     .subs = client_subs,
     .sub_count = COUNT_OF(client_subs)},
    {.name = "del", .proc = someCommand, .arity = -2, KEYS(all_keys)},
    {.name = "eval",
     .proc = someCommand,
     .arity = -3,
     .flags = CMD_NO_MANDATORY_KEYS,
     KEYS(numbered)},
    {.name = "georadiusbymember", .proc = someCommand, .arity = -5},
    {.name = "georadiusbymember_ro", .proc = someCommand, .arity = -5},
    {.name = "get",
     .proc = someCommand,
     .arity = 2,
     .first_key = 1,
     .last_key = 1,
     .key_step = 1,
     KEYS(one_key)},
    {.name = "lcs", .proc = someCommand, .arity = -3, KEYS(two_together)},
    {.name = "lmpop", .proc = someCommand, .arity = -4, KEYS(numbered)},
    {.name = "migrate", .proc = someCommand, .arity = -6, KEYS(backwards)},
    {.name = "mset", .proc = someCommand, .arity = -3, KEYS(every_second)},
    {.name = "msetex", .proc = someCommand, .arity = -4, KEYS(numbered_pairs)},
    {.name = "object",
     .proc = someCommand,
     .arity = -1,
     .subs = object_subs,
     .sub_count = COUNT_OF(object_subs)},
    {.name = "ping", .proc = someCommand, .arity = -1, .flags = CMD_SENTINEL | CMD_FAST},
    {.name = "s", .proc = someCommand, .arity = 1},
    {.name = "sentinel", .proc = someCommand, .arity = -2, .flags = CMD_ONLY_SENTINEL},
    {.name = "sort", .proc = someCommand, .arity = -2, KEYS(keys_unknown)},
    {.name = "sort_ro",
     .proc = someCommand,
     .arity = -2,
     .find_keys = someFindKeys,
     KEYS(keys_unknown)},
    {.name = "ssubscribe", .proc = someCommand, .arity = -2, KEYS(channels)},
    {.name = "xread", .proc = someCommand, .arity = -4, KEYS(streams)},
    {.name = "zremrangebyscore", .proc = someCommand, .arity = 4, KEYS(one_key)}, /* 16 bytes */
    {.name = "zunionstore", .proc = someCommand, .arity = -4, KEYS(store_keys)},
};
enum {
    SPEC_COUNT = COUNT_OF(specs),
    SERVER_COUNT = SPEC_COUNT - 1,
    SUB_COUNT = COUNT_OF(client_subs) + COUNT_OF(object_subs)
};

static int install(void **state) {
    (void)state;
    commandInstall(specs, SPEC_COUNT, false);
    return 0;
}

static int uninstall(void **state) {
    (void)state;
    commandUninstall();
    return 0;
}

/* Both forms of the lookup must say the same. */
static const command *find(slice name) {
    const command *cmd = commandFind(name);
    if (name.len >= 1 && name.len <= 8) {
        uint64_t bytes = 0;
        memcpy(&bytes, name.ptr, name.len);
        assert_ptr_equal(commandFindShort(bytes, name.len), cmd);
    }
    return cmd;
}

static void testFindsEveryNameInAnyCase(void **state) {
    for (int i = 0; i < SPEC_COUNT; i++) {
        if (specs[i].flags & CMD_ONLY_SENTINEL) continue;
        char name[64];
        size_t len = strlen(specs[i].name);
        for (int variant = 0; variant < 3; variant++) {
            for (size_t k = 0; k < len; k++) {
                char ch = specs[i].name[k];
                bool upper = variant == 1 || (variant == 2 && k % 2 == 1);
                name[k] = (char)(upper && ch >= 'a' && ch <= 'z' ? ch - 32 : ch);
            }
            const command *cmd = find(sliceMake(name, len));
            assert_non_null(cmd);
            assert_ptr_equal(cmd->spec, &specs[i]);
            assert_true(sliceIs(cmd->name, specs[i].name));
            assert_int_equal(cmd->arity, specs[i].arity);
        }
    }
    assert_int_equal(find(SLICE("get"))->first_key, 1);
    assert_int_equal(find(SLICE("ping"))->flags, CMD_SENTINEL | CMD_FAST);
}

static void testMissesNamesThatOnlyLookAlike(void **state) {
    static const slice names[] = {
        SLICE(""),
        SLICE("g"),
        SLICE("ge"),
        SLICE("gets"),
        SLICE("get "),
        SLICE("get\0"),
        SLICE("\0get"),
        SLICE("s\0\0\0\0\0\0\0"),
        SLICE("g\x05t"),     /* 0x05 | 0x20 is '%', no letter */
        SLICE("sort\x7fro"), /* '_' | 0x20 */
        SLICE("\xc7"
              "ET"), /* 'G' with the high bit set */
        SLICE("zremrangebyscor"),
        SLICE("zremrangebyscorf"),
        SLICE("zremrangebyscore1"),
        SLICE("georadiusbymembe"),
        SLICE("georadiusbymember_r"),
        SLICE("georadiusbymember_rO1"),
        SLICE("georadiusbymembes"),
        SLICE("client|id"),
        SLICE("sentinel"),
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) assert_null(find(names[i]));
}

/* The name a linear search finds. */
static const commandSpec *findSlowly(slice name) {
    for (int i = 0; i < SPEC_COUNT; i++) {
        if (!(specs[i].flags & CMD_ONLY_SENTINEL) && sliceIs(name, specs[i].name)) return &specs[i];
    }
    return NULL;
}

static void testAgreesWithALinearSearchOnDamagedNames(void **state) {
    uint64_t seed;
    randomSecret(&seed, sizeof(seed));
    print_message("seed %llu\n", (unsigned long long)seed);
    randomSeed(seed);
    for (int round = 0; round < 20000; round++) {
        const commandSpec *spec = &specs[randomUniform(SPEC_COUNT)];
        char name[64];
        size_t len = strlen(spec->name);
        memcpy(name, spec->name, len);
        for (uint64_t edits = randomUniform(3); edits > 0; edits--) {
            uint64_t at = randomUniform(len);
            if (randomUniform(2)) {
                name[at] ^= 0x20;
            } else {
                name[at] = (char)randomNext();
            }
        }
        if (randomUniform(8) == 0) len--;
        const command *cmd = find(sliceMake(name, len));
        assert_ptr_equal(cmd ? cmd->spec : NULL, findSlowly(sliceMake(name, len)));
    }
}

/* A page that may not be touched follows the name. */
static void testSafeFindReadsNoByteBehindTheName(void **state) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    for (int i = 0; i < SPEC_COUNT; i++) {
        size_t len = strlen(specs[i].name);
        char *name = pages + page - len;
        memcpy(name, specs[i].name, len);
        const command *cmd = commandFind(sliceMake(name, len));
        if (!(specs[i].flags & CMD_ONLY_SENTINEL)) assert_ptr_equal(cmd->spec, &specs[i]);
    }
    assert_null(commandFind(sliceMake(pages + page, 0)));
    munmap(pages, 2 * page);
}

static void testThousandNamesOfAllLengthsAreFound(void **state) {
    enum { MANY = 1000 };
    static char names[MANY][64];
    static commandSpec many[MANY];
    for (int i = 0; i < MANY; i++) {
        int len = snprintf(names[i], sizeof(names[i]), "%d", i);
        memset(names[i] + len, 'a' + i % 26, (size_t)(i % 40));
        many[i] = (commandSpec){.name = names[i], .proc = someCommand, .arity = 1};
    }
    commandInstall(many, MANY, false);
    for (int i = 0; i < MANY; i++) assert_ptr_equal(find(sliceOf(names[i]))->spec, &many[i]);
    assert_int_equal(commandCount(), MANY);
    commandUninstall();
    assert_null(find(SLICE("0")));
    assert_int_equal(commandCount(), 0);
}

static void testSubcommandsAreFoundInAnyCase(void **state) {
    const command *client = find(SLICE("CLIENT"));
    assert_int_equal(client->sub_count, COUNT_OF(client_subs));
    const command *list = commandFindSub(client, SLICE("LiSt"));
    assert_ptr_equal(list->spec, &client_subs[2]);
    assert_ptr_equal(list->parent, client);
    assert_true(sliceIs(list->name, "client|list"));
    assert_ptr_equal(commandFindSub(client, SLICE("SET-the-longest-NAME"))->spec, &client_subs[3]);
    assert_null(commandFindSub(client, SLICE("set-the-longest-namf")));
    assert_null(commandFindSub(client, SLICE("lis")));
    assert_null(commandFindSub(client, SLICE("id\0")));
    assert_null(commandFindSub(find(SLICE("get")), SLICE("id")));
    assert_ptr_equal(commandFindByFullName(SLICE("CLIENT|id")),
                     commandFindSub(client, SLICE("id")));
    assert_ptr_equal(commandFindByFullName(SLICE("get")), find(SLICE("get")));
    assert_null(commandFindByFullName(SLICE("client|nope")));
    assert_null(commandFindByFullName(SLICE("client|id|x")));
    assert_null(commandFindByFullName(SLICE("nope|id")));
    assert_null(commandFindByFullName(SLICE("client|")));
}

static void testResolveTellsContainersFromTheirSubcommands(void **state) {
    bool unknown_sub = true;
    slice id[] = {SLICE("Client"), SLICE("ID"), SLICE("x")};
    assert_ptr_equal(commandResolve(id, 3, &unknown_sub)->spec, &client_subs[0]);
    assert_false(unknown_sub);
    assert_ptr_equal(commandResolve(id, 1, &unknown_sub), find(SLICE("client")));
    assert_false(unknown_sub);
    slice nope[] = {SLICE("client"), SLICE("nope")};
    assert_ptr_equal(commandResolve(nope, 2, &unknown_sub), find(SLICE("client")));
    assert_true(unknown_sub);
    slice get[] = {SLICE("get"), SLICE("id")};
    assert_ptr_equal(commandResolve(get, 2, &unknown_sub), find(SLICE("get")));
    assert_false(unknown_sub);
    slice missing[] = {SLICE("nope"), SLICE("id")};
    assert_null(commandResolve(missing, 2, &unknown_sub));
    assert_false(unknown_sub);
}

static void testIdsAreDenseAndSubcommandsStandTogether(void **state) {
    assert_int_equal(commandCount(), SERVER_COUNT);
    assert_int_equal(commandIdCount(), SERVER_COUNT + SUB_COUNT);
    for (int i = 0; i < commandIdCount(); i++) assert_int_equal(commandById(i)->id, i);
    const command *client = find(SLICE("client"));
    for (int i = 0; i < client->sub_count; i++) {
        assert_ptr_equal(commandById(client->subs[0].id + i), &client->subs[i]);
    }
}

static void testSentinelKnowsItsOwnCommandsOnly(void **state) {
    commandInstall(specs, SPEC_COUNT, true);
    assert_int_equal(commandCount(), 3);
    assert_non_null(find(SLICE("sentinel")));
    assert_non_null(find(SLICE("ping")));
    assert_null(find(SLICE("get")));
    assert_int_equal(find(SLICE("client"))->sub_count, 2);
    assert_null(commandFindByFullName(SLICE("client|import-source")));
    assert_non_null(commandFindByFullName(SLICE("client|list")));
}

static void collectName(const command *cmd, void *arg) {
    str *names = arg;
    strAppendSlice(names, cmd->name);
    strAppendByte(names, ' ');
}

static void testRenamedCommandKeepsItsOwnName(void **state) {
    uint32_t epoch = commandEpoch();
    const command *client = find(SLICE("client"));
    assert_int_equal(commandRename(SLICE("Client"), SLICE("a name of some length")), OK);
    assert_int_not_equal(commandEpoch(), epoch);
    assert_null(find(SLICE("client")));
    assert_ptr_equal(find(SLICE("A NAME of some length")), client);
    assert_true(sliceIs(client->name, "client"));
    assert_ptr_equal(commandFindByFullName(SLICE("a name of some length|id"))->spec,
                     &client_subs[0]);
    assert_int_equal(commandCount(), SERVER_COUNT);
    /* Back again, and to its own name in other letters. */
    assert_int_equal(commandRename(SLICE("a name of some length"), SLICE("client")), OK);
    assert_int_equal(commandRename(SLICE("client"), SLICE("CLIENT")), OK);
    assert_ptr_equal(find(SLICE("client")), client);
}

static void testRemovedCommandIsGoneButKeepsItsId(void **state) {
    const command *get = find(SLICE("get"));
    assert_int_equal(commandRename(SLICE("get"), SLICE("")), OK);
    assert_null(find(SLICE("get")));
    assert_null(find(SLICE("")));
    assert_int_equal(commandCount(), SERVER_COUNT - 1);
    assert_int_equal(commandIdCount(), SERVER_COUNT + SUB_COUNT);
    assert_ptr_equal(commandById(get->id), get);
    assert_int_equal(commandRename(SLICE("get"), SLICE("got")), ERR_NOT_FOUND);
    assert_int_equal(commandRename(SLICE("ping"), SLICE("DEL")), ERR_EXISTS);
    assert_non_null(find(SLICE("ping")));
    assert_int_equal(commandRename(SLICE("ping"), SLICE("get")), OK);
    assert_true(sliceIs(find(SLICE("get"))->name, "ping"));
    str names = STR_EMPTY;
    commandEach(collectName, &names);
    assert_string_equal(
        strText(&names),
        "blpop client del eval georadiusbymember georadiusbymember_ro lcs lmpop migrate mset "
        "msetex object ping s sort sort_ro ssubscribe xread zremrangebyscore zunionstore ");
    strFree(&names);
}

static const commandSpec memory_subs[] = {
    {.name = "stats", .proc = someCommand, .arity = 2},
    {.name = "usage", .proc = someCommand, .arity = 3},
    {.name = "explain", .proc = someCommand, .arity = 2, .flags = CMD_EXTENDED},
};
static const commandSpec hotkeys_subs[] = {
    {.name = "get", .proc = someCommand, .arity = 2, .flags = CMD_EXTENDED}};
static const commandSpec extended_specs[] = {
    {.name = "get", .proc = someCommand, .arity = 2},
    {.name = "getpxt", .proc = someCommand, .arity = 2, .flags = CMD_EXTENDED},
    {.name = "hotkeys",
     .arity = -2,
     .flags = CMD_EXTENDED,
     .subs = hotkeys_subs,
     .sub_count = COUNT_OF(hotkeys_subs)},
    {.name = "memory", .arity = -2, .subs = memory_subs, .sub_count = COUNT_OF(memory_subs)},
};
static const commandSpec loaded_specs[] = {
    {.name = "getpxt", .proc = someCommand, .arity = -1, .flags = CMD_MODULE},
    {.name = "get", .proc = someCommand, .arity = -1, .flags = CMD_MODULE},
};

static int installExtended(void **state) {
    (void)state;
    commandInstall(extended_specs, COUNT_OF(extended_specs), false);
    return 0;
}

static void testHiddenExtensionsAreUnknown(void **state) {
    assert_true(commandHasExtensions());
    assert_non_null(find(SLICE("getpxt")));
    assert_non_null(commandFindByFullName(SLICE("memory|explain")));
    commandHideExtensions();
    commandHideExtensions(); /* changes nothing */
    assert_false(commandHasExtensions());
    str names = STR_EMPTY;
    commandEach(collectName, &names);
    assert_string_equal(strText(&names), "get memory ");
    strFree(&names);
    assert_int_equal(commandCount(), 2);
    assert_null(find(SLICE("getpxt")));
    assert_null(commandFindByFullName(SLICE("hotkeys|get")));
    assert_null(commandFindByFullName(SLICE("memory|explain")));
    assert_non_null(commandFindByFullName(SLICE("memory|usage")));
    for (int id = 0; id < commandIdCount(); id++) {
        const command *cmd = commandById(id);
        assert_int_equal(commandIsLoaded(cmd), !(cmd->flags & CMD_EXTENDED));
    }
    assert_int_equal(commandRename(SLICE("getpxt"), SLICE("x")), ERR_NOT_FOUND);
    assert_int_equal(commandRename(SLICE("get"), SLICE("getpxt")), OK);
}

static void testLoadedCommandReplacesAnExtensionOfItsName(void **state) {
    assert_false(commandNameIsTaken(SLICE("GetPxt")));
    assert_true(commandNameIsTaken(SLICE("get")));
    assert_int_equal(commandLoad(loaded_specs, 2), ERR_EXISTS); /* for "get" */
    assert_ptr_equal(find(SLICE("getpxt"))->spec, &extended_specs[1]);
    assert_int_equal(commandLoad(loaded_specs, 1), OK);
    assert_ptr_equal(find(SLICE("getpxt"))->spec, &loaded_specs[0]);
    assert_true(commandNameIsTaken(SLICE("getpxt")));
    assert_int_equal(commandCount(), COUNT_OF(extended_specs));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(commandUnload(SLICE("getpxt")), OK);
        assert_ptr_equal(find(SLICE("getpxt"))->spec, &extended_specs[1]);
        assert_int_equal(commandCount(), COUNT_OF(extended_specs));
        assert_int_equal(commandLoad(loaded_specs, 1), OK);
        assert_ptr_equal(find(SLICE("getpxt"))->spec, &loaded_specs[0]);
    }
    /* Loading again needs no further ids. */
    assert_int_equal(commandIdCount(),
                     COUNT_OF(extended_specs) + COUNT_OF(memory_subs) + COUNT_OF(hotkeys_subs) + 1);
}

static void testRenamedExtensionKeepsItsNewName(void **state) {
    assert_int_equal(commandRename(SLICE("hotkeys"), SLICE("getpxt2")), OK);
    assert_true(commandNameIsTaken(SLICE("getpxt2")));
    assert_int_equal(commandRename(SLICE("getpxt"), SLICE("other")), OK);
    assert_int_equal(commandLoad(loaded_specs, 1), OK);
    assert_ptr_equal(find(SLICE("other"))->spec, &extended_specs[1]);
    assert_int_equal(commandUnload(SLICE("getpxt")), OK);
    assert_null(find(SLICE("getpxt")));
    assert_ptr_equal(find(SLICE("other"))->spec, &extended_specs[1]);
}

/* The keys of a request of words: "place:flags place:flags", "-" for none, "bad" for malformed. */
static void expectKeys(const char *request, const char *expected) {
    slice argv[32];
    int argc = 0;
    for (const char *at = request; *at;) {
        size_t len = strcspn(at, " ");
        argv[argc++] = sliceMake(at, len);
        at += len + (at[len] == ' ');
    }
    bool unknown_sub;
    const command *cmd = commandResolve(argv, argc, &unknown_sub);
    assert_non_null(cmd);
    keyPosition keys[32];
    int count = commandKeys(cmd, argv, argc, keys, COUNT_OF(keys));
    str text = STR_EMPTY;
    for (int i = 0; i < count; i++)
        strAppendFormat(&text, "%s%d:%u", i ? " " : "", keys[i].arg_index, keys[i].flags);
    if (count < 0) strAppendText(&text, "bad");
    if (count == 0) strAppendText(&text, "-");
    assert_string_equal(strText(&text), expected);
    strFree(&text);
    /* With less room the first ones are written and the count is the same. */
    keyPosition first = {-1, 0};
    assert_int_equal(commandKeys(cmd, argv, argc, &first, 1), count);
    if (count > 0) assert_int_equal(first.arg_index, keys[0].arg_index);
    assert_int_equal(commandKeys(cmd, argv, argc, NULL, 0), count);
}

static void testKeysOfRanges(void **state) {
    expectKeys("get a", "1:17");
    expectKeys("ping", "-");
    expectKeys("del a b c", "1:17 2:17 3:17");
    expectKeys("blpop a b 0", "1:17 2:17");
    expectKeys("mset a 1 b 2", "1:17 3:17");
    expectKeys("mset a 1 b", "1:17 3:17");
    expectKeys("lcs a b IDX", "1:17 2:17");
    expectKeys("lcs a", "bad");
    expectKeys("object encoding a", "2:17");
}

static void testKeysAsManyAsAnArgumentSays(void **state) {
    expectKeys("lmpop left 2 a b", "3:2 4:2");
    expectKeys("lmpop left 1 a b", "3:2");
    expectKeys("lmpop left 3 a b", "bad");
    expectKeys("lmpop left 0 a b", "bad");
    expectKeys("lmpop left -1 a b", "bad");
    expectKeys("lmpop left x a b", "bad");
    expectKeys("lmpop left 9223372036854775807 a b", "bad");
    expectKeys("lmpop left 9223372036854775808 a b", "bad");
    expectKeys("msetex 2 a 1 b 2", "2:4 4:4");
    expectKeys("msetex 3 a 1 b 2", "bad");
    expectKeys("zunionstore d 2 a b", "1:36 3:1 4:1");
    expectKeys("zunionstore d 0 a", "bad");
}

static void testCommandsThatNeedNoKeysAreNeverMalformed(void **state) {
    expectKeys("eval x 2 a b", "3:2 4:2");
    expectKeys("eval x 0 a", "-");
    expectKeys("eval x 3 a", "-");
    expectKeys("eval x nonsense a", "-");
}

static void testKeysBehindAWord(void **state) {
    expectKeys("xread count 1 Streams a b 0 0", "4:1 5:1");
    expectKeys("xread streams a b 0", "2:1");
    expectKeys("xread count 1 a b", "-");
    expectKeys("xread count 1 streams", "-");
    expectKeys("migrate h 1 a 0 10", "3:17");
    expectKeys("migrate h 1 a 0 10 keys b c", "3:17 7:2 8:2");
    expectKeys("migrate h 1 a 0 10 auth keys keys b", "3:17 9:2");
}

static void testKeysThatSpecificationsCannotTell(void **state) {
    expectKeys("sort k store d", "1:17");
    expectKeys("sort_ro k1 a k2", "1:8 3:8");
    expectKeys("sort_ro bad", "bad");
    expectKeys("ssubscribe a b", "-");
}

static void testNamesOfFlagsAndCategories(void **state) {
    assert_string_equal(commandFlagName(CMD_WRITE), "write");
    assert_string_equal(commandFlagName(CMD_ALLOW_BUSY), "allow_busy");
    assert_null(commandFlagName(CMD_MAY_REPLICATE));
    assert_null(commandFlagName(CMD_SENTINEL));
    assert_null(commandFlagName(CMD_QUICK));
    for (int bit = 0; bit < 64; bit++) {
        if (bit >= CMD_PRINTED_BITS) assert_null(commandFlagName(CMD_BIT(bit)));
    }
    assert_true(CMD_MAY_REPLICATE > UINT32_MAX); /* the other word of the flags */
    for (int i = 0; i < CAT_COUNT; i++) assert_non_null(commandCategoryName(i));
    assert_string_equal(commandCategoryName(CAT_SORTEDSET), "sortedset");
}

static void testCategoriesAreAddedAndRemoved(void **state) {
    (void)state;
    assert_int_equal(commandCategoryFind(SLICE("Hash")), CAT_HASH);
    assert_int_equal(commandCategoryFind(SLICE("mine")), -1);
    assert_int_equal(commandCategoryAdd("hash"), ERR_EXISTS);
    assert_int_equal(commandCategoryAdd("mine"), OK);
    assert_int_equal(commandCategoryAdd("MINE"), ERR_EXISTS);
    assert_int_equal(commandCategoryFind(SLICE("mine")), CAT_COUNT);
    char name[] = "c00";
    for (int i = CAT_COUNT + 1; i < COMMAND_CATEGORIES_MAX; i++) {
        name[1] = (char)('0' + i / 10);
        name[2] = (char)('0' + i % 10);
        assert_int_equal(commandCategoryAdd(name), OK);
    }
    assert_int_equal(commandCategoryAdd("more"), ERR_LIMIT);
    commandCategoriesCut(CAT_COUNT);
    assert_int_equal(commandCategoryCount(), CAT_COUNT);
    assert_int_equal(commandCategoryFind(SLICE("mine")), -1);
}

#define WITH_EXTENSIONS(test) cmocka_unit_test_setup_teardown(test, installExtended, uninstall)
#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, install, uninstall)

int test_command(void) {
    const struct CMUnitTest tests[] = {
        WITH_TABLE(testFindsEveryNameInAnyCase),
        WITH_TABLE(testMissesNamesThatOnlyLookAlike),
        WITH_TABLE(testAgreesWithALinearSearchOnDamagedNames),
        WITH_TABLE(testSafeFindReadsNoByteBehindTheName),
        cmocka_unit_test(testThousandNamesOfAllLengthsAreFound),
        WITH_TABLE(testSubcommandsAreFoundInAnyCase),
        WITH_TABLE(testResolveTellsContainersFromTheirSubcommands),
        WITH_TABLE(testIdsAreDenseAndSubcommandsStandTogether),
        cmocka_unit_test_teardown(testSentinelKnowsItsOwnCommandsOnly, uninstall),
        WITH_TABLE(testRenamedCommandKeepsItsOwnName),
        WITH_TABLE(testRemovedCommandIsGoneButKeepsItsId),
        WITH_EXTENSIONS(testHiddenExtensionsAreUnknown),
        WITH_EXTENSIONS(testLoadedCommandReplacesAnExtensionOfItsName),
        WITH_EXTENSIONS(testRenamedExtensionKeepsItsNewName),
        WITH_TABLE(testKeysOfRanges),
        WITH_TABLE(testKeysAsManyAsAnArgumentSays),
        WITH_TABLE(testCommandsThatNeedNoKeysAreNeverMalformed),
        WITH_TABLE(testKeysBehindAWord),
        WITH_TABLE(testKeysThatSpecificationsCannotTell),
        WITH_TABLE(testNamesOfFlagsAndCategories),
        cmocka_unit_test(testCategoriesAreAddedAndRemoved),
    };
    return cmocka_run_group_tests_name("engine/command", tests, NULL, NULL);
}

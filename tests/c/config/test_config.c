/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests of config/ with a table of their own: kinds, bounds, rollback, files, rewriting. */
#include <setjmp.h>
#include <stdarg.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "config/config.h"

static struct {
    bool lamp, door;
    int small, octal, color, bits;
    int64_t big, bytes, share, debt;
    uint64_t huge;
    char *name;
    str secret;
    int list[8];
    int list_count;
    int taken;
} conf;

static int applied, applied_other;
static bool refuse_apply;

static status apply(reason *why) {
    if (refuse_apply) return reasonSet(why, ERR_IO, "no effect today");
    applied++;
    return OK;
}

static status applyOther(reason *why) {
    (void)why;
    applied_other++;
    if (conf.small > 50) conf.small = 50;
    return OK;
}

static status acceptName(slice text, int64_t number, reason *why) {
    (void)number;
    return sliceIs(text, "bad") ? reasonSet(why, ERR_SYNTAX, "no such name") : OK;
}

static status setList(const slice *words, int count, bool more, reason *why) {
    int kept = more ? conf.list_count : 0;
    if (kept + count > 8) return reasonSet(why, ERR_LIMIT, "too many");
    for (int i = 0; i < count; i++) {
        if (words[i].len != 1) return reasonSet(why, ERR_SYNTAX, "one digit each");
    }
    for (int i = 0; i < count; i++) conf.list[kept + i] = words[i].ptr[0] - '0';
    conf.list_count = kept + count;
    return OK;
}

static void getList(str *out) {
    for (int i = 0; i < conf.list_count; i++)
        strAppendFormat(out, "%s%d", i ? " " : "", conf.list[i]);
}

/* One line per entry. */
static void rewriteList(configLines *lines) {
    for (int i = 0; i < conf.list_count; i++) {
        char digit[2] = {(char)('0' + conf.list[i]), 0};
        configLinesAdd(lines, sliceOf(digit));
    }
}

static status takeThing(const slice *words, int count, reason *why) {
    if (sliceIs(words[0], "bad")) return reasonSet(why, ERR_SYNTAX, "bad thing");
    conf.taken += count;
    return OK;
}

/* Like the directives of Sentinel: `watch host NAME` has to be known before other lines about
 * it. */
static str watched;
static const char *const *rewritten;

static int rankOfWatch(const slice *words, int count) {
    return count && sliceIs(words[0], "host") ? 1 : 2;
}

static status takeWatch(const slice *words, int count, reason *why) {
    if (count > 1 && sliceIs(words[1], "bad")) return reasonSet(why, ERR_SYNTAX, "No such name.");
    for (int i = 0; i < count; i++)
        strAppendFormat(&watched, "%.*s%s", (int)words[i].len, words[i].ptr,
                        i == count - 1 ? ";" : " ");
    return OK;
}

static void rewriteWatch(configLines *lines) {
    for (const char *const *line = rewritten; line && *line; line++)
        configLinesAdd(lines, sliceOf(*line));
}

static int firstIsKey(const slice *words, int count) {
    (void)words, (void)count;
    return 1;
}

static const configFileOnly watch = {.words_min = 0,
                                     .words_max = 4,
                                     .key_words = firstIsKey,
                                     .rank = rankOfWatch,
                                     .take = takeWatch,
                                     .rewrite = rewriteWatch};

enum { RED, GREEN, BLUE };
static const configWord colors[] = {
    {"red", RED}, {"green", GREEN}, {"blue", BLUE}, {"azure", BLUE}, {NULL, 0}};
static const configWord bits[] = {{"none", 0}, {"one", 1}, {"two", 2}, {"four", 4}, {NULL, 0}};
static const configSpecial list_special = {.set = setList, .get = getList, .rewrite = rewriteList};
static const configFileOnly thing = {.words_min = 1, .words_max = 2, .take = takeThing};

static const configOption more_options[] = {
    CONFIG_MEMORY("bytes", conf.bytes, 1 * CONFIG_MB, 1024, INT64_MAX),
    CONFIG_MEMORY("debt", conf.debt, 0, -1, INT64_MAX),
    CONFIG_MEMORY_UNSIGNED("huge", conf.huge, 0),
    CONFIG_MEMORY_OR_PERCENT("share", conf.share, 0),
    CONFIG_END,
};

static const configOption options[] = {
    CONFIG_BOOL("lamp", conf.lamp, false, .apply = apply),
    CONFIG_BOOL("door", conf.door, true, .flags = CONFIG_IMMUTABLE),
    CONFIG_INT("small", conf.small, 10, -5, 100, .flags = CONFIG_APPLY_AT_START,
               .apply = applyOther),
    CONFIG_INT("big", conf.big, 0, INT64_MIN, INT64_MAX, .alias = "old-big", .apply = apply),
    CONFIG_OCTAL("octal", conf.octal, 0644, 0, 0777),
    CONFIG_ENUM("color", conf.color, colors, GREEN, .flags = CONFIG_HIDDEN),
    CONFIG_ENUM("bits", conf.bits, bits, 0, .flags = CONFIG_MULTI_WORD),
    CONFIG_STRING("name", conf.name, "nobody", .accept = acceptName),
    CONFIG_STRING("secret", conf.secret, "", .flags = CONFIG_SENSITIVE | CONFIG_PROTECTED),
    CONFIG_SPECIAL("list", &list_special, "1 2", .flags = CONFIG_MULTI_WORD | CONFIG_MAY_BE_BARE),
    CONFIG_FILE_ONLY("thing", &thing),
    CONFIG_FILE_ONLY("watch", &watch, .flags = CONFIG_MAY_BE_BARE),
    CONFIG_IGNORED("old-thing"),
    CONFIG_TABLE(more_options),
    CONFIG_END,
};

static char folder[64], file[128];

/* As a process would begin. */
static void install(void) {
    const configOption *tables[] = {options};
    configUninstall();
    memset(&conf, 0, sizeof(conf));
    applied = applied_other = 0;
    refuse_apply = false;
    configInstall(tables, 1);
}

static int setup(void **state) {
    (void)state;
    /* mkdtemp() wants six of them. */
    snprintf(folder, sizeof(folder), "/tmp/test-config-%s",
             "XX"
             "XX"
             "XX");
    if (!mkdtemp(folder)) return 1;
    snprintf(file, sizeof(file), "%s/test.conf", folder);
    install();
    logSetLevel(LOG_NOTHING);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    configUninstall();
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* ------------------------------------------------------------------ helpers */

static void writeFile(const char *name, const char *content) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

/* Static, until the next call. */
static const char *readFile(void) {
    static char content[8192];
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    content[fread(content, 1, sizeof(content) - 1, f)] = 0;
    fclose(f);
    return content;
}

static void assertValue(const char *name, const char *expected) {
    const configOption *o = configFind(sliceOf(name));
    assert_non_null(o);
    str value = STR_EMPTY;
    configGet(o, &value);
    assert_string_equal(strText(&value), expected);
    strFree(&value);
}

static unsigned allowed = CONFIG_ALLOW_NOT_WHILE_LOADING; /* for assertSet() */

/* CONFIG SET name value [name value]; `error` NULL when it must work. */
static void assertSet(const char *a, const char *av, const char *b, const char *bv,
                      const char *error) {
    slice pairs[4] = {sliceOf(a), sliceOf(av), {"", 0}, {"", 0}};
    if (b) pairs[2] = sliceOf(b);
    if (b) pairs[3] = sliceOf(bv);
    str text = STR_EMPTY;
    status st = configSet(pairs, b ? 2 : 1, allowed, &text);
    assert_string_equal(strText(&text), error ? error : "");
    assert_int_equal(st == OK, error == NULL);
    strFree(&text);
}

/* One CONFIG SET that is refused with this reason. */
static void assertRefused(const char *name, const char *value, const char *reason_text) {
    char error[512];
    snprintf(error, sizeof(error), "ERR CONFIG SET failed (possibly related to argument '%s') - %s",
             name, reason_text);
    assertSet(name, value, NULL, NULL, error);
}

static bool module_lamp;
static int64_t module_size;
static char *module_name;
static const configOption module_options[] = {
    CONFIG_BOOL("module.lamp", module_lamp, true),
    CONFIG_INT("module.size", module_size, 7, 0, 100, .alias = "module.old-size"),
    CONFIG_STRING("module.name", module_name, "first"),
    CONFIG_END,
};
static const configOption clashing_options[] = {
    CONFIG_BOOL("module.other", module_lamp, true),
    CONFIG_BOOL("old-big", module_lamp, true), /* an alias of the server's own */
    CONFIG_END,
};

static void assertTakes(const char *name, const char *value, const char *shown) {
    assertSet(name, value, NULL, NULL, NULL);
    assertValue(name, shown);
}

/* Starts with test.conf of that content and more words; `report` NULL when it must work. */
static void assertLoads(const char *content, const char *word, const char *word2,
                        const char *report) {
    writeFile("test.conf", content);
    const char *argv[] = {"server", file, word, word2};
    str text = STR_EMPTY;
    status st = configLoad(2 + (word != NULL) + (word2 != NULL), argv, &text);
    assert_string_equal(strText(&text), report ? report : "");
    assert_int_equal(st == OK, report == NULL);
    strFree(&text);
}

static void assertRewritten(const char *expected) {
    reason why = {""};
    status st = configRewrite(0, &why);
    if (st != OK) fail_msg("%s", why.text);
    assert_string_equal(readFile(), expected);
}

/* ------------------------------------------------------------------ kinds */

static void testDefaultsAreSet(void **state) {
    (void)state;
    assertValue("lamp", "no");
    assertValue("door", "yes");
    assertValue("small", "10");
    assertValue("octal", "644");
    assertValue("color", "green");
    assertValue("bits", "none");
    assertValue("name", "nobody");
    assertValue("secret", "");
    assertValue("list", "1 2");
    assertValue("bytes", "1048576");
    assert_int_equal(applied, 0);
}

static void testBool(void **state) {
    (void)state;
    assertTakes("lamp", "yes", "yes");
    assertTakes("lamp", "NO", "no");
    assertRefused("lamp", "1", "argument must be 'yes' or 'no'");
    assertRefused("lamp", "", "argument must be 'yes' or 'no'");
    assertRefused("lamp", "yes ", "argument must be 'yes' or 'no'");
}

static void testIntAndItsBounds(void **state) {
    (void)state;
    assertTakes("small", "-5", "-5");
    assertRefused("small", "-6", "argument must be between -5 and 100 inclusive");
    assertRefused("small", "101", "argument must be between -5 and 100 inclusive");
    assertRefused("small", "4294967301", "argument must be between -5 and 100 inclusive");
    assertRefused("small", "1x", "argument couldn't be parsed into an integer");
    assertRefused("small", "", "argument couldn't be parsed into an integer");
    assertTakes("big", "-9223372036854775808", "-9223372036854775808");
    assertTakes("big", "9223372036854775807", "9223372036854775807");
    assertRefused("big", "9223372036854775808", "argument couldn't be parsed into an integer");
}

static void testOctal(void **state) {
    (void)state;
    assertTakes("octal", "0700", "700");
    assert_int_equal(conf.octal, 0700);
    assertRefused("octal", "800", "argument couldn't be parsed as an octal number");
    assertRefused("octal", "1000", "argument must be between 0 and 777 inclusive");
    assertRefused("octal", "-1", "argument must be between 0 and 777 inclusive");
    assertRefused("octal", "77777777777777777777777777",
                  "argument couldn't be parsed as an octal number");
}

static void testMemory(void **state) {
    (void)state;
    assertTakes("bytes", "2kb", "2048");
    assertTakes("bytes", "2K", "2000");
    assertTakes("bytes", "3GB", "3221225472");
    assertRefused("bytes", "1023",
                  "argument must be between 1024 and 9223372036854775807 inclusive");
    assertRefused("bytes", "9223372036854775808",
                  "argument must be between 1024 and 9223372036854775807 inclusive");
    assertRefused("bytes", "-1", "argument must be a memory value");
    assertRefused("bytes", "1tb", "argument must be a memory value");
    assertTakes("debt", "-1", "-1");
    assertRefused("debt", "-2", "argument must be between -1 and 9223372036854775807 inclusive");
    assertTakes("huge", "18446744073709551615", "18446744073709551615");
    assertTakes("huge", "", "0");
}

static void testMemoryOrPercent(void **state) {
    (void)state;
    assertTakes("share", "5%", "5%");
    assert_int_equal(conf.share, -5);
    assertTakes("share", "1mb", "1048576");
    assertTakes("share", "100%", "100%");
    assertRefused("share", "101%", "percentage argument must be less or equal to 100");
    assertRefused("share", "-5%", "argument must be a memory or percent value");
    assertRefused("share", "%", "argument must be a memory or percent value");
}

static void testEnum(void **state) {
    (void)state;
    assertTakes("color", "RED", "red");
    assertTakes("color", "azure", "blue");
    assertRefused("color", "pink",
                  "argument(s) must be one of the following: red, green, blue, azure");
    assertRefused("color", "red blue",
                  "argument(s) must be one of the following: red, green, blue, azure");
    assertTakes("bits", "four one", "one four");
    assertTakes("bits", "none two", "two");
    assertTakes("bits", "none", "none");
    assertRefused("bits", "one  two",
                  "argument(s) must be one of the following: none, one, two, four");
    assertRefused("bits", "", "argument(s) must be one of the following: none, one, two, four");
}

static void testAValueOfTooManyWordsIsRefused(void **state) {
    (void)state;
    size_t len = 1000000;
    char *blanks = memAlloc(len);
    memset(blanks, ' ', len);
    slice pair[2] = {SLICE("list"), {blanks, len}};
    str error = STR_EMPTY;
    assert_int_equal(configSet(pair, 1, CONFIG_ALLOW_ALL, &error), ERR_LIMIT);
    assert_string_equal(strText(&error),
                        "ERR CONFIG SET failed (possibly related to argument 'list') - "
                        "wrong number of arguments");
    strFree(&error);
    memFree(blanks);
}

static void testString(void **state) {
    (void)state;
    assertTakes("name", "a b\n\"c", "a b\n\"c");
    assertRefused("name", "bad", "no such name");
    slice with_nul[2] = {SLICE("name"), SLICE("a\0b")};
    str error = STR_EMPTY;
    assert_int_not_equal(configSet(with_nul, 1, CONFIG_ALLOW_ALL, &error), OK);
    strClear(&error);
    with_nul[0] = SLICE("secret");
    assert_int_equal(configSet(with_nul, 1, CONFIG_ALLOW_ALL, &error), OK);
    assert_int_equal(conf.secret.len, 3);
    strFree(&error);
}

/* ------------------------------------------------------------------ CONFIG SET */

static void testNamesAreCheckedBeforeValues(void **state) {
    (void)state;
    assertSet("small", "x", "nope", "1",
              "ERR Unknown option or number of arguments for CONFIG SET - 'nope'");
    assertSet("small", "x", "thing", "1",
              "ERR Unknown option or number of arguments for CONFIG SET - 'thing'");
    assertSet(
        "small", "x", "door", "1",
        "ERR CONFIG SET failed (possibly related to argument 'door') - can't set immutable config");
    assertSet(
        "Secret", "x", "nope", "1",
        "ERR CONFIG SET failed (possibly related to argument 'Secret') - can't set protected config");
    assertSet("small", "1", "SMALL", "2",
              "ERR CONFIG SET failed (possibly related to argument 'SMALL') - duplicate parameter");
    assertValue("small", "10");
}

static void testNothingIsChangedWhileLoadingWhereThatIsForbidden(void **state) {
    (void)state;
    static bool flag;
    static const configOption loading[] = {
        CONFIG_BOOL("flag", flag, false, .flags = CONFIG_NOT_WHILE_LOADING), CONFIG_END};
    const configOption *tables[] = {loading};
    configUninstall();
    configInstall(tables, 1);
    allowed = 0;
    assertSet("flag", "yes", NULL, NULL, "LOADING Valkey is loading the dataset in memory");
    allowed = CONFIG_ALLOW_NOT_WHILE_LOADING;
    assertTakes("flag", "yes", "yes");
}

static void testAliasesAreNoDuplicatesAndTheLastWins(void **state) {
    (void)state;
    assertSet("big", "1", "old-big", "2", NULL);
    assertValue("big", "2");
    assertValue("OLD-BIG", "2");
    assertRefused("old-big", "x", "argument couldn't be parsed into an integer");
}

static void testARefusedValueRollsAllBack(void **state) {
    (void)state;
    assertSet(
        "lamp", "yes", "small", "x",
        "ERR CONFIG SET failed (possibly related to argument 'small') - argument couldn't be parsed into an integer");
    assertValue("lamp", "no");
    assertSet("list", "7 8 9", "list", "1",
              "ERR CONFIG SET failed (possibly related to argument 'list') - duplicate parameter");
    assertSet("list", "7 8 9", "name", "bad",
              "ERR CONFIG SET failed (possibly related to argument 'name') - no such name");
    assertValue("list", "1 2");
    assertSet(
        "big", "5", "old-big", "x",
        "ERR CONFIG SET failed (possibly related to argument 'old-big') - argument couldn't be parsed into an integer");
    assertValue("big", "0");
    assert_int_equal(applied, 0);
}

static void testARefusedEffectRollsAllBackAndUndoesWhatWasDone(void **state) {
    (void)state;
    refuse_apply = true;
    assertSet("small", "20", "LAMP", "yes",
              "ERR CONFIG SET failed (possibly related to argument 'lamp') - no effect today");
    assertValue("small", "10");
    assertValue("lamp", "no");
    assert_int_equal(applied_other, 2); /* once for 20, once for 10 again */
}

static void testAnEffectComesOncePerSetAndOnlyForChanges(void **state) {
    (void)state;
    assertSet("lamp", "yes", "big", "5", NULL);
    assert_int_equal(applied, 1);
    assertSet("lamp", "yes", "big", "5", NULL);
    assert_int_equal(applied, 1);
    assertTakes("small", "99", "50"); /* the effect puts it right */
}

/* ------------------------------------------------------------------ CONFIG GET */

static void assertMatches(const char *a, const char *b, const char *expected) {
    slice patterns[2] = {sliceOf(a), sliceOf(b ? b : "")};
    configMatch *found;
    int count = configMatchAll(patterns, b ? 2 : 1, &found);
    str names = STR_EMPTY;
    for (int i = 0; i < count; i++) {
        if (i) strAppendByte(&names, ' ');
        strAppendSlice(&names, found[i].name);
    }
    assert_string_equal(strText(&names), expected);
    strFree(&names);
    memFree(found);
}

static void testGetFindsNamesAndPatterns(void **state) {
    (void)state;
    assertMatches("small", NULL, "small");
    assertMatches("Small", "SMALL", "Small");
    assertMatches("S*", "small", "secret share small");
    assertMatches("small", "S*", "secret share small");
    assertMatches("*big", NULL, "big old-big");
    assertMatches("co*", NULL, "");        /* hidden from patterns, */
    assertMatches("COLOR", NULL, "COLOR"); /* but not from its name */
    assertMatches("thing", "old-th*", ""); /* only files hold it */
    assertMatches("nope", "\\small", "");
    assertMatches("smal", "smalls", "");
    assertMatches("h[tuv]ge", "b?g", "big huge");
}

static void testSensitiveNames(void **state) {
    (void)state;
    assert_true(configIsSensitive(SLICE("SECRET")));
    assert_false(configIsSensitive(SLICE("name")));
    assert_false(configIsSensitive(SLICE("nope")));
}

/* ------------------------------------------------------------------ files */

static void testAFileIsRead(void **state) {
    (void)state;
    assertLoads(
        "# comment\n\n  small 7  \r\nNAME 'a b'\nsecret \"x\\x41\\n\"\nold-big 3\nbits one two\n"
        "list 5\nthing a b\nthing c\nold-thing x\nshare 10%",
        NULL, NULL, NULL);
    assertValue("small", "7");
    assertValue("name", "a b");
    assertValue("secret", "xA\n");
    assertValue("big", "3");
    assertValue("bits", "one two");
    assertValue("list", "5");
    assertValue("share", "10%");
    assert_int_equal(conf.taken, 3);
    assert_string_equal(configFilePath(), file);
    assert_int_equal(applied_other, 1); /* at start */
    assert_int_equal(applied, 0);
}

static void testLinesOfOneOptionMayAddUp(void **state) {
    (void)state;
    assertLoads("list 5\nlist 6 7\nlist \"8 9\"\n", "--list", "3", NULL);
    assertValue("list", "5 6 7 8 9 3");
    assertSet("list", "4", NULL, NULL, NULL);
    assertValue("list", "4");
}

static void testTheCommandLineComesLast(void **state) {
    (void)state;
    assertLoads("small 7\nname x\n", "--small", "8", NULL);
    assertValue("small", "8");
    install();
    assertLoads("small 7\n", "--small 9", NULL, NULL);
    assertValue("small", "9");
    install();
    assertLoads("small 7\n", "--name", "--not an option", NULL);
    assertValue("name", "--not an option");
    install();
    assertLoads("list 7\n", "--list", "--small 5", NULL); /* a list may be empty */
    assertValue("small", "5");
}

static void testOriginsAreRemembered(void **state) {
    (void)state;
    assertLoads("\nsmall 7\nbig 1\n", "--name", "x", NULL);
    assertSet("old-big", "2", NULL, NULL, NULL);
    const struct {
        const char *name, *origin;
    } expected[] = {{"lamp", "default"}, {"name", "command line"}, {"big", "CONFIG SET"}};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        str origin = STR_EMPTY;
        configGetOrigin(configFind(sliceOf(expected[i].name)), &origin);
        assert_string_equal(strText(&origin), expected[i].origin);
        strFree(&origin);
    }
    str origin = STR_EMPTY, wanted = STR_EMPTY;
    configGetOrigin(configFind(SLICE("small")), &origin);
    strAppendFormat(&wanted, "%s:2", file);
    assert_string_equal(strText(&origin), strText(&wanted));
    strFree(&origin);
    strFree(&wanted);
}

static void testAllErrorsAreToldAtOnce(void **state) {
    (void)state;
    char report[2048];
    snprintf(
        report, sizeof(report),
        "Reading the configuration file, at line 1\n>>> 'smal 7'\n"
        "Bad directive or wrong number of arguments\n    in %s; unknown directive; did you mean 'small'?\n"
        "Reading the configuration file, at line 2\n>>> 'name a b'\nwrong number of arguments\n    in %s\n"
        "Reading the configuration file, at line 4\n>>> 'name \"a'\n"
        "Unbalanced quotes in configuration line\n    in %s\n"
        "Reading the configuration file, at line 5\n>>> 'thing'\n"
        "Bad directive or wrong number of arguments\n    in %s; wrong number of arguments\n"
        "Reading the configuration file, at line 6\n>>> 'thing bad'\nbad thing\n    in %s\n"
        "Reading the configuration file, at line 8\n>>> 'small \"x\"'\n"
        "argument couldn't be parsed into an integer\n    on the command line\n"
        "6 errors in the configuration\n",
        file, file, file, file, file);
    assertLoads("smal 7\nname a b\nbig 6\nname \"a\nthing\nthing bad\n", "--small", "x", report);
    assertValue("big", "6");
    assert_int_equal(applied_other, 0); /* nothing takes effect */
}

static void testIncludes(void **state) {
    (void)state;
    char content[512];
    writeFile("b.conf", "small 2\n");
    writeFile("a.conf", "small 1\nbig 5\n");
    snprintf(content, sizeof(content), "small 9\ninclude %s/?.conf\ninclude %s/none*.conf\n",
             folder, folder);
    assertLoads(content, NULL, NULL, NULL);
    assertValue("small", "2");
    assertValue("big", "5");
}

static void testAnIncludedFileThatIsMissingIsToldWithItsLine(void **state) {
    (void)state;
    char content[256], report[1024];
    snprintf(content, sizeof(content), "include %s/none.conf\n", folder);
    snprintf(
        report, sizeof(report),
        "Reading the configuration file, at line 1\n>>> 'include %s/none.conf'\n"
        "Fatal error, can't open config file '%s/none.conf': No such file or directory\n    in %s\n",
        folder, folder, file);
    assertLoads(content, NULL, NULL, report);
}

static void testAFileThatIncludesItselfIsRefused(void **state) {
    (void)state;
    char content[256], report[1024];
    snprintf(content, sizeof(content), "include %s\n", file);
    writeFile("other.conf", content);
    snprintf(content, sizeof(content), "include %s/other.conf\n", folder);
    snprintf(report, sizeof(report),
             "Reading the configuration file, at line 1\n>>> 'include %s'\n"
             "Config file '%s' includes itself\n    in %s/other.conf\n",
             file, file, folder);
    assertLoads(content, NULL, NULL, report);
}

static void testAMissingFileIsTold(void **state) {
    (void)state;
    const char *argv[] = {"server", "/nonexistent/x.conf"};
    str report = STR_EMPTY;
    assert_int_not_equal(configLoad(2, argv, &report), OK);
    assert_string_equal(strText(&report),
                        "Fatal error, can't open config file '/nonexistent/x.conf': "
                        "No such file or directory\n");
    strFree(&report);
}

/* ------------------------------------------------------------------ CONFIG REWRITE */

static void testRewriteNeedsAFile(void **state) {
    (void)state;
    reason why;
    assert_int_equal(configRewrite(0, &why), ERR_NOT_FOUND);
}

static void testRewriteWritesTodaysNamesAndNotations(void **state) {
    (void)state;
    const char *content =
        "# small 1\n\n  # more\nsmall   7\nNAME 'a b'\nold-big 3\nbytes 2048\nlist 5\n"
        "list 6\ninclude /nonexistent*.conf\nthing a\nold-thing x\n";
    assertLoads(content, NULL, NULL, NULL);
    const char *expected =
        "# small 1\n\n  # more\nsmall 7\nname \"a b\"\nbig 3\nbytes 2kb\nlist 5\n"
        "list 6\ninclude /nonexistent*.conf\nthing a\nold-thing x\n";
    assertRewritten(expected);
    assertRewritten(expected); /* what it has written stays */
}

static void testRewriteEndsLinesWithLf(void **state) {
    (void)state;
    assertLoads("# note\r\nsmall 7\r\n\r\ncolor red\r\nthing a\r\n", NULL, NULL, NULL);
    assertSet("small", "8", "big", "5", NULL);
    assertRewritten("# note\nsmall 8\n\ncolor red\nthing a\n\n# Generated by CONFIG REWRITE\nbig 5\n");
}

static void testRewriteTurnsSettingsWithoutTheirModuleIntoComments(void **state) {
    (void)state;
    assertLoads("small 7\nmodule.size 9\nmodule.name x\n", NULL, NULL, NULL);
    assertRewritten("small 7\n# ??? module.size 9\n# ??? module.name x\n");
    assertRewritten("small 7\n# ??? module.size 9\n# ??? module.name x\n");
    str value = STR_EMPTY;
    while (configFirstKept()) (void)configTakeKept(sliceOf(configFirstKept()), &value);
    strFree(&value);
}

/* Loads a file that includes another one with these lines before and after the rest. */
static void assertLoadsWith(const char *included, const char *before, const char *after) {
    char content[8192], path[512];
    writeFile("part.conf", included);
    snprintf(path, sizeof(path), "%s/part.conf", folder);
    snprintf(content, sizeof(content), "%sinclude %s\n%s", before, path, after);
    writeFile("test.conf", content);
    assertLoads(content, NULL, NULL, NULL);
}

/* The rewritten file is `expected`, where % is the include directive; a second time as well, and
 * after a start with it small, big, color and name are as before. */
static void assertRewrittenWith(const char *expected) {
    char text[8192], line[512];
    static const char *const names[] = {"small", "big", "color", "name"};
    str before = STR_EMPTY, after = STR_EMPTY;
    snprintf(line, sizeof(line), "include %s/part.conf", folder);
    const char *percent = strchr(expected, '%');
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(percent - expected), expected, line, percent + 1);
    assertRewritten(text);
    assertRewritten(text);
    for (size_t i = 0; i < COUNT_OF(names); i++) configGet(configFind(sliceOf(names[i])), &before);
    install();
    assertLoads(text, NULL, NULL, NULL);
    for (size_t i = 0; i < COUNT_OF(names); i++) configGet(configFind(sliceOf(names[i])), &after);
    assert_string_equal(strText(&after), strText(&before));
    strFree(&before);
    strFree(&after);
    assertRewritten(text);
}

static void testRewriteRespectsWhatIncludedFilesSet(void **state) {
    (void)state;
    /* Nothing is repeated. */
    assertLoadsWith("small 7\nNAME x\nold-big 3\n", "", "color red\n");
    assertRewrittenWith("%\ncolor red\n");
    /* What is changed comes after it, also if it becomes the default. */
    assertSet("small", "10", "name", "y", NULL);
    assertRewrittenWith("%\ncolor red\n\n# Generated by CONFIG REWRITE\nname \"y\"\nsmall 10\n");
    /* A line after the directive is changed in place, one before it would have no effect. */
    install();
    assertLoadsWith("small 7\nbig 3\n", "small 1\n", "big 4\n");
    assertSet("small", "8", "big", "5", NULL);
    assertRewrittenWith("%\nbig 5\n\n# Generated by CONFIG REWRITE\nsmall 8\n");
}

static void testRewriteChangesLinesInPlaceAndAppendsTheRest(void **state) {
    (void)state;
    assertLoads("# top\nsmall 7\nold-big 3\nsmall 8\n# end", "--color", "red", NULL);
    assertSet("small", "9", "big", "4", NULL);
    assertSet("name", "new\nsmall 1", "huge", "3221225472", NULL);
    assertRewritten("# top\nsmall 9\nbig 4\n# end\n\n# Generated by CONFIG REWRITE\n"
                    "color red\nhuge 3gb\nname \"new\\nsmall 1\"\n");
    assertSet("lamp", "yes", "name", "nobody", NULL);
    assertRewritten("# top\nsmall 9\nbig 4\n# end\n\n# Generated by CONFIG REWRITE\n"
                    "color red\nhuge 3gb\nname \"nobody\"\nlamp yes\n");
}

static void testRewrittenValuesReadBack(void **state) {
    (void)state;
    char nasty[256];
    for (int i = 1; i < 256; i++) nasty[i - 1] = (char)i;
    nasty[255] = 0;
    assertLoads("", NULL, NULL, NULL);
    assertSet("name", nasty, "bits", "one four", NULL);
    assertSet("share", "7%", "debt", "-1", NULL);
    assertSet("list", "3 4", "octal", "777", NULL);
    reason why;
    assert_int_equal(configRewrite(0, &why), OK);
    install();
    const char *argv[] = {"server", file};
    str report = STR_EMPTY;
    assert_int_equal(configLoad(2, argv, &report), OK);
    assertValue("name", nasty);
    assertValue("bits", "one four");
    assertValue("share", "7%");
    assertValue("debt", "-1");
    assertValue("list", "3 4");
    assertValue("octal", "777");
}

static void testLinesOfAnOptionGrowAndShrink(void **state) {
    (void)state;
    assertLoads("list 5\nsmall 2\nlist 6\n", NULL, NULL, NULL);
    assertSet("list", "7", NULL, NULL, NULL);
    assertRewritten("list 7\nsmall 2\n");
    assertSet("list", "7 8", NULL, NULL, NULL);
    assertRewritten("list 7\nsmall 2\n\n# Generated by CONFIG REWRITE\nlist 8\n");
    assertSet("list", "", NULL, NULL, NULL);
    assertRewritten("small 2\n\n# Generated by CONFIG REWRITE\n");
}

static void testRankedLinesAreTakenAfterOthersAndReportedWithTheirPlace(void **state) {
    (void)state;
    assertLoads("watch limit a 5\nwatch host a\nsmall 7\nwatch limit b 6\nwatch host b\n",
                "--watch", "--watch", NULL);
    assert_string_equal(strText(&watched), "host a;host b;limit a 5;limit b 6;");
    strClear(&watched);
    install();
    char report[512];
    snprintf(report, sizeof(report),
             "Reading the configuration file, at line 3\n>>> 'watch host bad'\nNo such name.\n"
             "    in %s\nReading the configuration file, at line 1\n>>> 'watch limit bad'\n"
             "No such name.\n    in %s\n2 errors in the configuration\n",
             file, file);
    assertLoads("watch limit bad\nsmall 7\nwatch host bad\n", NULL, NULL, report);
    strFree(&watched);
}

static void testLinesWithAKeyOfTwoWordsReplaceThoseOfTheSameKey(void **state) {
    (void)state;
    static const char *const first[] = {"host a 1", "host b 2", "limit a 7", "limit b 8", NULL};
    static const char *const second[] = {"host b 2", "id 5", NULL};
    assertLoads("# top\nWATCH limit old\nsmall 7\nwatch HOST x\nwatch gone 1\n# end\n", NULL, NULL,
                NULL);
    strFree(&watched);
    rewritten = first;
    assertRewritten("# top\nwatch limit a 7\nsmall 7\nwatch host a 1\n# end\n\n"
                    "# Generated by CONFIG REWRITE\nwatch host b 2\nwatch limit b 8\n");
    rewritten = second;
    assertRewritten("# top\nsmall 7\nwatch host b 2\n# end\n\n"
                    "# Generated by CONFIG REWRITE\nwatch id 5\n");
    rewritten = NULL;
}

static void testAPresetValueIsNoDefault(void **state) {
    (void)state;
    configPreset("small", "33");
    assertValue("small", "33");
    assertLoads("# nothing\n", NULL, NULL, NULL);
    assertRewritten("# nothing\n\n# Generated by CONFIG REWRITE\nsmall 33\n");
    install();
    configPreset("small", "33");
    assertLoads("small 34\n", NULL, NULL, NULL);
    assertValue("small", "34");
}

static void testRewriteKeepsTheModeAndMakesALostFileAgain(void **state) {
    (void)state;
    assertLoads("small 7\n", NULL, NULL, NULL);
    assert_int_equal(chmod(file, 0640), 0);
    assertRewritten("small 7\n");
    struct stat found;
    assert_int_equal(stat(file, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0640);
    assert_int_equal(unlink(file), 0);
    assertRewritten("# Generated by CONFIG REWRITE\nsmall 7\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void testTablesComeAndGoWhileTheServerRuns(void **state) {
    (void)state;
    assertSet("small", "42", NULL, NULL, NULL);
    assert_int_equal(configAdd(module_options), OK);
    assertValue("module.lamp", "yes");
    assertValue("small", "42"); /* a new table sets no other defaults */
    assertSet("module.old-size", "9", "module.name", "second", NULL);
    assertValue("module.size", "9");
    assertSet("old-big", "5", NULL, NULL, NULL);
    assertValue("big", "5");
    assert_int_equal(configAdd(module_options), ERR_EXISTS);
    assert_int_equal(configAdd(clashing_options), ERR_EXISTS);
    assert_null(configFind(SLICE("module.other")));
    configRemove(module_options);
    assert_null(configFind(SLICE("module.size")));
    assert_null(configFind(SLICE("module.old-size")));
    assertSet("old-big", "6", NULL, NULL, NULL);
    assertValue("big", "6");
}

int test_config(void) {
    const struct CMUnitTest tests[] = {
        TEST(testDefaultsAreSet),
        TEST(testTablesComeAndGoWhileTheServerRuns),
        TEST(testBool),
        TEST(testIntAndItsBounds),
        TEST(testOctal),
        TEST(testMemory),
        TEST(testMemoryOrPercent),
        TEST(testEnum),
        TEST(testString),
        TEST(testAValueOfTooManyWordsIsRefused),
        TEST(testNamesAreCheckedBeforeValues),
        TEST(testNothingIsChangedWhileLoadingWhereThatIsForbidden),
        TEST(testAliasesAreNoDuplicatesAndTheLastWins),
        TEST(testARefusedValueRollsAllBack),
        TEST(testARefusedEffectRollsAllBackAndUndoesWhatWasDone),
        TEST(testAnEffectComesOncePerSetAndOnlyForChanges),
        TEST(testGetFindsNamesAndPatterns),
        TEST(testSensitiveNames),
        TEST(testAFileIsRead),
        TEST(testLinesOfOneOptionMayAddUp),
        TEST(testTheCommandLineComesLast),
        TEST(testOriginsAreRemembered),
        TEST(testAllErrorsAreToldAtOnce),
        TEST(testIncludes),
        TEST(testAnIncludedFileThatIsMissingIsToldWithItsLine),
        TEST(testAFileThatIncludesItselfIsRefused),
        TEST(testAMissingFileIsTold),
        TEST(testRewriteNeedsAFile),
        TEST(testRewriteWritesTodaysNamesAndNotations),
        TEST(testRewriteEndsLinesWithLf),
        TEST(testRewriteTurnsSettingsWithoutTheirModuleIntoComments),
        TEST(testRewriteRespectsWhatIncludedFilesSet),
        TEST(testRewriteChangesLinesInPlaceAndAppendsTheRest),
        TEST(testRewrittenValuesReadBack),
        TEST(testLinesOfAnOptionGrowAndShrink),
        TEST(testRankedLinesAreTakenAfterOthersAndReportedWithTheirPlace),
        TEST(testLinesWithAKeyOfTwoWordsReplaceThoseOfTheSameKey),
        TEST(testAPresetValueIsNoDefault),
        TEST(testRewriteKeepsTheModeAndMakesALostFileAgain),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}

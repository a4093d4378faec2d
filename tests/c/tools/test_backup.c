/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Backups: which state belongs to which time, descriptions, times, files in each form. */
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/str.h"
#include "io/file.h"
#include "tools/backup/catalog.h"
#include "tools/backup/record.h"
#include "tools_test.h"

/* A chain whose full copy is from `full`, with one segment of these marks. */
static backupChain chainOf(backupMark full, int64_t end, const backupMark *marks, int count) {
    backupChain chain = {.full = {.time_ms = full.time_ms, .offset = full.offset}};
    if (!count) return chain;
    chain.segments = memNew(backupSegment);
    chain.count = 1;
    chain.segments[0] = (backupSegment){.first = full.offset, .last = end};
    for (int i = 0; i < count; i++) marksAdd(&chain.segments[0].marks, marks[i]);
    return chain;
}

static backupCatalog catalogOf(const backupChain *chains, int count) {
    backupCatalog catalog = {.chains = memNewArray(backupChain, count), .count = count};
    memcpy(catalog.chains, chains, sizeof(*chains) * (size_t)count);
    return catalog;
}

static int64_t offsetAt(const backupCatalog *c, int64_t time_ms, bool ambiguous) {
    backupPlan plan;
    reason why;
    if (catalogPlan(c, PLAN_TIME, time_ms, &plan, &why) != OK) return -1;
    assert_int_equal(plan.is_ambiguous, ambiguous);
    return plan.offset;
}

static void theLastMarkUpToTheTimeIsTaken(void **state) {
    const backupMark marks[] = {{2000, 110}, {3000, 120}, {4000, 120}, {5000, 300}};
    const backupChain chain = chainOf((backupMark){1000, 100}, 200, marks, 4);
    backupCatalog c = catalogOf(&chain, 1);
    assert_int_equal(offsetAt(&c, 999, false), -1);
    assert_int_equal(offsetAt(&c, 1000, false), 100);
    assert_int_equal(offsetAt(&c, 2999, false), 110);
    assert_int_equal(offsetAt(&c, 4500, false), 120);
    /* The segment ends before the last mark. */
    assert_int_equal(offsetAt(&c, 9000, false), 120);
    assert_int_equal(chainEndTime(&c.chains[0]), 4000);
    catalogClear(&c);
}

static void aClockThatWasSetBackGivesTheLaterState(void **state) {
    const backupMark marks[] = {{2000, 110}, {8000, 120}, {3000, 130}, {4000, 140}, {9000, 150}};
    const backupChain chain = chainOf((backupMark){1000, 100}, 150, marks, 5);
    backupCatalog c = catalogOf(&chain, 1);
    assert_int_equal(offsetAt(&c, 2500, false), 110);
    assert_int_equal(offsetAt(&c, 3500, true), 130);
    assert_int_equal(offsetAt(&c, 8500, false), 140);
    assert_int_equal(offsetAt(&c, 9000, false), 150);
    catalogClear(&c);
}

static void aClockThatWasSetForwardLeavesAGap(void **state) {
    const backupMark marks[] = {{2000, 110}, {900000, 120}};
    const backupChain chain = chainOf((backupMark){1000, 100}, 120, marks, 2);
    backupCatalog c = catalogOf(&chain, 1);
    assert_int_equal(offsetAt(&c, 500000, false), 110);
    catalogClear(&c);
}

static void aClockThatWasSetIsNoticed(void **state) {
    const backupMark before = {1000000, 100};
    assert_int_equal(marksClockStep(before, 50, (backupMark){1001000, 110}, 1050), 0);
    /* The reply came late. */
    assert_int_equal(marksClockStep(before, 50, (backupMark){1001000, 110}, 2900), 0);
    /* The tool was stopped for an hour, and the server's clock went on. */
    assert_int_equal(marksClockStep(before, 50, (backupMark){4600000, 110}, 3600050), 0);
    assert_int_equal(marksClockStep(before, 50, (backupMark){4601000, 110}, 1050), 3600000);
    assert_int_equal(marksClockStep(before, 50, (backupMark){401000, 110}, 1050), -600000);
}

static void theStreamOfTheOldChainIsTakenUntilTheNewOneHasMarks(void **state) {
    const backupMark old[] = {{2000, 110}, {5000, 140}, {6000, 150}}, next[] = {{7000, 160}};
    const backupChain chains[] = {chainOf((backupMark){1000, 100}, 150, old, 3),
                                  chainOf((backupMark){4000, 130}, 160, next, 1)};
    backupCatalog c = catalogOf(chains, 2);
    assert_int_equal(offsetAt(&c, 3000, false), 110);
    assert_int_equal(offsetAt(&c, 4100, false), 130);
    assert_int_equal(offsetAt(&c, 6500, false), 150);
    assert_int_equal(offsetAt(&c, 7000, false), 160);
    backupPlan plan;
    reason why;
    assert_int_equal(catalogPlan(&c, PLAN_OFFSET, 120, &plan, &why), OK);
    assert_ptr_equal(plan.chain, &c.chains[0]);
    assert_int_equal(catalogPlan(&c, PLAN_OFFSET, 145, &plan, &why), OK);
    assert_ptr_equal(plan.chain, &c.chains[1]);
    assert_int_equal(catalogPlan(&c, PLAN_OFFSET, 99, &plan, &why), ERR_NOT_FOUND);
    catalogClear(&c);
}

static void segmentsAfterAGapAreNotUsed(void **state) {
    backupChain chain = {.full = {.time_ms = 1000, .offset = 100}, .count = 2};
    chain.segments = memNewArray(backupSegment, 2);
    chain.segments[0] = (backupSegment){.first = 100, .last = 150};
    chain.segments[1] = (backupSegment){.first = 151, .last = 200};
    marksAdd(&chain.segments[1].marks, (backupMark){2000, 180});
    backupCatalog c = catalogOf(&chain, 1);
    assert_int_equal(chainEnd(&c.chains[0]), 150);
    assert_int_equal(offsetAt(&c, 3000, false), 100);
    catalogClear(&c);
}

static void marksArePrintedAndParsed(void **state) {
    backupMarks marks = {0}, again = {0};
    str text = STR_EMPTY;
    for (int i = 0; i < 200; i++) marksAdd(&marks, (backupMark){1790000000000 + i, i * 7});
    marksPrint(&marks, &text);
    marksParse(strSlice(&text), &again);
    assert_int_equal(again.count, 200);
    assert_memory_equal(again.list, marks.list, sizeof(backupMark) * 200);
    marksClear(&marks);
    marksClear(&again);
    marksParse(SLICE("[[12"), &again);
    assert_int_equal(again.count, 0);
    strFree(&text);
}

/* ------------------------------------------------------------------ descriptions */

static char folder[48];

static int makeFolder(void **state) {
    snprintf(folder, sizeof(folder), "/tmp/test-backup-%d", (int)getpid());
    char command[160];
    snprintf(command, sizeof(command), "rm -rf %s && mkdir %s", folder, folder);
    return system(command);
}

static int removeFolder(void **state) {
    char command[160];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void aDescriptionKeepsAllBytes(void **state) {
    str record = STR_EMPTY, text = STR_EMPTY, path = STR_EMPTY;
    reason why;
    strAppendFormat(&path, "%s/r.json", folder);
    recordBegin(&record, "full");
    recordText(&record, "name", SLICE("a \"b\" \\ \n \x01 \xc3\xa4"));
    recordNumber(&record, "number", -5);
    assert_int_equal(recordSave(&record, path.ptr, &why), OK);
    strFree(&record);
    assert_int_equal(recordLoad(path.ptr, "full", &record, &why), OK);
    recordReadText(&record, "name", &text);
    assert_string_equal(strText(&text), "a \"b\" \\ \n \x01 \xc3\xa4");
    assert_int_equal(recordReadNumber(&record, "number"), -5);
    assert_int_equal(recordReadNumber(&record, "missing"), -1);
    strFree(&record);
    assert_int_equal(recordLoad(path.ptr, "segment", &record, &why), ERR_SYNTAX);
    strFree(&record);
    strFree(&text);
    strFree(&path);
}

static void aDescriptionWithAnyChangedByteIsRefused(void **state) {
    str record = STR_EMPTY, found = STR_EMPTY, path = STR_EMPTY;
    reason why;
    strAppendFormat(&path, "%s/r.json", folder);
    recordBegin(&record, "full");
    recordNumber(&record, "offset", 4711);
    recordEnd(&record);
    for (size_t i = 0; i < record.len; i++) {
        record.ptr[i] ^= 1;
        assert_int_equal(fileReplace(path.ptr, strSlice(&record), 0644, &why), OK);
        assert_int_equal(recordLoad(path.ptr, "full", &found, &why), ERR_SYNTAX);
        strFree(&found);
        record.ptr[i] ^= 1;
    }
    for (size_t len = 0; len < record.len; len += 7) {
        assert_int_equal(fileReplace(path.ptr, sliceMake(record.ptr, len), 0644, &why), OK);
        assert_int_equal(recordLoad(path.ptr, "full", &found, &why), ERR_SYNTAX);
        strFree(&found);
    }
    strFree(&record);
    strFree(&path);
}

/* ------------------------------------------------------------------ parts */

static void readBack(const partInfo *info, size_t expected) {
    partReader reader;
    partForm form = {0};
    reason why;
    char bytes[1000];
    size_t len, all = 0;
    assert_int_equal(partVerify(folder, info, &why), OK);
    assert_int_equal(partReaderOpen(&reader, folder, strText(&info->file), &form, &why), OK);
    do {
        assert_int_equal(reader.source.read(&reader.source, bytes, sizeof(bytes), &len, &why), OK);
        for (size_t i = 0; i < len; i++, all++) assert_int_equal(bytes[i], (char)(all % 251));
    } while (len);
    assert_int_equal(all, expected);
    partReaderClose(&reader);
}

static void partsAreReadAsTheyWereWritten(void **state) {
    for (int packed = 0; packed < 2; packed++) {
        if (packed && !strstr(compressBuilt(), "zstd")) continue;
        for (size_t size = 0; size < 2000000; size = size * 3 + 1) {
            partForm form = {.compress = packed};
            partWriter writer;
            partInfo info;
            reason why;
            assert_int_equal(partWriterOpen(&writer, folder, "part", &form, &why), OK);
            char bytes[777];
            for (size_t at = 0; at < size;) {
                size_t len = sizeMin(sizeof(bytes), size - at);
                for (size_t i = 0; i < len; i++, at++) bytes[i] = (char)(at % 251);
                assert_int_equal(partWriterAdd(&writer, bytes, len, &why), OK);
            }
            assert_int_equal(partWriterEnd(&writer, &info, &why), OK);
            assert_string_equal(strText(&info.file), packed ? "part.zst" : "part");
            assert_int_equal(info.plain_bytes, size);
            readBack(&info, size);
            partInfoClear(&info);
        }
    }
}

static void aPartThatWasGivenUpLeavesNothing(void **state) {
    partForm form = {0};
    partWriter writer;
    reason why;
    assert_int_equal(partWriterOpen(&writer, folder, "aborted", &form, &why), OK);
    assert_int_equal(partWriterAdd(&writer, "x", 1, &why), OK);
    partWriterAbort(&writer);
    char command[160];
    snprintf(command, sizeof(command), "! ls %s | grep -q aborted", folder);
    assert_int_equal(system(command), 0);
}

/* ------------------------------------------------------------------ times */

static void timesAreParsedInUtc(void **state) {
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"2026-11-28 14:03:00", 1795874580000},    {"2026-11-28T14:03:00Z", 1795874580000},
                {"2026-11-28 14:03:00.5", 1795874580500},  {"1795874580", 1795874580000},
                {"1795874580.123456", 1795874580123},      {"1970-01-01 00:00:00", 0},
                {"2026-11-28 14:03:00.007", 1795874580007}};
    static const char *const bad[] = {"",        "yesterday",           "2026-11-28",
                                      "-5",      "2026-11-28 14:03",    "1795874580x",
                                      "179587.", "2026-13-28 14:03:00", "2026-11-28 14:03:00+01"};
    char text[TIME_TEXT_MAX];
    int64_t ms;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(timeParse(good[i].text, &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) assert_false(timeParse(bad[i], &ms));
    assert_string_equal(timePrint(1795874580007, text), "2026-11-28 14:03:00.007");
}

static void durationsHaveUnits(void **state) {
    int64_t seconds;
    assert_true(durationParse("90", &seconds));
    assert_int_equal(seconds, 90);
    assert_true(durationParse("24h", &seconds));
    assert_int_equal(seconds, 86400);
    assert_true(durationParse("7d", &seconds));
    assert_int_equal(seconds, 604800);
    assert_false(durationParse("", &seconds));
    assert_false(durationParse("5w", &seconds));
    assert_false(durationParse("1hh", &seconds));
    assert_false(durationParse("-1", &seconds));
    assert_false(durationParse("9223372036854775807d", &seconds));
}

int test_backup(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(theLastMarkUpToTheTimeIsTaken),
        cmocka_unit_test(aClockThatWasSetBackGivesTheLaterState),
        cmocka_unit_test(aClockThatWasSetForwardLeavesAGap),
        cmocka_unit_test(aClockThatWasSetIsNoticed),
        cmocka_unit_test(theStreamOfTheOldChainIsTakenUntilTheNewOneHasMarks),
        cmocka_unit_test(segmentsAfterAGapAreNotUsed),
        cmocka_unit_test(marksArePrintedAndParsed),
        cmocka_unit_test(aDescriptionKeepsAllBytes),
        cmocka_unit_test(aDescriptionWithAnyChangedByteIsRefused),
        cmocka_unit_test(partsAreReadAsTheyWereWritten),
        cmocka_unit_test(aPartThatWasGivenUpLeavesNothing),
        cmocka_unit_test(timesAreParsedInUtc),
        cmocka_unit_test(durationsHaveUnits),
    };
    return cmocka_run_group_tests(tests, makeFolder, removeFolder);
}

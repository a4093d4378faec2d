/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HyperLogLog against a model that is an array of registers; estimates; broken bytes. */
#include "ds_test.h"

#include <string.h>

#include "base/base.h"
#include "base/random.h"
#include "ds/hyperloglog.h"

enum { SPARSE_MAX = 40000 };

static hllUpdate placeOf(uint64_t number) {
    return hllUpdateOf(sliceMake((const char *)&number, sizeof(number)));
}

static void assertRegisters(slice bytes, const uint8_t *model) {
    uint8_t registers[HLL_REGISTERS] = {0};
    assert_true(hllMergeInto(registers, bytes));
    assert_memory_equal(registers, model, HLL_REGISTERS);
}

static void placesAreThoseOfOtherServers(void **state) {
    (void)state;
    hllUpdate a = hllUpdateOf(SLICE("a")), empty = hllUpdateOf(SLICE(""));
    hllUpdate long_one = hllUpdateOf(SLICE("a text of more than eight bytes"));
    assert_int_equal(a.index, 12711);
    assert_int_equal(a.rank, 2);
    assert_true(empty.index < HLL_REGISTERS);
    assert_true(long_one.index < HLL_REGISTERS);
}

static void sparseAndDenseAgreeWithAModel(void **state) {
    (void)state;
    static char sparse[HLL_HEAD_BYTES + SPARSE_MAX + HLL_GROWTH_MAX], dense[HLL_DENSE_BYTES];
    static uint8_t model[HLL_REGISTERS];
    for (unsigned round = 0; round < 6; round++) {
        memset(model, 0, sizeof(model));
        size_t len = HLL_NEW_BYTES;
        hllInit(sparse);
        memcpy(dense, sparse, HLL_HEAD_BYTES);
        hllWriteDense(dense, model);
        /* Few registers, so that they are hit again; then all. */
        unsigned area = round < 3 ? 300 : HLL_REGISTERS;
        for (unsigned i = 0; i < 4000; i++) {
            hllUpdate place = {(unsigned)randomUniform(area),
                               1 + (unsigned)randomUniform(round % 3 ? 32 : 3)};
            if (area < HLL_REGISTERS && i % 50 == 0) place.index = HLL_REGISTERS - 1 - place.index;
            bool raises = model[place.index] < place.rank;
            hllOutcome want = raises ? HLL_CHANGED : HLL_SAME;
            assert_int_equal(hllTrySparse(sliceMake(sparse, len), place), want);
            hllSetCachedCount(sparse, 7);
            assert_int_equal(hllRaiseSparse(sparse, &len, sizeof(sparse), place), want);
            uint64_t known;
            assert_int_equal(hllCachedCount(sparse, &known), !raises);
            assert_int_equal(hllRaiseDense(dense, place), raises);
            if (raises) model[place.index] = (uint8_t)place.rank;
            if (i % 100 == 0) assertRegisters(sliceMake(sparse, len), model);
        }
        assertRegisters(sliceMake(sparse, len), model);
        assertRegisters(sliceMake(dense, sizeof(dense)), model);
        assert_true(hllIsValid(sliceMake(sparse, len)));
        assert_true(hllIsValid(sliceMake(dense, sizeof(dense))));
    }
}

static void anyRegistersAreWrittenAndMerged(void **state) {
    (void)state;
    static char dense[2][HLL_DENSE_BYTES];
    static uint8_t models[2][HLL_REGISTERS], merged[HLL_REGISTERS];
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < HLL_REGISTERS; k++) models[i][k] = (uint8_t)randomUniform(64);
        hllInit(dense[i]);
        hllWriteDense(dense[i], models[i]);
        assertRegisters(sliceMake(dense[i], HLL_DENSE_BYTES), models[i]);
    }
    memset(merged, 0, sizeof(merged));
    for (unsigned i = 0; i < 2; i++)
        assert_true(hllMergeInto(merged, sliceMake(dense[i], HLL_DENSE_BYTES)));
    for (unsigned k = 0; k < HLL_REGISTERS; k++) {
        uint8_t greater = models[0][k] > models[1][k] ? models[0][k] : models[1][k];
        assert_int_equal(merged[k], greater);
    }
}

static void equalNeighboursShareARun(void **state) {
    (void)state;
    char bytes[100];
    size_t len = HLL_NEW_BYTES;
    hllInit(bytes);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(hllRaiseSparse(bytes, &len, sizeof(bytes), (hllUpdate){i, 5}),
                         HLL_CHANGED);
    size_t at = HLL_HEAD_BYTES;
    hllRun run;
    assert_true(hllNextRun(sliceMake(bytes, len), &at, &run));
    assert_int_equal(run.count, 4);
    assert_int_equal(run.value, 5);
    assert_true(hllNextRun(sliceMake(bytes, len), &at, &run));
    assert_int_equal(run.count, HLL_REGISTERS - 4);
    assert_true(run.is_wide);
    assert_false(hllNextRun(sliceMake(bytes, len), &at, &run));
}

static void theSparseFormHasLimits(void **state) {
    (void)state;
    char bytes[100], was[100];
    size_t len = HLL_NEW_BYTES;
    hllInit(bytes);
    memcpy(was, bytes, sizeof(was));
    assert_int_equal(hllTrySparse(sliceMake(bytes, len), (hllUpdate){0, 33}), HLL_FULL);
    assert_int_equal(hllRaiseSparse(bytes, &len, sizeof(bytes), (hllUpdate){0, 33}), HLL_FULL);
    assert_int_equal(hllRaiseSparse(bytes, &len, HLL_NEW_BYTES + 2, (hllUpdate){9000, 1}),
                     HLL_FULL);
    assert_int_equal(len, HLL_NEW_BYTES);
    assert_memory_equal(bytes, was, len);
    assert_int_equal(hllRaiseSparse(bytes, &len, HLL_NEW_BYTES + 3, (hllUpdate){9000, 1}),
                     HLL_CHANGED);
    assert_int_equal(len, HLL_NEW_BYTES + 3);
}

static void estimatesAreNearTheTruth(void **state) {
    (void)state;
    static uint8_t registers[HLL_REGISTERS];
    memset(registers, 0, sizeof(registers));
    assert_int_equal(hllEstimate(registers), 0);
    uint64_t next = 1;
    for (uint64_t i = 1; i <= 300000; i++) {
        hllUpdate place = placeOf(i); /* always the same numbers: no luck in it */
        if (registers[place.index] < place.rank) registers[place.index] = (uint8_t)place.rank;
        if (i != next) continue;
        next = next * 3 / 2 + 1;
        int64_t off = (int64_t)hllEstimate(registers) - (int64_t)i;
        assert_true((double)(off < 0 ? -off : off) <= 0.03 * (double)i + 1);
    }
    memset(registers, 63, sizeof(registers));
    assert_true(hllEstimate(registers) == UINT64_C(1) << 63);
}

static void allKernelsAgree(void **state) {
    (void)state;
    static char dense[2][HLL_DENSE_BYTES], written[2][HLL_DENSE_BYTES];
    static uint8_t source[HLL_REGISTERS], merged[2][HLL_REGISTERS];
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 2; i++) {
            for (unsigned k = 0; k < HLL_REGISTERS; k++)
                source[k] = (uint8_t)randomUniform(round % 2 ? 64 : 4);
            hllLimitKernel(HLL_PLAIN);
            hllInit(dense[i]);
            hllWriteDense(dense[i], source);
        }
        uint64_t estimate = 0;
        for (hllKernel kernel = HLL_PLAIN; kernel <= HLL_AVX512; kernel++) {
            unsigned at = kernel != HLL_PLAIN;
            hllLimitKernel(kernel);
            if (hllKernelNow() != kernel) break; /* the processor has no more */
            memset(merged[at], 0, HLL_REGISTERS);
            for (unsigned i = 0; i < 2; i++)
                assert_true(hllMergeInto(merged[at], sliceMake(dense[i], HLL_DENSE_BYTES)));
            hllInit(written[at]);
            hllWriteDense(written[at], merged[at]);
            if (at == 0) estimate = hllEstimate(merged[0]);
            assert_memory_equal(merged[at], merged[0], HLL_REGISTERS);
            assert_memory_equal(written[at], written[0], HLL_DENSE_BYTES);
            assert_int_equal(hllEstimate(merged[at]), estimate);
        }
    }
    hllLimitKernel(HLL_AVX512);
}

static void brokenBytesAreRefused(void **state) {
    (void)state;
    char head[HLL_HEAD_BYTES] = "HYLL\1";
    assert_true(hllIsValid(sliceMake(head, sizeof(head))));
    assert_false(hllIsValid(sliceMake(head, sizeof(head) - 1)));
    head[4] = 2;
    assert_false(hllIsValid(sliceMake(head, sizeof(head))));
    head[4] = 0;
    assert_false(hllIsValid(sliceMake(head, sizeof(head))));
    head[4] = 1;
    head[0] = 'h';
    assert_false(hllIsValid(sliceMake(head, sizeof(head))));

    static const char *const payloads[] = {"", "\x7f", "\x7f\xfe", "\x7f\xff\x80", "\x3f", "\xff"};
    static const size_t sizes[] = {0, 1, 2, 3, 1, 1};
    char bytes[40];
    uint8_t registers[HLL_REGISTERS] = {0};
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        hllInit(bytes);
        memcpy(bytes + HLL_HEAD_BYTES, payloads[i], sizes[i]);
        size_t len = HLL_HEAD_BYTES + sizes[i];
        assert_false(hllMergeInto(registers, sliceMake(bytes, len)));
        if (i == 3) continue; /* it covers all registers, and more */
        hllUpdate last = {HLL_REGISTERS - 1, 1};
        assert_int_equal(hllTrySparse(sliceMake(bytes, len), last), HLL_CORRUPT);
        assert_int_equal(hllRaiseSparse(bytes, &len, sizeof(bytes), last), HLL_CORRUPT);
    }
}

/* What is left of the registers of many elements, without those of a value that has some. */
static void registersAboveThoseOfAValueAreFound(void **state) {
    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        uint8_t registers[HLL_REGISTERS] = {0}, own[HLL_REGISTERS] = {0};
        char bytes[4096];
        size_t len = HLL_NEW_BYTES;
        hllInit(bytes);
        size_t elements = randomUniform(300);
        for (size_t i = 0; i < elements; i++) {
            hllUpdate place = {(unsigned)randomUniform(HLL_REGISTERS),
                               1 + (unsigned)randomUniform(9)};
            if (registers[place.index] < place.rank) registers[place.index] = (uint8_t)place.rank;
            if (randomUniform(2)) continue;
            place.rank += (unsigned)randomUniform(3);
            assert_true(hllRaiseSparse(bytes, &len, sizeof(bytes), place) <= HLL_CHANGED);
        }
        assert_true(hllMergeInto(own, sliceMake(bytes, len)));
        uint8_t left[HLL_REGISTERS];
        memcpy(left, registers, sizeof(left));
        hllKeepRaised(left, sliceMake(bytes, len));
        unsigned next = hllNextRegister(left, 0);
        for (unsigned i = 0; i < HLL_REGISTERS; i++) {
            bool raised = registers[i] > own[i];
            assert_int_equal(left[i], raised ? registers[i] : 0);
            assert_int_equal(next == i, raised);
            if (raised) next = hllNextRegister(left, i + 1);
        }
        assert_int_equal(next, HLL_REGISTERS);
    }
}

static void randomBytesDoNoHarm(void **state) {
    (void)state;
    uint8_t registers[HLL_REGISTERS] = {0};
    for (unsigned round = 0; round < 2000; round++) {
        size_t len = HLL_HEAD_BYTES + randomUniform(60);
        char *bytes = memAlloc(len + HLL_GROWTH_MAX);
        hllInit(bytes);
        for (size_t i = HLL_HEAD_BYTES; i < len; i++) bytes[i] = (char)randomNext();
        bool sound = hllMergeInto(registers, sliceMake(bytes, len));
        if (sound) assert_true(len > HLL_HEAD_BYTES);
        size_t was = len;
        hllUpdate place = {(unsigned)randomUniform(HLL_REGISTERS), 1 + (unsigned)randomUniform(40)};
        hllOutcome tried = hllTrySparse(sliceMake(bytes, len), place);
        assert_int_equal(hllRaiseSparse(bytes, &len, 1000, place), tried);
        assert_true(len <= was + HLL_GROWTH_MAX);
        memFree(bytes);
    }
}

int test_hyperloglog(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placesAreThoseOfOtherServers),
        cmocka_unit_test(sparseAndDenseAgreeWithAModel),
        cmocka_unit_test(anyRegistersAreWrittenAndMerged),
        cmocka_unit_test(equalNeighboursShareARun),
        cmocka_unit_test(theSparseFormHasLimits),
        cmocka_unit_test(estimatesAreNearTheTruth),
        cmocka_unit_test(allKernelsAgree),
        cmocka_unit_test(brokenBytesAreRefused),
        cmocka_unit_test(registersAboveThoseOfAValueAreFound),
        cmocka_unit_test(randomBytesDoNoHarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

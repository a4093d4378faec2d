/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HyperLogLog (hyperloglog.h). The estimator is algorithm 6 of Ertl, "New cardinality estimation
 * algorithms for HyperLogLog sketches" (2017), which needs neither thresholds nor tables. */
#include "ds/hyperloglog.h"

#include <math.h>

#include "base/base.h"
#include "base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    INDEX_BITS = 14,
    RANK_MAX = 64 - INDEX_BITS + 1,
    REGISTER_MAX = 63,
    ZEROS_MAX = 64,         /* registers per run of one byte */
    WIDE_ZEROS_MAX = 16384, /* registers per run of two bytes */
    VALUE_MAX = 32,
    VALUE_RUN_MAX = 4,
    JOIN_STEPS = 5, /* runs examined after a change, to join those with equal values */
};

/* ------------------------------------------------------------------ header */

bool hllIsValid(slice bytes) {
    if (bytes.len < HLL_HEAD_BYTES || memcmp(bytes.ptr, "HYLL", 4) != 0) return false;
    if (bytes.ptr[4] == 0) return bytes.len == HLL_DENSE_BYTES;
    return bytes.ptr[4] == 1;
}

void hllInit(char *bytes) {
    memset(bytes, 0, HLL_HEAD_BYTES);
    memcpy(bytes, "HYLL\1", 5);
    hllInvalidateCount(bytes);
    memcpy(bytes + HLL_HEAD_BYTES, "\x7f\xff", 2);
}

bool hllCachedCount(const char *bytes, uint64_t *out) {
    *out = loadU64(bytes + 8);
    return !(*out >> 63);
}

void hllSetCachedCount(char *bytes, uint64_t count) { storeU64(bytes + 8, count); }

void hllInvalidateCount(char *bytes) { bytes[15] = (char)((unsigned char)bytes[15] | 0x80); }

/* ------------------------------------------------------------------ elements */

/* MurmurHash2, 64 bits, with the seed used by Valkey. */
static uint64_t murmur(slice text) {
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t hash = UINT64_C(0xadc83b19) ^ (uint64_t)text.len * m;
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t word = loadU64(text.ptr + i) * m;
        hash = (hash ^ (word ^ word >> 47) * m) * m;
    }
    if (i < text.len) {
        uint64_t word = 0;
        memcpy(&word, text.ptr + i, text.len - i);
        hash = (hash ^ word) * m;
    }
    hash = (hash ^ hash >> 47) * m;
    return hash ^ hash >> 47;
}

hllUpdate hllUpdateOf(slice element) {
    hotCheck(element.ptr || element.len == 0);
    uint64_t hash = murmur(element);
    uint64_t rest = hash >> INDEX_BITS | UINT64_C(1) << (RANK_MAX - 1);
    return (hllUpdate){(unsigned)(hash & (HLL_REGISTERS - 1)), (unsigned)__builtin_ctzll(rest) + 1};
}

bool hllRaiseDense(char *bytes, hllUpdate place) {
    hotCheck(place.index < HLL_REGISTERS);
    hotCheck(place.rank >= 1);
    hotCheck(place.rank <= RANK_MAX);
    hotCheck(bytes[4] == 0);
    unsigned char *at = (unsigned char *)bytes + HLL_HEAD_BYTES + place.index * 6 / 8;
    unsigned shift = place.index * 6 % 8;
    /* A register that starts at bit 2 or before ends in the same byte, which may be the last
     * one. */
    unsigned window = at[0] | (shift > 2 ? (unsigned)at[1] << 8 : 0);
    if ((window >> shift & REGISTER_MAX) >= place.rank) return false;
    window = (window & ~((unsigned)REGISTER_MAX << shift)) | place.rank << shift;
    at[0] = (unsigned char)window;
    if (shift > 2) at[1] = (unsigned char)(window >> 8);
    return true;
}

/* ------------------------------------------------------------------ runs */

bool hllNextRun(slice bytes, size_t *at, hllRun *out) {
    hotCheck(*at >= HLL_HEAD_BYTES);
    if (*at >= bytes.len) return false;
    unsigned first = (unsigned char)bytes.ptr[*at];
    if (first & 0x80) {
        *out = (hllRun){.count = (first & 3) + 1, .value = (first >> 2 & 31) + 1};
    } else if (first & 0x40) {
        if (*at + 1 == bytes.len) return false;
        unsigned low = (unsigned char)bytes.ptr[*at + 1];
        *out = (hllRun){.count = ((first & 63) << 8 | low) + 1, .is_wide = true};
    } else {
        *out = (hllRun){.count = first + 1};
    }
    *at += 1 + out->is_wide;
    return true;
}

static char valueRun(unsigned value, unsigned count) {
    return (char)(0x80 | (value - 1) << 2 | (count - 1));
}

/* Writes `count` registers of that value, nothing if 0; returns the number of bytes. */
static size_t writeRun(char *to, unsigned count, unsigned value) {
    hotCheck(count <= HLL_REGISTERS);
    hotCheck(value <= VALUE_MAX);
    if (count == 0) return 0;
    if (value > 0) {
        to[0] = valueRun(value, count);
        return 1;
    }
    if (count <= ZEROS_MAX) {
        to[0] = (char)(count - 1);
        return 1;
    }
    to[0] = (char)(0x40 | (count - 1) >> 8);
    to[1] = (char)(count - 1);
    return 2;
}

/* Position of a register. */
typedef struct runPlace {
    size_t before, at,
        end;        /* offsets of the previous run (or the first one), the run itself, its end */
    unsigned first; /* first register of the run */
    hllRun run;
} runPlace;

static bool findRun(slice bytes, unsigned index, runPlace *out) {
    hotCheck(index < HLL_REGISTERS);
    size_t at = HLL_HEAD_BYTES;
    *out = (runPlace){.before = at, .at = at};
    while (hllNextRun(bytes, &at, &out->run)) {
        if (index < out->first + out->run.count) {
            out->end = at;
            return true;
        }
        out->first += out->run.count;
        out->before = out->at;
        out->at = at;
    }
    return false;
}

hllOutcome hllTrySparse(slice bytes, hllUpdate place) {
    hotCheck(place.rank >= 1);
    hotCheck(hllIsSparse(bytes.ptr));
    if (place.rank > VALUE_MAX) return HLL_FULL;
    runPlace found;
    if (!findRun(bytes, place.index, &found)) return HLL_CORRUPT;
    return found.run.value >= place.rank ? HLL_SAME : HLL_CHANGED;
}

/* Joins adjacent value runs where possible, from `at` on. */
static void joinRuns(char *bytes, size_t *len, size_t at) {
    hotCheck(at >= HLL_HEAD_BYTES);
    hotCheck(at <= *len);
    for (int step = 0; step < JOIN_STEPS && at < *len; step++) {
        size_t next = at, following;
        hllRun run, other;
        if (!hllNextRun(sliceMake(bytes, *len), &next, &run)) return;
        following = next;
        if (run.value > 0 && hllNextRun(sliceMake(bytes, *len), &following, &other) &&
            other.value == run.value && run.count + other.count <= VALUE_RUN_MAX) {
            bytes[next] = valueRun(run.value, run.count + other.count);
            memmove(bytes + at, bytes + next, *len - next);
            *len -= 1;
        } else {
            at = next;
        }
    }
}

hllOutcome hllRaiseSparse(char *bytes, size_t *len, size_t bytes_max, hllUpdate place) {
    hotCheck(place.rank >= 1);
    hotCheck(hllIsSparse(bytes));
    hotCheck(*len >= HLL_HEAD_BYTES); /* more than bytes_max after APPEND or a lower limit */
    if (place.rank > VALUE_MAX) return HLL_FULL;
    runPlace found;
    if (!findRun(sliceMake(bytes, *len), place.index, &found)) return HLL_CORRUPT;
    if (found.run.value >= place.rank) return HLL_SAME;
    char runs[2 + 1 + 2];
    unsigned before = place.index - found.first;
    size_t size = writeRun(runs, before, found.run.value);
    size += writeRun(runs + size, 1, place.rank);
    size += writeRun(runs + size, found.run.count - before - 1, found.run.value);
    size_t old_size = found.end - found.at;
    if (size > old_size && *len + size - old_size > bytes_max) return HLL_FULL;
    memmove(bytes + found.at + size, bytes + found.end, *len - found.end);
    memcpy(bytes + found.at, runs, size);
    *len = *len + size - old_size;
    joinRuns(bytes, len, found.before);
    hllInvalidateCount(bytes);
    return HLL_CHANGED;
}

/* ------------------------------------------------------------------ all registers */

enum { PACKED = 6, UNPACKED = 8 }; /* bytes for eight registers */

/* Expands eight 6-bit registers to eight bytes, in three steps. */
static uint64_t unpack(uint64_t x) {
    x = (x & 0xffffff) | (x & UINT64_C(0xffffff000000)) << 8;
    x = (x & UINT64_C(0x00000fff00000fff)) | (x & UINT64_C(0x00fff00000fff000)) << 4;
    return (x & UINT64_C(0x003f003f003f003f)) | (x & UINT64_C(0x0fc00fc00fc00fc0)) << 2;
}

static uint64_t pack(uint64_t x) {
    x = (x & UINT64_C(0x003f003f003f003f)) | (x & UINT64_C(0x3f003f003f003f00)) >> 2;
    x = (x & UINT64_C(0x00000fff00000fff)) | (x & UINT64_C(0x0fff00000fff0000)) >> 4;
    return (x & 0xffffff) | (x & UINT64_C(0x00ffffff00000000)) >> 8;
}

/* Raises eight registers to those stored at `packed`. */
static void mergeEight(uint8_t *registers, const char *packed) {
    uint64_t others = unpack(loadU32(packed) | (uint64_t)loadU16(packed + 4) << 32);
    for (size_t i = 0; i < UNPACKED; i++) {
        uint8_t other = (uint8_t)(others >> 8 * i);
        if (registers[i] < other) registers[i] = other;
    }
}

static void packEight(char *packed, const uint8_t *registers) {
    uint64_t word = pack(loadU64(registers));
    storeU32(packed, (uint32_t)word);
    storeU16(packed + 4, (uint16_t)(word >> 32));
}

#if defined(__x86_64__)
enum {
    WIDE = 32,                             /* registers per vector, half of them in each lane */
    LANE_PACKED = 12,                      /* their bytes */
    WIDE_REGISTERS = HLL_REGISTERS - WIDE, /* the last vector would read beyond the value */
};

/* Every three bytes, four registers, are moved to 32 bits and shifted apart there. */
__attribute__((target("avx2"))) static void mergeWide(uint8_t *registers, const char *packed) {
    const __m256i spread = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
    for (size_t i = 0; i < WIDE_REGISTERS; i += WIDE, packed += (size_t)2 * LANE_PACKED) {
        __m256i *to = (__m256i *)(void *)(registers + i);
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)packed);
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(packed + LANE_PACKED));
        __m256i x = _mm256_shuffle_epi8(
            _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), spread);
        __m256i a = _mm256_and_si256(x, _mm256_set1_epi32(0x3f));
        __m256i b = _mm256_and_si256(_mm256_slli_epi32(x, 2), _mm256_set1_epi32(0x3f00));
        __m256i c = _mm256_and_si256(_mm256_slli_epi32(x, 4), _mm256_set1_epi32(0x3f0000));
        __m256i d = _mm256_and_si256(_mm256_slli_epi32(x, 6), _mm256_set1_epi32(0x3f000000));
        __m256i others = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
        _mm256_storeu_si256(to, _mm256_max_epu8(_mm256_loadu_si256(to), others));
    }
}

/* Multiplications shift and add pairs of registers, and then pairs of these. Each lane overwrites
 * some bytes of the next one. */
__attribute__((target("avx2"))) static void packWide(char *packed, const uint8_t *registers) {
    const __m256i close = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    for (size_t i = 0; i < WIDE_REGISTERS; i += WIDE, packed += (size_t)2 * LANE_PACKED) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(registers + i));
        __m256i pairs = _mm256_maddubs_epi16(x, _mm256_set1_epi16(1 | 1 << 14));
        __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(1 | 1 << 28));
        __m256i joined = _mm256_shuffle_epi8(fours, close);
        _mm_storeu_si128((__m128i *)(void *)packed, _mm256_castsi256_si128(joined));
        _mm_storeu_si128((__m128i *)(void *)(packed + LANE_PACKED),
                         _mm256_extracti128_si256(joined, 1));
    }
}

/* mergeWide() where the processor can take eight bytes from any bits of a word. */
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) static void mergeWidest(uint8_t *registers,
                                                                               const char *packed) {
    enum { WIDEST = 2 * WIDE, WIDEST_PACKED = 4 * LANE_PACKED };
    const __mmask64 used = (UINT64_C(1) << WIDEST_PACKED) - 1;
    /* Word i gets the bytes from 6 * i on; its last two are not used. */
    const __m512i spread = _mm512_set_epi64(
        0x31302f2e2d2c2b2a, 0x2b2a292827262524, 0x2524232221201f1e, 0x1f1e1d1c1b1a1918,
        0x1918171615141312, 0x131211100f0e0d0c, 0x0d0c0b0a09080706, 0x0706050403020100);
    const __m512i shifts = _mm512_set1_epi64(0x2a241e18120c0600);
    for (size_t i = 0; i < HLL_REGISTERS; i += WIDEST, packed += WIDEST_PACKED) {
        __m512i x = _mm512_permutexvar_epi8(spread, _mm512_maskz_loadu_epi8(used, packed));
        __m512i others =
            _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, x), _mm512_set1_epi8(0x3f));
        __m512i own = _mm512_loadu_si512(registers + i);
        _mm512_storeu_si512(registers + i, _mm512_max_epu8(own, others));
    }
}

static hllKernel kernel_limit = HLL_AVX512;

static bool hasVectors(void) { return kernel_limit >= HLL_AVX2 && __builtin_cpu_supports("avx2"); }
static bool hasWidest(void) {
    return kernel_limit >= HLL_AVX512 && __builtin_cpu_supports("avx512vbmi");
}

void hllLimitKernel(hllKernel limit) { kernel_limit = limit; }
#else
enum { WIDE_REGISTERS = 0 };
static void mergeWide(uint8_t *registers, const char *packed) { (void)registers, (void)packed; }
static void mergeWidest(uint8_t *registers, const char *packed) { (void)registers, (void)packed; }
static void packWide(char *packed, const uint8_t *registers) { (void)registers, (void)packed; }
static bool hasVectors(void) { return false; }
static bool hasWidest(void) { return false; }
void hllLimitKernel(hllKernel limit) { (void)limit; }
#endif

hllKernel hllKernelNow(void) {
    if (hasWidest()) return HLL_AVX512;
    return hasVectors() ? HLL_AVX2 : HLL_PLAIN;
}

static void mergeDense(uint8_t *registers, const char *packed) {
    size_t i = 0;
    if (hasWidest()) {
        mergeWidest(registers, packed);
        return;
    }
    if (hasVectors()) {
        mergeWide(registers, packed);
        i = WIDE_REGISTERS;
    }
    for (; i < HLL_REGISTERS; i += UNPACKED)
        mergeEight(registers + i, packed + i / UNPACKED * PACKED);
}

bool hllMergeInto(uint8_t *registers, slice bytes) {
    hotCheck(bytes.len >= HLL_HEAD_BYTES);
    if (!hllIsSparse(bytes.ptr)) {
        mergeDense(registers, bytes.ptr + HLL_HEAD_BYTES);
        return true;
    }
    size_t at = HLL_HEAD_BYTES, index = 0;
    hllRun run;
    while (hllNextRun(bytes, &at, &run)) {
        if (index + run.count > HLL_REGISTERS) return false;
        for (size_t i = index; run.value > 0 && i < index + run.count; i++)
            if (registers[i] < run.value) registers[i] = (uint8_t)run.value;
        index += run.count;
    }
    return index == HLL_REGISTERS && at == bytes.len;
}

void hllKeepRaised(uint8_t *registers, slice bytes) {
    hotCheck(hllIsSparse(bytes.ptr));
    size_t at = HLL_HEAD_BYTES, index = 0;
    hllRun run;
    while (hllNextRun(bytes, &at, &run)) {
        if (index + run.count > HLL_REGISTERS) return;
        for (size_t i = index; run.value > 0 && i < index + run.count; i++)
            if (registers[i] <= run.value) registers[i] = 0;
        index += run.count;
    }
}

unsigned hllNextRegister(const uint8_t *registers, unsigned from) {
    hotCheck(from <= HLL_REGISTERS);
    unsigned i = from;
    for (; i < HLL_REGISTERS && i % 8; i++)
        if (registers[i]) return i;
    for (; i < HLL_REGISTERS; i += 8) {
        uint64_t eight;
        memcpy(&eight, registers + i, sizeof(eight));
        if (eight) break;
    }
    while (i < HLL_REGISTERS && !registers[i]) i++;
    return i;
}

void hllWriteDense(char *bytes, const uint8_t *registers) {
    bytes[4] = 0;
    char *packed = bytes + HLL_HEAD_BYTES;
    size_t i = 0;
    if (hasVectors()) {
        packWide(packed, registers);
        i = WIDE_REGISTERS;
    }
    for (; i < HLL_REGISTERS; i += UNPACKED)
        packEight(packed + i / UNPACKED * PACKED, registers + i);
}

/* ------------------------------------------------------------------ estimate */

/* Ertl's sigma: correction for registers that are zero. */
static double sigma(double x) {
    hotCheck(x >= 0);
    hotCheck(x <= 1);
    if (x == 1.0) return (double)INFINITY;
    double y = 1, z = x, last;
    do {
        x *= x;
        last = z;
        z += x * y;
        y += y;
    } while (z != last);
    return z;
}

/* Ertl's tau: correction for saturated registers. */
static double tau(double x) {
    hotCheck(x >= 0);
    hotCheck(x <= 1);
    if (x == 0.0 || x == 1.0) return 0.0;
    double y = 1, z = 1 - x, last;
    do {
        x = sqrt(x);
        last = z;
        y *= 0.5;
        z -= pow(1 - x, 2) * y;
    } while (z != last);
    return z / 3;
}

enum { VECTOR = 32 };
/* One register with AVX2, else several. */
typedef uint8_t vector __attribute__((vector_size(VECTOR), aligned(1), may_alias));

/* Number of registers with this value. */
ALWAYS_INLINE unsigned countValue(const uint8_t *registers, uint8_t value) {
    enum { SUMS = 4 };
    _Static_assert(HLL_REGISTERS / VECTOR / SUMS <= UINT8_MAX, "a sum is one byte");
    const vector wanted = value - (vector){0};
    vector sums[SUMS] = {{0}};
    for (size_t i = 0; i < HLL_REGISTERS; i += sizeof(sums)) {
        for (size_t k = 0; k < SUMS; k++) {
            vector own = *(const vector *)(const void *)(registers + i + k * VECTOR);
            sums[k] -= (vector)(own == wanted); /* equal bytes become -1 */
        }
    }
    unsigned count = 0;
    for (size_t k = 0; k < SUMS; k++) {
        for (size_t i = 0; i < VECTOR; i++) count += sums[k][i];
    }
    return count;
}

/* Counts each value in a pass of its own: registers have some 20 different values, and a pass with
 * vectors takes 1/60 of the time of incrementing a counter for each register. */
ALWAYS_INLINE void countAllValues(const uint8_t *registers, double *histogram) {
    unsigned counted = 0;
    for (unsigned value = 0; counted < HLL_REGISTERS; value++) {
        check(value <= REGISTER_MAX);
        unsigned count = countValue(registers, (uint8_t)value);
        histogram[value] = count;
        counted += count;
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void countValuesAvx2(const uint8_t *registers,
                                                            double *histogram) {
    countAllValues(registers, histogram);
}
#endif

static void countValues(const uint8_t *registers, double *histogram) {
#if defined(__x86_64__)
    if (hasVectors()) {
        countValuesAvx2(registers, histogram);
        return;
    }
#endif
    countAllValues(registers, histogram);
}

uint64_t hllEstimate(const uint8_t *registers) {
    double histogram[REGISTER_MAX + 1] = {0};
    countValues(registers, histogram);
    const double m = HLL_REGISTERS, alpha = 0.721347520444481703680; /* 1 / (2 ln 2) */
    double z = m * tau((m - histogram[RANK_MAX]) / m);
    for (int rank = RANK_MAX - 1; rank >= 1; rank--) z = (z + histogram[rank]) * 0.5;
    z += m * sigma(histogram[0] / m);
    double estimate = alpha * m * m / z;
    /* Values that no element can produce: this is Valkey's result, and it is never cached. */
    if (!(estimate < 0x1p63)) return UINT64_C(1) << 63;
    return (uint64_t)llround(estimate);
}

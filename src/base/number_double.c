/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints doubles as short decimal text: Grisu2 (Loitsch, "Printing floating-point numbers quickly
 * and accurately with integers", 2010) in 64-bit integers.
 *
 * Invariant: the text always parses back to the same double. It is the shortest such text for about
 * 99.8 % of doubles; the rest have one digit more or a different last digit, exactly as Valkey
 * prints them, because replicas and tests compare these texts. About 40 ns. ANY_THREAD. */
#include <math.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/number.h"

#define DIGITS_MAX 18 /* Grisu2 produces at most 17 */
#define POWER_FIRST (-348)
#define POWER_STEP 8

/* f * 2^e, not normalised unless stated. */
typedef struct wideFloat {
    uint64_t f;
    int e;
} wideFloat;

/* 10^(-348 + 8 i), rounded to 64 bits. */
static const struct {
    uint64_t f;
    int16_t e;
} powers[] = {
    {0xfa8fd5a0081c0288ull, -1220}, {0xbaaee17fa23ebf76ull, -1193}, {0x8b16fb203055ac76ull, -1166},
    {0xcf42894a5dce35eaull, -1140}, {0x9a6bb0aa55653b2dull, -1113}, {0xe61acf033d1a45dfull, -1087},
    {0xab70fe17c79ac6caull, -1060}, {0xff77b1fcbebcdc4full, -1034}, {0xbe5691ef416bd60cull, -1007},
    {0x8dd01fad907ffc3cull, -980},  {0xd3515c2831559a83ull, -954},  {0x9d71ac8fada6c9b5ull, -927},
    {0xea9c227723ee8bcbull, -901},  {0xaecc49914078536dull, -874},  {0x823c12795db6ce57ull, -847},
    {0xc21094364dfb5637ull, -821},  {0x9096ea6f3848984full, -794},  {0xd77485cb25823ac7ull, -768},
    {0xa086cfcd97bf97f4ull, -741},  {0xef340a98172aace5ull, -715},  {0xb23867fb2a35b28eull, -688},
    {0x84c8d4dfd2c63f3bull, -661},  {0xc5dd44271ad3cdbaull, -635},  {0x936b9fcebb25c996ull, -608},
    {0xdbac6c247d62a584ull, -582},  {0xa3ab66580d5fdaf6ull, -555},  {0xf3e2f893dec3f126ull, -529},
    {0xb5b5ada8aaff80b8ull, -502},  {0x87625f056c7c4a8bull, -475},  {0xc9bcff6034c13053ull, -449},
    {0x964e858c91ba2655ull, -422},  {0xdff9772470297ebdull, -396},  {0xa6dfbd9fb8e5b88full, -369},
    {0xf8a95fcf88747d94ull, -343},  {0xb94470938fa89bcfull, -316},  {0x8a08f0f8bf0f156bull, -289},
    {0xcdb02555653131b6ull, -263},  {0x993fe2c6d07b7facull, -236},  {0xe45c10c42a2b3b06ull, -210},
    {0xaa242499697392d3ull, -183},  {0xfd87b5f28300ca0eull, -157},  {0xbce5086492111aebull, -130},
    {0x8cbccc096f5088ccull, -103},  {0xd1b71758e219652cull, -77},   {0x9c40000000000000ull, -50},
    {0xe8d4a51000000000ull, -24},   {0xad78ebc5ac620000ull, 3},     {0x813f3978f8940984ull, 30},
    {0xc097ce7bc90715b3ull, 56},    {0x8f7e32ce7bea5c70ull, 83},    {0xd5d238a4abe98068ull, 109},
    {0x9f4f2726179a2245ull, 136},   {0xed63a231d4c4fb27ull, 162},   {0xb0de65388cc8ada8ull, 189},
    {0x83c7088e1aab65dbull, 216},   {0xc45d1df942711d9aull, 242},   {0x924d692ca61be758ull, 269},
    {0xda01ee641a708deaull, 295},   {0xa26da3999aef774aull, 322},   {0xf209787bb47d6b85ull, 348},
    {0xb454e4a179dd1877ull, 375},   {0x865b86925b9bc5c2ull, 402},   {0xc83553c5c8965d3dull, 428},
    {0x952ab45cfa97a0b3ull, 455},   {0xde469fbd99a05fe3ull, 481},   {0xa59bc234db398c25ull, 508},
    {0xf6c69a72a3989f5cull, 534},   {0xb7dcbf5354e9beceull, 561},   {0x88fcf317f22241e2ull, 588},
    {0xcc20ce9bd35c78a5ull, 614},   {0x98165af37b2153dfull, 641},   {0xe2a0b5dc971f303aull, 667},
    {0xa8d9d1535ce3b396ull, 694},   {0xfb9b7cd9a4a7443cull, 720},   {0xbb764c4ca7a44410ull, 747},
    {0x8bab8eefb6409c1aull, 774},   {0xd01fef10a657842cull, 800},   {0x9b10a4e5e9913129ull, 827},
    {0xe7109bfba19c0c9dull, 853},   {0xac2820d9623bf429ull, 880},   {0x80444b5e7aa7cf85ull, 907},
    {0xbf21e44003acdd2dull, 933},   {0x8e679c2f5e44ff8full, 960},   {0xd433179d9c8cb841ull, 986},
    {0x9e19db92b4e31ba9ull, 1013},  {0xeb96bf6ebadf77d9ull, 1039},  {0xaf87023b9bf0ee6bull, 1066},
};
_Static_assert(COUNT_OF(powers) == 87, "10^-348 to 10^340");

static wideFloat normalize(wideFloat v) {
    hotCheck(v.f != 0);
    int shift = __builtin_clzll(v.f);
    return (wideFloat){v.f << shift, v.e - shift};
}

/* The upper 64 bits of the product, rounded. */
static wideFloat multiply(wideFloat a, wideFloat b) {
    __uint128_t product = (__uint128_t)a.f * b.f + ((uint64_t)1 << 63);
    return (wideFloat){(uint64_t)(product >> 64), a.e + b.e + 64};
}

/* A power of ten that brings a number with exponent `e` to an exponent in -60..-32; `*k` is the
 * negated decimal exponent. */
static wideFloat scaleFor(int e, int *k) {
    int index =
        (int)((-(e + (int)COUNT_OF(powers)) * 0.30102999566398114 - POWER_FIRST) / POWER_STEP);
    for (;;) {
        int scaled = e + powers[index].e + 64;
        if (scaled < -60) {
            index++;
        } else if (scaled > -32) {
            index--;
        } else {
            break;
        }
    }
    *k = -(POWER_FIRST + index * POWER_STEP);
    return (wideFloat){powers[index].f, powers[index].e};
}

/* Decrements the last digit as long as that moves the text nearer to the number and keeps it within
 * the interval. */
static void roundLastDigit(char *last, uint64_t distance, uint64_t delta, uint64_t rest,
                           uint64_t unit) {
    hotCheck(rest <= delta);
    while (rest < distance && delta - rest >= unit &&
           (rest + unit < distance || distance - rest > rest + unit - distance)) {
        (*last)--;
        rest += unit;
    }
}

/* Writes the digits of a number in (low, high) near `high - distance`; adds the number of omitted
 * digits to `*k`. */
static int makeDigits(char *digits, wideFloat high, uint64_t delta, uint64_t distance, int *k) {
    hotCheck(high.e < 0);
    hotCheck(high.e > -64);
    int shift = -high.e;
    uint64_t one = (uint64_t)1 << shift;
    uint32_t whole = (uint32_t)(high.f >> shift);
    uint64_t part = high.f & (one - 1);
    int len = 0;
    uint32_t unit = 1000000000;
    for (int left = 10; left > 0; unit /= 10) {
        uint32_t digit = whole / unit;
        if (digit || len) digits[len++] = (char)('0' + digit);
        whole -= digit * unit;
        left--;
        uint64_t rest = ((uint64_t)whole << shift) + part;
        if (rest <= delta) {
            *k += left;
            roundLastDigit(&digits[len - 1], distance, delta, rest, (uint64_t)unit << shift);
            return len;
        }
    }
    uint64_t scale = 1;
    for (;;) {
        part *= 10;
        delta *= 10;
        scale *= 10;
        (*k)--;
        char digit = (char)(part >> shift);
        if (digit || len) digits[len++] = (char)('0' + digit);
        part &= one - 1;
        if (part < delta) {
            roundLastDigit(&digits[len - 1], distance * scale, delta, part, one);
            return len;
        }
    }
}

/* Digits and exponent of a finite positive number: value = digits * 10^k. */
static int grisu(double value, char digits[DIGITS_MAX], int *k) {
    hotCheck(value > 0);
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const uint64_t hidden = (uint64_t)1 << 52;
    int biased = (int)(bits >> 52 & 0x7ff);
    wideFloat v = {bits & (hidden - 1), 1 - 1075};
    if (biased) v = (wideFloat){v.f | hidden, biased - 1075};

    /* The midpoints to both neighbours: every text between them parses back to this number. */
    wideFloat high = normalize((wideFloat){v.f * 2 + 1, v.e - 1});
    wideFloat low =
        v.f == hidden ? (wideFloat){v.f * 4 - 1, v.e - 2} : (wideFloat){v.f * 2 - 1, v.e - 1};
    low.f <<= low.e - high.e;
    low.e = high.e;
    v = normalize(v);
    wideFloat power = scaleFor(high.e, k);
    v = multiply(v, power);
    high = multiply(high, power);
    low = multiply(low, power);
    /* Narrowing both sides by one unit compensates for the rounding of the power and of the
     * products. */
    high.f--;
    low.f++;
    return makeDigits(digits, high, high.f - low.f, high.f - v.f, k);
}

static size_t putExponent(char *dst, const char *digits, int count, int exponent) {
    hotCheck(count > 0);
    char *p = dst;
    *p++ = digits[0];
    if (count > 1) {
        *p++ = '.';
        memcpy(p, digits + 1, (size_t)count - 1);
        p += count - 1;
    }
    *p++ = 'e';
    *p++ = exponent < 0 ? '-' : '+';
    p += numberPrintUint(p, (uint64_t)(exponent < 0 ? -exponent : exponent));
    return (size_t)(p - dst);
}

/* Valkey's format: without an exponent if few zeros have to be added, else with one. */
static size_t putDecimal(char *dst, const char *digits, int count, int k) {
    hotCheck(count > 0);
    int exponent = count + k - 1;
    char *p = dst;
    if (k >= 0 && exponent < count + 7) {
        memcpy(p, digits, (size_t)count);
        memset(p + count, '0', (size_t)k);
        return (size_t)(count + k);
    }
    if (k >= 0 || (k <= -7 && (exponent >= 4 || exponent <= -4)))
        return putExponent(dst, digits, count, exponent);
    if (exponent >= 0) {
        size_t whole = (size_t)exponent + 1;
        memcpy(p, digits, whole);
        p[whole] = '.';
        memcpy(p + whole + 1, digits + whole, (size_t)count - whole);
        return (size_t)count + 1;
    }
    size_t zeros = (size_t)(-exponent - 1);
    memcpy(p, "0.", 2);
    memset(p + 2, '0', zeros);
    memcpy(p + 2 + zeros, digits, (size_t)count);
    return 2 + zeros + (size_t)count;
}

size_t numberPrintDouble(char *dst, double value) {
    /* Whole numbers up to 2^62 are printed exactly, larger ones with as few digits as possible. */
    const double whole_max = 4611686018427387904.0;
    if (value != 0 && fabs(value) <= whole_max && value == (double)(int64_t)value)
        return numberPrintInt(dst, (int64_t)value);
    char *p = dst;
    if (isnan(value)) {
        memcpy(dst, "nan", 4);
        return 3;
    }
    if (signbit(value)) *p++ = '-';
    value = fabs(value);
    if (value == 0) {
        *p++ = '0';
    } else if (isinf(value)) {
        memcpy(p, "inf", 3);
        p += 3;
    } else {
        char digits[DIGITS_MAX];
        int k;
        int count = grisu(value, digits, &k);
        p += putDecimal(p, digits, count, k);
    }
    *p = '\0';
    size_t len = (size_t)(p - dst);
    check(len < NUMBER_TEXT_MAX);
    return len;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conversion of integers, sizes and floating-point numbers from and to text (printing doubles:
 * number_double.c).
 *
 * Invariant: a parser consumes the whole text or fails, and writes `*out` only on success. Integers
 * take a few nanoseconds; eight digits are parsed or checked at a time. ANY_THREAD. */
#include "base/number.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/str.h"

#define UINT_DIGITS_MAX 20

static const uint64_t powers_of_ten[UINT_DIGITS_MAX] = {
    1ull,
    10ull,
    100ull,
    1000ull,
    10000ull,
    100000ull,
    1000000ull,
    10000000ull,
    100000000ull,
    1000000000ull,
    10000000000ull,
    100000000000ull,
    1000000000000ull,
    10000000000000ull,
    100000000000000ull,
    1000000000000000ull,
    10000000000000000ull,
    100000000000000000ull,
    1000000000000000000ull,
    10000000000000000000ull,
};

static inline bool isDigit(char c) { return (uint8_t)(c - '0') < 10; }

static inline bool areEightDigits(uint64_t x) {
    const uint64_t sixes = 0x0606060606060606ull, threes = 0x3030303030303030ull;
    return (x & (x + sixes) & 0xf0f0f0f0f0f0f0f0ull) == threes;
}

/* The number made of eight ASCII digits: first pairs, then groups of four, then all eight. */
static inline uint64_t eightDigits(uint64_t x) {
    x -= 0x3030303030303030ull;
    x = x * 10 + (x >> 8);
    x = (x & 0x000000ff000000ffull) * 0x000f424000000064ull +
        (x >> 16 & 0x000000ff000000ffull) * 0x0000271000000001ull;
    return x >> 32;
}

bool numberParseUint(slice text, uint64_t *out) {
    const char *p = text.ptr;
    size_t left = text.len;
    if (left == 0 || left > UINT_DIGITS_MAX) return false;
    if (*p == '0' && left > 1) return false;
    uint64_t value = 0;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t digits = loadU64(p);
        if (!areEightDigits(digits)) return false;
        value = value * 100000000 + eightDigits(digits);
    }
    /* `value` holds at most 16 digits here, so only the 20th can overflow. */
    for (; left; left--, p++) {
        if (!isDigit(*p)) return false;
        uint64_t digit = (uint64_t)(*p - '0');
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, digit, &value)) return false;
    }
    *out = value;
    return true;
}

/* Clients have sent cursors in every form that strtoull() accepts, so everything but plain numbers
 * is passed to it. */
bool numberParseCursor(slice text, uint64_t *out) {
    int64_t number;
    if (numberParseInt(text, &number)) {
        if (number >= 0) *out = (uint64_t)number;
        return number >= 0;
    }
    str copy = strNew(text);
    char *end;
    errno = 0;
    unsigned long long value = strtoull(strText(&copy), &end, 10);
    bool good = errno == 0 && end != strText(&copy) && *end == 0;
    strFree(&copy);
    if (good) *out = value;
    return good;
}

bool numberParseInt(slice text, int64_t *out) {
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (negative) text = sliceMake(text.ptr + 1, text.len - 1);
    uint64_t magnitude;
    if (!numberParseUint(text, &magnitude)) return false;
    if (!negative) {
        if (magnitude > INT64_MAX) return false;
        *out = (int64_t)magnitude;
        return true;
    }
    if (magnitude == 0 || magnitude > (uint64_t)INT64_MAX + 1) return false;
    *out = (int64_t)(0 - magnitude);
    return true;
}

/* A parsed decimal number: mantissa * 10^exponent, exact unless `cut`. */
typedef struct decimal {
    bool negative;
    bool cut; /* digits did not fit in the mantissa */
    uint64_t mantissa;
    int64_t exponent;
} decimal;

/* Reads digits from `*p` into `d`; returns their number. Each digit after the decimal point
 * decrements the exponent. */
static size_t takeDigits(const char **p, const char *end, bool after_point, decimal *d) {
    hotCheck(*p <= end);
    const char *begin = *p;
    for (; *p < end && isDigit(**p); (*p)++) {
        uint64_t digit = (uint64_t)(**p - '0');
        if (d->mantissa < powers_of_ten[18]) {
            d->mantissa = d->mantissa * 10 + digit;
            if (after_point) d->exponent--;
        } else {
            if (digit) d->cut = true;
            if (!after_point) d->exponent++;
        }
    }
    return (size_t)(*p - begin);
}

/* Parses [+-]digits[.digits][e[+-]digits] with at least one digit before or after the decimal
 * point. */
static bool decimalParse(slice text, decimal *d) {
    const char *p = text.ptr, *end = p + text.len;
    *d = (decimal){0};
    if (p < end && (*p == '-' || *p == '+')) d->negative = *p++ == '-';
    size_t digits = takeDigits(&p, end, false, d);
    if (p < end && *p == '.') {
        p++;
        digits += takeDigits(&p, end, true, d);
    }
    if (digits == 0) return false;
    if (p == end) return true;
    if (byteFold(*p++) != 'e') return false;
    bool down = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    int64_t exponent = 0;
    for (; p < end; p++) {
        if (!isDigit(*p)) return false;
        /* Far out of range of a double; no text is long enough to compensate. */
        if (exponent < INT64_MAX / 100) exponent = exponent * 10 + (*p - '0');
    }
    d->exponent += down ? -exponent : exponent;
    return true;
}

/* strtod() for text without a terminating NUL. False if the value overflows or underflows to
 * zero. */
static bool doubleFromLibc(slice text, double *out) {
    char buffer[128];
    char *copy = text.len < sizeof(buffer) ? buffer : memTryAlloc(text.len + 1);
    if (!copy) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    double value = strtod(copy, NULL);
    if (copy != buffer) memFree(copy);
    if (isinf(value) || value == 0) return false;
    *out = value;
    return true;
}

static bool parseInfinity(slice text, double *out) {
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (text.len > 0 && (negative || text.ptr[0] == '+'))
        text = sliceMake(text.ptr + 1, text.len - 1);
    if (!sliceIs(text, "inf") && !sliceIs(text, "infinity")) return false;
    *out = negative ? -INFINITY : INFINITY;
    return true;
}

/* A whole number without a sign, short enough to be exact in a double. Most scores are. */
static bool parseFewDigits(slice text, double *out) {
    enum { EXACT_DIGITS = 15 };
    uint64_t value = 0;
    if (text.len == 0 || text.len > EXACT_DIGITS) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!isDigit(text.ptr[i])) return false;
        value = value * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *out = (double)value;
    return true;
}

bool numberParseDouble(slice text, double *out) {
    static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t exact_max = (int64_t)COUNT_OF(exact_powers) - 1;
    decimal d;
    if (likely(parseFewDigits(text, out))) return true;
    if (!decimalParse(text, &d)) return parseInfinity(text, out);
    /* Both operands are exact doubles, so the result is rounded only once and therefore correctly
     * (Clinger 1990). */
    bool exact = !d.cut && d.mantissa <= (uint64_t)1 << DBL_MANT_DIG && d.exponent >= -exact_max &&
                 d.exponent <= exact_max;
    if (d.mantissa != 0 && !exact) return doubleFromLibc(text, out);
    double value = (double)d.mantissa;
    if (d.mantissa != 0 && d.exponent < 0) value /= exact_powers[-d.exponent];
    if (d.mantissa != 0 && d.exponent > 0) value *= exact_powers[d.exponent];
    *out = d.negative ? -value : value;
    return true;
}

bool numberParseLongDouble(slice text, long double *out) {
    char copy[LONG_DOUBLE_TEXT_MAX];
    if (text.len == 0 || text.len >= sizeof(copy)) return false;
    if (text.ptr[0] == ' ' || (text.ptr[0] >= '\t' && text.ptr[0] <= '\r')) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    char *end;
    errno = 0;
    long double value = strtold(copy, &end);
    if (end != copy + text.len) return false;
    if (isnan(value)) return false;
    if (errno == ERANGE && (isinf(value) || value == 0)) return false;
    *out = value;
    return true;
}

/* Bytes per unit of a size such as "kb"; 0 for an unknown unit. */
static uint64_t memoryUnit(slice unit) {
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"b", 1},
        {"k", 1000},
        {"kb", 1024},
        {"m", 1000 * 1000},
        {"mb", 1024 * 1024},
        {"g", 1000 * 1000 * 1000},
        {"gb", 1024 * 1024 * 1024},
    };
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (sliceIs(unit, units[i].name)) return units[i].bytes;
    }
    return 0;
}

bool numberParseMemory(slice text, uint64_t *out) {
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text.len && isDigit(text.ptr[i]); i++) {
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value)) return false;
    }
    uint64_t unit = memoryUnit(sliceMake(text.ptr + i, text.len - i));
    if (unit == 0) return false;
    if (__builtin_mul_overflow(value, unit, &value)) return false;
    *out = value;
    return true;
}

int numberDigits(uint64_t value) {
    /* 1233 / 4096 approximates log10(2); the estimate is one too high just below a power of ten. */
    int bits = 64 - __builtin_clzll(value | 1);
    int guess = bits * 1233 >> 12;
    return guess + (value >= powers_of_ten[guess]) + (value == 0);
}

size_t numberPrintUint(char *dst, uint64_t value) {
    hotCheck(numberDigits(value) <= 20);
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "6869707172737475767778798081828384858687888990919293949596979899";
    size_t len = (size_t)numberDigits(value);
    char *p = dst + len;
    *p = '\0';
    while (value >= 100) {
        p -= 2;
        memcpy(p, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        memcpy(p - 2, pairs + value * 2, 2);
    } else {
        p[-1] = (char)('0' + value);
    }
    return len;
}

size_t numberPrintInt(char *dst, int64_t value) {
    if (value >= 0) return numberPrintUint(dst, (uint64_t)value);
    *dst = '-';
    return 1 + numberPrintUint(dst + 1, 0 - (uint64_t)value);
}

/* Prints with integer arithmetic, which is much faster. Returns 0 if the number is too large for
 * that. */
static size_t printDecimals(char *dst, long double value) {
    const uint64_t unit = 100000000000000000ull; /* 10^17 */
    long double size = fabsl(value);
    if (LDBL_MANT_DIG > 64 || !(size < 9.0e18L)) return 0;
    uint64_t whole = (uint64_t)size, decimals = 0;
    int exponent;
    long double part = frexpl(size - (long double)whole, &exponent);
    int shift = 64 - exponent;
    if (part > 0 && shift < 128) { /* parts below 2^-64 are zero */
        __uint128_t scaled = (__uint128_t)(uint64_t)ldexpl(part, 64) * unit;
        __uint128_t rest = scaled & (((__uint128_t)1 << shift) - 1),
                    half = (__uint128_t)1 << (shift - 1);
        decimals = (uint64_t)(scaled >> shift);
        if (rest > half || (rest == half && decimals & 1)) decimals++;
    }
    whole += decimals / unit;
    decimals %= unit;
    char *at = dst;
    if (value < 0 && (whole || decimals)) *at++ = '-';
    at += numberPrintUint(at, whole);
    if (decimals) {
        /* Adding `unit` puts a digit 1 first, which preserves leading zeros. */
        char digits[NUMBER_TEXT_MAX];
        size_t len = numberPrintUint(digits, unit + decimals);
        while (digits[len - 1] == '0') len--;
        digits[0] = '.';
        memcpy(at, digits, len);
        at += len;
    }
    *at = '\0';
    return (size_t)(at - dst);
}

size_t numberPrintLongDouble(char *dst, long double value) {
    int printed;
    if (isnan(value) || isinf(value)) {
        printed = snprintf(dst, LONG_DOUBLE_TEXT_MAX, "%s",
                           isnan(value) ? "nan"
                           : value > 0  ? "inf"
                                        : "-inf");
        return (size_t)printed;
    }
    size_t short_len = printDecimals(dst, value);
    if (short_len) return short_len;
    printed = snprintf(dst, LONG_DOUBLE_TEXT_MAX, "%.17Lf", value);
    check(printed > 0);
    check(printed < LONG_DOUBLE_TEXT_MAX);
    size_t len = (size_t)printed;
    while (dst[len - 1] == '0') len--; /* stops at the decimal point at the latest */
    if (dst[len - 1] == '.') len--;
    dst[len] = '\0';
    if (len == 2 && memcmp(dst, "-0", 2) == 0) {
        memcpy(dst, "0", 2);
        len = 1;
    }
    return len;
}

void numberPrintHuman(char *dst, uint64_t bytes) {
    static const char units[] = "KMGTP";
    int unit = 0; /* number of divisions by 1024 */
    while (unit <= 5 && bytes >> (10 * (unit + 1))) unit++;
    if (unit == 0 || unit > 5) {
        dst += numberPrintUint(dst, bytes);
        memcpy(dst, "B", 2);
        return;
    }
    int shift = 10 * unit;
    uint64_t one = UINT64_C(1) << shift, part = (bytes & (one - 1)) * 100, rest = part & (one - 1);
    uint64_t hundredths = (bytes >> shift) * 100 + (part >> shift);
    /* Rounds as printf() does: exact halves to the even digit. */
    if (rest > one / 2 || (rest == one / 2 && hundredths % 2)) hundredths++;
    dst += numberPrintUint(dst, hundredths / 100);
    *dst++ = '.';
    *dst++ = (char)('0' + hundredths / 10 % 10);
    *dst++ = (char)('0' + hundredths % 10);
    *dst++ = units[unit - 1];
    *dst = '\0';
}

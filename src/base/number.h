/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Exact conversion between numbers and text. ANY_THREAD. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define NUMBER_TEXT_MAX 32     /* fits any int64 or shortest double, and a NUL */
#define NUMBER_INT_TEXT_MAX 20 /* the longest canonical text of an int64 */
#define LONG_DOUBLE_TEXT_MAX (5 * 1024)

/* Canonical decimal only: no sign '+', no leading zero, no "-0", no blanks. */
bool numberParseInt(slice text, int64_t *out);
/* Quick test of length and first byte. False means that numberParseInt() fails; true means
 * nothing. */
static inline bool numberMayBeInt(slice text) {
    if (text.len == 0 || text.len > NUMBER_INT_TEXT_MAX) return false;
    return (uint8_t)(text.ptr[0] - '0') <= 9 || text.ptr[0] == '-';
}
/* Canonical decimal of an unsigned 64-bit number. */
bool numberParseUint(slice text, uint64_t *out);
/* A cursor, in any form that strtoull() accepts: blanks before it, a sign, leading zeros. A plain
 * negative number is none. */
bool numberParseCursor(slice text, uint64_t *out);
/* A double as Valkey accepts scores: decimal, no hex, no blanks, no NaN; "inf" and "infinity" in
 * any case, with an optional sign. Fails if the value overflows or underflows to zero. (Timeouts
 * are long doubles and may be hex.) */
bool numberParseDouble(slice text, double *out);
/* A long double as INCRBYFLOAT accepts it: hex and inf allowed, no blanks, no NaN, within the range
 * of long double. */
bool numberParseLongDouble(slice text, long double *out);
/* A memory size: digits and b k kb m mb g gb in any case (k=1000, kb=1024); "" is 0. */
bool numberParseMemory(slice text, uint64_t *out);

/* Writes decimal digits followed by a NUL; returns the number of digits. `dst` holds
 * NUMBER_TEXT_MAX. */
size_t numberPrintInt(char *dst, int64_t value);
size_t numberPrintUint(char *dst, uint64_t value);
/* Prints a short text that parses back to the same double, byte for byte as Valkey does (1e+20,
 * 1.5e-7, 0.00001, inf, -inf, nan). For 99.8 % of doubles it is the shortest such text. */
size_t numberPrintDouble(char *dst, double value);
/* 17 decimals without trailing zeros, never an exponent: the format of INCRBYFLOAT. `dst` holds
 * LONG_DOUBLE_TEXT_MAX. */
size_t numberPrintLongDouble(char *dst, long double value);
/* "1.23M": the format of INFO's _human fields. `dst` holds NUMBER_TEXT_MAX. */
void numberPrintHuman(char *dst, uint64_t bytes);
/* Number of decimal digits of `value`. */
int numberDigits(uint64_t value);

/* Checked arithmetic: false on overflow, `*out` untouched. */
static inline bool numberAdd(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}
static inline bool numberMul(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

#endif

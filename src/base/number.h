/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers and text, both ways, exactly. ANY_THREAD. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define NUMBER_TEXT_MAX 32     /* room for any int64 or shortest double and a NUL */
#define NUMBER_INT_TEXT_MAX 20 /* the longest canonical text of an int64 */
#define LONG_DOUBLE_TEXT_MAX (5 * 1024)

/* Canonical decimal only: no sign '+', no leading zero, no "-0", no blanks. */
bool numberParseInt(slice text, int64_t *out);
/* False for most text that numberParseInt() refuses, by its length and first byte, without a call. */
static inline bool numberMayBeInt(slice text) {
    if (text.len == 0 || text.len > NUMBER_INT_TEXT_MAX) return false;
    return (uint8_t)(text.ptr[0] - '0') <= 9 || text.ptr[0] == '-';
}
/* Canonical decimal of an unsigned 64-bit number. */
bool numberParseUint(slice text, uint64_t *out);
/* A double as Valkey takes scores: decimal, no hex, no blanks, no NaN; "inf" and "infinity" in any
 * case with a sign. What is too large for a double, or vanishes to zero, is refused. (Timeouts are
 * long doubles: hex is allowed there.) */
bool numberParseDouble(slice text, double *out);
/* A long double as INCRBYFLOAT takes it: hex allowed, no blanks, no NaN, range of long double;
 * inf is parsed. */
bool numberParseLongDouble(slice text, long double *out);
/* Memory text: digits and b k kb m mb g gb in any case (k=1000, kb=1024); "" is 0. */
bool numberParseMemory(slice text, uint64_t *out);

/* Writes decimal digits, returns their count; a NUL follows. `dst` holds NUMBER_TEXT_MAX. */
size_t numberPrintInt(char *dst, int64_t value);
size_t numberPrintUint(char *dst, uint64_t value);
/* A short text that reads back as the same double, byte for byte Valkey's (1e+20, 1.5e-7, 0.00001,
 * inf, -inf, nan): for 99.8 % of doubles the shortest there is. */
size_t numberPrintDouble(char *dst, double value);
/* 17 decimals, trailing zeros cut, never an exponent: INCRBYFLOAT's text. `dst` holds
 * LONG_DOUBLE_TEXT_MAX. */
size_t numberPrintLongDouble(char *dst, long double value);
/* "1.23M": bytes for people, as INFO's _human fields print them. `dst` holds NUMBER_TEXT_MAX. */
void numberPrintHuman(char *dst, uint64_t bytes);
/* Count of decimal digits of `value`. */
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

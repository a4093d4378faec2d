/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The numbers that placeholders are replaced by.
 *
 * Zipf: number k has a probability proportional to (k + 1)^-s. Sampled by rejection-inversion
 * (Hoermann and Derflinger, 1996), in constant time and memory: the integral of x^-s is inverted at
 * a uniform point, and the few points between the curve and the steps under it are drawn again. */
#include "tools/benchmark/keys.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

/* The integral of x^-s, and its inverse. */
static double integral(double x, double s) {
    double l = log(x);
    return fabs(s - 1) < 1e-9 ? l : expm1((1 - s) * l) / (1 - s);
}

static double inverse(double y, double s) {
    return fabs(s - 1) < 1e-9 ? exp(y) : exp(log1p((1 - s) * y) / (1 - s));
}

void keySourceInit(keySource *s, const benchOptions *o) {
    *s = (keySource){
        .distribution = o->distribution, .count = (uint64_t)o->key_count, .exponent = o->zipf};
    if (s->distribution != KEYS_ZIPF) return;
    s->low = integral(1.5, s->exponent) - 1;
    s->high = integral((double)s->count + 0.5, s->exponent);
    s->shift = 2 - inverse(integral(2.5, s->exponent) - pow(2, -s->exponent), s->exponent);
}

static uint64_t nextZipf(const keySource *s) {
    for (;;) {
        double uniform = (double)(randomNext() >> 11) * 0x1.0p-53;
        double y = s->low + uniform * (s->high - s->low);
        double x = inverse(y, s->exponent), k = floor(x + 0.5);
        if (k < 1) k = 1;
        if (k > (double)s->count) k = (double)s->count;
        if (k - x <= s->shift || y >= integral(k + 0.5, s->exponent) - pow(k, -s->exponent))
            return (uint64_t)k - 1;
    }
}

uint64_t keySourceNext(keySource *s, int placeholder) {
    if (s->count == 0) return 0;
    switch (s->distribution) {
    case KEYS_SEQUENTIAL:
        return atomic_fetch_add_explicit(&s->next[placeholder], 1, memory_order_relaxed) % s->count;
    case KEYS_ZIPF: return nextZipf(s);
    default: return randomUniform(s->count);
    }
}

static const char pairs[201] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940"
    "4142434445464748495051525354555657585960616263646566676869707172737475767778798081"
    "828384858687888990919293949596979899";

void keyWrite(char *to, uint64_t number) {
    for (int i = KEY_DIGITS - 2; i >= 0; i -= 2) {
        memcpy(to + i, pairs + number % 100 * 2, 2);
        number /= 100;
        if (number == 0) {
            memset(to, '0', (size_t)i);
            return;
        }
    }
}

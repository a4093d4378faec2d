/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of the benchmarks, written as people type them: words parted by blanks, in which stand
 * for 12 digits %r a random number below the range, %p each such number once, in no order, %n a
 * running number; and for values %a 16 bytes, %b 512, %c 4096. Random here means the same in each
 * run. */
#ifndef BENCH_REQUEST_TEXT_H
#define BENCH_REQUEST_TEXT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST_DIGITS = 12, REQUEST_PATCHES_MAX = 64, REQUEST_BYTES_MAX = 16384 };

/* A request as RESP, and where its numbers are to be put in. */
typedef struct requestText {
    size_t len;
    int patch_count;
    struct {
        size_t at;
        char kind;
    } patches[REQUEST_PATCHES_MAX];
    char bytes[REQUEST_BYTES_MAX];
} requestText;

/* One stream of numbers. */
typedef struct requestNumbers {
    uint64_t range, running, random;
} requestNumbers;

static inline void requestTextTooLong(const char *text) {
    fprintf(stderr, "request too long: %.60s\n", text);
    exit(1);
}

/* Adds a word, expanded; its numbers stay zeros until requestWrite(). */
static inline void requestAddWord(requestText *r, const char *word, size_t len) {
    size_t size = 0;
    for (size_t i = 0; i < len; i++, size++) {
        if (word[i] != '%' || i + 1 == len) continue;
        char kind = word[++i];
        size += (kind == 'a' ? 16 : kind == 'b' ? 512 : kind == 'c' ? 4096 : REQUEST_DIGITS) - 1;
    }
    if (r->len + size + 32 > REQUEST_BYTES_MAX) requestTextTooLong(word);
    r->len += (size_t)sprintf(r->bytes + r->len, "$%zu\r\n", size);
    for (size_t i = 0; i < len; i++) {
        if (word[i] != '%' || i + 1 == len) {
            r->bytes[r->len++] = word[i];
            continue;
        }
        char kind = word[++i];
        size_t value = kind == 'a' ? 16 : kind == 'b' ? 512 : kind == 'c' ? 4096 : 0;
        if (!value) {
            if (r->patch_count == REQUEST_PATCHES_MAX) requestTextTooLong(word);
            r->patches[r->patch_count].at = r->len;
            r->patches[r->patch_count++].kind = kind;
        }
        memset(r->bytes + r->len, value ? 'x' : '0', value ? value : REQUEST_DIGITS);
        r->len += value ? value : REQUEST_DIGITS;
    }
    r->bytes[r->len++] = '\r';
    r->bytes[r->len++] = '\n';
}

static inline void requestTextInit(requestText *r, const char *text) {
    int words = 0;
    for (const char *at = text; *at; at += strspn(at, " ")) {
        words++;
        at += strcspn(at, " ");
    }
    r->patch_count = 0;
    r->len = (size_t)sprintf(r->bytes, "*%d\r\n", words);
    for (const char *at = text; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        requestAddWord(r, at, len);
        at += len;
    }
}

/* Writes the next request of the stream; returns its length. */
static inline size_t requestWrite(const requestText *r, requestNumbers *numbers, char *dst) {
    memcpy(dst, r->bytes, r->len);
    for (int i = 0; i < r->patch_count; i++) {
        uint64_t number = numbers->running;
        if (r->patches[i].kind == 'r') {
            numbers->random =
                numbers->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            number = (numbers->random >> 33) % numbers->range;
        } else if (r->patches[i].kind == 'p') {
            number = number * 7919 % numbers->range; /* a prime, which divides no range in use */
        }
        for (int digit = REQUEST_DIGITS; digit-- > 0; number /= 10)
            dst[r->patches[i].at + (size_t)digit] = (char)('0' + number % 10);
    }
    numbers->running++;
    return r->len;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words of commands (aof_words.h). */
#include "format/aof_words.h"

#include "base/base.h"
#include "base/number.h"

static void writeNumberLine(rdbWriter *w, char prefix, uint64_t number) {
    char line[NUMBER_TEXT_MAX + 3];
    line[0] = prefix;
    size_t len = 1 + numberPrintUint(line + 1, number);
    line[len++] = '\r';
    line[len++] = '\n';
    rdbWriteBytes(w, line, len);
}

void aofCommandBegin(rdbWriter *w, uint64_t argc) { writeNumberLine(w, '*', argc); }

void aofWordBegin(rdbWriter *w, size_t len) { writeNumberLine(w, '$', len); }

void aofWord(rdbWriter *w, slice text) {
    aofWordBegin(w, text.len);
    rdbWriteBytes(w, text.ptr, text.len);
    rdbWriteBytes(w, "\r\n", 2);
}

void aofNumber(rdbWriter *w, int64_t value) {
    char digits[NUMBER_TEXT_MAX];
    aofWord(w, sliceMake(digits, numberPrintInt(digits, value)));
}

void aofUnsigned(rdbWriter *w, uint64_t value) {
    char digits[NUMBER_TEXT_MAX];
    aofWord(w, sliceMake(digits, numberPrintUint(digits, value)));
}

void aofItem(rdbWriter *w, const listpackItem *i) {
    if (i->ptr) {
        aofWord(w, sliceMake(i->ptr, i->len));
    } else {
        aofNumber(w, i->number);
    }
}

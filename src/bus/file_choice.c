/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses between the configuration file and its copy, by a checksum in the last line of the text:
 * the table in file_choice.h.
 *
 * Invariant: a file of which one byte differs from what was written is never used. A file that is
 * cut is used only if it has no checksum left and there is no intact copy. */
#define _GNU_SOURCE /* memmem() */
#include "bus/file_choice.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

static const char seal_word[] = " crc64 ";
enum { SEAL_WORD_LEN = sizeof(seal_word) - 1, SEAL_DIGITS = 16 };
/* With the end of its line. */
enum { SEAL_LEN = SEAL_WORD_LEN + SEAL_DIGITS + 1 };

typedef enum seal {
    SEAL_RIGHT,
    SEAL_MISSING,
    SEAL_BROKEN, /* its own text is damaged */
    SEAL_OF_OTHER_BYTE,
    SEAL_OF_OTHER_TEXT,
} seal;

/* ------------------------------------------------------------------ the checksum */

static void sealText(char out[SEAL_DIGITS], slice content) {
    static const char digits[] = "0123456789abcdef";
    uint64_t crc = crc64(0, content.ptr, content.len);
    for (int i = 0; i < SEAL_DIGITS; i++) out[i] = digits[crc >> (60 - 4 * i) & 15];
}

void clusterFileSeal(str *text) {
    check(text->len > 0);
    check(text->ptr[text->len - 1] == '\n');
    strCut(text, text->len - 1);
    char digits[SEAL_DIGITS];
    sealText(digits, strSlice(text));
    strAppend(text, seal_word, SEAL_WORD_LEN);
    strAppend(text, digits, SEAL_DIGITS);
    strAppendByte(text, '\n');
}

/* The last line with more than its end. */
static slice lastLine(slice text) {
    while (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    size_t start = text.len;
    while (start && text.ptr[start - 1] != '\n') start--;
    return sliceMake(text.ptr + start, text.len - start);
}

static bool beginsWith(slice text, const char *word) {
    size_t len = strlen(word);
    return text.len >= len && memcmp(text.ptr, word, len) == 0;
}

static bool isComplete(slice text) {
    return text.len > 0 && text.ptr[text.len - 1] == '\n' && beginsWith(lastLine(text), "vars ");
}

static bool isDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/* True if the last line had a checksum, although its name may be damaged. */
static bool looksSealed(slice text) {
    slice line = lastLine(text);
    if (line.len && memmem(line.ptr, line.len, seal_word, SEAL_WORD_LEN)) return true;
    int words = 1;
    for (size_t i = 0; i < line.len; i++) words += line.ptr[i] == ' ';
    size_t digits = 0;
    while (digits < line.len && isDigit(line.ptr[line.len - 1 - digits])) digits++;
    /* Valkey writes five words, and the last one is a small number. */
    return words > 5 && digits >= SEAL_DIGITS;
}

/* The state of the checksum before a zero byte that has led to `crc`. The table of a CRC has one
 * entry with each highest byte; the entry of a byte is its own CRC. */
static uint64_t beforeZero(uint64_t crc, const uint64_t table[256]) {
    int byte = 0;
    while (table[byte] >> 56 != crc >> 56) byte++;
    check(byte < 256);
    return (crc ^ table[byte]) << 8 | (uint64_t)byte;
}

/* The line whose change of one byte explains that `text` has another CRC than it had, their
 * difference being `wrong`; 0: there is none. A CRC is linear: that of the text is the XOR of those
 * of the old text and of the change with zeros after it. */
static int lineOfChange(slice text, uint64_t wrong) {
    check(wrong != 0);
    uint64_t table[256];
    for (int i = 0; i < 256; i++) table[i] = crc64(0, &(uint8_t){(uint8_t)i}, 1);
    for (size_t at = text.len; at > 0; at--) {
        for (int i = 1; i < 256; i++) {
            if (table[i] != wrong) continue;
            int line = 1;
            for (size_t k = 0; k + 1 < at; k++) line += text.ptr[k] == '\n';
            return line;
        }
        wrong = beforeZero(wrong, table);
    }
    return 0;
}

static bool parseDigits(const char *digits, uint64_t *out) {
    *out = 0;
    for (int i = 0; i < SEAL_DIGITS; i++) {
        if (!isDigit(digits[i])) return false;
        *out = *out << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
    }
    return true;
}

static seal checkSeal(slice text, int *line) {
    check(text.len > 0);
    uint64_t told;
    *line = 0;
    if (!looksSealed(text)) return SEAL_MISSING;
    if (text.len < SEAL_LEN || text.ptr[text.len - 1] != '\n') return SEAL_BROKEN;
    slice content = sliceMake(text.ptr, text.len - SEAL_LEN);
    const char *end = text.ptr + content.len;
    if (memcmp(end, seal_word, SEAL_WORD_LEN) != 0) return SEAL_BROKEN;
    if (!parseDigits(end + SEAL_WORD_LEN, &told)) return SEAL_BROKEN;
    uint64_t wrong = crc64(0, content.ptr, content.len) ^ told;
    if (!wrong) return SEAL_RIGHT;
    int differing = 0;
    for (int i = 0; i < SEAL_DIGITS; i++) differing += (wrong >> (4 * i) & 15) != 0;
    if (differing == 1) return SEAL_BROKEN;
    *line = lineOfChange(content, wrong);
    return *line ? SEAL_OF_OTHER_BYTE : SEAL_OF_OTHER_TEXT;
}

/* ------------------------------------------------------------------ the choice */

fileChoice clusterFileChoose(slice main, slice copy) {
    int line;
    bool has_copy = copy.len && checkSeal(copy, &line) == SEAL_RIGHT;
    if (!main.ptr || (!main.len && !has_copy)) return (fileChoice){.use = FILE_NONE};
    if (!main.len) return (fileChoice){.use = FILE_COPY, .why = "is empty"};
    fileChoice damaged = {.use = has_copy ? FILE_COPY : FILE_REFUSED};
    seal found = checkSeal(main, &damaged.line);
    switch (found) {
    case SEAL_RIGHT: return (fileChoice){.use = FILE_MAIN};
    case SEAL_MISSING:
        if (isComplete(main)) return (fileChoice){.use = FILE_MAIN};
        return (fileChoice){.use = has_copy ? FILE_COPY : FILE_MAIN,
                            .why = "has no complete last line"};
    case SEAL_OF_OTHER_TEXT:
        return (fileChoice){.use = has_copy ? FILE_MAIN_IF_VALID : FILE_MAIN,
                            .why = "does not match its checksum"};
    case SEAL_BROKEN: damaged.why = "has a damaged checksum"; break;
    case SEAL_OF_OTHER_BYTE: damaged.why = "does not match its checksum in one byte"; break;
    }
    return damaged;
}

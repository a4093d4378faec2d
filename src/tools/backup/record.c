/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptions as JSON (record.h). Invariant: a loaded record has been compared with its checksum,
 * so what is parsed was written by recordSave(), whatever an attacker without that knowledge has
 * changed; the parser nevertheless stays within the text. */
#include "tools/backup/record.h"

#include <string.h>

#include "base/bytes.h"
#include "base/number.h"
#include "io/file.h"
#include "tools/backup/sha256.h"

static const char checksum_member[] = ",\n  \"description_sha256\": \"";
static const char record_end[] = "\"\n}\n";
enum { RECORD_BYTES_MAX = 256 << 20 };

/* ------------------------------------------------------------------ writing */

void recordAppendString(str *out, slice text) {
    strAppendByte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if (byte == '"' || byte == '\\') {
            strAppendByte(out, '\\');
            strAppendByte(out, (char)byte);
        } else if (byte < ' ') {
            strAppendFormat(out, "\\u%04x", byte);
        } else {
            strAppendByte(out, (char)byte);
        }
    }
    strAppendByte(out, '"');
}

void recordBegin(str *out, const char *kind) {
    strClear(out);
    strAppendFormat(out, "{\n  \"format\": %d", RECORD_FORMAT);
    recordText(out, "kind", sliceOf(kind));
}

void recordMember(str *out, const char *name) { strAppendFormat(out, ",\n  \"%s\": ", name); }

void recordText(str *out, const char *name, slice value) {
    recordMember(out, name);
    recordAppendString(out, value);
}

void recordNumber(str *out, const char *name, int64_t value) {
    recordMember(out, name);
    strAppendInt(out, value);
}

void recordEnd(str *out) {
    char digest[SHA256_TEXT + 1];
    sha256OfSlice(strSlice(out), digest);
    strAppendFormat(out, "%s%s%s", checksum_member, digest, record_end);
}

status recordSave(str *record, const char *path, reason *why) {
    recordEnd(record);
    return fileReplace(path, strSlice(record), 0644, why);
}

/* ------------------------------------------------------------------ reading */

static bool isWhole(const str *record) {
    const size_t end_len = sizeof(checksum_member) - 1 + SHA256_TEXT + sizeof(record_end) - 1;
    char digest[SHA256_TEXT + 1];
    if (record->len < end_len) return false;
    const char *end = record->ptr + record->len - end_len;
    sha256OfSlice(sliceMake(record->ptr, record->len - end_len), digest);
    return !memcmp(end, checksum_member, sizeof(checksum_member) - 1) &&
           !memcmp(end + sizeof(checksum_member) - 1, digest, SHA256_TEXT) &&
           !strcmp(end + sizeof(checksum_member) - 1 + SHA256_TEXT, record_end);
}

status recordLoad(const char *path, const char *kind, str *out, reason *why) {
    *out = STR_EMPTY;
    status st = fileReadAll(path, RECORD_BYTES_MAX, out, why);
    if (st != OK) return st;
    if (!isWhole(out))
        return reasonSet(why, ERR_SYNTAX, "%s: the description is damaged: its SHA-256 differs",
                         path);
    if (recordReadNumber(out, "format") != RECORD_FORMAT)
        return reasonSet(why, ERR_SYNTAX, "%s: written by a later version of the tool", path);
    str found = STR_EMPTY;
    recordReadText(out, "kind", &found);
    bool same = sliceIs(strSlice(&found), kind);
    strFree(&found);
    return same ? OK : reasonSet(why, ERR_SYNTAX, "%s: not a description of a %s", path, kind);
}

slice recordRaw(const str *record, const char *name) {
    str head = STR_EMPTY;
    strAppendFormat(&head, "\n  \"%s\": ", name);
    const char *at = record->ptr ? strstr(record->ptr, strText(&head)) : NULL;
    size_t skip = head.len;
    strFree(&head);
    if (!at) return (slice){NULL, 0};
    at += skip;
    const char *end = strchr(at, '\n');
    size_t len = end ? (size_t)(end - at) : strlen(at);
    if (len && at[len - 1] == ',') len--;
    return sliceMake(at, len);
}

/* The character of \u and four digits; only bytes below a blank are written so. */
static char fromHex(const char *digits) {
    int value = 0;
    for (int i = 0; i < 4; i++) value = value * 16 + hexDigit(digits[i]);
    return (char)value;
}

void recordReadText(const str *record, const char *name, str *out) {
    slice raw = recordRaw(record, name);
    if (raw.len < 2 || raw.ptr[0] != '"') return;
    const char *at = raw.ptr + 1, *end = raw.ptr + raw.len - 1;
    for (; at < end; at++) {
        if (*at != '\\' || at + 1 == end) {
            strAppendByte(out, *at);
        } else if (at[1] == 'u' && end - at >= 6) {
            strAppendByte(out, fromHex(at + 2));
            at += 5;
        } else {
            strAppendByte(out, *++at);
        }
    }
}

int64_t recordReadNumber(const str *record, const char *name) {
    slice raw = recordRaw(record, name);
    int64_t number;
    return raw.ptr && numberParseInt(raw, &number) ? number : -1;
}

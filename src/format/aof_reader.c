/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records of append only files (aof_reader.h). Invariant: bytes [at, end) of the buffer have been
 * read and belong to no complete item yet. */
#include "format/aof_reader.h"

#include <string.h>

#include "base/base.h"
#include "base/number.h"
#include "format/rdb_envelope.h"
#include "io/file_stream.h"

enum {
    LINE_MAX_BYTES = 64,          /* of a line with a length */
    ANNOTATION_MAX_BYTES = 65536, /* of an annotation */
};

/* Position inside the record being parsed. */
typedef struct cursor {
    aofReader *r;
    size_t pos; /* in the buffer */
    int64_t lines;
} cursor;

void aofReaderInit(aofReader *r, rdbSource *source, uint64_t offset) {
    *r = (aofReader){
        .source = source, .base = offset, .safe_offset = offset, .line = 1, .safe_line = 1};
}

void aofReaderClear(aofReader *r) {
    memFree(r->buffer);
    memFree(r->argv);
    r->buffer = NULL;
    r->argv = NULL;
}

/* ------------------------------------------------------------------ the buffer */

/* Makes room for at least one more byte: drops finished items, or doubles the buffer. */
static void makeRoom(aofReader *r) {
    hotCheck(r->at <= r->end);
    hotCheck(r->end <= r->cap);
    if (r->at && r->at >= r->cap / 2) {
        memmove(r->buffer, r->buffer + r->at, r->end - r->at);
        r->base += r->at;
        r->end -= r->at;
        r->at = 0;
    }
    if (r->end < r->cap) return;
    r->cap = r->cap ? r->cap * 2 : AOF_READ_STEP;
    r->buffer = memRealloc(r->buffer, r->cap + AOF_SLACK);
}

static aofItem failure(aofReader *r, aofItem item, size_t pos) {
    hotCheck(pos <= r->end);
    hotCheck(item != AOF_COMMAND);
    r->error_offset = r->base + pos;
    return item;
}

/* Reads until at least `need` bytes follow c->pos. AOF_COMMAND: they are there. */
static aofItem fill(cursor *c, size_t need) {
    hotCheck(c->pos <= c->r->end);
    aofReader *r = c->r;
    while (r->end - c->pos < need) {
        size_t before = r->at, got;
        makeRoom(r);
        c->pos -= before - r->at;
        status st = r->source->read(r->source, r->buffer + r->end, r->cap - r->end, &got, &r->why);
        if (st != OK) return failure(r, AOF_FAILED, r->end);
        r->at_end = got == 0;
        if (got == 0) {
            (void)reasonSet(&r->why, ERR_IO, "Expected to read %zu bytes, got %zu bytes", need,
                            r->end - c->pos);
            return failure(r, AOF_TRUNCATED, c->pos);
        }
        r->end += got;
    }
    return AOF_COMMAND;
}

/* Finds the line break after c->pos; *len is the length of the line without it. */
static aofItem findLine(cursor *c, size_t max, size_t *len) {
    hotCheck(c->pos <= c->r->end);
    size_t searched = 0;
    for (;;) {
        const char *start = c->r->buffer + c->pos;
        size_t available = sizeMin(c->r->end - c->pos, max);
        const char *found = memchr(start + searched, '\n', available - searched);
        if (found) {
            *len = (size_t)(found - start);
            return AOF_COMMAND;
        }
        if (available == max) {
            (void)reasonSet(&c->r->why, ERR_SYNTAX, "Expected \\r\\n within %zu bytes", max);
            return failure(c->r, AOF_INVALID, c->pos);
        }
        searched = available;
        aofItem item = fill(c, available + 1);
        if (item != AOF_COMMAND) return item;
    }
}

/* ------------------------------------------------------------------ records */

/* Reads "<prefix><number>\r\n". */
static aofItem readNumber(cursor *c, char prefix, int64_t *number) {
    hotCheck(c->pos <= c->r->end);
    aofReader *r = c->r;
    aofItem item = fill(c, 1);
    if (item != AOF_COMMAND) return item;
    if (r->buffer[c->pos] != prefix) {
        (void)reasonSet(&r->why, ERR_SYNTAX, "Expected prefix '%c', got: '%c'", prefix,
                        r->buffer[c->pos]);
        return failure(r, AOF_INVALID, c->pos);
    }
    size_t len;
    item = findLine(c, LINE_MAX_BYTES, &len);
    if (item != AOF_COMMAND) return item;
    const char *line = r->buffer + c->pos;
    if (line[len - 1] != '\r') {
        (void)reasonSet(&r->why, ERR_SYNTAX, "Expected \\r\\n, got: %02x%02x",
                        (uint8_t)line[len - 1], (uint8_t)line[len]);
        return failure(r, AOF_INVALID, c->pos + len - 1);
    }
    if (len < 2 || !numberParseInt(sliceMake(line + 1, len - 2), number)) {
        (void)reasonSet(&r->why, ERR_SYNTAX, "Expected a number, got: '%.*s'",
                        (int)sizeMin(len - 1, 32) - (len > 1), line + 1);
        return failure(r, AOF_INVALID, c->pos + 1);
    }
    c->pos += len + 1;
    c->lines++;
    return AOF_COMMAND;
}

/* Reads one argument; its offset from the start of the record is stored, because the buffer may
 * move. */
static aofItem readArgument(cursor *c, slice *argument) {
    aofReader *r = c->r;
    int64_t len;
    aofItem item = readNumber(c, '$', &len);
    if (item != AOF_COMMAND) return item;
    if (len < 0 || len > AOF_BULK_MAX) {
        (void)reasonSet(&r->why, ERR_SYNTAX,
                        "Expected to read string of %lld bytes, which is not in the suitable range",
                        (long long)len);
        return failure(r, AOF_INVALID, c->pos);
    }
    item = fill(c, (size_t)len);
    if (item != AOF_COMMAND) return item;
    *argument = sliceMake((const char *)(uintptr_t)(c->pos - r->at), (size_t)len);
    c->pos += (size_t)len;
    item = fill(c, 2);
    if (item != AOF_COMMAND) return item;
    const char *end = r->buffer + c->pos;
    if (end[0] != '\r' || end[1] != '\n') {
        (void)reasonSet(&r->why, ERR_SYNTAX, "Expected \\r\\n, got: %02x%02x", (uint8_t)end[0],
                        (uint8_t)end[1]);
        return failure(r, AOF_INVALID, c->pos);
    }
    c->pos += 2;
    c->lines++;
    return AOF_COMMAND;
}

static void reserveArguments(aofReader *r, int count) {
    hotCheck(count >= 0);
    if ((size_t)count < r->argv_cap) return;
    r->argv_cap = r->argv_cap ? r->argv_cap * 2 : 16;
    r->argv = memRealloc(r->argv, r->argv_cap * sizeof(slice));
}

static aofItem readCommand(cursor *c) {
    hotCheck(c->pos >= c->r->at);
    aofReader *r = c->r;
    int64_t count;
    aofItem item = readNumber(c, '*', &count);
    if (item != AOF_COMMAND) return item;
    if (count < 1 || count > AOF_ARGS_MAX) {
        (void)reasonSet(&r->why, ERR_SYNTAX, "Expected 1 to %d arguments, got: %lld", AOF_ARGS_MAX,
                        (long long)count);
        return failure(r, AOF_INVALID, r->at);
    }
    r->argc = 0;
    while (r->argc < count) {
        reserveArguments(r, r->argc);
        item = readArgument(c, &r->argv[r->argc]);
        if (item != AOF_COMMAND) return item;
        r->argc++;
    }
    for (int i = 0; i < r->argc; i++)
        r->argv[i].ptr = r->buffer + r->at + (size_t)(uintptr_t)r->argv[i].ptr;
    return AOF_COMMAND;
}

static aofItem readAnnotation(cursor *c) {
    hotCheck(c->pos >= c->r->at);
    size_t len;
    aofItem item = findLine(c, ANNOTATION_MAX_BYTES, &len);
    if (item != AOF_COMMAND) return item;
    c->pos += len + 1;
    c->lines++;
    c->r->argc = 0;
    return AOF_ANNOTATION;
}

/* A file system may have extended the file before a crash without writing its bytes. Reads up to
 * the end. */
static bool onlyZeroes(cursor *c) {
    aofReader *r = c->r;
    size_t pos = c->pos;
    for (;;) {
        while (pos < r->end && r->buffer[pos] == 0) pos++;
        if (pos < r->end) return false;
        size_t searched = pos - c->pos;
        if (fill(c, searched + 1) != AOF_COMMAND) return r->at_end;
        pos = c->pos + searched;
    }
}

static void noteTransaction(aofReader *r) {
    hotCheck(r->argc > 0);
    bool begins = sliceIs(r->argv[0], "multi"), ends = sliceIs(r->argv[0], "exec");
    r->unexpected = (begins && r->in_multi) || (ends && !r->in_multi);
    if (r->unexpected) return;
    if (begins) r->in_multi = true;
    if (ends) r->in_multi = false;
}

aofItem aofReaderNext(aofReader *r) {
    hotCheck(r->at <= r->end);
    hotCheck(r->safe_offset <= r->base + r->at);
    cursor c = {.r = r, .pos = r->at};
    r->at_end = false;
    aofItem item = fill(&c, 1);
    if (item == AOF_TRUNCATED) return failure(r, AOF_END, r->at);
    if (item != AOF_COMMAND) return item;
    char first = r->buffer[c.pos];
    if (first == 0 && onlyZeroes(&c)) {
        (void)reasonSet(&r->why, ERR_IO, "Expected prefix '*', got zero bytes up to the end");
        return failure(r, AOF_TRUNCATED, r->at);
    }
    item = first == '#' ? readAnnotation(&c) : readCommand(&c);
    if (item != AOF_COMMAND && item != AOF_ANNOTATION) return item;
    r->raw = sliceMake(r->buffer + r->at, c.pos - r->at);
    r->at = c.pos;
    r->line += c.lines;
    if (item == AOF_COMMAND) noteTransaction(r);
    if (!r->in_multi && !r->unexpected) {
        r->safe_offset = aofReaderOffset(r);
        r->safe_line = r->line;
    }
    return item;
}

bool aofAnnotationTime(slice line, int64_t *time_s) {
    static const char prefix[] = "#TS:";
    size_t skip = sizeof(prefix) - 1;
    if (line.len <= skip || memcmp(line.ptr, prefix, skip) != 0) return false;
    slice digits = sliceMake(line.ptr + skip, line.len - skip);
    while (digits.len && (digits.ptr[digits.len - 1] == '\n' || digits.ptr[digits.len - 1] == '\r'))
        digits.len--;
    return numberParseInt(digits, time_s);
}

bool aofIsRdb(slice start) {
    slice redis = SLICE("REDIS0"), valkey = SLICE("VALKEY");
    if (start.len < AOF_RDB_MAGIC) return false;
    if (compressIsHead(start)) return true;
    start.len = AOF_RDB_MAGIC;
    return sliceEqual(start, redis) || sliceEqual(start, valkey);
}

status aofFileIsRdb(const char *path, bool *yes, reason *why) {
    char start[AOF_RDB_MAGIC];
    fileReader file;
    size_t len = 0, got = 1;
    status st = fileReaderOpen(&file, path, why);
    while (st == OK && got > 0 && len < sizeof(start)) {
        st = fileReaderRead(&file, start + len, sizeof(start) - len, &got, why);
        if (st == OK) len += got;
    }
    fileReaderClose(&file);
    *yes = st == OK && aofIsRdb(sliceMake(start, len));
    return st;
}

/* ------------------------------------------------------------------ writing */

static void printLength(str *out, char prefix, int64_t number) {
    strAppendByte(out, prefix);
    strAppendInt(out, number);
    strAppend(out, "\r\n", 2);
}

void aofPrintCommand(str *out, int argc, const slice *argv) {
    printLength(out, '*', argc);
    for (int i = 0; i < argc; i++) {
        printLength(out, '$', (int64_t)argv[i].len);
        strAppendSlice(out, argv[i]);
        strAppend(out, "\r\n", 2);
    }
}

void aofPrintTime(str *out, int64_t time_s) {
    strAppendText(out, "#TS:");
    strAppendInt(out, time_s);
    strAppend(out, "\r\n", 2);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The manifest of an append only file (aof_manifest.h). Invariant: files are ordered base, history,
 * incremental; at most one is the base. */
#include "format/aof_manifest.h"

#include <string.h>

#include "base/base.h"
#include "base/number.h"

/* ------------------------------------------------------------------ the list */

static int rank(aofFileType type) { return type == AOF_BASE ? 0 : type == AOF_HISTORY ? 1 : 2; }

static void insert(aofManifest *m, int index, aofFile file) {
    hotCheck(index <= m->count);
    hotCheck(m->count <= m->cap);
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 8;
        m->files = memRealloc(m->files, (size_t)m->cap * sizeof(aofFile));
    }
    memmove(m->files + index + 1, m->files + index, (size_t)(m->count - index) * sizeof(aofFile));
    m->files[index] = file;
    m->count++;
}

/* Index after the last file of `type`. */
static int endOf(const aofManifest *m, aofFileType type) {
    int index = 0;
    while (index < m->count && rank(m->files[index].type) <= rank(type)) index++;
    return index;
}

void aofManifestAdd(aofManifest *m, aofFileType type, const char *name, int64_t seq) {
    aofFile file = {.name = memDup(name, strlen(name)), .seq = seq, .type = type};
    if (type == AOF_BASE) {
        check(!aofManifestBase(m));
        m->base_seq = seq;
    } else if (type == AOF_INCR) {
        check(seq > m->incr_seq);
        m->incr_seq = seq;
    }
    insert(m, endOf(m, type), file);
}

void aofManifestRemove(aofManifest *m, int index) {
    check(index >= 0);
    check(index < m->count);
    memFree(m->files[index].name);
    m->count--;
    memmove(m->files + index, m->files + index + 1, (size_t)(m->count - index) * sizeof(aofFile));
}

/* The newest history file is the first one. */
static void retire(aofManifest *m, int index) {
    hotCheck(index < m->count);
    aofFile file = m->files[index];
    m->count--;
    memmove(m->files + index, m->files + index + 1, (size_t)(m->count - index) * sizeof(aofFile));
    file.type = AOF_HISTORY;
    insert(m, endOf(m, AOF_BASE), file);
}

void aofManifestRetire(aofManifest *m, int keep) {
    if (aofManifestBase(m)) retire(m, 0);
    int last = m->count - keep;
    for (int i = endOf(m, AOF_HISTORY); i < last; i++) retire(m, i);
}

const aofFile *aofManifestBase(const aofManifest *m) {
    return m->count && m->files[0].type == AOF_BASE ? &m->files[0] : NULL;
}

int aofManifestCount(const aofManifest *m, aofFileType type) {
    hotCheck(m->count <= m->cap || m->count == 0);
    int count = 0;
    for (int i = 0; i < m->count; i++) count += m->files[i].type == type;
    return count;
}

const aofFile *aofManifestLast(const aofManifest *m, aofFileType type) {
    int end = endOf(m, type);
    return end && m->files[end - 1].type == type ? &m->files[end - 1] : NULL;
}

void aofManifestClear(aofManifest *m) {
    for (int i = 0; i < m->count; i++) memFree(m->files[i].name);
    memFree(m->files);
    *m = (aofManifest){0};
}

aofManifest aofManifestCopy(const aofManifest *m) {
    aofManifest copy = {.base_seq = m->base_seq, .incr_seq = m->incr_seq};
    for (int i = 0; i < m->count; i++) {
        aofFile file = m->files[i];
        file.name = memDup(file.name, strlen(file.name));
        insert(&copy, i, file);
    }
    return copy;
}

/* ------------------------------------------------------------------ writing */

static bool needsQuotes(const char *name) {
    for (; *name; name++) {
        uint8_t byte = (uint8_t)*name;
        if (byte <= ' ' || byte >= 127 || strchr("\"'\\", byte)) return true;
    }
    return false;
}

void aofManifestPrint(const aofManifest *m, str *out) {
    for (int i = 0; i < m->count; i++) {
        const aofFile *file = &m->files[i];
        strAppendText(out, "file ");
        if (needsQuotes(file->name)) {
            strAppendQuoted(out, sliceOf(file->name));
        } else {
            strAppendText(out, file->name);
        }
        strAppendFormat(out, " seq %lld type %c\n", (long long)file->seq, file->type);
    }
}

/* ------------------------------------------------------------------ parsing */

static bool isBlank(char byte) { return byte == ' ' || byte == '\t' || byte == '\r'; }

/* Digits at the start of `text`, with an optional sign; what follows does not matter. 0: no digits,
 * or too many. */
static int64_t leadingNumber(slice text) {
    bool negative = text.len && *text.ptr == '-';
    int64_t number = 0;
    for (size_t i = negative; i < text.len && (uint8_t)(text.ptr[i] - '0') <= 9; i++) {
        int64_t digit = text.ptr[i] - '0';
        if (!numberMul(number, 10, &number) || !numberAdd(number, digit, &number)) return 0;
    }
    return negative ? -number : number;
}

/* Stores what the words of a line say; a repeated key replaces what was before. */
static status readPairs(const str *words, int count, aofFile *file, slice *name, reason *why) {
    for (int i = 0; i + 1 < count; i += 2) {
        slice key = strSlice(&words[i]), value = strSlice(&words[i + 1]);
        if (sliceIs(key, "file")) {
            if (memchr(value.ptr, '/', value.len))
                return reasonSet(why, ERR_SYNTAX, "File can't be a path, just a filename");
            *name = value;
        } else if (sliceIs(key, "seq")) {
            file->seq = leadingNumber(value);
        } else if (sliceIs(key, "type")) {
            file->type = value.len ? (aofFileType)value.ptr[0] : 0;
        }
    }
    return OK;
}

static status addParsed(aofManifest *m, const aofFile *file, slice name, reason *why) {
    switch (file->type) {
    case AOF_BASE:
        if (aofManifestBase(m))
            return reasonSet(why, ERR_SYNTAX, "Found duplicate base file information");
        break;
    case AOF_INCR:
        if (file->seq <= m->incr_seq)
            return reasonSet(why, ERR_SYNTAX, "Found a non-monotonic sequence number");
        break;
    case AOF_HISTORY: break;
    default: return reasonSet(why, ERR_SYNTAX, "Unknown AOF file type");
    }
    char *copy = memDup(name.ptr, name.len);
    aofManifestAdd(m, file->type, copy, file->seq);
    memFree(copy);
    return OK;
}

static status parseLine(slice line, aofManifest *m, reason *why) {
    str *words;
    int count;
    if (line.len == 0 || !strSplitWords(line, &words, &count))
        return reasonSet(why, ERR_SYNTAX, "Invalid AOF manifest file format");
    aofFile file = {.seq = 0};
    slice name = {NULL, 0};
    status st = OK;
    if (count < 6 || count % 2) {
        st = reasonSet(why, ERR_SYNTAX, "Invalid AOF manifest file format");
    } else {
        st = readPairs(words, count, &file, &name, why);
    }
    if (st == OK && (name.len == 0 || strlen(name.ptr) != name.len || file.seq == 0 || !file.type))
        st = reasonSet(why, ERR_SYNTAX, "Invalid AOF manifest file format");
    if (st == OK) st = addParsed(m, &file, name, why);
    strFreeWords(words, count);
    return st;
}

static status fail(aofManifestError *error, int line, slice text) {
    error->line = line;
    error->text = strNew(text);
    return ERR_SYNTAX;
}

status aofManifestParse(slice content, aofManifest *out, aofManifestError *error) {
    *out = (aofManifest){0};
    *error = (aofManifestError){0};
    if (content.len == 0) return reasonSet(&error->why, ERR_SYNTAX, "Found an empty AOF manifest");
    const char *at = content.ptr, *end = content.ptr + content.len;
    for (int number = 1; at < end; number++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        slice line = sliceMake(at, (size_t)((line_end ? line_end : end) - at));
        at = line_end ? line_end + 1 : end;
        if (line.len && line.ptr[0] == '#') continue;
        status st = OK;
        if (!line_end || line.len >= AOF_MANIFEST_LINE_MAX || memchr(line.ptr, 0, line.len)) {
            st = reasonSet(&error->why, ERR_SYNTAX, "The AOF manifest file contains too long line");
        } else {
            while (line.len && isBlank(line.ptr[line.len - 1])) line.len--;
            while (line.len && isBlank(line.ptr[0])) line = sliceMake(line.ptr + 1, line.len - 1);
            st = parseLine(line, out, &error->why);
        }
        if (st == OK) continue;
        aofManifestClear(out);
        return fail(error, number, sliceMake(line.ptr, sizeMin(line.len, AOF_MANIFEST_LINE_MAX)));
    }
    return OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Converts a configuration file of another server into one that this server loads
 * (configMigrate()).
 *
 * Invariant: each line of the result was accepted by the loader, or is a comment or an include. A
 * refused line stays in the file as a comment, with the reason above it. Main thread only. */
#include <errno.h>

#include "base/base.h"
#include "config/config.h"
#include "config/config_priv.h"
#include "io/file.h"

enum { FILE_BYTES_MAX = 64 * 1024 * 1024 };

typedef struct migration {
    str *out, *notes;
    int number; /* of the line */
    int open;   /* lines that the user has to decide about */
    bool has_modules;
} migration;

static void note(migration *m, slice name, const char *what, slice detail) {
    strAppendFormat(m->notes, "line %d: %.*s %s%.*s\n", m->number, (int)name.len, name.ptr, what,
                    (int)detail.len, detail.ptr);
}

static void copyLine(migration *m, slice line) {
    strAppendSlice(m->out, line);
    strAppendByte(m->out, '\n');
}

/* Writes the line as a comment. */
static void drop(migration *m, slice line, slice name, slice reason, bool is_open) {
    hotCheck(reason.len > 0);
    hotCheck(m->number > 0);
    strAppendFormat(m->out, "# --migrate-config: %.*s\n# ", (int)reason.len, reason.ptr);
    copyLine(m, line);
    note(m, name, is_open ? "is left out, look at it: " : "is left out, ", reason);
    m->open += is_open;
}

/* Extracts the reason from a report about one line: the third line of the report, and the fourth
 * line from its first semicolon on. */
static str reasonOf(const str *report) {
    str reason = STR_EMPTY;
    slice rest = strSlice(report), part = rest;
    for (int i = 0; i < 4 && rest.len; i++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        part = sliceMake(rest.ptr, len);
        if (i == 2) strAppendSlice(&reason, part);
        size_t skip = len + (end != NULL);
        rest = sliceMake(rest.ptr + skip, rest.len - skip);
    }
    const char *more = part.len ? memchr(part.ptr, ';', part.len) : NULL;
    if (more) strAppendSlice(&reason, sliceMake(more, part.len - (size_t)(more - part.ptr)));
    return reason;
}

/* Tries a line whose name is a directive of this server, or was replaced by one, and writes it or a
 * comment. */
static void takeKnown(migration *m, slice line, slice original, slice name) {
    str report = STR_EMPTY;
    if (configTryLine(line, &report)) {
        copyLine(m, line);
        slice found = configPlaceholder(line);
        if (found.len && !configIsSensitive(name))
            note(m, name, "is kept, but has a placeholder: ", found);
    } else {
        str reason = reasonOf(&report);
        drop(m, original, name, strSlice(&reason), true);
        strFree(&reason);
    }
    strFree(&report);
}

static void takeForeign(migration *m, const configForeign *f, slice line, slice name) {
    hotCheck(line.len >= name.len);
    str text = STR_EMPTY;
    configForeignHint(f, &text);
    if (f->here) {
        slice rest = sliceMake(name.ptr + name.len, line.len - name.len);
        str renamed = STR_EMPTY;
        strAppendText(&renamed, f->here);
        strAppendSlice(&renamed, rest);
        note(m, name, "is ", strSlice(&text));
        takeKnown(m, strSlice(&renamed), line, name);
        strFree(&renamed);
    } else {
        drop(m, line, name, strSlice(&text), !f->harmless);
    }
    strFree(&text);
}

static slice trim(slice line) {
    while (line.len && memchr(" \t\r\n", line.ptr[0], 4)) line.ptr++, line.len--;
    while (line.len && memchr(" \t\r\n", line.ptr[line.len - 1], 4)) line.len--;
    return line;
}

static slice nameOf(slice line) {
    hotCheck(line.ptr);
    size_t len = 0;
    while (len < line.len && !memchr(" \t", line.ptr[len], 2)) len++;
    return sliceMake(line.ptr, len);
}

static void takeLine(migration *m, slice line) {
    slice text = trim(line), name = nameOf(text), none = SLICE("");
    if (!text.len || text.ptr[0] == '#') {
        copyLine(m, sliceMake(line.ptr, line.len));
        return;
    }
    bool known = configEntryFind(name) != NULL;
    const configForeign *f = known ? NULL : configForeignFind(name);
    bool of_module = !known && !f && memchr(name.ptr, '.', name.len);
    if (sliceIs(name, "include")) {
        copyLine(m, text);
        note(m, name, "is kept: do the same with the file", none);
    } else if (of_module && !m->has_modules) {
        drop(m, text, name, SLICE("it belongs to a module, and none is loaded"), false);
    } else if (f) {
        takeForeign(m, f, text, name);
    } else {
        if (sliceIs(name, "loadmodule")) note(m, name, "is kept: try whether it loads", none);
        takeKnown(m, text, text, name);
    }
}

/* Calls `take` for each line of the content. */
static void eachLine(migration *m, slice content, void (*take)(migration *m, slice line)) {
    m->number = 0;
    while (content.len) {
        const char *end = memchr(content.ptr, '\n', content.len);
        size_t len = end ? (size_t)(end - content.ptr) : content.len;
        size_t skip = len + (end != NULL);
        if (len && content.ptr[len - 1] == '\r') len--;
        m->number++;
        take(m, sliceMake(content.ptr, len));
        content = sliceMake(content.ptr + skip, content.len - skip);
    }
}

static void seekModules(migration *m, slice line) {
    slice name = nameOf(trim(line));
    m->has_modules |= sliceIs(name, "loadmodule") || sliceIs(name, "include");
}

int configMigrate(const char *path, str *out, str *notes) {
    hotCheck(threadIsMain());
    migration m = {.out = out, .notes = notes};
    str content = STR_EMPTY;
    reason why = {""};
    status st = fileReadAll(path, FILE_BYTES_MAX, &content, &why);
    if (st != OK) {
        strAppendFormat(notes, "can't read '%s': %s\n", path,
                        st == ERR_LIMIT ? why.text : strerror(errno));
        return -1;
    }
    eachLine(&m, strSlice(&content), seekModules);
    eachLine(&m, strSlice(&content), takeLine);
    strFree(&content);
    return m.open;
}

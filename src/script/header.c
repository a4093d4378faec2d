/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsing of headers (header.h). */
#include "script/header.h"

#include <string.h>

#include "base/base.h"
#include "base/bytes.h"
#include "script/run.h"

static bool startsWith(slice text, const char *with) {
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.ptr, with, len) == 0;
}

/* The first line, with "#!"; *code is the rest. False: it has no end. */
static bool splitHeader(slice body, slice *line, slice *code) {
    const char *end = memchr(body.ptr, '\n', body.len);
    if (!end) return false;
    *line = sliceMake(body.ptr, (size_t)(end - body.ptr));
    *code = sliceMake(end, body.len - (size_t)(end - body.ptr));
    return true;
}

/* "flags=a,b" */
static bool parseFlags(slice word, unsigned *flags, str *error) {
    hotCheck(word.len >= 6);
    slice rest = sliceMake(word.ptr + 6, word.len - 6);
    while (rest.len) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        unsigned flag = scriptFlagParse(sliceMake(rest.ptr, len), false);
        if (!flag) {
            strAppendFormat(error, "ERR Unexpected flag in script shebang: %.*s", (int)len,
                            rest.ptr);
            return false;
        }
        *flags |= flag;
        if (!comma) break;
        rest = sliceMake(comma + 1, rest.len - len - 1);
        if (!rest.len) {
            strAppendText(error, "ERR Unexpected flag in script shebang: ");
            return false;
        }
    }
    return true;
}

/* The name of the engine follows "#!" without a blank. */
static slice engineName(const str *words) { return sliceMake(words[0].ptr + 2, words[0].len - 2); }

static bool parseWords(const str *words, int count, scriptHeader *out, str *error) {
    hotCheck(count > 0);
    slice engine = engineName(words);
    for (int i = 1; i < count; i++) {
        slice word = strSlice(&words[i]);
        if (!startsWith(word, "flags=")) {
            strAppendFormat(error, "ERR Unknown lua shebang option: %.*s", (int)word.len, word.ptr);
            return false;
        }
        if (!parseFlags(word, &out->flags, error)) return false;
    }
    out->engine = scriptEngineFind(engine);
    if (!out->engine)
        strAppendFormat(error, "ERR Could not find scripting engine '%.*s'", (int)engine.len,
                        engine.ptr);
    return out->engine != NULL;
}

bool scriptHeaderParse(slice body, scriptHeader *out, str *error) {
    if (!startsWith(body, "#!")) {
        *out = (scriptHeader){
            .engine = scriptEngineFind(SLICE("lua")), .flags = SCRIPT_NO_HEADER, .code = body};
        if (!out->engine) {
            strAppendText(error, "ERR Could not find scripting engine 'lua'");
            return false;
        }
        return true;
    }
    slice line;
    *out = (scriptHeader){.flags = 0};
    if (!splitHeader(body, &line, &out->code)) {
        strAppendText(error, "ERR Invalid script shebang");
        return false;
    }
    str *words;
    int count;
    if (!strSplitWords(line, &words, &count)) {
        strAppendText(error, "ERR Invalid engine in script shebang");
        return false;
    }
    bool ok = parseWords(words, count, out, error);
    strFreeWords(words, count);
    return ok;
}

bool scriptNameIsValid(slice name) {
    for (size_t i = 0; i < name.len; i++) {
        char c = (char)byteFold(name.ptr[i]);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') return false;
    }
    return name.len > 0;
}

static bool startsWithFold(slice text, const char *with) {
    size_t len = strlen(with);
    return text.len >= len && sliceIs(sliceMake(text.ptr, len), with);
}

static bool parseLibraryWords(const str *words, int count, libraryHeader *out, str *error) {
    hotCheck(count > 0);
    bool is_named = false;
    for (int i = 1; i < count; i++) {
        slice word = strSlice(&words[i]);
        if (!startsWithFold(word, "name=")) {
            strAppendFormat(error, "ERR Invalid metadata value given: %.*s", (int)word.len,
                            word.ptr);
            return false;
        }
        if (is_named) {
            strAppendText(error,
                          "ERR Invalid metadata value, name argument was given multiple times");
            return false;
        }
        is_named = true;
        out->name = strNew(sliceMake(word.ptr + 5, word.len - 5));
    }
    if (!is_named) {
        strAppendText(error, "ERR Library name was not given");
        return false;
    }
    if (!scriptNameIsValid(strSlice(&out->name))) {
        strAppendText(error, "ERR Library names can only contain letters, numbers, or "
                             "underscores(_) and must be at least one character long");
        return false;
    }
    slice engine = engineName(words);
    out->engine = scriptEngineFind(engine);
    if (!out->engine)
        strAppendFormat(error, "ERR Engine '%.*s' not found", (int)engine.len, engine.ptr);
    return out->engine != NULL;
}

bool libraryHeaderParse(slice body, libraryHeader *out, str *error) {
    *out = (libraryHeader){.name = STR_EMPTY};
    slice line;
    if (!startsWith(body, "#!")) {
        strAppendText(error, "ERR Missing library metadata");
        return false;
    }
    str *words;
    int count;
    if (!splitHeader(body, &line, &out->code) || !strSplitWords(line, &words, &count)) {
        strAppendText(error, "ERR Invalid library metadata");
        return false;
    }
    bool ok = parseLibraryWords(words, count, out, error);
    strFreeWords(words, count);
    if (!ok) strFree(&out->name);
    return ok;
}

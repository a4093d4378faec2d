/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies as text (print.h). Replies have a bounded depth, so recursion is bounded. */
#include "tools/cli/print.h"

#include <stdio.h>
#include <string.h>

static slice textOf(const valkeyReply *r) { return sliceMake(r->str, r->len); }

static bool isAggregate(const valkeyReply *r) {
    return r->type == VALKEY_REPLY_ARRAY || r->type == VALKEY_REPLY_MAP ||
           r->type == VALKEY_REPLY_SET || r->type == VALKEY_REPLY_PUSH ||
           r->type == VALKEY_REPLY_ATTR;
}

static bool isPairs(const valkeyReply *r) {
    return r->type == VALKEY_REPLY_MAP || r->type == VALKEY_REPLY_ATTR;
}

/* ------------------------------------------------------------------ standard */

typedef struct standardOutput {
    str *text;
    bool colors;
} standardOutput;

static void colored(const standardOutput *s, const char *color, const char *text, slice bytes) {
    if (s->colors) strAppendFormat(s->text, "\033[%sm", color);
    strAppendText(s->text, text);
    strAppendSlice(s->text, bytes);
    if (s->colors) strAppendText(s->text, "\033[0m");
    strAppendByte(s->text, '\n');
}

static void standardScalar(const standardOutput *s, const valkeyReply *r) {
    str quoted = STR_EMPTY;
    switch (r->type) {
    case VALKEY_REPLY_ERROR: colored(s, "31", "(error) ", textOf(r)); break;
    case VALKEY_REPLY_STATUS: colored(s, "32", "", textOf(r)); break;
    case VALKEY_REPLY_INTEGER:
        strAppendInt(&quoted, r->integer);
        colored(s, "36", "(integer) ", strSlice(&quoted));
        break;
    case VALKEY_REPLY_DOUBLE: colored(s, "36", "(double) ", textOf(r)); break;
    case VALKEY_REPLY_BIGNUM: colored(s, "36", "(big number) ", textOf(r)); break;
    case VALKEY_REPLY_STRING:
        strAppendQuoted(&quoted, textOf(r));
        colored(s, "33", "", strSlice(&quoted));
        break;
    case VALKEY_REPLY_VERB: colored(s, "33", "", textOf(r)); break;
    case VALKEY_REPLY_BOOL: colored(s, "35", r->integer ? "(true)" : "(false)", SLICE("")); break;
    default: colored(s, "90", "(nil)", SLICE("")); break;
    }
    strFree(&quoted);
}

static void standardEmpty(const standardOutput *s, const valkeyReply *r) {
    const char *text = r->type == VALKEY_REPLY_ARRAY  ? "(empty array)"
                       : r->type == VALKEY_REPLY_MAP  ? "(empty hash)"
                       : r->type == VALKEY_REPLY_SET  ? "(empty set)"
                       : r->type == VALKEY_REPLY_PUSH ? "(empty push)"
                                                      : "(empty aggregate type)";
    colored(s, "90", text, SLICE(""));
}

static int digitsOf(size_t number) {
    int digits = 1;
    while (number >= 10) {
        number /= 10;
        digits++;
    }
    return digits;
}

/* `indent`: blanks before each line but the first. */
static void standardValue(const standardOutput *s, const valkeyReply *r, int indent) {
    if (!isAggregate(r)) {
        standardScalar(s, r);
        return;
    }
    if (r->elements == 0) {
        standardEmpty(s, r);
        return;
    }
    bool pairs = isPairs(r);
    char mark = pairs ? '#' : r->type == VALKEY_REPLY_SET ? '~' : ')';
    if (r->type == VALKEY_REPLY_ATTR) mark = '|';
    size_t count = pairs ? r->elements / 2 : r->elements;
    int width = digitsOf(count), inner = indent + width + 2;
    for (size_t i = 0; i < count; i++) {
        strAppendFormat(s->text, "%*s%*zu%c ", i ? indent : 0, "", width, i + 1, mark);
        standardValue(s, r->element[pairs ? 2 * i : i], inner);
        if (!pairs) continue;
        strCut(s->text, s->text->len - 1);
        const valkeyReply *value = r->element[2 * i + 1];
        strAppendText(s->text, " => ");
        if (isAggregate(value) && value->elements > 0) strAppendFormat(s->text, "\n%*s", inner, "");
        standardValue(s, r->element[2 * i + 1], inner);
    }
}

void printStandard(str *out, const valkeyReply *r, bool colors) {
    standardOutput s = {out, colors};
    standardValue(&s, r, 0);
}

/* ------------------------------------------------------------------ raw */

void printRaw(str *out, const valkeyReply *r, const char *delimiter) {
    if (isAggregate(r)) {
        bool pairs = isPairs(r);
        for (size_t i = 0; i < r->elements; i++) {
            if (i > 0) strAppendText(out, pairs && i % 2 ? " " : delimiter);
            printRaw(out, r->element[i], delimiter);
        }
        return;
    }
    switch (r->type) {
    case VALKEY_REPLY_NIL: break;
    case VALKEY_REPLY_INTEGER: strAppendInt(out, r->integer); break;
    case VALKEY_REPLY_BOOL: strAppendText(out, r->integer ? "(true)" : "(false)"); break;
    case VALKEY_REPLY_ERROR:
        strAppendSlice(out, textOf(r));
        strAppendByte(out, '\n');
        break;
    default: strAppendSlice(out, textOf(r)); break;
    }
}

/* ------------------------------------------------------------------ CSV */

void printCsv(str *out, const valkeyReply *r) {
    if (isAggregate(r)) {
        for (size_t i = 0; i < r->elements; i++) {
            if (i > 0) strAppendByte(out, ',');
            printCsv(out, r->element[i]);
        }
        return;
    }
    switch (r->type) {
    case VALKEY_REPLY_NIL: strAppendText(out, "NULL"); break;
    case VALKEY_REPLY_INTEGER: strAppendInt(out, r->integer); break;
    case VALKEY_REPLY_BOOL: strAppendText(out, r->integer ? "true" : "false"); break;
    case VALKEY_REPLY_DOUBLE: strAppendSlice(out, textOf(r)); break;
    case VALKEY_REPLY_ERROR: strAppendText(out, "ERROR,"); /* fall through */
    default: strAppendQuoted(out, textOf(r)); break;
    }
}

/* ------------------------------------------------------------------ JSON */

static void jsonText(str *out, slice text) {
    static const char escaped[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    strAppendByte(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        const char *at = byte ? strchr(escaped, byte) : NULL;
        if (at) {
            strAppendByte(out, '\\');
            strAppendByte(out, letters[at - escaped]);
        } else if (byte < 0x20) {
            strAppendFormat(out, "\\u%04x", byte);
        } else {
            strAppendByte(out, (char)byte);
        }
    }
    strAppendByte(out, '"');
}

static void jsonString(str *out, slice text, bool ascii) {
    if (!ascii) {
        jsonText(out, text);
        return;
    }
    str quoted = STR_EMPTY;
    strAppendQuoted(&quoted, text);
    /* The quotes of the escaped text are not part of it. */
    jsonText(out, sliceMake(quoted.ptr + 1, quoted.len - 2));
    strFree(&quoted);
}

static void jsonKey(str *out, const valkeyReply *key, bool ascii) {
    if (key->type == VALKEY_REPLY_STRING || key->type == VALKEY_REPLY_STATUS ||
        key->type == VALKEY_REPLY_VERB) {
        printJson(out, key, ascii);
        return;
    }
    /* JSON has no other keys than strings. */
    str text = STR_EMPTY;
    printJson(&text, key, ascii);
    jsonText(out, strSlice(&text));
    strFree(&text);
}

static void jsonAggregate(str *out, const valkeyReply *r, bool ascii) {
    bool pairs = isPairs(r);
    strAppendByte(out, pairs ? '{' : '[');
    for (size_t i = 0; i < r->elements; i++) {
        if (i > 0) strAppendByte(out, pairs && i % 2 ? ':' : ',');
        if (pairs && i % 2 == 0) {
            jsonKey(out, r->element[i], ascii);
        } else {
            printJson(out, r->element[i], ascii);
        }
    }
    strAppendByte(out, pairs ? '}' : ']');
}

void printJson(str *out, const valkeyReply *r, bool ascii) {
    if (isAggregate(r)) {
        jsonAggregate(out, r, ascii);
        return;
    }
    switch (r->type) {
    case VALKEY_REPLY_NIL: strAppendText(out, "null"); break;
    case VALKEY_REPLY_INTEGER: strAppendInt(out, r->integer); break;
    case VALKEY_REPLY_BOOL: strAppendText(out, r->integer ? "true" : "false"); break;
    case VALKEY_REPLY_DOUBLE:
    case VALKEY_REPLY_BIGNUM: strAppendSlice(out, textOf(r)); break;
    case VALKEY_REPLY_ERROR: strAppendText(out, "error:"); /* fall through */
    default: jsonString(out, textOf(r), ascii); break;
    }
}

/* ------------------------------------------------------------------ */

void printReply(str *out, const valkeyReply *r, const cliOptions *o, bool as_text, bool colors) {
    bool is_text = r->type == VALKEY_REPLY_STRING || r->type == VALKEY_REPLY_VERB ||
                   r->type == VALKEY_REPLY_ERROR;
    if (as_text && is_text) { /* others: QUEUED in a transaction */
        printRaw(out, r, "\n");
        if (!out->len || out->ptr[out->len - 1] != '\n') strAppendByte(out, '\n');
        return;
    }
    switch (o->output) {
    case OUTPUT_STANDARD: printStandard(out, r, colors); break;
    case OUTPUT_RAW:
        printRaw(out, r, o->item_delimiter);
        strAppendText(out, o->reply_delimiter);
        break;
    case OUTPUT_CSV:
        printCsv(out, r);
        strAppendByte(out, '\n');
        break;
    case OUTPUT_JSON:
    case OUTPUT_QUOTED_JSON:
        printJson(out, r, o->output == OUTPUT_QUOTED_JSON);
        strAppendByte(out, '\n');
        break;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inline requests: a line of words, as people type them.
 *
 * Words are slices of the line itself. A line with quotes gets a block of its own for argv and the unquoted
 * text, because the buffer's bytes must stay as they came: they are parsed again when the batch is dropped.
 * A NUL hides the end of its line, as it does in Valkey: clients that speak another protocol are not
 * answered word by word, but refused once 64 KiB of theirs are there. Cost: linear in the line. */
#include "base/bytes.h"
#include "resp/request_partial.h"

enum { PLAIN, BLANK, QUOTE };
/* A word begins at any byte isspace() denies, but only these blanks end it. */
static const uint8_t byte_kind[256] = {
    [' '] = BLANK, ['\t'] = BLANK, ['\r'] = BLANK, ['\n'] = BLANK, ['"'] = QUOTE, ['\''] = QUOTE};

static bool isBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Finds the LF that ends the line. Each byte is looked at once however the line arrives. */
static requestStep findEnd(requestInput *in, size_t *lf) {
    requestPartial *s = in->state;
    size_t rest = in->len - s->scanned;
    const char *from = in->start + s->scanned;
    const char *found = rest && *from == 0 ? NULL : memchr(from, '\n', rest);
    const char *nul = memchr(from, 0, found ? (size_t)(found - from) : rest);
    if (found && !nul) {
        *lf = (size_t)(found - in->start);
        return STEP_DONE;
    }
    s->scanned = nul ? (size_t)(nul - in->start) : in->len;
    if (in->len > REQUEST_INLINE_MAX) return requestRefuse(in, "too big inline request");
    return STEP_WAIT;
}

static int hexDigit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Unescapes what stands behind a backslash within double quotes; returns the first byte not used. */
static const char *unescape(const char *at, const char *end, char *byte) {
    if (*at == 'x' && end - at > 2 && hexDigit(at[1]) >= 0 && hexDigit(at[2]) >= 0) {
        *byte = (char)(hexDigit(at[1]) * 16 + hexDigit(at[2]));
        return at + 3;
    }
    switch (*at) {
    case 'n': *byte = '\n'; break;
    case 'r': *byte = '\r'; break;
    case 't': *byte = '\t'; break;
    case 'b': *byte = '\b'; break;
    case 'a': *byte = '\a'; break;
    default: *byte = *at;
    }
    return at + 1;
}

/* Reads one word that begins at `at`, quotes and all, to *text, which moves on. Returns the first byte
 * behind the word, NULL when a quote stays open. The text is never longer than the word. */
static const char *unquoteWord(const char *at, const char *end, char **text) {
    char *out = *text, quote = 0;
    for (; at < end; at++) {
        char c = *at;
        if (quote == 0) {
            if (byte_kind[(uint8_t)c] == BLANK) break;
            if (byte_kind[(uint8_t)c] == QUOTE) {
                quote = c;
            } else {
                *out++ = c;
            }
        } else if (c == quote) {
            quote = 0;
        } else if (c == '\\' && end - at > 2 && (quote == '"' || at[1] == '\'')) {
            /* A backslash before the quote that ends the line is a plain byte. */
            at = unescape(at + 1, end, out++) - 1;
        } else {
            *out++ = c;
        }
    }
    *text = out;
    return quote ? NULL : at;
}

/* Splits a line in which quotes stand. argv and text share one block: there are at most half as many words
 * as bytes, and one. */
static requestStep splitQuoted(requestInput *in, const char *at, const char *end) {
    requestPartial *s = in->state;
    size_t len = (size_t)(end - at), words = len / 2 + 1;
    slice *args = memTryAlloc(words * sizeof(slice) + len + REQUEST_READ_SLACK);
    if (args == NULL) {
        s->failed = true;
        return STEP_WAIT;
    }
    if (s->args_owned) memFree(s->args);
    s->args = args;
    s->arg_count = 0;
    s->arg_room = (int)words;
    s->args_owned = true;
    char *text = (char *)(args + words);
    while (true) {
        while (at < end && isBlank(*at)) at++;
        if (at == end) return STEP_DONE;
        char *word = text;
        at = unquoteWord(at, end, &text);
        if (at == NULL) return requestRefuse(in, "unbalanced quotes in request");
        check((size_t)s->arg_count < words);
        /* As an offset from the line, like all the others. */
        uintptr_t offset = (uintptr_t)word - (uintptr_t)in->start;
        s->args[s->arg_count++] = (slice){(const char *)offset, (size_t)(text - word)};
    }
}

/* Splits the line up to `end`; STEP_DONE also when there is no word. */
static requestStep splitLine(requestInput *in, const char *end) {
    requestPartial *s = in->state;
    const char *at = in->start;
    while (true) {
        while (at < end && isBlank(*at)) at++;
        if (at == end) return STEP_DONE;
        const char *word = at;
        while (at < end && byte_kind[(uint8_t)*at] == PLAIN) at++;
        if (at < end && byte_kind[(uint8_t)*at] == QUOTE) return splitQuoted(in, in->start, end);
        if (!requestArgReserve(s)) return STEP_WAIT;
        s->args[s->arg_count++] = (slice){(const char *)(word - in->start), (size_t)(at - word)};
    }
}

requestStep requestReadInline(requestInput *in) {
    requestPartial *s = in->state;
    size_t lf = 0;
    requestStep step = findEnd(in, &lf);
    if (step != STEP_DONE) return step;
    s->scanned = 0;
    const char *end = in->start + lf;
    if (lf > 0 && end[-1] == '\r') end--;
    step = splitLine(in, end);
    if (step != STEP_DONE) return step;
    s->next = lf + 1;
    return s->arg_count > 0 ? STEP_DONE : STEP_EMPTY;
}

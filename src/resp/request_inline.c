/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses inline requests: a line of words, as typed by hand.
 *
 * Words are slices of the line. A line with quotes gets a block of its own for argv and the
 * unquoted text: the bytes in the buffer must stay unchanged because they are parsed again if the
 * batch is dropped. A NUL hides the end of its line, as in Valkey: clients that speak another
 * protocol get no reply per line, but one error after 64 KiB. Cost: linear in the line. */
#include "base/bytes.h"
#include "resp/request_partial.h"

enum { PLAIN, BLANK, QUOTE };
/* A word can begin at any byte for which isspace() is false, but only these blanks end it. */
static const uint8_t byte_kind[256] = {
    [' '] = BLANK, ['\t'] = BLANK, ['\r'] = BLANK, ['\n'] = BLANK, ['"'] = QUOTE, ['\''] = QUOTE};

/* Finds the LF that ends the line. Each byte is examined once, however the line arrives. */
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

/* Decodes the escape sequence after a backslash inside double quotes; returns the first unused
 * byte. */
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

/* Decodes one word that begins at `at`, with its quotes, to *text and advances *text. Returns the
 * byte after the word, NULL if a quote is not closed. The text is never longer than the word. */
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
            /* A backslash before the quote that ends the line is literal. */
            at = unescape(at + 1, end, out++) - 1;
        } else {
            *out++ = c;
        }
    }
    *text = out;
    return quote ? NULL : at;
}

/* Splits a line that contains quotes. argv and text share one block; there are at most bytes / 2 +
 * 1 words. */
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
    s->arg_cap = (int)words;
    s->args_owned = true;
    char *text = (char *)(args + words);
    while (true) {
        while (at < end && byteIsBlank(*at)) at++;
        if (at == end) return STEP_DONE;
        char *word = text;
        at = unquoteWord(at, end, &text);
        if (at == NULL) return requestRefuse(in, "unbalanced quotes in request");
        check((size_t)s->arg_count < words);
        /* as an offset from the start of the line, like all others */
        uintptr_t offset = (uintptr_t)word - (uintptr_t)in->start;
        s->args[s->arg_count++] = (slice){(const char *)offset, (size_t)(text - word)};
    }
}

/* Splits the line up to `end`. Returns STEP_DONE even if there is no word. */
static requestStep splitLine(requestInput *in, const char *end) {
    requestPartial *s = in->state;
    const char *at = in->start;
    while (true) {
        while (at < end && byteIsBlank(*at)) at++;
        if (at == end) return STEP_DONE;
        const char *word = at;
        while (at < end && byte_kind[(uint8_t)*at] == PLAIN) at++;
        if (at < end && byte_kind[(uint8_t)*at] == QUOTE) return splitQuoted(in, in->start, end);
        if (!requestArgReserve(s)) return STEP_WAIT;
        s->args[s->arg_count++] = (slice){(const char *)(word - in->start), (size_t)(at - word)};
    }
}

/* The first bytes of a TLS handshake (RFC 8446, 5.1): a record of type 22 and version 3.x. It may
 * have no end of line: without a reply the client would wait for ever. */
static bool isTlsHello(const requestInput *in) {
    return in->len > 2 && in->start[0] == 22 && in->start[1] == 3 && (uint8_t)in->start[2] <= 4;
}

requestStep requestReadInline(requestInput *in) {
    requestPartial *s = in->state;
    size_t lf = 0;
    requestStep step;
    if (isTlsHello(in)) {
        step = requestRefuse(in, "TLS client on a port without TLS");
        in->error->tls_hello = true;
        return step;
    }
    step = findEnd(in, &lf);
    if (step != STEP_DONE) return step;
    s->scanned = 0;
    const char *end = in->start + lf;
    if (lf > 0 && end[-1] == '\r') end--;
    step = splitLine(in, end);
    if (step != STEP_DONE) return step;
    s->next = lf + 1;
    return s->arg_count > 0 ? STEP_DONE : STEP_EMPTY;
}

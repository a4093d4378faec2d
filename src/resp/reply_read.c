/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Incremental parser for replies of a server we are a client of: one event per item, from the
 * caller's buffer, resumable at any byte. The server is not trusted: every byte is validated,
 * nothing is allocated, and announced counts never determine an allocation.
 *
 * Invariant: left[d] > 0 for every open aggregate, so an event is always an announced item. Cost:
 * linear in the number of bytes; a line is scanned for its end only once, however it arrives. */
#include <math.h>

#include "base/bytes.h"
#include "base/number.h"
#include "resp/resp.h"

_Static_assert(REPLY_DEPTH_MAX <= 32, "replyReader.attributes has 32 bits");

/* The item at *pos. */
typedef struct replyInput {
    replyReader *reader;
    const char *at; /* first byte of the item */
    size_t len;     /* bytes available */
    size_t used;    /* length of the item, set once it has been read */
    replyEvent *event;
} replyInput;

void replyReaderInit(replyReader *r) { *r = (replyReader){.bulk_max = 512 * 1024 * 1024}; }

static replyReadStatus refuse(replyInput *in, const char *error) {
    in->reader->error = error;
    return REPLY_BAD;
}

/* Reads the line after the type byte, up to CRLF. */
static replyReadStatus readLine(replyInput *in, size_t line_max, slice *line) {
    replyReader *r = in->reader;
    size_t from = sizeMax(r->scanned, 1);
    const char *cr = memchr(in->at + from, '\r', in->len - from);
    size_t end = cr ? (size_t)(cr - in->at) : in->len;
    if (end - 1 > line_max) return refuse(in, "line too long");
    if (memchr(in->at + from, '\n', end - from)) return refuse(in, "line feed within a line");
    r->scanned = end;
    if (end + 1 >= in->len) return REPLY_NEED_MORE;
    if (in->at[end + 1] != '\n') return refuse(in, "carriage return without line feed");
    *line = sliceMake(in->at + 1, end - 1);
    in->used = end + 2;
    return REPLY_EVENT;
}

static replyReadStatus readText(replyInput *in, replyKind kind) {
    in->event->kind = kind;
    return readLine(in, (size_t)in->reader->bulk_max, &in->event->text);
}

static replyReadStatus readNumber(replyInput *in, int64_t *number) {
    slice line;
    replyReadStatus st = readLine(in, REPLY_NUMBER_LINE_MAX, &line);
    if (st != REPLY_EVENT) return st;
    return numberParseInt(line, number) ? st : refuse(in, "invalid number");
}

static replyReadStatus readInteger(replyInput *in) {
    in->event->kind = REPLY_INTEGER;
    return readNumber(in, &in->event->integer);
}

static replyReadStatus readNull(replyInput *in) {
    slice line;
    replyReadStatus st = readLine(in, REPLY_NUMBER_LINE_MAX, &line);
    in->event->kind = REPLY_NULL;
    if (st == REPLY_EVENT && line.len != 0) return refuse(in, "invalid null");
    return st;
}

static replyReadStatus readBool(replyInput *in) {
    slice line;
    replyReadStatus st = readLine(in, REPLY_NUMBER_LINE_MAX, &line);
    if (st != REPLY_EVENT) return st;
    in->event->kind = REPLY_BOOL;
    in->event->integer = sliceEqual(line, SLICE("t"));
    if (in->event->integer == 0 && !sliceEqual(line, SLICE("f")))
        return refuse(in, "invalid boolean");
    return st;
}

static replyReadStatus readDouble(replyInput *in) {
    replyEvent *e = in->event;
    replyReadStatus st = readLine(in, REPLY_NUMBER_LINE_MAX, &e->text);
    if (st != REPLY_EVENT) return st;
    e->kind = REPLY_DOUBLE;
    if (sliceEqual(e->text, SLICE("nan"))) {
        e->number = NAN;
    } else if (sliceEqual(e->text, SLICE("inf")) || sliceEqual(e->text, SLICE("-inf"))) {
        e->number = e->text.ptr[0] == '-' ? -INFINITY : INFINITY;
    } else {
        for (size_t i = 0; i < e->text.len; i++) {
            /* strtod() accepts more; RESP3 allows decimal digits only. */
            if (memchr("0123456789.eE+-", e->text.ptr[i], 15) == NULL)
                return refuse(in, "invalid double");
        }
        if (!numberParseDouble(e->text, &e->number)) return refuse(in, "invalid double");
    }
    return st;
}

static replyReadStatus readBigNumber(replyInput *in) {
    replyReadStatus st = readText(in, REPLY_BIG_NUMBER);
    if (st != REPLY_EVENT) return st;
    slice text = in->event->text;
    size_t i = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    if (i == text.len) return refuse(in, "invalid big number");
    for (; i < text.len; i++) {
        if ((uint8_t)(text.ptr[i] - '0') > 9) return refuse(in, "invalid big number");
    }
    return st;
}

/* "$", "=" and "!": a length, then that many bytes and CRLF. */
static replyReadStatus readBulk(replyInput *in, replyKind kind) {
    replyReader *r = in->reader;
    replyEvent *e = in->event;
    int64_t size;
    replyReadStatus st = readNumber(in, &size);
    if (st != REPLY_EVENT) return st;
    e->kind = kind;
    if (size == -1 && kind == REPLY_BULK) {
        e->kind = REPLY_NULL;
        return st;
    }
    if (size < 0) return refuse(in, "invalid length");
    if (size > r->bulk_max) return refuse(in, "bulk too long");
    if (kind == REPLY_VERBATIM && size < 4) return refuse(in, "verbatim string without a format");
    e->integer = kind == REPLY_VERBATIM ? size - 4 : size;
    if (r->skip && kind != REPLY_ERROR) {
        r->skipping = size + 2;
        return st;
    }
    size_t rest = in->len - in->used;
    if (rest < (size_t)size + 2) return REPLY_NEED_MORE;
    e->text = sliceMake(in->at + in->used, (size_t)size);
    if (memcmp(e->text.ptr + size, "\r\n", 2) != 0) return refuse(in, "bulk without its end");
    in->used += (size_t)size + 2;
    if (kind == REPLY_VERBATIM) {
        if (e->text.ptr[3] != ':') return refuse(in, "verbatim string without a format");
        memcpy(e->format, e->text.ptr, 3);
        e->text = sliceMake(e->text.ptr + 4, e->text.len - 4);
    }
    return st;
}

static replyReadStatus readAggregate(replyInput *in, replyKind kind) {
    replyReader *r = in->reader;
    int64_t count;
    replyReadStatus st = readNumber(in, &count);
    if (st != REPLY_EVENT) return st;
    in->event->kind = kind;
    if (count == -1 && kind == REPLY_ARRAY) {
        in->event->kind = REPLY_NULL;
        return st;
    }
    if (count < 0) return refuse(in, "invalid count");
    in->event->integer = count;
    if (kind == REPLY_PUSH) {
        if (r->depth > 0) return refuse(in, "push within a reply");
        if (count == 0) return refuse(in, "empty push");
    }
    if (kind == REPLY_MAP || kind == REPLY_ATTRIBUTE) {
        if (count > INT64_MAX / 2) return refuse(in, "invalid count");
        count *= 2;
    }
    if (count == 0) return st;
    if (r->depth == REPLY_DEPTH_MAX) return refuse(in, "aggregates too deep");
    return st;
}

static replyReadStatus readItem(replyInput *in) {
    switch (*in->at) {
    case '+': return readText(in, REPLY_STATUS);
    case '-': return readText(in, REPLY_ERROR);
    case ':': return readInteger(in);
    case '$': return readBulk(in, REPLY_BULK);
    case '!': return readBulk(in, REPLY_ERROR);
    case '=': return readBulk(in, REPLY_VERBATIM);
    case '*': return readAggregate(in, REPLY_ARRAY);
    case '%': return readAggregate(in, REPLY_MAP);
    case '~': return readAggregate(in, REPLY_SET);
    case '>': return readAggregate(in, REPLY_PUSH);
    case '|': return readAggregate(in, REPLY_ATTRIBUTE);
    case ',': return readDouble(in);
    case '#': return readBool(in);
    case '(': return readBigNumber(in);
    case '_': return readNull(in);
    default: return refuse(in, "unknown type byte");
    }
}

/* Updates the open aggregates: counts the item, opens it if it is an aggregate, and closes all
 * aggregates that end with it. */
static void countItem(replyReader *r, replyEvent *e) {
    hotCheck(r->depth >= 0);
    hotCheck(r->depth <= REPLY_DEPTH_MAX);
    e->depth = r->depth;
    bool attribute = e->kind == REPLY_ATTRIBUTE;
    if (r->depth > 0 && !attribute) r->left[r->depth - 1]--;
    bool open = e->kind >= REPLY_ARRAY && e->kind <= REPLY_ATTRIBUTE && e->integer > 0;
    if (open) {
        bool pairs = e->kind == REPLY_MAP || attribute;
        r->left[r->depth] = pairs ? e->integer * 2 : e->integer;
        uint32_t bit = UINT32_C(1) << r->depth;
        r->attributes = attribute ? r->attributes | bit : r->attributes & ~bit;
        r->depth++;
    }
    bool closed_attribute = attribute;
    while (r->depth > 0 && r->left[r->depth - 1] == 0) {
        r->depth--;
        /* An attribute is not an item: the value it belongs to follows, so nothing else is
         * closed. */
        closed_attribute = r->attributes >> r->depth & 1;
    }
    e->complete = r->depth == 0 && !closed_attribute;
}

/* Skip mode: skips the bytes of a bulk, the last two of which must be CRLF. */
static replyReadStatus skipBulk(replyReader *r, const char *buf, size_t len, size_t *pos) {
    hotCheck(*pos <= len);
    while (r->skipping > 0) {
        if (*pos == len) return REPLY_NEED_MORE;
        if (r->skipping > 2) {
            size_t n = sizeMin(len - *pos, (size_t)r->skipping - 2);
            *pos += n;
            r->skipping -= (int64_t)n;
            continue;
        }
        if (buf[*pos] != "\n\r"[r->skipping - 1]) {
            r->error = "bulk without its end";
            return REPLY_BAD;
        }
        ++*pos;
        r->skipping--;
    }
    return REPLY_EVENT;
}

/* Skip mode: emits the event of a reply once all of it has been skipped. */
static bool skipped(replyReader *r, replyEvent *event) {
    if (!r->head.complete) return false;
    *event = r->head;
    event->depth = 0;
    r->head.complete = false;
    return true;
}

replyReadStatus replyRead(replyReader *r, const char *buf, size_t len, size_t *pos,
                          replyEvent *event) {
    hotCheck(*pos <= len);
    if (r->error) return REPLY_BAD;
    while (true) {
        replyReadStatus st = skipBulk(r, buf, len, pos);
        if (st != REPLY_EVENT) return st;
        if (r->skip && skipped(r, event)) return REPLY_EVENT;
        if (*pos == len) return REPLY_NEED_MORE;
        *event = (replyEvent){.kind = REPLY_NULL};
        replyInput in = {r, buf + *pos, len - *pos, 0, event};
        st = readItem(&in);
        if (st != REPLY_EVENT) return st;
        *pos += in.used;
        r->scanned = 0;
        countItem(r, event);
        if (!r->skip) return REPLY_EVENT;
        if (event->depth == 0 && event->kind != REPLY_ATTRIBUTE) r->head = *event;
        r->head.complete = event->complete;
    }
}

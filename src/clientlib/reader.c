/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reader: a buffer and a parser that continues where the bytes ended.
 *
 * Bytes are received at the tail of one buffer. Before a read that needs more space the part that
 * is not parsed yet is moved to the front, once; parsing moves nothing. The buffer grows at most to
 * twice the bytes received, whatever lengths the server announces, and is given back when it has
 * been parsed to its end, unless it is small: an idle reader holds up to IDLE_MAX bytes, or
 * `maxbuf` if that was set. If the end of what was received is always a part of a reply, a buffer
 * larger than SHRINK_MIN is replaced when that part takes little of it.
 *
 * Invariant: pos <= len <= capacity. task[0..ridx] are the aggregates that are open, and last the
 * item being read. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "clientlib/client_priv.h"

enum {
    CHUNK = 8,             /* tasks per allocation */
    NUMBER_LINE_MAX = 32,  /* digits of a length, an integer */
    DOUBLE_LINE_MAX = 325, /* digits of a double */
    READ_MIN = 1024,       /* bytes asked from a socket: grows while they fill the space */
    READ_MAX = 16 * 1024,
    IDLE_MAX = 2 * 1024,
    SHRINK_MIN = 64 * 1024,
};

/* The public part is first: callers see only that. */
typedef struct readerState {
    valkeyReader pub;
    size_t capacity;
    size_t scanned; /* bytes after `pos` known to contain no end of line */
    size_t awaited; /* length of the item at `pos` if known, else 0 */
    size_t read_size;
    bool attribute; /* an attribute within a reply is open; its object is not part of the reply */
} readerState;

typedef enum itemResult { ITEM_READ, ITEM_INCOMPLETE, ITEM_BAD } itemResult;

static readerState *stateOf(valkeyReader *r) { return (readerState *)r; }

/* ------------------------------------------------------------------ life and buffer */

static bool addTasks(valkeyReader *r) {
    valkeyReadTask **vector = vk_realloc(r->task, (size_t)(r->tasks + CHUNK) * sizeof(*vector));
    if (!vector) return false;
    r->task = vector;
    valkeyReadTask *chunk = vk_calloc(CHUNK, sizeof(*chunk));
    if (!chunk) return false;
    for (int i = 0; i < CHUNK; i++) r->task[r->tasks + i] = chunk + i;
    r->tasks += CHUNK;
    return true;
}

static void freeTasks(valkeyReader *r) {
    for (int i = 0; i < r->tasks; i += CHUNK) vk_free(r->task[i]);
    vk_free(r->task);
}

valkeyReader *valkeyReaderCreateWithFunctions(valkeyReplyObjectFunctions *fn) {
    readerState *s = vk_calloc(1, sizeof(*s));
    if (!s) return NULL;
    valkeyReader *r = &s->pub;
    r->fn = fn;
    r->maxbuf = VALKEY_READER_MAX_BUF;
    r->maxelements = VALKEY_READER_MAX_ARRAY_ELEMENTS;
    r->maxdepth = VALKEY_READER_MAX_DEPTH;
    r->ridx = -1;
    s->read_size = READ_MIN;
    if (!addTasks(r)) {
        valkeyReaderFree(r);
        return NULL;
    }
    return r;
}

static void dropReply(valkeyReader *r) {
    if (r->reply && r->fn && r->fn->freeObject) r->fn->freeObject(r->reply);
    r->reply = NULL;
    readerState *s = stateOf(r);
    if (!s->attribute) return;
    /* Its object is in the first task without a parent. */
    for (int i = 1; i <= r->ridx; i++) {
        if (r->task[i]->parent) continue;
        if (r->task[i]->obj && r->fn && r->fn->freeObject) r->fn->freeObject(r->task[i]->obj);
        break;
    }
    s->attribute = false;
}

static void dropBuffer(valkeyReader *r) {
    vk_free(r->buf);
    r->buf = NULL;
    r->pos = r->len = 0;
    stateOf(r)->capacity = 0;
}

void valkeyReaderFree(valkeyReader *r) {
    if (!r) return;
    dropReply(r);
    freeTasks(r);
    vk_free(r->buf);
    vk_free(r);
}

/* Errors are final: what was received is dropped. */
static itemResult fail(valkeyReader *r, int type, const char *text) {
    dropReply(r);
    dropBuffer(r);
    r->ridx = -1;
    r->err = type;
    snprintf(r->errstr, sizeof(r->errstr), "%s", text);
    return ITEM_BAD;
}

static itemResult failMemory(valkeyReader *r) { return fail(r, VALKEY_ERR_OOM, "Out of memory"); }
static itemResult failProtocol(valkeyReader *r, const char *text) {
    return fail(r, VALKEY_ERR_PROTOCOL, text);
}

/* Makes space for `want` bytes after those received. */
static bool reserve(valkeyReader *r, size_t want) {
    readerState *s = stateOf(r);
    if (s->capacity - r->len >= want) return true;
    if (r->pos > 0) {
        if (r->len > r->pos) memmove(r->buf, r->buf + r->pos, r->len - r->pos);
        r->len -= r->pos;
        r->pos = 0;
        if (s->capacity - r->len >= want) return true;
    }
    if (want > SIZE_MAX / 2 - r->len) return false;
    char *buf = vk_realloc(r->buf, r->len + want);
    if (!buf) return false;
    r->buf = buf;
    s->capacity = r->len + want;
    return true;
}

/* Bytes to make space for if `want` bytes are expected: more for a long item, but not more than as
 * much again as was received. */
static size_t wantedSpace(const readerState *s, size_t want) {
    size_t unparsed = s->pub.len - s->pub.pos;
    if (s->awaited <= unparsed) return want;
    size_t rest = s->awaited - unparsed, limit = unparsed > READ_MAX ? unparsed : READ_MAX;
    size_t piece = rest < limit ? rest : limit;
    return piece > want ? piece : want;
}

int valkeyReaderFeed(valkeyReader *r, const char *buf, size_t len) {
    if (r->err) return VALKEY_ERR;
    if (!buf || len == 0) return VALKEY_OK;
    readerState *s = stateOf(r);
    if (s->capacity - r->len < len) {
        size_t want = wantedSpace(s, len > READ_MIN ? len : READ_MIN), unparsed = r->len - r->pos;
        /* Small pieces of a long reply must not cost an allocation each. */
        if (s->awaited <= unparsed && want < unparsed) want = unparsed;
        if (!reserve(r, want)) {
            failMemory(r);
            return VALKEY_ERR;
        }
    }
    memcpy(r->buf + r->len, buf, len);
    r->len += len;
    return VALKEY_OK;
}

int valkeyReaderGetReadBuf(valkeyReader *r, char **buf, size_t *cap, size_t minbytes) {
    if (r->err) return VALKEY_ERR;
    readerState *s = stateOf(r);
    if (r->len == r->pos) r->pos = r->len = 0;
    size_t want = wantedSpace(s, s->read_size);
    /* A tail of a quarter is worth a read without moving the bytes. */
    size_t enough = want / 4 + 1;
    if (enough < minbytes) enough = minbytes;
    if (want < minbytes) want = minbytes;
    if (s->capacity - r->len < enough && !reserve(r, want)) {
        failMemory(r);
        return VALKEY_ERR;
    }
    *buf = r->buf + r->len;
    *cap = s->capacity - r->len;
    return VALKEY_OK;
}

void valkeyReaderCommitRead(valkeyReader *r, size_t len) {
    if (r->err) return;
    readerState *s = stateOf(r);
    if (len == s->capacity - r->len) {
        s->read_size = s->read_size * 4 < READ_MAX ? s->read_size * 4 : READ_MAX;
    } else if (len < s->read_size / 4 && s->read_size > READ_MIN) {
        s->read_size /= 2;
    }
    r->len += len;
}

/* Everything has been parsed. */
static void releaseBuffer(valkeyReader *r) {
    readerState *s = stateOf(r);
    size_t kept = r->maxbuf == VALKEY_READER_MAX_BUF ? IDLE_MAX : r->maxbuf;
    if (s->capacity > kept && r->maxbuf != 0) {
        dropBuffer(r);
    } else {
        r->pos = r->len = 0;
    }
}

/* What remains is a part of a reply: replaces a buffer of which it and the rest of its item take
 * less than a quarter. The copy is paid for by the bytes that made the buffer grow. */
static void shrinkBuffer(valkeyReader *r) {
    readerState *s = stateOf(r);
    size_t unparsed = r->len - r->pos, needed = s->awaited > unparsed ? s->awaited : unparsed;
    if (s->capacity <= SHRINK_MIN || s->capacity <= r->maxbuf || r->maxbuf == 0) return;
    if (needed >= s->capacity / 4 - READ_MAX) return;
    char *buf = vk_malloc(needed + READ_MAX);
    if (!buf) return; /* the large one serves as well */
    memcpy(buf, r->buf + r->pos, unparsed);
    vk_free(r->buf);
    r->buf = buf;
    r->pos = 0;
    r->len = unparsed;
    s->capacity = needed + READ_MAX;
}

/* ------------------------------------------------------------------ tokens */

/* The line after the type byte at `pos`. On ITEM_READ `*used` is the length of the item with its
 * CRLF. */
static itemResult readLine(valkeyReader *r, char **line, size_t *len, size_t *used) {
    readerState *s = stateOf(r);
    const char *at = r->buf + r->pos;
    size_t have = r->len - r->pos, from = s->scanned > 1 ? s->scanned : 1;
    for (;;) {
        const char *cr = from < have ? memchr(at + from, '\r', have - from) : NULL;
        if (!cr || (size_t)(cr - at) + 1 >= have) {
            s->scanned = cr ? (size_t)(cr - at) : have;
            return ITEM_INCOMPLETE;
        }
        from = (size_t)(cr - at) + 1;
        if (cr[1] == '\n') break;
    }
    s->scanned = 0;
    *line = (char *)at + 1;
    *len = from - 2;
    *used = from + 1;
    return ITEM_READ;
}

/* The number on the line at `pos`. ITEM_BAD (without an error yet) if it is not one. */
static itemResult readNumber(valkeyReader *r, long long *value, size_t *used) {
    const char *at = r->buf + r->pos + 1, *end = r->buf + r->len, *p = at;
    bool negative = p < end && *p == '-';
    if (negative) p++;
    const char *digits = p;
    unsigned long long n = 0;
    while (p < end && (unsigned char)(*p - '0') <= 9) {
        unsigned digit = (unsigned)(*p++ - '0');
        if (n > (ULLONG_MAX - digit) / 10) return ITEM_BAD;
        n = n * 10 + digit;
    }
    if (p == end || (*p == '\r' && p + 1 == end))
        return p - at > NUMBER_LINE_MAX ? ITEM_BAD : ITEM_INCOMPLETE;
    if (p[0] != '\r' || p[1] != '\n') return ITEM_BAD;
    /* No empty number, leading zero, or "-0". */
    if (p == digits || (digits[0] == '0' && (p - digits > 1 || negative))) return ITEM_BAD;
    if (n > (unsigned long long)LLONG_MAX + negative) return ITEM_BAD;
    *value = negative ? (long long)(0 - n) : (long long)n;
    *used = (size_t)(p + 2 - (r->buf + r->pos));
    return ITEM_READ;
}

/* ------------------------------------------------------------------ items */

/* Enters the object of the current item; `obj` NULL: memory is exhausted. */
static itemResult built(valkeyReader *r, void *obj) {
    if (!obj) return failMemory(r);
    valkeyReadTask *task = r->task[r->ridx];
    task->obj = obj;
    if (r->ridx == 0) r->reply = obj;
    return ITEM_READ;
}

/* The object if there are no functions. */
static void *plain(const valkeyReadTask *task) { return (void *)(intptr_t)task->type; }

static itemResult buildString(valkeyReader *r, char *str, size_t len) {
    valkeyReadTask *task = r->task[r->ridx];
    bool build = r->fn && r->fn->createString;
    return built(r, build ? r->fn->createString(task, str, len) : plain(task));
}

static itemResult buildNil(valkeyReader *r) {
    valkeyReadTask *task = r->task[r->ridx];
    task->type = VALKEY_REPLY_NIL;
    return built(r, r->fn && r->fn->createNil ? r->fn->createNil(task) : plain(task));
}

static itemResult readInteger(valkeyReader *r) {
    long long value;
    size_t used;
    itemResult result = readNumber(r, &value, &used);
    if (result == ITEM_BAD) return failProtocol(r, "Bad integer value");
    if (result != ITEM_READ) return result;
    r->pos += used;
    valkeyReadTask *task = r->task[r->ridx];
    bool build = r->fn && r->fn->createInteger;
    return built(r, build ? r->fn->createInteger(task, value) : plain(task));
}

/* The double in `text`, which is followed by a CR. */
static bool parseDouble(const char *text, size_t len, double *out) {
    if (len == 3 && !strncasecmp(text, "inf", 3)) {
        *out = INFINITY;
    } else if (len == 4 && !strncasecmp(text, "-inf", 4)) {
        *out = -INFINITY;
    } else if ((len == 3 && !strncasecmp(text, "nan", 3)) ||
               (len == 4 && !strncasecmp(text, "-nan", 4))) {
        *out = NAN;
    } else {
        char copy[DOUBLE_LINE_MAX + 1];
        if (len == 0 || len > DOUBLE_LINE_MAX) return false;
        for (size_t i = 0; i < len; i++) {
            if (!text[i] || !strchr("0123456789.eE+-", text[i])) return false;
        }
        memcpy(copy, text, len);
        copy[len] = '\0';
        char *end;
        *out = strtod(copy, &end);
        if (end != copy + len || !isfinite(*out)) return false;
    }
    return true;
}

static itemResult buildDouble(valkeyReader *r, char *text, size_t len) {
    double value;
    if (!parseDouble(text, len, &value)) return failProtocol(r, "Bad double value");
    valkeyReadTask *task = r->task[r->ridx];
    bool build = r->fn && r->fn->createDouble;
    return built(r, build ? r->fn->createDouble(task, value, text, len) : plain(task));
}

static itemResult buildBool(valkeyReader *r, const char *text, size_t len) {
    if (len != 1 || !strchr("tTfF", text[0])) return failProtocol(r, "Bad bool value");
    int value = text[0] == 't' || text[0] == 'T';
    valkeyReadTask *task = r->task[r->ridx];
    bool build = r->fn && r->fn->createBool;
    return built(r, build ? r->fn->createBool(task, value) : plain(task));
}

static bool isBigNumber(const char *text, size_t len) {
    size_t i = len > 0 && text[0] == '-';
    if (i == len) return false;
    for (; i < len; i++) {
        if ((unsigned char)(text[i] - '0') > 9) return false;
    }
    return true;
}

static itemResult readLineItem(valkeyReader *r) {
    char *line;
    size_t len, used;
    itemResult result = readLine(r, &line, &len, &used);
    if (result != ITEM_READ) return result;
    switch (r->task[r->ridx]->type) {
    case VALKEY_REPLY_NIL:
        result = len == 0 ? buildNil(r) : failProtocol(r, "Bad nil value");
        break;
    case VALKEY_REPLY_BOOL: result = buildBool(r, line, len); break;
    case VALKEY_REPLY_DOUBLE: result = buildDouble(r, line, len); break;
    case VALKEY_REPLY_BIGNUM:
        result = isBigNumber(line, len) ? buildString(r, line, len)
                                        : failProtocol(r, "Bad bignum value");
        break;
    default: /* a status or an error */
        if (memchr(line, '\r', len) || memchr(line, '\n', len))
            return failProtocol(r, "Bad simple string value");
        result = buildString(r, line, len);
        break;
    }
    if (result == ITEM_READ) r->pos += used;
    return result;
}

/* The length -1 of RESP2, which takes `used` bytes. */
static itemResult readNil(valkeyReader *r, size_t used) {
    itemResult result = buildNil(r);
    if (result == ITEM_READ) r->pos += used;
    return result;
}

static itemResult readBulk(valkeyReader *r) {
    readerState *s = stateOf(r);
    valkeyReadTask *task = r->task[r->ridx];
    long long len;
    size_t used;
    itemResult result = readNumber(r, &len, &used);
    if (result == ITEM_BAD) return failProtocol(r, "Bad bulk string length");
    if (result != ITEM_READ) return result;
    if (len < -1 || (unsigned long long)len + 1 > SIZE_MAX / 4)
        return failProtocol(r, "Bulk string length out of range");
    if (len == -1) return readNil(r, used);
    size_t whole = used + (size_t)len + 2;
    if (r->len - r->pos < whole) {
        s->awaited = whole;
        return ITEM_INCOMPLETE;
    }
    char *str = r->buf + r->pos + used;
    if (str[len] != '\r' || str[len + 1] != '\n') return failProtocol(r, "Bad bulk string format");
    if (task->type == VALKEY_REPLY_VERB && (len < 4 || str[3] != ':'))
        return failProtocol(r, "Verbatim string 4 bytes of content type are missing or "
                               "incorrectly encoded.");
    result = buildString(r, str, (size_t)len);
    if (result == ITEM_READ) r->pos += whole;
    return result;
}

/* Begins the first item of the aggregate that the current task is. */
static itemResult openAggregate(valkeyReader *r) {
    int depth = r->maxdepth > 0 ? r->maxdepth : VALKEY_READER_MAX_DEPTH;
    if (r->ridx + 1 > depth) return failProtocol(r, "Max nesting depth exceeded");
    if (r->ridx + 1 == r->tasks && !addTasks(r)) return failMemory(r);
    valkeyReadTask *parent = r->task[r->ridx];
    *r->task[++r->ridx] = (valkeyReadTask){
        .type = -1, .elements = -1, .idx = 0, .parent = parent, .privdata = r->privdata};
    return ITEM_INCOMPLETE;
}

/* ITEM_INCOMPLETE with a changed position after the header of an aggregate that has items. */
static itemResult readAggregate(valkeyReader *r, bool *opened) {
    valkeyReadTask *task = r->task[r->ridx];
    long long count;
    size_t used;
    itemResult result = readNumber(r, &count, &used);
    if (result == ITEM_BAD) return failProtocol(r, "Bad multi-bulk length");
    if (result != ITEM_READ) return result;
    bool pairs = task->type == VALKEY_REPLY_MAP || task->type == VALKEY_REPLY_ATTR;
    if (count < -1 || (r->maxelements > 0 && count > r->maxelements) ||
        (pairs && count > LLONG_MAX / 2))
        return failProtocol(r, "Multi-bulk length out of range");
    if (count > LLONG_MAX / 16) return failMemory(r);
    if (count == -1) return readNil(r, used);
    if (pairs) count *= 2;
    /* Not an item: the value that it belongs to follows. */
    if (task->type == VALKEY_REPLY_ATTR && task->parent) {
        if (stateOf(r)->attribute) return failProtocol(r, "Attribute within an attribute");
        stateOf(r)->attribute = true;
        task->parent = NULL;
    }
    task->elements = count;
    bool build = r->fn && r->fn->createArray;
    result = built(r, build ? r->fn->createArray(task, (size_t)count) : plain(task));
    if (result != ITEM_READ) return result;
    r->pos += used;
    if (count == 0) return ITEM_READ;
    *opened = true;
    return openAggregate(r);
}

static int typeOf(char byte) {
    switch (byte) {
    case '-':
    case '!': return VALKEY_REPLY_ERROR;
    case '+': return VALKEY_REPLY_STATUS;
    case ':': return VALKEY_REPLY_INTEGER;
    case ',': return VALKEY_REPLY_DOUBLE;
    case '_': return VALKEY_REPLY_NIL;
    case '#': return VALKEY_REPLY_BOOL;
    case '$': return VALKEY_REPLY_STRING;
    case '*': return VALKEY_REPLY_ARRAY;
    case '%': return VALKEY_REPLY_MAP;
    case '|': return VALKEY_REPLY_ATTR;
    case '~': return VALKEY_REPLY_SET;
    case '>': return VALKEY_REPLY_PUSH;
    case '=': return VALKEY_REPLY_VERB;
    case '(': return VALKEY_REPLY_BIGNUM;
    default: return -1;
    }
}

static itemResult failType(valkeyReader *r, char byte) {
    char shown[8], text[64];
    switch (byte) {
    case '\\':
    case '"': snprintf(shown, sizeof(shown), "\\%c", byte); break;
    case '\n': strcpy(shown, "\\n"); break;
    case '\r': strcpy(shown, "\\r"); break;
    case '\t': strcpy(shown, "\\t"); break;
    case '\a': strcpy(shown, "\\a"); break;
    case '\b': strcpy(shown, "\\b"); break;
    default:
        snprintf(shown, sizeof(shown), byte >= ' ' && byte <= '~' ? "%c" : "\\x%02x",
                 (unsigned char)byte);
    }
    snprintf(text, sizeof(text), "Protocol error, got \"%s\" as reply type byte", shown);
    return failProtocol(r, text);
}

static itemResult readItem(valkeyReader *r, bool *opened) {
    if (r->pos == r->len) return ITEM_INCOMPLETE;
    valkeyReadTask *task = r->task[r->ridx];
    char byte = r->buf[r->pos];
    task->type = typeOf(byte);
    switch (byte) {
    case ':': return readInteger(r);
    case '$':
    case '!':
    case '=': return readBulk(r);
    case '*':
    case '%':
    case '~':
    case '>':
    case '|': return readAggregate(r, opened);
    default: return task->type < 0 ? failType(r, byte) : readLineItem(r);
    }
}

/* The current item has ended: makes the next one current, after closing the aggregates that end
 * with it. */
static void nextItem(valkeyReader *r) {
    readerState *s = stateOf(r);
    while (r->ridx >= 0) {
        if (r->ridx == 0) {
            r->ridx--;
            return;
        }
        valkeyReadTask *task = r->task[r->ridx], *parent = r->task[r->ridx - 1];
        if (s->attribute && !task->parent) {
            if (r->fn && r->fn->freeObject) r->fn->freeObject(task->obj);
            s->attribute = false;
            task->parent = parent;
            task->type = -1;
            task->obj = NULL;
            return;
        }
        if (task->idx + 1 < parent->elements) {
            task->idx++;
            task->type = -1;
            task->elements = -1;
            task->obj = NULL;
            return;
        }
        r->ridx--;
    }
}

int valkeyReaderGetReply(valkeyReader *r, void **reply) {
    if (reply) *reply = NULL;
    if (r->err) return VALKEY_ERR;
    if (r->pos == r->len) return VALKEY_OK;
    if (r->ridx < 0) {
        *r->task[0] =
            (valkeyReadTask){.type = -1, .elements = -1, .idx = -1, .privdata = r->privdata};
        r->ridx = 0;
    }
    stateOf(r)->awaited = 0;
    while (r->ridx >= 0) {
        bool opened = false;
        itemResult result = readItem(r, &opened);
        if (result == ITEM_BAD) return VALKEY_ERR;
        if (result == ITEM_READ) {
            nextItem(r);
        } else if (!opened) {
            break;
        }
    }
    if (r->pos == r->len) releaseBuffer(r);
    if (r->ridx >= 0) {
        shrinkBuffer(r);
        return VALKEY_OK;
    }
    void *done = r->reply;
    r->reply = NULL;
    if (reply) {
        *reply = done;
    } else if (r->fn && r->fn->freeObject) {
        r->fn->freeObject(done);
    }
    return VALKEY_OK;
}

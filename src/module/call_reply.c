/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies of commands as trees. The nodes of a reply are in arrays of its pool; their texts are in
 * its bytes. */
#include "module/call_reply.h"

#include <limits.h>

#include "base/base.h"
#include "module/generated/api.h"
#include "module/pool.h"
#include "module/promise.h"
#include "resp/resp.h"

/* The whole reply. */
typedef struct replyRoot {
    char *bytes;
    size_t len;
    uint8_t proto;
    bool exact;
    pool nodes;
    /* The context whose auto memory frees the reply; NULL: the module frees it, maybe when the
     * context has ended. */
    ValkeyModuleCtx *collector;
    promise *promise; /* NULL: it is a reply */
} replyRoot;

struct ValkeyModuleCallReply {
    replyRoot *root;
    bool is_part, is_read;
    int type;    /* VALKEYMODULE_REPLY_ */
    slice bytes; /* the RESP bytes of this part */
    slice text;  /* of texts */
    int64_t integer;
    double number;
    char format[4];
    size_t count;                 /* items of an array or a set, pairs of a map or an attribute */
    ValkeyModuleCallReply *items; /* all of them; of maps keys and values in turn */
    ValkeyModuleCallReply *attribute;
};

static void freeCollected(ValkeyModuleCtx *x, void *what) {
    ValkeyModuleCallReply *r = what;
    (void)x; /* it is being cleared */
    r->root->collector = NULL;
    callReplyFree(r);
}

void callRepliesStart(void) { contextSetFree(GARBAGE_REPLY, freeCollected); }

ValkeyModuleCallReply *callReplyNew(ValkeyModuleCtx *x, char *bytes, size_t len, int proto,
                                    bool exact) {
    ValkeyModuleCallReply *r = memNew(ValkeyModuleCallReply);
    r->root = memNew(replyRoot);
    *r->root = (replyRoot){.bytes = bytes, .len = len, .proto = (uint8_t)proto, .exact = exact};
    r->root->collector = x && x->flags & CONTEXT_AUTO_MEMORY ? x : NULL;
    r->bytes = sliceMake(bytes ? bytes : "", len);
    r->type = VALKEYMODULE_REPLY_UNKNOWN;
    contextCollect(x, GARBAGE_REPLY, r);
    return r;
}

ValkeyModuleCallReply *callReplyNewPromise(ValkeyModuleCtx *x, promise *p) {
    ValkeyModuleCallReply *r = callReplyNew(x, NULL, 0, 2, false);
    r->root->promise = p;
    r->type = VALKEYMODULE_REPLY_PROMISE;
    r->is_read = true;
    return r;
}

promise *callReplyPromise(const ValkeyModuleCallReply *r) { return r ? r->root->promise : NULL; }

void callReplyFree(ValkeyModuleCallReply *r) {
    if (!r || r->is_part) return;
    replyRoot *root = r->root;
    if (root->collector) (void)contextForget(root->collector, GARBAGE_REPLY, r);
    if (root->promise) promiseRelease(root->promise);
    poolFree(&root->nodes);
    memFree(root->bytes);
    memFree(root);
    memFree(r);
}

slice callReplyBytes(const ValkeyModuleCallReply *r) { return r->bytes; }

/* ------------------------------------------------------------------ reading */

static int typeOf(const replyRoot *root, const replyEvent *e, char first) {
    switch (e->kind) {
    case REPLY_STATUS:
        return root->exact ? VALKEYMODULE_REPLY_SIMPLE_STRING : VALKEYMODULE_REPLY_STRING;
    case REPLY_ERROR: return VALKEYMODULE_REPLY_ERROR;
    case REPLY_INTEGER: return VALKEYMODULE_REPLY_INTEGER;
    case REPLY_BULK: return VALKEYMODULE_REPLY_STRING;
    case REPLY_NULL:
        return root->exact && first == '*' ? VALKEYMODULE_REPLY_ARRAY_NULL
                                           : VALKEYMODULE_REPLY_NULL;
    case REPLY_ARRAY: return VALKEYMODULE_REPLY_ARRAY;
    case REPLY_MAP: return VALKEYMODULE_REPLY_MAP;
    case REPLY_SET: return VALKEYMODULE_REPLY_SET;
    case REPLY_PUSH: return VALKEYMODULE_REPLY_UNKNOWN;
    case REPLY_ATTRIBUTE: return VALKEYMODULE_REPLY_ATTRIBUTE;
    case REPLY_DOUBLE: return VALKEYMODULE_REPLY_DOUBLE;
    case REPLY_BOOL: return VALKEYMODULE_REPLY_BOOL;
    case REPLY_BIG_NUMBER: return VALKEYMODULE_REPLY_BIG_NUMBER;
    case REPLY_VERBATIM: return VALKEYMODULE_REPLY_VERBATIM_STRING;
    }
    return VALKEYMODULE_REPLY_UNKNOWN;
}

typedef struct replyParse {
    replyReader reader;
    size_t at;
} replyParse;

static bool readPart(replyParse *p, ValkeyModuleCallReply *r);

/* The items of a container whose header was read. */
static bool readItems(replyParse *p, ValkeyModuleCallReply *r, bool in_pairs) {
    hotCheck(!r->items);
    size_t count = r->count * (in_pairs ? 2 : 1);
    if (!count) return true;
    r->items = poolAlloc(&r->root->nodes, count * sizeof(*r->items));
    memset(r->items, 0, count * sizeof(*r->items));
    for (size_t i = 0; i < count; i++) {
        r->items[i].root = r->root;
        r->items[i].is_part = true;
        if (!readPart(p, &r->items[i])) return false;
    }
    return true;
}

/* Reads the next reply into `r`, with all that is in it. False: the bytes are none. */
static bool readPart(replyParse *p, ValkeyModuleCallReply *r) {
    replyRoot *root = r->root;
    hotCheck(p->at <= root->len);
    replyEvent e;
    size_t start = p->at;
    if (replyRead(&p->reader, root->bytes, root->len, &p->at, &e) != REPLY_EVENT) return false;
    r->is_read = true;
    if (e.kind == REPLY_ATTRIBUTE) {
        ValkeyModuleCallReply *a = poolAlloc(&root->nodes, sizeof(*a));
        *a = (ValkeyModuleCallReply){.root = root, .is_part = true, .is_read = true};
        a->type = VALKEYMODULE_REPLY_ATTRIBUTE;
        a->count = (size_t)e.integer;
        if (!readItems(p, a, true)) return false;
        a->bytes = sliceMake(root->bytes + start, p->at - start);
        if (!readPart(p, r)) return false;
        r->attribute = a;
        return true;
    }
    r->type = typeOf(root, &e, root->bytes[start]);
    r->text = e.text;
    r->integer = e.integer;
    r->number = e.number;
    memcpy(r->format, e.format, sizeof(r->format));
    bool in_pairs = e.kind == REPLY_MAP;
    if (in_pairs || e.kind == REPLY_ARRAY || e.kind == REPLY_SET) {
        r->count = (size_t)e.integer;
        if (!readItems(p, r, in_pairs)) return false;
    }
    r->bytes = sliceMake(root->bytes + start, p->at - start);
    return true;
}

/* Makes the tree, if there is none yet. NULL stays NULL. */
static ValkeyModuleCallReply *lookInto(ValkeyModuleCallReply *r) {
    if (!r || r->is_read) return r;
    slice whole = r->bytes;
    replyParse p = {.at = 0};
    replyReaderInit(&p.reader);
    if (whole.len == 0 || !readPart(&p, r)) r->type = VALKEYMODULE_REPLY_UNKNOWN;
    r->is_read = true;
    r->bytes = whole;
    return r;
}

int callReplyType(ValkeyModuleCallReply *r) {
    return lookInto(r) ? r->type : VALKEYMODULE_REPLY_UNKNOWN;
}

/* The reply if it is of this type, else NULL. */
static ValkeyModuleCallReply *ofType(ValkeyModuleCallReply *r, int type) {
    return callReplyType(r) == type ? r : NULL;
}

/* ------------------------------------------------------------------ functions of modules */

void apiFreeCallReply(ValkeyModuleCallReply *reply) { callReplyFree(reply); }

int apiCallReplyType(ValkeyModuleCallReply *reply) { return callReplyType(reply); }

size_t apiCallReplyLength(ValkeyModuleCallReply *reply) {
    switch (callReplyType(reply)) {
    case VALKEYMODULE_REPLY_STRING:
    case VALKEYMODULE_REPLY_ERROR:
    case VALKEYMODULE_REPLY_SIMPLE_STRING:
    case VALKEYMODULE_REPLY_VERBATIM_STRING:
    case VALKEYMODULE_REPLY_BIG_NUMBER: return reply->text.len;
    case VALKEYMODULE_REPLY_ARRAY:
    case VALKEYMODULE_REPLY_SET:
    case VALKEYMODULE_REPLY_MAP:
    case VALKEYMODULE_REPLY_ATTRIBUTE: return reply->count;
    default: return 0;
    }
}

ValkeyModuleCallReply *apiCallReplyArrayElement(ValkeyModuleCallReply *reply, size_t idx) {
    ValkeyModuleCallReply *r = ofType(reply, VALKEYMODULE_REPLY_ARRAY);
    return r && idx < r->count ? &r->items[idx] : NULL;
}

ValkeyModuleCallReply *apiCallReplySetElement(ValkeyModuleCallReply *reply, size_t idx) {
    ValkeyModuleCallReply *r = ofType(reply, VALKEYMODULE_REPLY_SET);
    return r && idx < r->count ? &r->items[idx] : NULL;
}

/* Key and value number `idx` of a map or an attribute. */
static int pairOf(ValkeyModuleCallReply *r, size_t idx, ValkeyModuleCallReply **key,
                  ValkeyModuleCallReply **val) {
    if (!r || idx >= r->count) return VALKEYMODULE_ERR;
    hotCheck(r->items);
    if (key) *key = &r->items[idx * 2];
    if (val) *val = &r->items[idx * 2 + 1];
    return VALKEYMODULE_OK;
}

int apiCallReplyMapElement(ValkeyModuleCallReply *reply, size_t idx, ValkeyModuleCallReply **key,
                           ValkeyModuleCallReply **val) {
    return pairOf(ofType(reply, VALKEYMODULE_REPLY_MAP), idx, key, val);
}

ValkeyModuleCallReply *apiCallReplyAttribute(ValkeyModuleCallReply *reply) {
    return lookInto(reply) ? reply->attribute : NULL;
}

int apiCallReplyAttributeElement(ValkeyModuleCallReply *reply, size_t idx,
                                 ValkeyModuleCallReply **key, ValkeyModuleCallReply **val) {
    return pairOf(ofType(reply, VALKEYMODULE_REPLY_ATTRIBUTE), idx, key, val);
}

long long apiCallReplyInteger(ValkeyModuleCallReply *reply) {
    ValkeyModuleCallReply *r = ofType(reply, VALKEYMODULE_REPLY_INTEGER);
    return r ? r->integer : LLONG_MIN;
}

double apiCallReplyDouble(ValkeyModuleCallReply *reply) {
    ValkeyModuleCallReply *r = ofType(reply, VALKEYMODULE_REPLY_DOUBLE);
    return r ? r->number : (double)LLONG_MIN;
}

int apiCallReplyBool(ValkeyModuleCallReply *reply) {
    ValkeyModuleCallReply *r = ofType(reply, VALKEYMODULE_REPLY_BOOL);
    return r ? (int)r->integer : INT_MIN;
}

/* The text of a reply of this type. */
static const char *textOf(ValkeyModuleCallReply *reply, int type, size_t *len) {
    ValkeyModuleCallReply *r = ofType(reply, type);
    if (!r) return NULL;
    if (len) *len = r->text.len;
    return r->text.ptr;
}

const char *apiCallReplyBigNumber(ValkeyModuleCallReply *reply, size_t *len) {
    return textOf(reply, VALKEYMODULE_REPLY_BIG_NUMBER, len);
}

const char *apiCallReplyVerbatim(ValkeyModuleCallReply *reply, size_t *len, const char **format) {
    const char *text = textOf(reply, VALKEYMODULE_REPLY_VERBATIM_STRING, len);
    if (text && format) *format = reply->format;
    return text;
}

const char *apiCallReplyStringPtr(ValkeyModuleCallReply *reply, size_t *len) {
    static const int types[] = {VALKEYMODULE_REPLY_STRING, VALKEYMODULE_REPLY_SIMPLE_STRING,
                                VALKEYMODULE_REPLY_ERROR};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const char *text = textOf(reply, types[i], len);
        if (text) return text;
    }
    return NULL;
}

const char *apiCallReplyProto(ValkeyModuleCallReply *reply, size_t *len) {
    if (len) *len = reply ? reply->bytes.len : 0;
    return reply ? reply->bytes.ptr : NULL;
}

ValkeyModuleString *apiCreateStringFromCallReply(ValkeyModuleCallReply *reply) {
    ValkeyModuleCtx *x = reply ? reply->root->collector : NULL;
    switch (callReplyType(reply)) {
    case VALKEYMODULE_REPLY_STRING:
    case VALKEYMODULE_REPLY_SIMPLE_STRING:
    case VALKEYMODULE_REPLY_ERROR: return apiCreateString(x, reply->text.ptr, reply->text.len);
    case VALKEYMODULE_REPLY_INTEGER: return apiCreateStringFromLongLong(x, reply->integer);
    default: return NULL;
    }
}

/* True if a client of RESP2 can read the bytes: no item is of a type that only RESP3 has. */
static bool isResp2(slice bytes) {
    replyReader reader;
    replyEvent e;
    size_t at = 0;
    replyReaderInit(&reader);
    reader.bulk_max = INT64_MAX;
    while (at < bytes.len) {
        char type = bytes.ptr[at];
        if (!memchr("+-:$*", type, 5)) return false;
        if (replyRead(&reader, bytes.ptr, bytes.len, &at, &e) != REPLY_EVENT) return false;
    }
    return true;
}

int apiReplyWithCallReply(ValkeyModuleCtx *ctx, ValkeyModuleCallReply *reply) {
    if (!reply) return VALKEYMODULE_ERR;
    if (reply->root->proto > ctx->proto && !isResp2(reply->bytes)) return VALKEYMODULE_ERR;
    if (!ctx->out) return VALKEYMODULE_OK;
    /* Errors of calls count when clients get them, those of a script's commands at once. */
    slice error = sliceMake(reply->bytes.ptr + 1, reply->bytes.len - 1);
    if (reply->bytes.len && reply->bytes.ptr[0] == '-')
        contextNoteError(ctx, error, ctx->script != NULL);
    outbufAppend(ctx->out, reply->bytes.ptr, reply->bytes.len);
    return VALKEYMODULE_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies as text (debug_reply.h): [1,"a"], ~(1), {1 => 2}. */
#include "script/debug_reply.h"

#include "base/base.h"
#include "base/number.h"

static const char *const openings[] = {[REPLY_ARRAY] = "[",
                                       [REPLY_MAP] = "{",
                                       [REPLY_SET] = "~(",
                                       [REPLY_PUSH] = ">[",
                                       [REPLY_ATTRIBUTE] = "|{"};
static const char *const endings[] = {[REPLY_ARRAY] = "]",
                                      [REPLY_MAP] = "}",
                                      [REPLY_SET] = ")",
                                      [REPLY_PUSH] = "]",
                                      [REPLY_ATTRIBUTE] = "} "};

static bool hasPairs(replyKind kind) { return kind == REPLY_MAP || kind == REPLY_ATTRIBUTE; }

/* An item is complete: appends what separates it from the next one, and closes aggregates that are
 * full. */
static void itemDone(debugReply *r) {
    hotCheck(r->depth <= REPLY_DEPTH_MAX);
    while (r->depth > 0) {
        int at = r->depth - 1;
        if (--r->open[at].left > 0) {
            bool is_key = hasPairs(r->open[at].kind) && !r->open[at].at_value;
            strAppendText(&r->text, is_key ? " => " : ",");
            r->open[at].at_value = is_key;
            return;
        }
        replyKind kind = r->open[at].kind;
        strAppendText(&r->text, endings[kind]);
        r->depth--;
        if (kind == REPLY_ATTRIBUTE) return; /* the value that it belongs to follows */
    }
}

static void openAggregate(debugReply *r, const replyEvent *e) {
    hotCheck(r->depth <= REPLY_DEPTH_MAX);
    strAppendText(&r->text, openings[e->kind]);
    if (r->depth == REPLY_DEPTH_MAX) return; /* the receiver refuses it */
    r->open[r->depth].kind = e->kind;
    r->open[r->depth].left = hasPairs(e->kind) ? e->integer * 2 : e->integer;
    r->open[r->depth].at_value = false;
    r->depth++;
    if (e->integer > 0) return;
    strAppendText(&r->text, endings[e->kind]);
    r->depth--;
    if (e->kind != REPLY_ATTRIBUTE) itemDone(r);
}

static void appendMarked(str *out, char mark, slice text) {
    str line = STR_EMPTY;
    strAppendByte(&line, mark);
    strAppendSlice(&line, text);
    strAppendQuoted(out, strSlice(&line));
    strFree(&line);
}

static void appendScalar(debugReply *r, const replyEvent *e) {
    char number[NUMBER_TEXT_MAX];
    switch (e->kind) {
    case REPLY_INTEGER: strAppendInt(&r->text, e->integer); break;
    case REPLY_BULK:
    case REPLY_VERBATIM: strAppendQuoted(&r->text, e->text); break;
    case REPLY_STATUS: appendMarked(&r->text, '+', e->text); break;
    case REPLY_ERROR:
        appendMarked(&r->text, '-', e->text);
        if (!r->depth) strAppendSlice(&r->error, e->text);
        break;
    case REPLY_NULL: strAppendText(&r->text, r->proto == 2 ? "NULL" : "(null)"); break;
    case REPLY_BOOL: strAppendText(&r->text, e->integer ? "#true" : "#false"); break;
    case REPLY_DOUBLE:
        strAppendText(&r->text, "(double) ");
        strAppend(&r->text, number, numberPrintDouble(number, e->number));
        break;
    case REPLY_BIG_NUMBER:
        strAppendText(&r->text, "(big number) ");
        strAppendSlice(&r->text, e->text);
        break;
    default: panic("a reply item of kind %d", (int)e->kind);
    }
}

static void take(void *state, const replyEvent *e) {
    debugReply *r = state;
    if (e->kind >= REPLY_ARRAY && e->kind <= REPLY_ATTRIBUTE) {
        openAggregate(r, e);
    } else {
        appendScalar(r, e);
        itemDone(r);
    }
    r->next->take(r->next->state, e);
}

void debugReplyInit(debugReply *r, replySink *next, uint8_t proto) {
    *r = (debugReply){.next = next, .proto = proto};
    r->sink = (replySink){.take = take, .state = r};
}

void debugReplyClear(debugReply *r) {
    strFree(&r->text);
    strFree(&r->error);
}

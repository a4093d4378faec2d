/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stream commands that add and remove entries: XADD, XTRIM, XDEL, XSETID, XLEN. Main thread
 * only. */
#include "base/base.h"
#include "cmd/cmd_priv.h"
#include "cmd/procs.h"
#include "cmd/stream_priv.h"
#include "format/rdb_settings.h"

/* ------------------------------------------------------------------ options of XADD and XTRIM */

typedef enum idForm { ID_MISSING, ID_AUTO, ID_AUTO_SEQ, ID_FULL } idForm;

typedef struct addOptions {
    bool trims;
    streamTrimRule rule;
    bool limit_given;
    int64_t limit;
    int operator_arg, threshold_arg; /* 0: none */
    bool no_make;
    streamProduced produced;
    streamRefs refs;
    bool refs_given;
    idForm id_form;
    streamId id;
    int id_arg;
} addOptions;

/* Parses the count of MAXLEN or LIMIT at argument `i`. */
static bool argCount(ctx *c, int i, const char *negative, int64_t *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    if (!ctxArgInt(c, i, out)) return false;
    if (*out >= 0) return true;
    replyError(c, sliceOf(negative));
    return false;
}

/* Parses MAXLEN or MINID at argument *i with its operands; *i is set to the last of them. */
static bool parseStrategy(ctx *c, int *i, bool by_id, addOptions *out) {
    hotCheck(*i > 0);
    hotCheck(*i < c->argc);
    if (out->trims) {
        replyError(c, SLICE("ERR syntax error, MAXLEN and MINID options at the same time are not "
                            "compatible"));
        return false;
    }
    out->trims = true;
    out->rule.by_id = by_id;
    if (*i + 2 < c->argc && c->argv[*i + 1].len == 1) {
        char op = c->argv[*i + 1].ptr[0];
        out->rule.whole_nodes = op == '~';
        if (op == '~' || op == '=') out->operator_arg = ++*i;
    }
    out->threshold_arg = ++*i;
    if (by_id) return streamArgId(c, *i, 0, &out->rule.min_id);
    int64_t length;
    if (!argCount(c, *i, "ERR The MAXLEN argument must be >= 0.", &length)) return false;
    out->rule.length = (uint64_t)length;
    return true;
}

/* Parses XADD's id at argument `i`. */
static bool parseAddId(ctx *c, int i, addOptions *out) {
    hotCheck(i > 0);
    hotCheck(i <= c->argc);
    slice text = c->argv[i];
    out->id_arg = i;
    if (streamIsWord(text, '*')) {
        out->id_form = ID_AUTO;
        return true;
    }
    text = streamBeforeZero(text);
    if (text.len > 2 && text.ptr[text.len - 1] == '*' && text.ptr[text.len - 2] == '-') {
        out->id_form = ID_AUTO_SEQ;
        text.len -= 2;
        if (!memchr(text.ptr, '-', text.len) && streamParseId(text, 0, &out->id)) return true;
        streamReplyInvalidId(c);
        return false;
    }
    out->id_form = ID_FULL;
    return streamArgId(c, i, 0, &out->id);
}

/* Validates LIMIT, or sets its default. */
static bool settleLimit(ctx *c, bool is_add, addOptions *out) {
    enum { DEFAULT_NODES = 100, DEFAULT_LIMIT = 10000, DEFAULT_LIMIT_MAX = 1000000 };
    if (out->limit > 0 && !out->trims) {
        replyError(c, SLICE("ERR syntax error, LIMIT cannot be used without specifying a trimming "
                            "strategy"));
        return false;
    }
    if (!is_add && !out->trims) {
        replyError(c, SLICE("ERR syntax error, XTRIM must be called with a trimming strategy"));
        return false;
    }
    if (ctxIsReplay(c)) return true;
    if (out->limit_given) {
        out->rule.max_removed = (uint64_t)out->limit;
        if (out->rule.whole_nodes) return true;
        replyError(c, SLICE("ERR syntax error, LIMIT cannot be used without the special ~ option"));
        return false;
    }
    if (!out->rule.whole_nodes) return true;
    int64_t entries = cmdConf.stream_node_max_entries;
    if (entries <= 0) {
        out->rule.max_removed = DEFAULT_LIMIT;
    } else if (entries > DEFAULT_LIMIT_MAX / DEFAULT_NODES) {
        out->rule.max_removed = DEFAULT_LIMIT_MAX;
    } else {
        out->rule.max_removed = (uint64_t)entries * DEFAULT_NODES;
    }
    return true;
}

/* False for `*`, and for most ids. */
static bool mayBeWord(slice text) {
    return text.len >= sizeof("idmp") - 1 && text.len <= sizeof("idmpauto") - 1;
}

/* Parses an option that Valkey does not have, at argument *i; *i is set to its last word. */
static streamWord parseWord(ctx *c, int *i, bool is_add, addOptions *out) {
    if (!out->refs_given && streamArgRefs(c, *i, &out->refs)) {
        out->refs_given = true;
        return STREAM_WORD_TAKEN;
    }
    return is_add ? streamArgProducer(c, i, &out->produced) : STREAM_WORD_OTHER;
}

/* Parses the id at argument `i`, which follows the options. With IDMP or IDMPAUTO, clients have to
 * write `*`; only the stream of a primary has another id. */
static bool parseLastWord(ctx *c, int i, addOptions *out) {
    if (!parseAddId(c, i, out)) return false;
    if (likely(!out->produced.words) || out->id_form == ID_AUTO || ctxIsReplay(c)) return true;
    replyError(c, SLICE("ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated "
                        "IDs"));
    return false;
}

/* False: the error was replied. */
static bool parseOptions(ctx *c, bool is_add, addOptions *out) {
    *out = (addOptions){0};
    streamWord word;
    for (int i = 2; i < c->argc && out->id_form == ID_MISSING; i++) {
        bool has_value = i + 1 < c->argc;
        if (has_value && ctxArgIs(c, i, "maxlen")) {
            if (!parseStrategy(c, &i, false, out)) return false;
        } else if (has_value && ctxArgIs(c, i, "minid")) {
            if (!parseStrategy(c, &i, true, out)) return false;
        } else if (has_value && ctxArgIs(c, i, "limit")) {
            out->limit_given = true;
            if (!argCount(c, ++i, "ERR The LIMIT argument must be >= 0.", &out->limit))
                return false;
        } else if (is_add && ctxArgIs(c, i, "nomkstream")) {
            out->no_make = true;
        } else if (mayBeWord(c->argv[i]) &&
                   (word = parseWord(c, &i, is_add, out)) != STREAM_WORD_OTHER) {
            if (word == STREAM_WORD_WRONG) return false;
        } else if (is_add) {
            if (!parseLastWord(c, i, out)) return false;
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return settleLimit(c, is_add, out);
}

/* ------------------------------------------------------------------ propagation of both */

/* The exact bound that was applied, as MAXLEN or MINID; `text` has STREAM_ID_TEXT_MAX bytes. */
static slice exactBound(const addOptions *p, const stream *s, char *text) {
    streamId first = STREAM_ID_MAX;
    if (!p->rule.whole_nodes) {
        if (p->rule.by_id) return streamIdText(p->rule.min_id, text);
        return sliceMake(text, numberPrintUint(text, p->rule.length));
    }
    if (p->refs != REFS_DELETE) {
        (void)streamFirstKept(s, &first); /* without entries all are removed */
    } else if (streamLength(s)) {
        first = streamFirstId(s); /* not all of a node is removed */
    }
    if (p->rule.by_id) return streamIdText(first, text);
    return sliceMake(text, numberPrintUint(text, streamLength(s)));
}

/* Propagates the request with the assigned id and the exact bound that was applied, without words
 * that only Redis knows. */
static void propagateExact(ctx *c, const addOptions *p, const stream *s) {
    char id[STREAM_ID_TEXT_MAX], bound[STREAM_ID_TEXT_MAX];
    slice *words = memNewArray(slice, (size_t)c->argc);
    memcpy(words, c->argv, (size_t)c->argc * sizeof(*words));
    if (p->id_arg) words[p->id_arg] = streamIdText(p->id, id);
    if (p->rule.whole_nodes) {
        words[p->operator_arg] = SLICE("=");
        words[p->threshold_arg] = exactBound(p, s, bound);
    }
    int count = c->argc - p->produced.words, option = p->produced.arg;
    memmove(words + option, words + option + p->produced.words,
            (size_t)(count - option) * sizeof(*words));
    ctxPropagateAs(c, count, words);
    memFree(words);
}

/* The end of a request with KEEPREF, DELREF or ACKED. Propagates it without the word, as an XADD,
 * or an XTRIM if `fields` is 0, followed by XDEL of the entries that ACKED has removed; removes the
 * references for DELREF. `ids`: those of streamTrimRefs(). */
static void finishRefs(ctx *c, const addOptions *p, stream *s, const streamIds *ids, int fields) {
    enum { WORDS_MAX = 6 };
    char id[STREAM_ID_TEXT_MAX], bound[STREAM_ID_TEXT_MAX];
    bool trims = p->trims && p->refs != REFS_ACKED;
    int n = 0;
    slice *words = memNewArray(slice, WORDS_MAX + (size_t)fields);
    words[n++] = fields ? SLICE("XADD") : SLICE("XTRIM");
    words[n++] = c->argv[1];
    if (trims) {
        words[n++] = p->rule.by_id ? SLICE("MINID") : SLICE("MAXLEN");
        words[n++] = SLICE("=");
        words[n++] = exactBound(p, s, bound);
    }
    if (fields) words[n++] = streamIdText(p->id, id);
    for (int i = c->argc - fields; i < c->argc; i++) words[n++] = c->argv[i];
    if (fields || trims) ctxPropagateAs(c, n, words);
    memFree(words);
    if (p->refs == REFS_ACKED) streamPropagateIds(c, c->argv[1], NULL, ids);
    if (p->refs == REFS_DELETE) (void)streamDropRefs(c, c->argv[1], s, ids);
}

/* Trims as the options say; returns the number of entries removed. */
static uint64_t trimStream(ctx *c, stream *s, const addOptions *p, streamIds *ids) {
    if (likely(p->refs == REFS_KEEP)) return streamTrim(s, &p->rule);
    return streamTrimRefs(c, s, &p->rule, p->refs, ids);
}

/* ------------------------------------------------------------------ XADD */

/* Completes a partial or automatic id from the stream's last one (`last`; 0-0 for a new stream).
 * False: the error was replied. */
static bool chooseId(ctx *c, addOptions *p, streamId last) {
    if (streamIdEqual(last, STREAM_ID_MAX)) {
        replyError(c, SLICE("ERR The stream has exhausted the last possible ID, unable to add more "
                            "items"));
        return false;
    }
    bool valid = true;
    if (p->id_form == ID_AUTO) {
        p->id = last;
        valid = streamIdNextAt(&p->id, (uint64_t)c->now_ms);
    } else if (p->id_form == ID_AUTO_SEQ && p->id.ms == last.ms) {
        valid = last.seq != UINT64_MAX;
        p->id.seq = last.seq + 1;
    }
    if (valid && streamIdLess(last, p->id)) return true;
    replyError(c, SLICE("ERR The ID specified in XADD is equal or smaller than the target stream "
                        "top item"));
    return false;
}

static bool entryFits(ctx *c, const slice *fields, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += fields[i].len;
    if (likely(bytes <= STREAM_ENTRY_BYTES_MAX)) return true;
    replyError(c, SLICE("ERR Elements are too large to be stored"));
    return false;
}

/* XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [IDMP producer iid|IDMPAUTO producer]
 * [MAXLEN|MINID [=|~] threshold [LIMIT count]] *|id field value [field value ...]. Reply: the
 * entry's id, or that of the entry added before; null with NOMKSTREAM if there is no stream. */
void xaddCommand(ctx *c) {
    hotCheck(c->argc >= 5);
    addOptions p;
    if (!parseOptions(c, true, &p)) return;
    int first_field = p.id_arg + 1, count = c->argc - first_field;
    if (!p.id_arg || count < 2 || count % 2) {
        replyErrorArity(c);
        return;
    }
    if (p.id_form == ID_FULL && streamIdIsZero(p.id)) {
        replyError(c, SLICE("ERR The ID specified in XADD must be greater than 0-0"));
        return;
    }
    stream *s;
    if (!streamFindWrite(c, 1, &s)) return;
    const slice *fields = c->argv + first_field;
    if (!s && p.no_make) {
        replyNull(c);
        return;
    }
    if (unlikely(p.produced.words)) {
        streamProducedHash(&p.produced, fields, count);
        /* A primary propagates an added entry with its id, so `*` in its stream stands for a
         * duplicate. */
        if (p.id_form == ID_AUTO && streamIsDuplicate(c, s, &p.produced, ctxIsReplay(c))) return;
    }
    if (!chooseId(c, &p, s ? streamLastId(s) : STREAM_ID_MIN)) return;
    if (!entryFits(c, fields, (size_t)count)) return;
    if (!s) {
        robj *o = streamObjectNew(c->argv[1]);
        s = streamOf(o);
        collectionPlace(c, 1, o);
    }
    streamAppend(s, p.id, fields, (size_t)count, &rdbLimitsNow()->stream);
    streamIds ids = {0};
    uint64_t removed = p.trims ? trimStream(c, s, &p, &ids) : 0;
    if (unlikely(p.refs_given)) {
        finishRefs(c, &p, s, &ids, count);
        streamIdsClear(&ids);
    } else if (engineHot.sinks &&
               (p.id_form != ID_FULL || p.rule.whole_nodes || p.produced.words)) {
        propagateExact(c, &p, s);
    }
    if (unlikely(p.produced.words)) streamRecordProduced(c, s, &p.produced, p.id);
    streamReplyId(c, p.id);
    ctxKeyChanged(c, c->argv[1], &eventXadd);
    if (removed) collectionNotify(c, c->argv[1], &eventXtrim);
}

/* ------------------------------------------------------------------ removing */

/* XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count] [KEEPREF|DELREF|ACKED]. Reply: number
 * of entries removed. */
void xtrimCommand(ctx *c) {
    hotCheck(c->argc >= 4);
    addOptions p;
    stream *s;
    if (!parseOptions(c, false, &p)) return;
    if (!streamFindWrite(c, 1, &s)) return;
    streamIds ids = {0};
    uint64_t removed = s ? trimStream(c, s, &p, &ids) : 0;
    replyInteger(c, (int64_t)removed);
    if (!removed) return;
    if (unlikely(p.refs_given)) {
        finishRefs(c, &p, s, &ids, 0);
        streamIdsClear(&ids);
    } else if (engineHot.sinks && p.rule.whole_nodes) {
        propagateExact(c, &p, s);
    }
    collectionChanged(c, c->argv[1], &eventXtrim, removed);
}

/* Parses arguments from..argc-1 as ids into a block that the caller frees. NULL: the error was
 * replied. */
static streamId *parseIds(ctx *c, int from) {
    streamId *ids = memNewArray(streamId, (size_t)(c->argc - from));
    for (int i = from; i < c->argc; i++) {
        if (streamArgId(c, i, 0, &ids[i - from])) continue;
        memFree(ids);
        return NULL;
    }
    return ids;
}

/* XDEL key id [id ...]. Reply: number of entries removed. */
void xdelCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    stream *s;
    if (!streamFindWrite(c, 1, &s)) return;
    if (!s) {
        replyInteger(c, 0);
        return;
    }
    streamId *ids = parseIds(c, 2);
    if (!ids) return;
    uint64_t removed = 0;
    for (int i = 2; i < c->argc; i++) removed += streamDelete(s, ids[i - 2]);
    memFree(ids);
    replyInteger(c, (int64_t)removed);
    if (removed) collectionChanged(c, c->argv[1], &eventXdel, removed);
}

/* ------------------------------------------------------------------ XSETID, XLEN */

typedef struct setidOptions {
    streamId id, max_deleted;
    bool has_added, has_deleted;
    int64_t added;
} setidOptions;

static bool parseSetid(ctx *c, setidOptions *out) {
    *out = (setidOptions){0};
    if (!streamArgId(c, 2, 0, &out->id)) return false;
    for (int i = 3; i < c->argc; i += 2) {
        bool has_value = i + 1 < c->argc;
        if (has_value && ctxArgIs(c, i, "entriesadded")) {
            out->has_added = true;
            if (!ctxArgInt(c, i + 1, &out->added)) return false;
            if (out->added < 0) {
                replyError(c, SLICE("ERR entries_added must be positive"));
                return false;
            }
        } else if (has_value && ctxArgIs(c, i, "maxdeletedid")) {
            if (!streamArgId(c, i + 1, 0, &out->max_deleted)) return false;
            out->has_deleted = !streamIdIsZero(out->max_deleted);
            if (streamIdLess(out->id, out->max_deleted)) {
                replyError(c, SLICE("ERR The ID specified in XSETID is smaller than the provided "
                                    "max_deleted_entry_id"));
                return false;
            }
        } else {
            replyError(c, ERR_SYNTAX_TEXT);
            return false;
        }
    }
    return true;
}

/* XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]. Reply: OK. */
void xsetidCommand(ctx *c) {
    hotCheck(c->argc >= 3);
    setidOptions p;
    stream *s;
    streamId top;
    if (!parseSetid(c, &p)) return;
    if (!streamFindWrite(c, 1, &s)) return;
    if (!s) {
        replyError(c, ERR_NO_KEY_TEXT);
        return;
    }
    if (streamIdLess(p.id, streamMaxDeletedId(s))) {
        replyError(c, SLICE("ERR The ID specified in XSETID is smaller than current "
                            "max_deleted_entry_id"));
        return;
    }
    if (streamLastLive(s, &top)) {
        if (streamIdLess(p.id, top)) {
            replyError(c, SLICE("ERR The ID specified in XSETID is smaller than the target stream "
                                "top item"));
            return;
        }
        if (p.has_added && (uint64_t)p.added < streamLength(s)) {
            replyError(c, SLICE("ERR The entries_added specified in XSETID is smaller than the "
                                "target stream length"));
            return;
        }
    }
    streamSetLastId(s, p.id);
    if (p.has_added) streamSetEntriesAdded(s, (uint64_t)p.added);
    if (p.has_deleted) streamSetMaxDeletedId(s, p.max_deleted);
    streamGroupChanged(c, c->argv[1], &eventXsetid);
    replyOk(c);
}

/* XLEN key. Reply: number of entries. */
void xlenCommand(ctx *c) {
    stream *s;
    if (streamFindRead(c, 1, &s)) replyInteger(c, s ? (int64_t)streamLength(s) : 0);
}

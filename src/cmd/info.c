/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO: prints the registered sections in their fixed order. Costs sections x arguments, plus the
 * cost of the sections. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "engine/hooks.h"
#include "engine/reply.h"

typedef struct infoRequest {
    uint32_t sets;  /* INFO_IN_... flags: the requested sets of sections */
    uint64_t named; /* the sections that are named: a bit for each, in the order of printing */
    int index;      /* of the section printed next */
    bool asks_for_more;
    /* Order of the section printed last; a section with the same order continues under its title.
     * */
    int last_order;
    str text;
} infoRequest;

static void printSection(const infoSection *section, void *arg) {
    infoRequest *q = arg;
    bool is_named = q->named >> q->index++ & 1;
    if (!(section->when & q->sets) && !is_named) return;
    if (q->last_order != (int)section->order) {
        if (q->text.len) strAppendText(&q->text, "\r\n");
        strAppendText(&q->text, section->title);
        strAppendText(&q->text, "\r\n");
        q->last_order = (int)section->order;
    }
    section->print(&q->text);
}

typedef struct sectionSearch {
    slice name;
    int index;
    uint64_t found; /* several sections may have the same name */
} sectionSearch;

static void compareName(const infoSection *section, void *arg) {
    sectionSearch *s = arg;
    check(s->index < 64); /* a bit for each */
    s->found |= (uint64_t)sliceIs(s->name, section->name) << s->index++;
}

/* If a name is no section of the server, what prints more is asked, too. */
static void readNames(const ctx *c, infoRequest *q) {
    if (c->argc == 1) q->sets = INFO_IN_DEFAULT;
    for (int i = 1; i < c->argc; i++) {
        sectionSearch s = {.name = c->argv[i]};
        hooksEachInfoSection(compareName, &s);
        q->named |= s.found;
        if (s.found) continue;
        if (ctxArgIs(c, i, "default")) {
            q->sets |= INFO_IN_DEFAULT;
        } else if (ctxArgIs(c, i, "all")) {
            q->sets |= INFO_IN_ALL;
        } else {
            if (ctxArgIs(c, i, "everything")) q->sets |= INFO_IN_EVERYTHING;
            q->asks_for_more = true;
        }
    }
}

/* INFO [section ...]. Reply: "name:value" lines under section titles; unknown sections print
 * nothing. */
void infoCommand(ctx *c) {
    enum { TEXT_BYTES = 2048, KEPT_BYTES = 32 * 1024 };
    static str kept; /* what the last call had; one within this call (by a module) has its own */
    infoRequest q = {.last_order = -1, .text = kept};
    kept = STR_EMPTY;
    strClear(&q.text);
    readNames(c, &q);
    (void)strReserve(&q.text, TEXT_BYTES); /* most sections fit into this */
    hooksEachInfoSection(printSection, &q);
    bool all = q.sets & INFO_IN_EVERYTHING;
    for (int i = 1; i < c->argc; i++) all |= ctxArgIs(c, i, "modules");
    if (all || q.asks_for_more) hooksInfoMore(&q.text, c->argv + 1, c->argc - 1, all, false);
    replyVerbatim(c, strSlice(&q.text), "txt");
    if (q.text.cap > KEPT_BYTES || kept.ptr) {
        strFree(&q.text);
    } else {
        kept = q.text;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * INFO: prints the registered sections in their fixed order. Costs sections x arguments, plus the
 * cost of the sections. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "engine/hooks.h"
#include "engine/reply.h"

typedef struct infoRequest {
    const ctx *c;
    uint32_t sets; /* INFO_IN_... flags: the requested sets of sections */
    /* Order of the section printed last; a section with the same order continues under its title.
     * */
    int last_order;
    str text;
} infoRequest;

static bool isWanted(const infoRequest *q, const infoSection *section) {
    if (section->when & q->sets) return true;
    for (int i = 1; i < q->c->argc; i++) {
        if (sliceIs(q->c->argv[i], section->name)) return true;
    }
    return false;
}

static void printSection(const infoSection *section, void *arg) {
    infoRequest *q = arg;
    if (!isWanted(q, section)) return;
    if (q->last_order != (int)section->order) {
        if (q->text.len) strAppendText(&q->text, "\r\n");
        strAppendText(&q->text, section->title);
        strAppendText(&q->text, "\r\n");
        q->last_order = (int)section->order;
    }
    section->print(&q->text);
}

static uint32_t setsNamed(const ctx *c) {
    if (c->argc == 1) return INFO_IN_DEFAULT;
    uint32_t sets = 0;
    for (int i = 1; i < c->argc; i++) {
        if (ctxArgIs(c, i, "default")) sets |= INFO_IN_DEFAULT;
        if (ctxArgIs(c, i, "all")) sets |= INFO_IN_ALL;
        if (ctxArgIs(c, i, "everything")) sets |= INFO_IN_EVERYTHING;
    }
    return sets;
}

typedef struct sectionSearch {
    slice name;
    bool found;
} sectionSearch;

static void compareName(const infoSection *section, void *arg) {
    sectionSearch *s = arg;
    s->found |= sliceIs(s->name, section->name);
}

/* True if a name is no section of the server: what prints more is asked only then. */
static bool asksForMore(const ctx *c) {
    for (int i = 1; i < c->argc; i++) {
        if (ctxArgIs(c, i, "default") || ctxArgIs(c, i, "all")) continue;
        sectionSearch s = {c->argv[i], false};
        hooksEachInfoSection(compareName, &s);
        if (!s.found) return true;
    }
    return false;
}

/* INFO [section ...]. Reply: "name:value" lines under section titles; unknown sections print
 * nothing. */
void infoCommand(ctx *c) {
    enum { TEXT_BYTES = 2048 }; /* most sections fit into this */
    infoRequest q = {.c = c, .sets = setsNamed(c), .last_order = -1, .text = STR_EMPTY};
    (void)strReserve(&q.text, TEXT_BYTES);
    hooksEachInfoSection(printSection, &q);
    bool all = q.sets & INFO_IN_EVERYTHING;
    for (int i = 1; i < c->argc; i++) all |= ctxArgIs(c, i, "modules");
    if (all || asksForMore(c)) hooksInfoMore(&q.text, c->argv + 1, c->argc - 1, all, false);
    replyVerbatim(c, strSlice(&q.text), "txt");
    strFree(&q.text);
}

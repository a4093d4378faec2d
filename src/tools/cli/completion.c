/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of commands for TAB (completion.h). */
#include "tools/cli/completion.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/cli/help.h"

static int compareNames(const void *a, const void *b) {
    return sliceCompare(strSlice(a), strSlice(b));
}

/* Adds a name as people write it: "config|get" is CONFIG GET. */
static void addName(completion *c, const valkeyReply *reply) {
    wordsAdd(&c->names, sliceMake(reply->str, reply->len));
    str *name = &c->names.items[c->names.count - 1];
    for (size_t i = 0; i < name->len; i++) {
        name->ptr[i] = name->ptr[i] == '|' ? ' ' : (char)toupper((unsigned char)name->ptr[i]);
    }
}

void completionLoad(completion *c, const commandRunner *r) {
    valkeyContext *context = r->connection->context;
    if (!context || c->asked == context || r->connection->in_transaction || r->debugging ||
        commandIsSubscribed(r))
        return;
    wordsClear(&c->names);
    c->asked = context;
    valkeyReply *reply = valkeyCommand(context, "COMMAND LIST"); /* since 7.0 */
    for (size_t i = 0; reply && i < reply->elements; i++) {
        if (reply->element[i]->str) addName(c, reply->element[i]);
    }
    freeReplyObject(reply);
    if (c->names.count)
        qsort(c->names.items, (size_t)c->names.count, sizeof(*c->names.items), compareNames);
}

void completionClear(completion *c) { wordsClear(&c->names); }

static int nameCount(const completion *c) {
    return c->names.count ? c->names.count : helpEntryCount;
}

static const char *nameAt(const completion *c, int i) {
    return c->names.count ? strText(&c->names.items[i]) : helpEntries[i].name;
}

static bool begins(const char *text, slice prefix) {
    return strlen(text) >= prefix.len && !strncasecmp(text, prefix.ptr, prefix.len);
}

int completionCommon(const completion *c, slice typed, str *out) {
    const char *first = NULL;
    size_t common = 0;
    int found = 0;
    for (int i = 0; i < nameCount(c); i++) {
        const char *name = nameAt(c, i);
        if (!begins(name, typed)) continue;
        if (found++ == 0) {
            first = name;
            common = strlen(name);
        }
        size_t same = 0;
        while (same < common && name[same] == first[same]) same++;
        common = same;
    }
    if (first) strAppend(out, first, common);
    return found;
}

void completionList(const completion *c, slice typed, int columns, str *out) {
    size_t width = 0;
    for (int i = 0; i < nameCount(c); i++) {
        size_t len = strlen(nameAt(c, i));
        if (begins(nameAt(c, i), typed) && len > width) width = len;
    }
    int per_line = columns / (int)(width + 2), at = 0, blanks = 0;
    if (per_line < 1) per_line = 1;
    for (int i = 0; i < nameCount(c); i++) {
        if (!begins(nameAt(c, i), typed)) continue;
        if (at % per_line)
            strAppendFormat(out, "%*s", blanks, "");
        else if (at)
            strAppendByte(out, '\n');
        strAppendText(out, nameAt(c, i));
        blanks = (int)(width + 2 - strlen(nameAt(c, i)));
        at++;
    }
    if (at) strAppendByte(out, '\n');
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Access to the fields of INFO. All registered INFO sections are included, so the values agree with
 * those that INFO shows. */
#include <stdlib.h>

#include "base/base.h"
#include "engine/hooks.h"
#include "metrics/metrics_priv.h"

static void printSection(const infoSection *section, void *arg) { section->print(arg); }

void infoFieldsRead(str *out) { hooksEachInfoSection(printSection, out); }

typedef struct sectionChoice {
    const char *const *names;
    str *out;
} sectionChoice;

static void printChosen(const infoSection *section, void *arg) {
    const sectionChoice *choice = arg;
    for (const char *const *name = choice->names; *name; name++) {
        if (!strcmp(section->name, *name)) section->print(choice->out);
    }
}

void infoFieldsReadSections(const char *const *names, str *out) {
    hotCheck(threadIsMain());
    sectionChoice choice = {names, out};
    hooksEachInfoSection(printChosen, &choice);
}

bool infoFieldsNext(slice *text, slice *name, slice *value) {
    hotCheck(threadIsMain());
    while (text->len) {
        const char *end = memchr(text->ptr, '\n', text->len);
        size_t len = end ? (size_t)(end - text->ptr) : text->len;
        slice line = sliceMake(text->ptr, len);
        len += end != NULL;
        *text = sliceMake(text->ptr + len, text->len - len);
        if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
        const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
        if (!colon || line.ptr[0] == '#') continue;
        *name = sliceMake(line.ptr, (size_t)(colon - line.ptr));
        *value = sliceMake(colon + 1, line.len - name->len - 1);
        return true;
    }
    return false;
}

typedef struct infoField {
    slice name, value;
} infoField;

static int compareFields(const void *a, const void *b) {
    slice x = ((const infoField *)a)->name, y = ((const infoField *)b)->name;
    int order = memcmp(x.ptr, y.ptr, sizeMin(x.len, y.len));
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

void infoIndexInit(infoIndex *index, slice text) {
    hotCheck(threadIsMain());
    int cap = 0;
    *index = (infoIndex){NULL, 0};
    for (infoField f; infoFieldsNext(&text, &f.name, &f.value);) {
        if (index->count == cap) {
            cap = cap ? cap * 2 : 256;
            index->fields = memRealloc(index->fields, sizeof(infoField) * (size_t)cap);
        }
        index->fields[index->count++] = f;
    }
    if (index->count) qsort(index->fields, (size_t)index->count, sizeof(infoField), compareFields);
}

void infoIndexClear(infoIndex *index) {
    memFree(index->fields);
    *index = (infoIndex){NULL, 0};
}

slice infoIndexFind(const infoIndex *index, const char *name) {
    hotCheck(threadIsMain());
    if (index->count == 0) return SLICE("");
    infoField key = {.name = sliceOf(name)};
    const infoField *found =
        bsearch(&key, index->fields, (size_t)index->count, sizeof(infoField), compareFields);
    return found ? found->value : SLICE("");
}

slice infoSubfield(slice value, const char *key, char separator) {
    hotCheck(threadIsMain());
    size_t key_len = strlen(key);
    while (value.len) {
        const char *end = memchr(value.ptr, separator, value.len);
        size_t len = end ? (size_t)(end - value.ptr) : value.len;
        if (len > key_len && !memcmp(value.ptr, key, key_len) && value.ptr[key_len] == '=')
            return sliceMake(value.ptr + key_len + 1, len - key_len - 1);
        len += end != NULL;
        value = sliceMake(value.ptr + len, value.len - len);
    }
    return SLICE("");
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the server knows of itself, as INFO tells it: every section a wing has hung up counts here at once, and
 * numbers agree with what INFO shows. */
#include <stdlib.h>

#include "base/base.h"
#include "engine/hooks.h"
#include "metrics/metrics_priv.h"

static void printSection(const infoSection *section, void *arg) { section->print(arg); }

void factsRead(str *out) { hooksEachInfoSection(printSection, out); }

bool factsNext(slice *text, slice *name, slice *value) {
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

typedef struct fact {
    slice name, value;
} fact;

static int compareFacts(const void *a, const void *b) {
    slice x = ((const fact *)a)->name, y = ((const fact *)b)->name;
    int order = memcmp(x.ptr, y.ptr, sizeMin(x.len, y.len));
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

void factsIndexInit(factsIndex *index, slice text) {
    int cap = 0;
    *index = (factsIndex){NULL, 0};
    for (fact f; factsNext(&text, &f.name, &f.value);) {
        if (index->count == cap) {
            cap = cap ? cap * 2 : 256;
            index->facts = memRealloc(index->facts, sizeof(fact) * (size_t)cap);
        }
        index->facts[index->count++] = f;
    }
    if (index->count) qsort(index->facts, (size_t)index->count, sizeof(fact), compareFacts);
}

void factsIndexClear(factsIndex *index) {
    memFree(index->facts);
    *index = (factsIndex){NULL, 0};
}

slice factsFind(const factsIndex *index, const char *name) {
    if (index->count == 0) return SLICE("");
    fact key = {.name = sliceOf(name)};
    const fact *found =
        bsearch(&key, index->facts, (size_t)index->count, sizeof(fact), compareFacts);
    return found ? found->value : SLICE("");
}

slice factsField(slice value, const char *key, char separator) {
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

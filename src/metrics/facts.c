/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the server knows of itself, as INFO tells it: every section a wing has hung up counts here at once, and
 * numbers agree with what INFO shows. */
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

slice factsFind(slice text, const char *name) {
    slice found, value;
    while (factsNext(&text, &found, &value)) {
        if (sliceEqual(found, sliceOf(name))) return value;
    }
    return SLICE("");
}

slice factsPart(slice value, const char *key) {
    size_t key_len = strlen(key);
    while (value.len) {
        const char *comma = memchr(value.ptr, ',', value.len);
        size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
        if (len > key_len && !memcmp(value.ptr, key, key_len) && value.ptr[key_len] == '=')
            return sliceMake(value.ptr + key_len + 1, len - key_len - 1);
        len += comma != NULL;
        value = sliceMake(value.ptr + len, value.len - len);
    }
    return SLICE("");
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manifests of append only files: what is accepted is printed and parsed again to the same list, in
 * a valid order, and nothing stays allocated. The words that matter are in aof_manifest.dict.
 *
 * Input: the manifest. */
#include <string.h>

#include "base/base.h"
#include "format/aof_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void checkOrder(const aofManifest *m) {
    int64_t incr_seq = 0;
    for (int i = 0; i < m->count; i++) {
        const aofFile *file = &m->files[i];
        check(file->name[0] != 0);
        check(strchr(file->name, '/') == NULL);
        check(file->seq != 0);
        if (file->type == AOF_BASE) check(i == 0);
        if (i > 0 && file->type == AOF_HISTORY) check(m->files[i - 1].type != AOF_INCR);
        if (file->type != AOF_INCR) continue;
        check(file->seq > incr_seq);
        incr_seq = file->seq;
    }
    check(m->incr_seq == incr_seq);
}

/* A line that is printed may be longer than the one that was parsed. */
static bool linesFit(slice text) {
    size_t start = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '\n') continue;
        if (i - start >= AOF_MANIFEST_LINE_MAX) return false;
        start = i + 1;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t before = memUsed();
    aofManifest m, again;
    aofManifestError error;
    if (aofManifestParse(sliceMake(data, size), &m, &error) == OK) {
        checkOrder(&m);
        str printed = STR_EMPTY, twice = STR_EMPTY;
        aofManifestPrint(&m, &printed);
        if (printed.len && linesFit(strSlice(&printed))) {
            check(aofManifestParse(strSlice(&printed), &again, &error) == OK);
            aofManifestPrint(&again, &twice);
            check(sliceEqual(strSlice(&printed), strSlice(&twice)));
            aofManifestClear(&again);
        }
        aofManifestRetire(&m, aofManifestCount(&m, AOF_INCR) > 0);
        checkOrder(&m);
        check(!aofManifestBase(&m));
        strFree(&printed);
        strFree(&twice);
    } else {
        check(error.why.text[0] != 0);
        check(m.count == 0);
        strFree(&error.text);
    }
    aofManifestClear(&m);
    check(memUsed() == before);
    return 0;
}

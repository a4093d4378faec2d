/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The configuration file of a cluster node and its copy: of any two texts one is chosen, or none;
 * the text is refused, or gives a map that keeps its invariants and whose own text gives the same
 * map again; a sealed text is intact until one byte of it differs.
 *
 * Input: the first byte: bit 0: ports are those of TLS, bit 1: the file is sealed, bit 2: the copy
 * is; then the file and the copy with a zero byte between them. */
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "bus/file_choice.h"
#include "bus/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text as it would be after a save. */
static str textOf(slice text, bool with_seal) {
    str s = strNew(text);
    if (with_seal) {
        strAppendByte(&s, '\n');
        strAppendText(&s, "vars currentEpoch 1 lastVoteEpoch 1\n");
        clusterFileSeal(&s);
    }
    return s;
}

static void checkParse(slice text, bool tls) {
    clusterMap m, again;
    reason why;
    if (clusterMapParse(&m, text, tls, 1000, &why) != OK) {
        check(why.text[0] != 0);
        return;
    }
    check(!clusterMapVerify(&m));
    str printed = STR_EMPTY, twice = STR_EMPTY;
    clusterMapPrint(&m, tls, &printed);
    check(clusterMapParse(&again, strSlice(&printed), tls, 1000, &why) == OK);
    check(again.node_count == m.node_count);
    clusterMapPrint(&again, tls, &twice);
    /* Nodes that no line refers to may be in another order. */
    check(printed.len == twice.len);
    strFree(&printed);
    strFree(&twice);
    clusterMapClear(&again);
    clusterMapClear(&m);
}

static void checkSealed(str *main, slice copy, size_t at) {
    fileChoice c = clusterFileChoose(strSlice(main), copy);
    check(c.use == FILE_MAIN);
    check(!c.why);
    main->ptr[at % main->len] ^= 1 << at % 8;
    c = clusterFileChoose(strSlice(main), copy);
    check(c.use == FILE_COPY || c.use == FILE_REFUSED || c.use == FILE_MAIN);
    /* Only a newline in the last line can hide the checksum from a reader without a copy. */
    if (c.use == FILE_MAIN) check(c.why);
    main->ptr[at % main->len] ^= 1 << at % 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    logSetLevel(LOG_NOTHING);
    size_t before = memUsed();
    bool tls = data[0] & 1, sealed = data[0] & 2;
    slice rest = sliceMake(data + 1, size - 1);
    const char *end = rest.len ? memchr(rest.ptr, 0, rest.len) : NULL;
    size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
    str main = textOf(sliceMake(rest.ptr, len), sealed);
    str copy = textOf(end ? sliceMake(end + 1, rest.len - len - 1) : SLICE(""), data[0] & 4);
    slice main_text = sliceMake(strText(&main), main.len);
    fileChoice c = clusterFileChoose(main_text, strSlice(&copy));
    if (c.use == FILE_MAIN || c.use == FILE_MAIN_IF_VALID) checkParse(main_text, tls);
    if (c.use == FILE_COPY) checkParse(strSlice(&copy), tls);
    if (sealed) checkSealed(&main, strSlice(&copy), size * 7919);
    strFree(&main);
    strFree(&copy);
    check(memUsed() == before);
    return 0;
}

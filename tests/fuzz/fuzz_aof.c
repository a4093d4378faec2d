/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records of append only files: reading in steps of any size gives the same items, what is read can
 * be written again, and offsets never go back. The mutator keeps most records well-formed: it
 * repeats, removes and exchanges whole records and corrects the lengths of arguments that it
 * changes.
 *
 * Input: a byte for the size of the steps, then the file. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "format/aof_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

typedef struct stepSource {
    rdbSource source;
    slice rest;
    size_t step;
} stepSource;

static status readStep(rdbSource *source, void *dst, size_t cap, size_t *len, reason *why) {
    (void)why; /* cannot fail */
    stepSource *s = (stepSource *)source;
    *len = sizeMin(sizeMin(s->step, cap), s->rest.len);
    if (*len) memcpy(dst, s->rest.ptr, *len);
    s->rest = sliceMake(s->rest.ptr + *len, s->rest.len - *len);
    return OK;
}

/* Appends a text that describes the items, and returns the last one. */
static aofItem readAll(slice file, size_t step, str *items, uint64_t *safe) {
    stepSource from = {.source = {.read = readStep}, .rest = file, .step = step};
    aofReader r;
    aofItem item;
    uint64_t offset = 0;
    aofReaderInit(&r, &from.source, 0);
    while ((item = aofReaderNext(&r)) == AOF_COMMAND || item == AOF_ANNOTATION) {
        check(aofReaderOffset(&r) == offset + r.raw.len);
        offset = aofReaderOffset(&r);
        check(r.safe_offset <= offset);
        check(memcmp(r.raw.ptr, file.ptr + offset - r.raw.len, r.raw.len) == 0);
        size_t start = items->len;
        if (item == AOF_COMMAND) {
            check(r.argc >= 1);
            aofPrintCommand(items, r.argc, r.argv);
            check(sliceEqual(sliceMake(items->ptr + start, items->len - start), r.raw));
        } else {
            int64_t time_s;
            (void)aofAnnotationTime(r.raw, &time_s);
            strAppendSlice(items, r.raw);
        }
    }
    if (item != AOF_END) check(r.why.text[0] != 0);
    if (item == AOF_END) check(offset == file.len);
    *safe = r.safe_offset;
    aofReaderClear(&r);
    return item;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    slice file = sliceMake(data + 1, size - 1);
    str whole = STR_EMPTY, steps = STR_EMPTY;
    uint64_t safe, safe_in_steps;
    aofItem item = readAll(file, SIZE_MAX, &whole, &safe);
    check(readAll(file, 1 + data[0] % 64, &steps, &safe_in_steps) == item);
    check(sliceEqual(strSlice(&whole), strSlice(&steps)));
    check(safe == safe_in_steps);
    /* What is cut after its last complete transaction is a valid file. */
    strClear(&whole);
    check(readAll(sliceMake(file.ptr, (size_t)safe), SIZE_MAX, &whole, &safe_in_steps) == AOF_END);
    check(safe == safe_in_steps);
    strFree(&whole);
    strFree(&steps);
    return 0;
}

/* A record of the file, by its offset and length; count is 0 if there is none. */
typedef struct recordList {
    size_t count;
    slice at[64];
} recordList;

static void findRecords(slice file, recordList *out) {
    stepSource from = {.source = {.read = readStep}, .rest = file, .step = SIZE_MAX};
    aofReader r;
    out->count = 0;
    aofReaderInit(&r, &from.source, 0);
    while (out->count < COUNT_OF(out->at) && aofReaderNext(&r) <= AOF_ANNOTATION)
        out->at[out->count++] = sliceMake(file.ptr + aofReaderOffset(&r) - r.raw.len, r.raw.len);
    aofReaderClear(&r);
}

/* Appends the record with one argument changed. */
static void appendChanged(str *out, slice record, unsigned seed) {
    stepSource from = {.source = {.read = readStep}, .rest = record, .step = SIZE_MAX};
    aofReader r;
    aofReaderInit(&r, &from.source, 0);
    if (aofReaderNext(&r) == AOF_COMMAND) {
        static const char *const words[] = {"MULTI", "EXEC", "SET", "", "SELECT"};
        uint8_t text[256];
        slice *argument = &r.argv[seed % (unsigned)r.argc];
        size_t len = sizeMin(argument->len, sizeof(text) / 2);
        if (len) memcpy(text, argument->ptr, len);
        if (seed % 3 == 0) {
            *argument = sliceOf(words[seed / 3 % COUNT_OF(words)]);
        } else {
            *argument = sliceMake(text, LLVMFuzzerMutate(text, len, sizeof(text)));
        }
        aofPrintCommand(out, r.argc, r.argv);
    } else {
        strAppendSlice(out, record);
    }
    aofReaderClear(&r);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    if (size < 2 || seed % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
    slice file = sliceMake(data + 1, size - 1);
    recordList records;
    findRecords(file, &records);
    if (!records.count) return LLVMFuzzerMutate(data, size, max_size);
    str out = STR_EMPTY;
    size_t chosen = seed / 4 % records.count, other = seed / 256 % records.count;
    size_t end = 0;
    for (size_t i = 0; i < records.count; i++) {
        slice record = records.at[i];
        end = (size_t)(record.ptr - file.ptr) + record.len;
        if (i == chosen && seed % 4 == 1) continue; /* removed */
        if (i == chosen && seed % 4 == 2) {
            appendChanged(&out, record, seed / 16);
        } else {
            strAppendSlice(&out, record);
        }
        if (i == chosen && seed % 4 == 3) strAppendSlice(&out, records.at[other]);
    }
    strAppendSlice(&out, sliceMake(file.ptr + end, file.len - end));
    size_t len = sizeMin(out.len, max_size - 1);
    memmove(data + 1, strText(&out), len);
    strFree(&out);
    return len + 1;
}

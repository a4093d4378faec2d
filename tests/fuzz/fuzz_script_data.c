/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Inputs of the libraries of scripts: JSON, MessagePack, struct formats with data, patterns with
 * texts, format strings. The first byte chooses. What was decoded is encoded and decoded again, and
 * must be the same. */
#include "script_host.h"

static const char *const scripts[] = {
    /* JSON */
    ("local ok, v = pcall(cjson.decode, ARGV[1]) if not ok then return 0 end "
     "local ok, text = pcall(cjson.encode, v) if not ok then return 0 end "
     "local ok, w = pcall(cjson.decode, text) if not ok then return 0 end "
     "assert(#cjson.encode(w) == #text, text)"),
    /* MessagePack */
    ("local ok, v = pcall(function() return {cmsgpack.unpack(ARGV[1])} end) if not ok then return 0 end "
     "local bytes = cmsgpack.pack(unpack(v, 1, 1)) "
     "local ok, w = pcall(cmsgpack.unpack, bytes) assert(ok, w) "
     "pcall(cmsgpack.unpack_limit, ARGV[1], 3, 1) pcall(cmsgpack.unpack_one, ARGV[1], 2)"),
    /* struct: a format up to the first NUL, then data */
    ("local format, data = ARGV[1]:match('^([^%z]*)%z?(.*)$') "
     "pcall(struct.size, format) "
     "local v = {pcall(struct.unpack, format, data)} "
     "if v[1] and #v > 1 then local last = table.remove(v) pcall(struct.pack, format, unpack(v, 2)) end "
     "pcall(struct.pack, format, 1, 'text', 2.5, -3, 'x')"),
    /* patterns */
    ("local pattern, text = ARGV[1]:match('^([^%z]*)%z?(.*)$') "
     "pcall(string.find, text, pattern) pcall(string.match, text, pattern, 2) "
     "pcall(string.gsub, text, pattern, '%0%1') pcall(string.gsub, pattern, '%w', text) "
     "pcall(function() for a in text:gmatch(pattern) do end end)"),
    /* format strings, numbers, code */
    ("pcall(string.format, ARGV[1], 1.5, 'text', -3, 2^40, '7') pcall(tonumber, ARGV[1], 16) "
     "pcall(tonumber, ARGV[1]) pcall(loadstring, ARGV[1]) pcall(bit.tohex, ARGV[1], -3)"),
};

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    hostOpen();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    slice eval[] = {SLICE("eval"), sliceOf(scripts[data[0] % COUNT_OF(scripts)]), SLICE("0"),
                    sliceMake((const char *)data + 1, size - 1)};
    char reply = hostRun(eval, (int)COUNT_OF(eval));
    bool ended = host_ended;
    hostFlush();
    /* Ended for time or memory is fine; a failed assertion of the script is not. */
    if (reply == '-' && !ended) check(data[0] % COUNT_OF(scripts) >= 2 || size > 4096);
    return 0;
}

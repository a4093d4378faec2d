/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Payloads of FUNCTION RESTORE: the bytes without the footer, which is added. The first byte
 * chooses the policy. What was restored is dumped and must be restored again. */
#include "script_host.h"

#include "format/rdb_dump.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    hostOpen();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const policies[] = {"flush", "append", "replace"};
    if (size == 0) return 0;
    str payload = strNew(sliceMake((const char *)data + 1, size - 1));
    strReserve(&payload, RDB_DUMP_FOOTER);
    rdbDumpAppendFooter(&payload, 0, RDB_VERSION);
    slice restore[] = {SLICE("restore"), SLICE("restore"), strSlice(&payload),
                       sliceOf(policies[data[0] % COUNT_OF(policies)])};
    bool restored = hostRun(restore, (int)COUNT_OF(restore)) == '+';
    if (restored && size > 1) {
        slice call[] = {SLICE("fcall"), SLICE("f"), SLICE("0")};
        (void)hostRun(call, (int)COUNT_OF(call)); /* there may be no such function */
        slice again[] = {restore[0], restore[1], restore[2], SLICE("replace")};
        check(hostRun(again, (int)COUNT_OF(again)) == '+' || host_ended);
    }
    strFree(&payload);
    hostFlush();
    slice flush[] = {SLICE("flush"), SLICE("flush"), SLICE("sync")};
    check(hostRun(flush, (int)COUNT_OF(flush)) == '+');
    return 0;
}

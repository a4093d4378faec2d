/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sources of scripts: the bytes are compiled and run by EVAL, in RESP2 or RESP3, with the commands
 * of script_host.h. Each must reply one complete value, whatever it does, and leave the globals as
 * they were. */
#include "script_host.h"
#include "script/cache.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    hostOpen();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned runs;
    host_session.proto = runs % 2 ? 3 : 2;
    slice eval[] = {SLICE("eval"), sliceMake((const char *)data, size), SLICE("1"), SLICE("key"),
                    SLICE("argument")};
    (void)hostRun(eval, (int)COUNT_OF(eval)); /* any reply */
    slice probe[] = {SLICE("eval"),
                     SLICE("return tostring(next) ~= nil and redis == server and #KEYS == 0 and "
                           "('x'):rep(3) == 'xxx' and rawget(_G, 'y') == nil and 1 or "
                           "redis.error_reply('changed')"),
                     SLICE("0")};
    check(hostRun(probe, (int)COUNT_OF(probe)) == ':' || host_ended);
    hostFlush();
    if (++runs % 1000 == 0) scriptCacheFlush(false);
    return 0;
}

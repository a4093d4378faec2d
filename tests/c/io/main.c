/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the test groups of io/. */
#include "io_test.h"

#include <signal.h>

int main(void) {
    signal(SIGPIPE, SIG_IGN); /* as the server does */
    int failed = 0;
    failed += test_bio();
    failed += test_compress();
    failed += test_conn();
    failed += test_conn_handshake();
    failed += test_conn_unpack();
    failed += test_file();
    failed += test_loop();
    failed += test_loop_timer();
    failed += test_net_addr();
    failed += test_process();
    failed += test_resolve();
    failed += test_spsc();
    failed += test_sys();
    failed += test_thread();
    failed += test_tls();
    testFolderRemove();
    return failed != 0;
}

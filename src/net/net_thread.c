/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threads of readers and writers (net_thread.h). */
#include "net/net_thread.h"

#include "base/base.h"

enum { READ_BYTES = 64 * 1024, WRITE_BYTES = 1024 * 1024 };

static netThread main_thread = {.read_bytes_max = READ_BYTES, .write_bytes_max = WRITE_BYTES};
static __thread const netThread *current;

netThread *netMainThread(void) { return &main_thread; }

void netThreadEnter(netThread *t) { current = t; }

bool netThreadIsCurrent(const netThread *t) { return current == t; }

void netThreadFold(netThread *t) {
    netStatistics *all = netTotals(), *own = &t->counted;
    all->bytes_in += own->bytes_in;
    all->bytes_out += own->bytes_out;
    all->repl_in += own->repl_in;
    all->repl_out += own->repl_out;
    all->slots_in += own->slots_in;
    all->slots_out += own->slots_out;
    all->reads += own->reads;
    all->writes += own->writes;
    if (own->recent_input_max > all->recent_input_max)
        all->recent_input_max = own->recent_input_max;
    if (own->recent_output_max > all->recent_output_max)
        all->recent_output_max = own->recent_output_max;
    *own = (netStatistics){0};
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a Sentinel knows of a server with synchronous replication, replication-quorum
 * (quorum_choice.c), and of data that a primary has lost. Times are of sentinelView.mono_ms. */
#ifndef MONITOR_SYNC_STATE_H
#define MONITOR_SYNC_STATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct syncState {
    /* As INFO has said; 0: it has no such fields. */
    int64_t repl_quorum, repl_lease_ms;
    int64_t info_sent_ms; /* when INFO was asked for that is pending, or was replied last */
    uint64_t stream;      /* a number for the id of the stream of its offset; 0: not told */

    /* For a replica. */
    bool has_caught_up; /* its data counts */
    bool has_keys, is_loading;
    int64_t acks_held_ms;  /* as INFO has said */
    int64_t hold_sent_ms;  /* the last order to hold acknowledgements; 0: none */
    int64_t hold_link_ms;  /* since when the link is open on which it was sent */
    bool hold_is_open;     /* no INFO that was sent after that order was replied */
    bool info_after_hold;  /* the INFO that is pending, or was replied, is one */
    int64_t held_since_ms; /* it acknowledges nothing, by orders of this Sentinel, since then and */
    int64_t held_until_ms; /* until then; 0: it does */

    /* For a primary. */
    bool is_behind; /* it was started without data that its replicas have confirmed */
    /* In a failover. */
    const char *waiting_why; /* what the selection waits for; a constant, or NULL */
    bool is_confirmed;       /* the replica was selected so that it has all that was confirmed */

    /* A replica keeps the data that its primary has lost, and does not follow it: set for both of
     * them. */
    bool keeps_lost_data;
} syncState;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A model of how the main thread and an I/O thread share a client (net/io_threads.c, io_worker.c):
 * two rings, two threads that sleep and are woken, one client that sends requests, receives what
 * others send, is released and given again, and is closed. All interleavings of the steps of the
 * two threads are visited. */
#ifndef TESTS_NET_HAND_OVER_H
#define TESTS_NET_HAND_OVER_H

#include <stdbool.h>

/* Rules that can be left out, to see that the model notices it. */
enum handOverRule {
    RULE_MAIN_LOOKS_AGAIN,      /* after it has announced that it sleeps */
    RULE_THREAD_LOOKS_AGAIN,    /* the same */
    RULE_MAIN_WAKES,            /* a thread that has announced it */
    RULE_THREAD_WAKES,          /* the same */
    RULE_CROSSED_WRITE_IS_VOID, /* a job for a client that is on its way to the main thread */
    RULE_BATCH_BEFORE_RELEASE,  /* the client may be in the batch that is being filled */
    RULE_FREED_WHEN_RELEASED,   /* not when it is closed */
    RULE_LENT_IS_NOT_CHANGED,   /* output that is being written: what is added waits */
    RULE_READY_IS_NOTED,        /* bytes that arrive while the client is at the main thread */
    RULE_RELEASE_IS_LAST,       /* no other job for the client follows it in the ring */
    RULE_ALL,
};

/* Returns the first violation that is found, NULL if there is none. `without` is a rule, or
 * RULE_ALL. `states`: how many there are. */
const char *handOverCheck(enum handOverRule without, long *states);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fixture of the engine's tests: a table of commands; gates, a sink, a key observer and a command
 * observer that note their calls; and a reader that feeds requests from a buffer which it destroys
 * afterwards. */
#ifndef TESTS_C_ENGINE_ENGINE_TEST_H
#define TESTS_C_ENGINE_ENGINE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/hooks.h"

/* Setup and teardown for cmocka: everything is new, two databases, nothing armed, the time is
 * START_MS. */
int engineTestSetUp(void **state);
int engineTestTearDown(void **state);

enum { START_MS = 1000000 };
/* Moves the wall clock. */
void setTestTime(int64_t now_ms);

/* The commands, beside those of transactions:
 *
 *   put key value [until]   a write; `until` is its expiry time in ms
 *   take key                a read: the value or null
 *   drop key                a write
 *   say word ...            replies the first word; not quick, and no write
 *   fail                    replies an error
 *   stop flag               sets a SESSION_ flag, given by number, and replies OK
 *   again                   has the flag stops_batch
 *   enter                   no_auth: logs the session in
 *   later ms                advances the wall clock
 *   twice key               propagates two other commands instead of itself
 *   publish text            changes nothing, is propagated only to replicas
 *   quiet key               a write that propagates nothing
 *   box open x, box shut    a container and its subcommands
 *   await key ... seconds   replies the value of the first existing key and deletes it, or waits
 *   for one
 *   flush, swap             empty all databases; exchange the contents of 0 and 1
 *   newer key than seconds  replies the key's number if it is greater than `than`, or waits for
 *   that; `$` is the number at
 *                           present; an error when the key is or gets missing
 *   offset n seconds        waits until `ack m` was run with m >= n; replies m
 *   kinds                   replies null, a boolean and a map with a double
 *   module                  waits for blockFinish() until *module_is_done, then replies "done"
 *   inner word ...          runs the command `word ...` through executeInner(), as `inner_params`
 *   says; replies OK
 *                           itself when that sends the reply elsewhere */

/* How `inner` runs its command: as a script's, at first. */
typedef struct innerParams {
    ctxOrigin origin;
    uint64_t gates_exempt;
    int proto;    /* 0: the outer command's */
    outbuf *out;  /* NULL: the outer command's */
    session *who; /* NULL: the outer command's; else with its output, and CTX_MAY_BLOCK */
} innerParams;
extern innerParams inner_params;
extern bool module_is_done;
/* Called when a wait of `offset` ends; NULL: nothing. */
extern void (*when_acknowledged)(void);
/* Whom `deliver text` sends the status `text`. */
extern session *deliver_to;

/* Runs requests of a session: words separated by blanks, requests by '|'. Returns how many ran. */
int ask(session *s, const char *requests);
/* The same with the bytes of a connection: pieces are parsed one after the other, as if read so. */
int askBytes(session *s, const char *const *pieces, int count);
/* What has been replied and not looked at yet, its lines joined by blanks; borrowed until the next
 * call. */
const char *replies(session *s);
/* What gates, sink, observer, commandObserver, carrier and events have noted since the last call;
 * likewise. Entries end with ';'. */
const char *noted(void);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define assert_replies(s, want) assert_string_equal(replies(s), want)
#define assert_noted(want) assert_string_equal(noted(), want)

/* A session whose carrier notes its calls. */
void sessionOpen(session *s);

/* Gates in their order: the engine's no-multi, writes, OTHER_GATES that are never armed, all,
 * again, the engine's queue. They note each evaluation, then return `verdict` (and reply "-REFUSED
 * by <name>" for GATE_REFUSED). */
enum { OTHER_GATES = 40 };
extern const gate writesGate, allGate, againGate;
extern gateVerdict verdict;
extern const char *verdict_for; /* NULL, or the one command it is meant for: others pass */
extern const sink noteSink, aofSink, replicaSink; /* of everything, or of what is for one target */
extern bool with_slots;                           /* for engineTestSetUp(): databases with slots */
extern const keyObserver noteObserver, removalObserver;
extern const commandObserver noteCommandObserver;
/* What the sink got as bytes, shown as replies are; forgotten by the call. */
const char *propagatedBytes(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fixture of the tests of pubsub/: the features of the engine and of this folder, without
 * commands. */
#ifndef TESTS_C_PUBSUB_PUBSUB_TEST_H
#define TESTS_C_PUBSUB_PUBSUB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/base.h"
#include "engine/session.h"

int pubsubTestSetUp(void **state);
int pubsubTestTearDown(void **state);
/* What a session has been sent, as text; the output is empty afterwards. The caller frees it with
 * memFree(). */
char *sentTo(session *s);
/* A random number below n, from a fixed seed. */
uint32_t randomBelow(uint32_t n);

#endif

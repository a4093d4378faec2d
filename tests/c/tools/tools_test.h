/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOLS_TEST_H
#define TOOLS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif

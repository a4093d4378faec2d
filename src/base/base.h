/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The headers of base/ that nearly every file needs, in one include. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/str.h"

#endif

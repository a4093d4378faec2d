/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks what the shared library exports; everything else is hidden. */
#ifndef VALKEY_VISIBILITY_H
#define VALKEY_VISIBILITY_H

#define LIBVALKEY_API __attribute__((visibility("default")))

/* For functions in headers that a program may not call. */
#define VALKEY_UNUSED __attribute__((unused))

#endif

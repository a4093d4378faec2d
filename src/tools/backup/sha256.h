/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHA-256 of bytes that come in parts. One thread per instance. */
#ifndef TOOLS_BACKUP_SHA256_H
#define TOOLS_BACKUP_SHA256_H

#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

enum { SHA256_TEXT = 64 };

typedef struct sha256 sha256;

sha256 *sha256New(void);
/* Accepts NULL. */
void sha256Free(sha256 *s);
void sha256Add(sha256 *s, const void *bytes, size_t len);
/* Writes lower-case hex digits and a NUL. Nothing may be added afterwards. */
void sha256End(sha256 *s, char out[SHA256_TEXT + 1]);
/* The same for bytes in memory, and for a file. */
void sha256OfSlice(slice bytes, char out[SHA256_TEXT + 1]);
status sha256OfFile(const char *path, char out[SHA256_TEXT + 1], reason *why) MUST_USE;

#endif

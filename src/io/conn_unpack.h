/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading a connection whose peer may compress what it sends from now on: a head of compress.h of
 * kind COMPRESS_STREAM, then a frame that does not end. If the first bytes are not a head, all is
 * read as it is. The thread that owns the connection. */
#ifndef IO_CONN_UNPACK_H
#define IO_CONN_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "io/compress.h"
#include "io/conn.h"

/* Called for each read: bytes received, bytes that the reader gets, and how many of these were
 * decompressed. */
typedef void connUnpackProc(size_t received, size_t plain, size_t decompressed);

/* From the next byte on, which is the first one of `received` if there are any. A frame that is
 * damaged, or ends, makes reads fail; connErrorText() tells why. */
void connUnpack(conn *c, slice received, connUnpackProc *count);
/* True if it was called for this connection. */
bool connUnpacks(const conn *c);
/* False if the first bytes have not come. */
bool connUnpackCodec(const conn *c, compressCodec *codec);

#endif

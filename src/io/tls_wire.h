/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The encoded bytes between OpenSSL and a socket. All connections of a thread share one buffer per
 * direction, so that a system call carries many records and an idle connection has no buffer; only
 * what the socket did not take, or the caller had no space to decode, is kept in the connection.
 * Used by conn_tls.c after the handshake. */
#ifndef IO_TLS_WIRE_H
#define IO_TLS_WIRE_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"

/* Bytes of one connection; zeroed: none. */
typedef struct tlsRest {
    char *bytes;
    size_t at, len; /* [at, len) is left */
} tlsRest;

typedef struct tlsWire {
    int fd; /* -1: not attached */
    bool received;
    bool drained; /* the last call that reads has emptied the socket */
    bool eof;
    tlsRest unread; /* received and not decoded */
    tlsRest unsent; /* encoded and not sent */
} tlsWire;

/* Replaces the socket BIOs of `ssl`, except one whose work the kernel does (kTLS). `w` must not
 * move. */
status tlsWireAttach(tlsWire *w, SSL *ssl, int fd) MUST_USE;
/* Frees what is left; the socket is the caller's. */
void tlsWireClear(tlsWire *w);

/* Around calls that read: between them at most one recv() is made. */
void tlsWireBeginRead(tlsWire *w);
void tlsWireEndRead(tlsWire *w);
/* True if received bytes can be decoded without another recv(). */
bool tlsWireHasUnread(const tlsWire *w);

/* After calls that may write: sends everything. ERR_AGAIN: the socket is full, and the rest is kept
 * in `unsent`; ERR_IO with errno. */
status tlsWireFlush(tlsWire *w);
/* Memory that the connection holds, in bytes. */
size_t tlsWireMemory(const tlsWire *w);

#endif

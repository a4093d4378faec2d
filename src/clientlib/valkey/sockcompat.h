/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The system's headers about sockets, for programs that include this instead of naming them. */
#ifndef VALKEY_SOCKCOMPAT_H
#define VALKEY_SOCKCOMPAT_H

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#endif

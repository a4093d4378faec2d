/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which texts a node may announce: the same rules for directives, the configuration file and
 * messages, because what one node announces is written into the file of each other one.
 * ANY_THREAD. */
#ifndef BUS_VALID_H
#define BUS_VALID_H

#include <stdbool.h>

#include "base/slice.h"

/* Letters, digits, - . / : _ ` and bytes from 128. */
bool validIsPlain(slice text);
/* As validIsPlain(), and short enough for a message. */
bool validIsIp(slice text);
/* Letters, digits, - and dots, at most 255 bytes. */
bool validIsHostname(slice text);
bool validIsHostnameChars(slice text);
/* A numeric address of that family (AF_INET, AF_INET6), or empty. */
bool validIsAddress(int family, slice text);
/* 40 lower-case hex digits. */
bool validIsId(slice text);
/* No bytes that separate the fields of the configuration file. Other servers check availability
 * zones less. */
bool validIsFileText(slice text);

#endif

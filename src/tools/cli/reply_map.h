/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of replies that are maps: arrays of names and values in RESP2, maps in RESP3. Any reply
 * may be given. */
#ifndef TOOLS_CLI_REPLY_MAP_H
#define TOOLS_CLI_REPLY_MAP_H

#include <valkey/valkey.h>

#include "base/slice.h"

/* NULL if it is missing. */
const valkeyReply *replyMapField(const valkeyReply *map, const char *name);
/* The bytes of a field, "" if it is missing or no text. */
slice replyMapSlice(const valkeyReply *map, const char *name);
/* The same as a text that ends with NUL. */
const char *replyMapText(const valkeyReply *map, const char *name);

#endif

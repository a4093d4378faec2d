/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies as text, in the formats of outputFormat. */
#ifndef TOOLS_CLI_PRINT_H
#define TOOLS_CLI_PRINT_H

#include <stdbool.h>
#include <valkey/valkey.h>

#include "base/str.h"
#include "tools/cli/options.h"

/* Appends a reply; the standard format ends with a line break, the others do not. `colors`: the
 * standard format has colours by type. */
void printStandard(str *out, const valkeyReply *reply, bool colors);
void printRaw(str *out, const valkeyReply *reply, const char *item_delimiter);
void printCsv(str *out, const valkeyReply *reply);
/* `ascii`: --quoted-json. */
void printJson(str *out, const valkeyReply *reply, bool ascii);
/* Appends a whole reply with its final delimiter. `as_text`: for texts that the server formats for
 * people; appends the bytes of the reply only. */
void printReply(str *out, const valkeyReply *reply, const cliOptions *options, bool as_text,
                bool colors);

#endif

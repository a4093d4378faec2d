/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The names of commands for TAB: those that the server has, or all that this program knows. */
#ifndef TOOLS_CLI_COMPLETION_H
#define TOOLS_CLI_COMPLETION_H

#include "tools/cli/command.h"

typedef struct completion {
    words names; /* sorted, upper case; of the server. Empty: it has not told them */
    const struct valkeyContext *asked; /* the connection on which it was asked */
} completion;

/* Asks the server, once per connection; not in a transaction or with subscriptions. */
void completionLoad(completion *c, const commandRunner *r);
void completionClear(completion *c);
/* Appends what all names that begin like `typed` (in any case) have in common. Returns their
 * number. */
int completionCommon(const completion *c, slice typed, str *out);
/* Appends these names in columns, for a terminal of so many columns. */
void completionList(const completion *c, slice typed, int columns, str *out);

#endif

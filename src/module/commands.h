/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of modules: collected while OnLoad runs, installed when it has returned, removed with
 * the module. Main thread only. */
#ifndef MODULE_COMMANDS_H
#define MODULE_COMMANDS_H

#include "base/error.h"
#include "engine/command.h"
#include "module/context.h"

/* A command or subcommand. What others see of it is `spec`. */
struct moduleCommand {
    commandSpec spec; /* of a container: its subcommands' are copied into one array at the end */
    module *owner;
    ValkeyModuleCmdFunc func;            /* NULL: a container */
    pool texts;                          /* memory of what `spec` refers to */
    moduleCommand *parent, *subs;        /* subs: the first subcommand */
    moduleCommand *next;                 /* of the module, or of the container; the latest first */
    bool described;                      /* SetCommandInfo() was called */
    bool reports_keys, reports_channels; /* its function is asked for their positions */
    bool not_in_cluster;
    bool is_installed;
};

/* Adds all commands of the module to the server's. ERR_EXISTS: a name is in use. I/O threads are
 * parked. */
status commandsInstall(module *m, reason *why) MUST_USE;
/* Removes and frees them, installed or not. */
void commandsRemove(module *m);
/* The module's command behind an engine's one; NULL if it is of no module. */
moduleCommand *commandsOf(const command *cmd);

#endif

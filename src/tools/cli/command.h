/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs one command: sends it, prints its replies, follows redirections, notes what it changes for
 * the connection. */
#ifndef TOOLS_CLI_COMMAND_H
#define TOOLS_CLI_COMMAND_H

#include "tools/cli/connection.h"
#include "tools/cli/words.h"

typedef struct commandRunner {
    connection *connection;
    bool endless;         /* without further input: messages are read until the connection ends */
    bool explain;         /* adds explanations to errors, for people at a terminal */
    bool colors;          /* replies have colours */
    int subscriptions[3]; /* channels, patterns, shard channels */
    bool debugging;       /* commands go to the Lua debugger */
    bool failed;          /* the last reply was an error */
    bool any_failed;      /* a reply was an error, or a command could not be sent */
    int64_t asked_ms;     /* time spent on questions to the user (careful.h) */
} commandRunner;

/* True while the connection has subscriptions. */
bool commandIsSubscribed(const commandRunner *r);
/* Forgets the state of the connection, and closes it. */
void commandDisconnect(commandRunner *r);
/* Runs the command `repeat` times (-1: endlessly) with the interval of the options. False if the
 * connection failed, or the reply was an error and the options ask for that (-e). Messages are on
 * standard output and standard error. */
bool commandRun(commandRunner *r, const words *command, long repeat);
/* Prints a pushed message; a function for valkeySetPushCallback(), with the runner as private
 * data. */
void commandPrintPush(void *runner, void *reply);
/* Prints the messages that were received while no command was running. */
void commandShowReceived(commandRunner *r);
/* Queues a command. False if that failed. */
bool commandAppend(connection *c, const words *command);
/* Installs the handling of pushed messages in a new connection. */
void commandAttach(commandRunner *r);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stack traces of this process, written to the log. Everything here is for signal handlers. */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include <signal.h>
#include <stdbool.h>

/* Loads the unwinder, which must not happen first in a crash, and makes every thread answer SIGUSR2 with its
 * trace. `program` is its name in traces, borrowed for ever. */
void traceInit(const char *program);
/* The trace of the calling thread, from the instruction that `context` (the third argument of a signal's handler)
 * was interrupted at; NULL: from here. Allocates nothing. */
void tracePrint(const void *context);
/* Where the context was interrupted; NULL when this processor is unknown. */
void *tracePc(const void *context);
/* The traces of all other threads, one after the other. `freeze`: none of them goes on afterwards. */
void tracePrintOthers(bool freeze);
/* A thread that must not go on while another one reports. Does not return. */
void traceFreeze(void) __attribute__((noreturn));
/* Registers, and the words on the stack unless user data are to be hidden. */
void tracePrintRegisters(const void *context, bool show_stack);
/* The bytes around the instruction, to be disassembled. */
void tracePrintCode(const void *context);

#endif

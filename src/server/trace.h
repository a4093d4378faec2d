/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stack traces of this process, written to the log. To be called from signal handlers. */
#ifndef SERVER_TRACE_H
#define SERVER_TRACE_H

#include <signal.h>
#include <stdbool.h>

/* Loads the unwinder, which must not happen for the first time in a crash, and installs the SIGUSR2
 * handler with which threads report their traces. `program` is the name shown in traces; it must
 * remain valid. */
void traceInit(const char *program);
/* Prints the trace of the calling thread, starting at the instruction that was interrupted
 * according to `context` (third argument of a signal handler), or here if NULL. Allocates
 * nothing. */
void tracePrint(const void *context);
/* The interrupted instruction; NULL if the processor is not supported. */
void *tracePc(const void *context);
/* Prints the traces of all other threads, one after the other. `freeze`: they do not continue
 * afterwards. */
void tracePrintOthers(bool freeze);
/* Stops the calling thread while another one reports. Does not return. */
void traceFreeze(void) __attribute__((noreturn));
/* Prints the registers and, with `show_stack`, the words on the stack. */
void tracePrintRegisters(const void *context, bool show_stack);
/* Prints the bytes around the instruction for disassembly. */
void tracePrintCode(const void *context);

/* The kernel's id of this thread. */
int traceOwnTid(void);

#endif

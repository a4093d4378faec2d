/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of functions by address, for stack traces. */
#ifndef SERVER_SYMBOLS_H
#define SERVER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct symbol {
    const char *object; /* the program or shared object that has the address */
    const void *base;   /* where it is loaded */
    const char *name;   /* the function; NULL if it is not known */
    const void *start;  /* its first instruction, if it is known */
} symbol;

/* `program` is the name of the main program in traces; it must remain valid. */
void symbolsInit(const char *program);
/* False if no loaded object has the address. Texts are valid until the object is unloaded.
 * Allocates nothing; for signal handlers of one thread at a time. */
bool symbolFind(const void *address, symbol *out);

#endif

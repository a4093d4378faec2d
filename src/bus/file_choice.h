/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of two texts a node starts from: that of its configuration file, or that of the copy of it.
 * The text ends with a checksum of itself, a variable in the last line that Valkey skips:
 *
 *   vars currentEpoch 6 lastVoteEpoch 6 crc64 0123456789abcdef
 *
 *   file                                           copy     used
 *   checksum is right                              any      file
 *   no checksum: written by hand or by Valkey      any      file
 *   cut, empty, or one byte differs                intact   copy
 *   empty                                          else     none: a new node
 *   cut, or one byte differs                       else     refused
 *   more bytes differ: edited by hand, as scripts  intact   file if it is valid, else copy
 *     do to addresses, or damaged                  else     file
 *   missing                                        any      none: a new node
 *
 * A file without a checksum is complete if it ends with a line of variables. If it is not, and
 * there is no intact copy, it is used as Valkey would use it.
 *
 * No state. ANY_THREAD. */
#ifndef BUS_FILE_CHOICE_H
#define BUS_FILE_CHOICE_H

#include <stdbool.h>

#include "base/slice.h"
#include "base/str.h"

/* FILE_NONE: the node is new. FILE_REFUSED: the node must not start. */
typedef enum fileUse { FILE_NONE, FILE_MAIN, FILE_MAIN_IF_VALID, FILE_COPY, FILE_REFUSED } fileUse;

typedef struct fileChoice {
    fileUse use;     /* FILE_MAIN_IF_VALID: else FILE_COPY */
    const char *why; /* what is wrong with the file, to follow "it"; NULL: nothing */
    int line;        /* where a byte differs; 0: unknown */
} fileChoice;

/* Adds the checksum to a text that ends with a line of variables. */
void clusterFileSeal(str *text);
/* The text to use; `ptr` is NULL for a file that does not exist. */
fileChoice clusterFileChoose(slice main, slice copy);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Libraries of functions, as folders see them that write and load files; `script` keeps them. Main
 * thread, or a forked child for librariesEach(). */
#ifndef ENGINE_LIBRARIES_H
#define ENGINE_LIBRARIES_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

typedef void libraryVisitProc(void *arg, slice code);

typedef struct libraryKeeper {
    void (*each)(libraryVisitProc *visit, void *arg);
    status (*load)(slice code, bool replace, reason *why);
    void (*clear)(void);
} libraryKeeper;
void librariesSetKeeper(const libraryKeeper *keeper);

/* Calls `visit` with the code of each library. */
void librariesEach(libraryVisitProc *visit, void *arg);
/* Loads a library from a file. `replace`: instead of one of the same name, which is an error
 * otherwise. ERR_DENIED if nobody keeps libraries. */
status librariesLoad(slice code, bool replace, reason *why) MUST_USE;

/* Removes all libraries: the dataset is loaded again. */
void librariesClear(void);

#endif

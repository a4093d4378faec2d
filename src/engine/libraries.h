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
    void (*each_name)(libraryVisitProc *visit, void *arg);
    slice (*code)(slice name);
    bool (*remove)(slice name);
} libraryKeeper;
void librariesSetKeeper(const libraryKeeper *keeper);

/* Calls `visit` with the code of each library. */
void librariesEach(libraryVisitProc *visit, void *arg);
/* Loads a library from a file. `replace`: instead of one of the same name, which is an error
 * otherwise. ERR_DENIED if nobody keeps libraries. */
status librariesLoad(slice code, bool replace, reason *why) MUST_USE;

/* Removes all libraries: the dataset is loaded again. */
void librariesClear(void);

/* ---- single ones, for cluster-shared-functions */

/* Calls `visit` with the name of each library. */
void librariesEachName(libraryVisitProc *visit, void *arg);
/* The code of a library, borrowed until it is removed; ptr NULL: there is none of that name. */
slice librariesCode(slice name);
/* Removes a library; false if there is none of that name. */
bool librariesRemove(slice name);
/* Called with the name of each library that is added or removed, also by a load; NULL: none. */
typedef void libraryListener(slice name);
void librariesListen(libraryListener *proc);
/* For `script`. */
void librariesChanged(slice name);

#endif

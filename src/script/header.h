/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first line of a script or library: "#!lua flags=no-writes", "#!lua name=lib". ANY_THREAD. */
#ifndef SCRIPT_HEADER_H
#define SCRIPT_HEADER_H

#include "base/str.h"
#include "script/engine.h"

typedef struct scriptHeader {
    const scriptEngine *engine;
    unsigned flags; /* enum scriptFlag; SCRIPT_NO_HEADER if there is none */
    slice code;     /* the rest, beginning with the line break */
} scriptHeader;
/* Parses the header of an EVAL script. False: the reply is in `error`. */
bool scriptHeaderParse(slice body, scriptHeader *out, str *error);

typedef struct libraryHeader {
    const scriptEngine *engine;
    str name;
    slice code;
} libraryHeader;
/* Parses the header of a library; the caller frees `out->name`. False: the reply is in `error`,
 * nothing to free. */
bool libraryHeaderParse(slice body, libraryHeader *out, str *error);
/* True if the name has letters, digits and underscores only, and is not empty. */
bool scriptNameIsValid(slice name);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Long replies on a terminal go through a pager. */
#ifndef TOOLS_CLI_PAGER_H
#define TOOLS_CLI_PAGER_H

#include "base/str.h"

/* Shows the text with the program in VALKEYCLI_PAGER or PAGER if standard output is a terminal with
 * fewer lines. False: the caller prints it. */
bool pagerShow(const str *text);

#endif
